"""The cost of a decision does not depend on the number of placed workloads: counted in operations, never in seconds."""

import msgspec
import pytest

from bayplan import schedule_pod
from bayplan.engine.engine import Engine
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.labels import equals
from bayplan.model.targets import Target
from bayplan.model.terms import HOSTNAME, ZONE, AffinityTerms, PodTerm
from bayplan.model.workloads import Images, Needs, Requests, Workload
from bayplan.placing import place_pods
from bayplan.rules import profiles

REQUESTS = Requests((("cpu", 100),), (("cpu", 100), ("memory", 1)), (("cpu", 100), ("memory", 1)))


def target(i):
    allocatable = (("cpu", 1_000_000), ("memory", 10**12), ("pods", 1000))
    return Target(name=f"n{i}", labels={HOSTNAME: f"n{i}", ZONE: f"z{i % 3}"}, allocatable=allocatable)


def workload(name, app="web", terms=None, **labels):
    needs = Needs(requests=REQUESTS, affinity=terms or AffinityTerms())
    return Workload(namespace="default", name=name, labels={"app": app, **labels}, needs=needs)


def near(app, key=ZONE):
    return AffinityTerms(preferred=(PodTerm(equals({"app": app}), key, weight=10),))


def apart(app, key=HOSTNAME):
    return AffinityTerms(anti_required=(PodTerm(equals({"app": app}), key),))


def cluster(n_targets, n_workloads, **fields):
    index = PlacementIndex()
    for i in range(n_targets):
        index.add_target(target(i))
    for i in range(n_workloads):
        index.add(workload(f"old-{i}", **fields), f"n{i % n_targets}")
    return index


def test_pods_of_one_template_share_one_full_evaluation_per_rule():
    index = cluster(50, 0)
    engine = Engine(index, profiles.pod_rules())
    for i in range(100):
        place_pods.place(workload(f"new-{i}", terms=near("web")), engine)
    assert engine.evaluations.n_full <= 6  # one for each applicable rule
    assert engine.evaluations.n_corrected >= 2 * 99


@pytest.mark.parametrize("n_workloads", [100, 1000])
def test_more_placed_workloads_mean_no_more_work(n_workloads):
    index = cluster(50, n_workloads)
    engine = Engine(index, profiles.pod_rules())
    for i in range(20):
        place_pods.place(workload(f"new-{i}", terms=near("web")), engine)
    assert engine.evaluations.n_full <= 6
    assert len(index.peer_index.classes) == 2


def test_pods_with_unique_labels_share_their_evaluations_although_one_value_is_named():
    index = cluster(10, 0)
    engine = Engine(index, profiles.pod_rules())
    seventh = AffinityTerms(anti_required=(PodTerm(equals({"ordinal": "7"}), HOSTNAME),))
    place_pods.place(workload("watcher", terms=seventh), engine)
    n_full = engine.evaluations.n_full
    for i in range(100, 130):
        place_pods.place(workload(f"db-{i}", app="db", ordinal=str(i)), engine)
    assert engine.evaluations.n_full <= n_full + 8  # one for each applicable rule


def test_rollouts_leave_no_terms_and_no_classes():
    index = cluster(10, 0)
    engine = Engine(index, profiles.pod_rules())
    for rollout in range(30):
        for i in range(5):
            place_pods.place(workload(f"web-{rollout}-{i}", app=f"v{rollout}", terms=apart(f"v{rollout}")), engine)
        for i in range(5):
            index.remove(f"default/web-{rollout}-{i}")
    engine.release()
    assert len(index.peer_index.classes) == 0
    assert len(index.peer_index.terms) == 0
    assert engine.evaluations.n_full < 30 * 8


def test_thousands_of_nodes_are_all_scored():
    index = cluster(3000, 3000, app="db")
    engine = Engine(index, profiles.pod_rules())
    index.remove("default/old-2345")
    decision = schedule_pod.schedule(workload("new", terms=apart("db")), engine)
    assert index.slots.at(decision.slot).name == "n2345"


def test_relabelling_a_namespace_moves_its_pods_between_terms():
    index = cluster(3, 0)
    engine = Engine(index, profiles.pod_rules())
    shops = PodTerm(equals({"app": "web"}), HOSTNAME, namespace_selector=equals({"team": "shop"}))
    pending = workload("pending", app="x", terms=AffinityTerms(anti_required=(shops,)))
    other = msgspec.structs.replace(workload("web"), namespace="elsewhere")
    index.add(other, "n0")
    assert schedule_pod.schedule(pending, engine).verdicts.feasible.sum() == 3
    index.set_namespace("elsewhere", {"team": "shop"})
    assert schedule_pod.schedule(pending, engine).verdicts.feasible.sum() == 2
    index.set_namespace("elsewhere", {"team": "office"})
    assert schedule_pod.schedule(pending, engine).verdicts.feasible.sum() == 3


def test_the_more_nodes_the_more_changes_are_corrected_instead_of_evaluating_all():
    engines = []
    for n_targets in (50, 10_000):
        index = cluster(n_targets, 0)
        engine = Engine(index, profiles.pod_rules())
        place_pods.place(workload("first"), engine)
        before = engine.evaluations.n_full
        for i in range(70):
            index.add(workload(f"other-{i}"), f"n{i % n_targets}")
        place_pods.place(workload("second"), engine)
        engines.append(engine.evaluations.n_full - before)
    few_nodes, many_nodes = engines
    assert (few_nodes > 0, many_nodes) == (True, 0)


def test_templates_that_differ_in_what_no_rule_reads_share_their_order_of_nodes():
    engine = Engine(cluster(10, 0), profiles.pod_rules())
    one, other = (
        msgspec.structs.replace(workload(app, app=app), needs=Needs(requests=REQUESTS, images=Images((f"{app}:1",), 1)))
        for app in ("web", "db")
    )
    assert engine.class_of(one) is not engine.class_of(other)
    assert engine.class_of(one).order is engine.class_of(other).order
