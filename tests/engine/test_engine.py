"""An engine owns the caches of its rules over its index: they are bounded, released, and independent of other engines."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan import schedule_pod
from bayplan.engine import engine as engine_module
from bayplan.engine import evaluations, filtering, node_order
from bayplan.engine.engine import Engine
from bayplan.engine.node_partitions import NodePartitions
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.labels import equals
from bayplan.model.semantics import DESIGN, UPSTREAM
from bayplan.model.targets import Target
from bayplan.model.terms import HOSTNAME, AffinityTerms, PeerTerm, PodTerm, TermPart
from bayplan.model.workloads import Needs, Requests, Workload
from bayplan.rules import profiles
from properties.changing import ChangingCluster

SEEDS = st.integers(0, 2**32)
BOTH = pytest.mark.parametrize("semantics", [UPSTREAM, DESIGN], ids=["upstream", "design"])
NODES = ("n0", "n1", "n2")


def engine_over(*nodes):
    index = PlacementIndex()
    for name in nodes:
        room = (("cpu", 1_000_000), ("pods", 1000))
        index.add_target(Target(name=name, labels={HOSTNAME: name}, allocatable=room))
    return Engine(index, profiles.pod_rules())


def pod(name, cpu=100, apart_from=""):
    requests = (("cpu", cpu),)
    required = (PodTerm(equals({"app": apart_from}), HOSTNAME),) if apart_from else ()
    needs = Needs(requests=Requests(requests, requests, requests), affinity=AffinityTerms(anti_required=required))
    return Workload(namespace="default", name=name, labels={"app": "web"}, needs=needs)


def feasible_nodes(workload, engine):
    feasible = schedule_pod.schedule(workload, engine).verdicts.feasible
    return [engine.index.slots.at(int(slot)).name for slot in np.flatnonzero(feasible)]


# Rules


def test_rules_are_evaluated_in_the_order_given():
    engine, asked = engine_over(*NODES), pod("new", apart_from="web")
    results = engine.evaluate(asked)
    applied = [result.rule for result in results]
    assert applied == [rule for rule in engine.rules if rule in applied]
    backwards = engine.evaluate(asked, engine.rules[::-1])
    assert [result.rule for result in backwards] == applied[::-1]
    assert all(one.evaluation is other.evaluation for one, other in zip(results, backwards[::-1], strict=True))


def test_only_given_rules_that_apply_are_evaluated():
    engine = engine_over(*NODES)
    by_id = {rule.id: rule for rule in engine.rules}
    some = [by_id["resources"], by_id["node-affinity"]]
    assert [result.rule.id for result in engine.evaluate(pod("new"), some)] == ["resources"]
    assert len(engine.evaluations) == 1
    assert engine.evaluate(pod("new"), []) == []


# Equivalence classes


def test_workloads_that_no_rule_distinguishes_share_a_class():
    engine = engine_over(*NODES)
    first = engine.class_of(pod("a"))
    engine.index.add(pod("a"), "n0")
    assert engine.class_of(pod("b")) is first
    assert engine.class_of(pod("b", cpu=200)) is not first


def test_topology_keys_divide_the_targets_once_for_all_templates(monkeypatch):
    divided = []

    def counted(*attributes):
        divided.append(attributes)
        return NodePartitions(*attributes)

    monkeypatch.setattr(node_order, "NodePartitions", counted)
    engine = engine_over(*NODES)
    engine.index.add(pod("a"), "n0")
    for cpu in (100, 200, 300):
        slot, _ = schedule_pod.choose(pod("new", cpu, apart_from="web"), engine)
        assert engine.index.slots.at(slot).name != "n0"
    assert len(divided) == 1
    engine.index.add(pod("b"), "n1")
    engine.index.add(pod("c"), "n2")
    engine.index.add_target(Target(name="n3", labels={HOSTNAME: "n3"}, allocatable=(("cpu", 1000), ("pods", 10))))
    slot, _ = schedule_pod.choose(pod("new", 400, apart_from="web"), engine)
    assert engine.index.slots.at(slot).name == "n3"
    assert len(divided) == 2


def test_the_least_recently_used_classes_are_dropped(monkeypatch):
    monkeypatch.setattr(engine_module, "MAX_EQUIVALENCE_CLASSES", 8)
    engine = engine_over(*NODES)

    def class_of(cpu):
        engine.index.set_namespace("default", {"asked": str(cpu)})  # a change, so that each use is later
        return engine.class_of(pod("new", cpu))

    classes = {cpu: class_of(cpu) for cpu in range(1, 9)}
    assert class_of(1) is classes[1]
    classes[9] = class_of(9)
    assert len(engine._classes) == 8
    assert all(class_of(cpu) is classes[cpu] for cpu in (1, *range(3, 10)))
    assert class_of(2) is not classes[2]


@pytest.mark.parametrize("n_cached", range(50, 65))
def test_a_class_follows_changes_although_evaluating_it_dropped_some_of_its_results(n_cached, monkeypatch):
    monkeypatch.setattr(evaluations, "MAX_CACHED_BYTES", 0)  # the least number of evaluations, 64
    engine = engine_over(*NODES)
    engine.class_of(pod("first", apart_from="web"))
    requests = [rule for rule in engine.rules if rule.id == "resources"]
    while len(engine.evaluations) < n_cached:
        engine.evaluate(pod("other", cpu=1000 + len(engine.evaluations)), requests)
    asked = pod("new", cpu=7, apart_from="web")  # has the term of the first, whose result is the oldest by now
    for i, node in enumerate(NODES):
        assert schedule_pod.choose(asked, engine)[0] >= 0
        engine.index.add(pod(f"peer-{i}"), node)
    assert schedule_pod.choose(asked, engine)[0] == -1


def test_a_class_whose_results_were_dropped_is_evaluated_again():
    engine, asked = engine_over(*NODES), pod("new", apart_from="web")
    before = engine.class_of(asked)
    engine.evaluations.clear()
    after = engine.class_of(asked)
    assert after is not before
    assert not any(result.evaluation.dropped for result in after.results)
    assert engine.class_of(asked) is after


# Release


@BOTH
@settings(max_examples=20, deadline=None)
@given(seed=SEEDS)
def test_a_released_engine_holds_no_terms(semantics, seed):
    cluster = ChangingCluster(seed, semantics)
    for _ in range(10):
        cluster.step()
    terms = cluster.index.peer_index.terms
    before = (len(terms), dict(terms.mentioned))
    answers = cluster.answers()
    cluster.engine.release()
    assert (len(terms), dict(terms.mentioned)) == before
    assert len(cluster.engine.evaluations) == len(cluster.engine._classes) == 0
    assert cluster.answers() == answers
    cluster.step()
    assert cluster.answers() == cluster.fresh_answers()


def test_the_terms_of_an_asked_pod_are_held_until_release():
    engine = engine_over(*NODES)
    terms = engine.index.peer_index.terms
    engine.index.add(pod("old"), "n0")
    schedule_pod.choose(pod("new", apart_from="web"), engine)
    (placed,) = engine.index.peer_index.classes.by_id.values()
    assert len(terms) > 0
    assert len(placed.matched) > 0
    engine.release()
    assert len(terms) == 0
    assert not placed.matched  # else placed workloads would go on counting for nothing


# Several engines


@BOTH
@settings(max_examples=20, deadline=None)
@given(seed=SEEDS)
def test_engines_over_one_index_answer_independently(semantics, seed):
    cluster = ChangingCluster(seed, semantics)
    same_rules, own_rules = Engine(cluster.index, cluster.rules), Engine(cluster.index, profiles.pod_rules())
    engines = [cluster.engine, same_rules, own_rules]
    for _ in range(15):
        cluster.step()
        for engine in engines:
            if cluster.chance.random() < 0.4:  # so that they follow different stretches of the journal
                assert cluster.answers(engine) == cluster.fresh_answers()
        if cluster.chance.random() < 0.1:
            cluster.chance.choice(engines).release()
    assert all(cluster.answers(engine) == cluster.fresh_answers() for engine in engines)


def test_a_released_engine_leaves_the_results_of_others():
    engine = engine_over(*NODES)
    other, asked = Engine(engine.index, engine.rules), pod("new", apart_from="web")
    assert feasible_nodes(asked, engine) == feasible_nodes(asked, other) == list(NODES)
    n_full = other.evaluations.n_full
    engine.release()
    engine.index.add(pod("peer"), "n1")
    assert feasible_nodes(asked, other) == ["n0", "n2"]
    assert other.evaluations.n_full == n_full


def test_the_terms_of_split_classes_stay_until_their_last_owner_leaves():
    engine = engine_over(*NODES)
    for i in range(3):
        owner = pod(f"old-{i}", apart_from="web")
        engine.index.add(msgspec.structs.replace(owner, labels={"app": "web", "track": str(i)}), f"n{i}")
    classes = engine.index.peer_index.classes
    assert len(classes) == 1
    engine.index.peer_index.hold(PeerTerm((TermPart(equals({"track": "1"}), ("default",)),)))
    assert len(classes) == 2
    engine.index.remove("default/old-1")
    assert len(classes) == 1
    feasible = filtering.run(pod("new"), engine).feasible
    assert [name for name, slot in engine.index.slots.by_name.items() if feasible[slot]] == ["n1"]
