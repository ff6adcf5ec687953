"""Displaced pods are placed by the same engine, and the index is left unchanged."""

from unittest import mock

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan import schedule_pod
from bayplan.auditing import stanzas, survivability, workload_loss
from bayplan.auditing.survivability import FailureEvent
from bayplan.auditing.workload_groups import ReplicaGroup
from bayplan.engine.engine import Engine
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model import labels as label_model
from bayplan.model.node_selectors import NAME_FIELD, NodeAffinity, NodeRequirement, NodeTerm
from bayplan.model.targets import Target
from bayplan.model.terms import ZONE
from bayplan.model.workloads import Needs, Requests, SpreadConstraint, Workload, queue_order
from bayplan.model.workloads import SpreadRequirements as SpreadNeed
from bayplan.placing import place_pods, what_if
from bayplan.reading import questions
from bayplan.rules import profiles
from reference import strategies

RULES = profiles.pod_rules()
WEB = label_model.equals({"app": "web"})


def node(name, zone, cpu=4000, pods=10):
    labels = {ZONE: zone, "kubernetes.io/hostname": name}
    return Target(name=name, labels=labels, allocatable=(("cpu", cpu), ("memory", 8 << 30), ("pods", pods)))


def pod(name, cpu=1000, app="web", **rest):
    amounts = (("cpu", cpu),)
    needs = {"requests": Requests(amounts, amounts, amounts), **rest.pop("needs", {})}
    return Workload(namespace="shop", name=name, labels={"app": app}, needs=Needs(**needs), **rest)


def index_of(nodes, placed):
    index = PlacementIndex()
    for target in nodes:
        index.add_target(target)
    for workload, where in placed:
        schedule_pod.assume(index, workload, index.slots.by_name[where])
    return index


def group_of(index, name, *pods, at_least=1):
    keys = tuple(f"shop/{pod}" for pod in pods)
    return ReplicaGroup(stanzas.group_on_index(name, keys, index, at_least=at_least), keys, "shop")


def state(index):
    return {key: (record.workload, record.shares) for key, record in index.records.items()}, sorted(index.slots.by_name)


ZONE_A = FailureEvent("zone", "a", frozenset({"a1"}))


def test_displaced_pods_are_placed_on_remaining_nodes():
    index = index_of([node("a1", "a"), node("b1", "b")], [(pod("w1"), "a1"), (pod("w2"), "b1")])
    before = state(index)
    budget = group_of(index, "PodDisruptionBudget shop/web", "w1", "w2", at_least=2)
    loss = workload_loss.simulate_loss(ZONE_A, Engine(index, RULES), [budget])
    assert loss.placed == (("shop/w1", "b1"),)
    assert loss.broken == ("PodDisruptionBudget shop/web",)
    assert loss.still_broken == loss.stranded == loss.shortage == ()
    assert state(index) == before


def test_a_stranded_pod_names_what_is_missing():
    index = index_of([node("a1", "a"), node("b1", "b", 1500), node("b2", "b", 1200)], [(pod("w1", 2000), "a1")])
    loss = workload_loss.simulate_loss(ZONE_A, Engine(index, RULES), max_fixes=1)
    [stranded] = loss.stranded
    assert stranded.message == "0/2 nodes are available: 2 Insufficient cpu."
    assert (stranded.nearest, stranded.missing) == ("b1", (("cpu", 500),))
    assert workload_loss.missing_text(stranded) == "500m cpu more than b1 can hold"
    assert loss.shortage == (("cpu", 2000), ("pods", 1))
    assert "request 1500m cpu instead of 2" in [fix.change for fix in stranded.fixes]


def test_rejection_by_another_rule_is_no_shortage():
    spread = SpreadNeed((SpreadConstraint(1, ZONE, hard=True, selector=WEB, min_domains=2),))
    index = index_of(
        [node("a1", "a"), node("b1", "b")],
        [(pod("w1", needs={"spread": spread}), "a1"), (pod("w2", needs={"spread": spread}), "b1")],
    )
    [stranded] = workload_loss.simulate_loss(ZONE_A, Engine(index, RULES)).stranded
    assert stranded.message == "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints."
    assert (stranded.nearest, stranded.missing, workload_loss.missing_text(stranded)) == ("", (), "")


def test_daemons_mirror_pods_and_terminating_pods_are_lost_with_their_node():
    by_name = NodeAffinity(required=(NodeTerm(fields=(NodeRequirement(NAME_FIELD, "In", ("a1",)),)),))
    placed = [
        pod("daemon", needs={"node_affinity": by_name}),
        pod("mirror"),
        pod("leaving", terminating=True),
        pod("w"),
    ]
    index = index_of([node("a1", "a", 9000), node("b1", "b")], [(one, "a1") for one in placed])
    loss = workload_loss.simulate_loss(ZONE_A, Engine(index, RULES), not_recreated=frozenset({"shop/mirror"}))
    assert loss.gone == ("shop/daemon", "shop/leaving", "shop/mirror")
    assert loss.placed == (("shop/w", "b1"),)
    assert loss.n_displaced == 1


def test_higher_priority_is_placed_first():
    index = index_of([node("a1", "a"), node("b1", "b", 1000)], [(pod("a"), "a1"), (pod("z", priority=5), "a1")])
    loss = workload_loss.simulate_loss(ZONE_A, Engine(index, RULES))
    assert loss.placed == (("shop/z", "b1"),)
    assert [one.key for one in loss.stranded] == ["shop/a"]


def test_fixes_are_searched_once_per_loss_up_to_a_maximum():
    nodes = [node("a1", "a"), node("b1", "b"), node("c1", "c", 100)]
    index = index_of(nodes, [(pod(f"w{i}", 3000), where) for i, where in enumerate(["a1", "b1"])])
    events = survivability.label_events(ZONE, {"a1": {ZONE: "a"}, "b1": {ZONE: "b"}})
    losses = list(workload_loss.simulate_losses(events, Engine(index, RULES), max_fixes=1))
    assert [bool(loss.stranded[0].fixes) for loss in losses] == [True, False]


def again(question, lost):
    """The same result by other means: an index without the lost nodes, and `placing` on it."""
    made = questions.pod_situation_of(msgspec.convert(question, questions.PodQuestion))
    index = made.index
    displaced = []
    for name in sorted(lost):
        slot = index.slots.by_name[name]
        displaced += [index.records[key].workload for key in index.workloads_on(slot)]
    for workload in displaced:
        index.remove(workload.key)
    for name in lost:
        index.remove_target(name)
    moving = [w for w in displaced if not w.terminating and not what_if.is_pinned_to_node(w)]
    engine = Engine(index, profiles.pod_rules(made.profile))
    ordered = sorted(moving, key=queue_order)
    return [
        (w.key, p.target, p.message)
        for w, p in zip(ordered, place_pods.place_all(ordered, lambda _: engine), strict=True)
    ]


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3), st.sampled_from((0, workload_loss.MAX_UNRANKED_REPLICAS)))
def test_a_loss_is_what_the_engine_does_without_the_nodes(seed, n_lost, few):
    question = strategies.seeded(seed)
    made = questions.pod_situation_of(msgspec.convert(question, questions.PodQuestion))
    index, rules = made.index, profiles.pod_rules(made.profile)
    engine, other = Engine(index, rules), Engine(_copy(question), rules)
    # Labels equal to the node's zone count as those that binding wrote: such pods are left out.
    lost = frozenset(sorted(index.slots.by_name)[:n_lost])
    before, first = state(index), [p.message for p in place_pods.place_all([made.workload], lambda _: other)]
    with mock.patch.object(workload_loss, "MAX_UNRANKED_REPLICAS", few):  # ranked or evaluated one by one
        loss = workload_loss.simulate_loss(FailureEvent("host", "h", lost), engine)
    found = sorted([*((k, t, "") for k, t in loss.placed), *((s.key, "", s.message) for s in loss.stranded)])
    assert found == sorted(again(question, lost))
    assert state(index) == before
    assert [p.message for p in place_pods.place_all([made.workload], lambda _: engine)] == first
    for one in loss.stranded:
        assert bool(one.missing) == bool(one.nearest)


def _copy(question):
    return questions.pod_situation_of(msgspec.convert(question, questions.PodQuestion)).index


def test_losses_of_all_zones_one_after_another():
    index = index_of([node("a1", "a"), node("b1", "b")], [(pod("w1", 3000), "a1"), (pod("w2", 3000), "b1")])
    events = survivability.label_events(ZONE, {"a1": {ZONE: "a"}, "b1": {ZONE: "b"}})
    losses = list(workload_loss.simulate_losses(events, Engine(index, RULES)))
    assert [(loss.event.domain, len(loss.stranded)) for loss in losses] == [("a", 1), ("b", 1)]
