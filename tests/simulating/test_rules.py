"""Rules while pods run, preemption and groups: the live scheduler and its enforcement in the course of time."""

import pathlib

import pytest

import bayplan

from .clusters import ZONE, deployment, in_execution, node, reasons, simulate, state, three_zones, workload

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
WIDE = [node("a1", "a", cpu="8"), node("b1", "b", cpu="8")]


def pair(**spec):
    return [deployment("s2", 1), deployment("s1", 2, pod=in_execution("podAffinity", "s2", ZONE))]


@pytest.mark.parametrize("back_after, n_evicted", [("14m", 0), ("14m50s", 0), ("16m", 2)])
def test_an_affinity_that_is_not_met_evicts_its_owner_after_the_grace_time_and_not_before(back_after, n_evicted):
    steps = [{"at": "10m", "delete": "Deployment/s2"}, {"at": back_after, "apply": deployment("s2", 1)}]
    run = simulate([*WIDE, *pair()], steps, lasts="30m", enforcement={"affinityGrace": "5m"}, timing={"stop": "0"})
    assert run.evictions == ({"enforcement": n_evicted} if n_evicted else {})


def test_without_enforcement_the_violation_stays_and_is_added_up():
    steps = [
        {"at": "10m", "delete": "Deployment/s2"},
        {"at": "40m", "expect": {"violations": {"atMost": 0, "longerThan": "5m"}}},
    ]
    run = simulate([*WIDE, *pair()], steps, timing={"stop": "0"})
    assert run.violation_minutes == {"affinity to app=s2": 60.0}
    assert [one.found for one in run] == ["2"]


def test_a_pod_that_is_relabelled_into_a_conflict_goes():
    quiet = workload("StatefulSet", "quiet", 1, pod=in_execution("podAntiAffinity", "loud"))
    other = workload("StatefulSet", "other", 1)
    objects = [node("a1"), quiet, other]
    steps = [{"at": "10m", "relabel": {"pod/other-0": {"app": "loud"}}}]
    run = simulate(objects, steps, lasts="20m", enforcement={"antiAffinityGrace": "1m"})
    (evicted,) = [one for one in run.events if one.reason == "RuleBroken"]
    assert evicted.at == 660


def test_a_pod_of_higher_priority_preempts():
    classes = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10}
    high = deployment("high", 2, cpu="3", pod={"priorityClassName": "high"})
    steps = [{"at": "10m", "apply": high}, {"at": "20m", "expect": {"ready": {"of": "high", "exactly": 2}}}]
    run = simulate([node("a1"), node("b1", "b"), classes, deployment("low", 8)], steps)
    assert run.ok, str(run)
    assert run.evictions == {"preemption": 6}
    assert {one.at for one in run.events if one.reason == "Preempted"} == {600}


def test_pods_wait_for_what_they_lack_and_are_scheduled_when_it_comes():
    objects = [node("a1", cpu="2"), deployment(replicas=4)]
    steps = [{"at": "30m", "apply": node("b1", "b")}, {"at": "35m", "expect": {"pending": 0}}]
    run = simulate(objects, steps)
    assert run.ok, str(run)
    assert run.pending_pod_minutes == 60.0


def test_a_group_is_placed_as_a_whole_or_waits():
    members = {"annotations": {"bayplan.io/group": "ring", "bayplan.io/group-min": "4"}}
    ring = deployment("ring", 4)
    ring["spec"]["template"]["metadata"] |= members
    objects = [node("a1", cpu="3"), ring]
    assert set(state(objects, [], "10m").values()) == {""}, "three would fit"
    assert "" not in state(objects, [{"at": "1m", "apply": node("b1", "b")}], "10m").values()


def test_enforcement_scenarios_are_the_same_rules(tmp_path):
    cluster = bayplan.Cluster.from_manifests(EXAMPLES / "24-required-during-execution/cluster.yaml")
    for name in ("within", "beyond"):
        assert cluster.simulate(EXAMPLES / f"24-required-during-execution/update-{name}-grace.yaml").ok


def test_random_failures_come_at_their_rate_and_only_where_they_may():
    failures = [{"nodes": f"{ZONE}=a", "rate": "24/d", "lasts": ["5m", "30m"]}]
    objects = three_zones(3)
    run = simulate(objects, [], lasts="10d", failures=failures, seed="1")
    lost = [name for _, name, _ in reasons(run, "MachineLost")]
    assert 180 < len(lost) < 300
    assert set(lost) == {"Node a1", "Node a2", "Node a3"}
    assert simulate(objects, [], lasts="10d", failures=failures, seed="2").events != run.events


def test_rebalancing_moves_pods_to_where_they_would_be_placed_by_now():
    preferred = {
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 100,
                        "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}},
                    }
                ]
            }
        }
    }
    objects = [node("a1", cpu="8"), deployment(replicas=4, pod=preferred)]
    steps = [
        {"at": "10m", "apply": node("b1", "b", cpu="8")},
        {"at": "20m", "expect": {"pods": {"of": "web", "atMost": 4, "inEvery": "zone"}}},
        {"at": "30m", "rebalance": {"maxMoves": 2}},
        {"at": "40m", "expect": [{"moves": 2}, {"pods": {"of": "web", "exactly": 2, "inEvery": "zone"}}]},
        {"at": "50m", "rebalance": True},
    ]
    run = simulate(objects, steps, lasts="1h")
    assert run.ok, str(run)
    assert run.evictions == {"rebalancing": 2}
    assert reasons(run, "NothingToGain") == [(3000, "Rebalancing", "NothingToGain")]
