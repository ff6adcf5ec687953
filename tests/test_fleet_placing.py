"""Bindings placed one after another: each sees those before it and the capacity they use."""

import copy
from fractions import Fraction

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.assigning import estimating
from bayplan.assigning.cluster_ranking import FleetEngine
from bayplan.indexing.capacity import capacity_report_of
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import bindings, targets
from bayplan.model.targets import ClusterFacts, NodeGrade, ResourceSummary
from bayplan.placing import place_bindings
from bayplan.rules import fleet_profile
from bayplan.wire.fleets import Cluster, ResourceBinding

RULES = fleet_profile.fleet_rules()
AGGREGATED = {"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}}
SPREAD = {
    "replicaScheduling": {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"dynamicWeight": "AvailableReplicas"},
    }
}
ONE = {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]}


def cluster(name, cpu=10, pods=100, **more):
    return {
        "metadata": {"name": name},
        "spec": {},
        "status": {
            "apiEnablements": [{"groupVersion": "apps/v1", "resources": [{"kind": "Deployment"}]}],
            "resourceSummary": {"allocatable": {"cpu": str(cpu), "pods": str(pods)}, **more},
        },
    }


def binding(name, replicas=1, placement=AGGREGATED, cpu="1", clusters=(), **spec):
    return {
        "metadata": {"name": f"{name}-deployment", "namespace": "web"},
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "web", "name": name},
            "replicas": replicas,
            "replicaRequirements": {"resourceRequest": {"cpu": cpu}},
            "placement": placement,
            "clusters": [{"name": target, "replicas": count} for target, count in clusters],
            **spec,
        },
    }


def index_of(written, placed=()):
    index = PlacementIndex(lost_targets_count=True)
    for one in written:
        index.add_target(targets.target_of_cluster(msgspec.convert(one, Cluster)))
    for one in placed:
        typed = msgspec.convert(one, ResourceBinding)
        index.add_shares(bindings.workload_of(typed), bindings.shares_of(typed))
    return index


def workload(written):
    return bindings.workload_of(msgspec.convert(written, ResourceBinding))


def test_each_binding_sees_the_capacity_that_earlier_ones_use():
    index = index_of([cluster("a", 10), cluster("b", 8)])
    engine = FleetEngine(index, RULES)
    pending = [workload(binding(name, 6)) for name in ("x", "y", "z")]
    found = list(place_bindings.place_all(pending, engine))
    assert [one.shares for one in found[:2]] == [(("a", 6),), (("b", 6),)]
    # Four and two are left, which are enough only together.
    assert sorted(found[2].shares) == [("a", 4), ("b", 2)]
    (last,) = place_bindings.place_all([workload(binding("late", 1))], engine)
    assert (last.placed, last.reason) == (False, "Unschedulable")


def test_without_assuming_only_reported_capacity_counts():
    index = index_of([cluster("a", 10), cluster("b", 8)])
    engine = FleetEngine(index, RULES)
    pending = [workload(binding(name, 6)) for name in ("x", "y", "z")]
    found = place_bindings.place_all(pending, engine, assumes=False)
    assert {one.shares for one in found} == {(("a", 6),)}


def test_running_replicas_are_already_in_the_report():
    index = index_of([cluster("a", 10)], [binding("x", 4, clusters=[("a", 4)])])
    engine = FleetEngine(index, RULES)
    grown = place_bindings.place(workload(binding("x", 6, clusters=[("a", 4)])), engine)
    assert grown.shares == (("a", 6),)
    assert (
        estimating.max_replicas(estimating.replica_requests((("cpu", Fraction(1)),)), index.cluster_capacity.reports[0])
        == 8
    )


NEAR = {
    "workloadAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {"matchLabels": {"app": "cache"}}}]
    }
}


def labelled(written, **labels):
    return bindings.workload_of(msgspec.convert(written, ResourceBinding), {"metadata": {"labels": labels}})


def test_a_binding_whose_peer_is_placed_later_is_tried_again():
    index = index_of([cluster("a"), cluster("b")])
    near = {**ONE, **NEAR}
    chain = {
        "workloadAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {"matchLabels": {"app": "web"}}}]
        }
    }
    pending = [
        labelled(binding("first", 1, {**ONE, **chain}), app="first"),
        labelled(binding("web", 1, near), app="web"),
        labelled(binding("cache", 1, ONE), app="cache"),
        labelled(binding("alone", 1, {**ONE, **chain, "clusterAffinity": {"clusterNames": ["b"]}}), app="alone"),
    ]
    found = {one.workload.binding.name: one for one in place_bindings.place_all(pending, FleetEngine(index, RULES))}
    assert {name: one.shares for name, one in found.items()} == {
        "cache": (("a", 1),), "web": (("a", 1),), "first": (("a", 1),), "alone": (),
    }  # fmt: skip
    assert "did not match workload affinity rules" in found["alone"].message


def test_bindings_placed_in_one_run_are_peers():
    index = index_of([cluster("a"), cluster("b")])
    engine = FleetEngine(index, RULES)
    apart = {"antiAffinityGroup": "app=x"}
    pending = [workload(binding(n, 1, ONE, workloadAffinityGroups=apart)) for n in ("x", "y", "z")]
    found = list(place_bindings.place_all(pending, engine))
    assert [one.shares for one in found] == [(("a", 1),), (("b", 1),), ()]
    assert found[2].message == (
        "0/2 clusters are available: 2 cluster already has workload with the same anti-affinity group."
    )


def test_a_binding_does_not_conflict_with_itself():
    apart = {"antiAffinityGroup": "app=x"}
    old = binding("x", 1, ONE, clusters=[("a", 1)], workloadAffinityGroups=apart)
    index = index_of([cluster("a"), cluster("b")], [old])
    engine = FleetEngine(index, RULES)
    assert place_bindings.place(workload(old), engine).shares == (("a", 1),)
    assert index.records["web/x-deployment"].shares == (("a", 1),)


def test_the_old_result_is_cleared_if_no_cluster_fits():
    nowhere = {"clusterAffinity": {"clusterNames": ["c"]}}
    old = binding("x", 1, nowhere, clusters=[("a", 1)])
    index = index_of([cluster("a")], [old])
    engine = FleetEngine(index, RULES)
    found = place_bindings.place(workload(old), engine)
    assert (found.reason, found.shares, dict(index.records)) == ("NoClusterFit", (), {})


def test_the_old_result_stays_after_any_other_failure():
    old = binding("x", 50, clusters=[("a", 1)])
    index = index_of([cluster("a", 2)], [old])
    engine = FleetEngine(index, RULES)
    found = place_bindings.place(workload(old), engine)
    assert (found.reason, found.shares) == ("Unschedulable", (("a", 1),))
    assert index.records["web/x-deployment"].shares == (("a", 1),)


def test_a_workload_of_several_components_counts_once():
    parts = [{"name": n, "replicas": 2, "replicaRequirements": {"resourceRequest": {"cpu": "1"}}} for n in ("j", "t")]
    index = index_of([cluster("a", 10)])
    engine = FleetEngine(index, RULES)
    written = binding("x", 0, ONE, components=parts)
    del written["spec"]["replicaRequirements"]
    place_bindings.place(workload(written), engine)
    assert dict(index.slots.at(0).cluster.summary.allocating) == {"cpu": 4, "pods": 4}


# Reference implementations


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 30)), min_size=1, max_size=4),
    st.lists(
        st.tuples(
            st.integers(1, 8), st.sampled_from([AGGREGATED, SPREAD, ONE, {}]), st.sampled_from(["500m", "1", "3"])
        ),
        min_size=1,
        max_size=6,
    ),
)
def test_assumed_capacity_equals_what_clusters_would_report(rooms, pending):
    """The reference writes every placement into the clusters' `allocating` and builds the index from scratch."""
    reported = [cluster(f"c{i}", cpu, pods) for i, (cpu, pods) in enumerate(rooms)]
    index, placed = index_of(reported), []
    engine = FleetEngine(index, RULES)
    for number, (replicas, placement, cpu) in enumerate(pending):
        written = binding(f"w{number}", replicas, placement, cpu)
        fast = place_bindings.place(workload(written), engine)
        slow = place_bindings.place(workload(written), FleetEngine(index_of(reported, placed), RULES), assumes=False)
        assert (fast.shares, fast.message) == (slow.shares, slow.message)
        reported = [_with(one, written, dict(fast.shares)) for one in reported]
        if fast.shares:
            placed.append(binding(f"w{number}", replicas, placement, cpu, clusters=fast.shares))


def _with(written, placed, shares):
    written = copy.deepcopy(written)
    summary = written["status"]["resourceSummary"]
    count = shares.get(written["metadata"]["name"], 0)
    cpu = Fraction(placed["spec"]["replicaRequirements"]["resourceRequest"]["cpu"].replace("500m", "0.5"))
    before = summary.get("allocating", {"cpu": "0", "pods": "0"})
    summary["allocating"] = {
        "cpu": f"{int((Fraction(before['cpu'].replace('m', '')) / 1000 + cpu * count) * 1000)}m",
        "pods": str(int(before["pods"]) + count),
    }
    return written


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 12)), max_size=4),
    st.integers(1, 4),
)
def test_nodes_of_resource_models_are_filled_one_by_one(grades, loads, asked):
    """The reference fills every single node."""
    facts = ClusterFacts(
        summary=ResourceSummary(allocatable=(("pods", Fraction(10**6)),)),
        grades=tuple(NodeGrade(count, (("cpu", Fraction(cpu)),), 3) for count, cpu in grades),
    )
    nodes = [[cpu, 3] for count, cpu in grades for _ in range(count)]
    for cpu, count in loads:
        facts = estimating.with_load(facts, [((("cpu", Fraction(cpu)),), count)])
        left = count
        for node in nodes:
            while left and node[0] >= cpu and node[1]:
                node[0], node[1], left = node[0] - cpu, node[1] - 1, left - 1
    expected = sum(min(cpu // asked, pods) for cpu, pods in nodes)
    assert (
        estimating.max_replicas(estimating.replica_requests((("cpu", Fraction(asked)),)), capacity_report_of(facts))
        == expected
    )
