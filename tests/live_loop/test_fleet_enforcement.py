"""Execution-time rules of a fleet: which copies leave their clusters, when, and within which limits. In memory."""

import json
import logging

import pytest

from bayplan.enforcing.planning import EnforcementSettings
from bayplan.live.cluster_writer import ObjectRef, PodGoneError, RejectedError, UnknownOutcomeError
from bayplan.live.fleet_writer import eviction_patch
from bayplan.model.workloads import WorkloadKey
from live_loop.fleet_simulated import FleetSimulation

GRACE = EnforcementSettings(affinity_grace=300, anti_affinity_grace=60, per_minute=30, at_once=10)
EXECUTION = "requiredDuringSchedulingRequiredDuringExecution"
SCHEDULING = "requiredDuringSchedulingIgnoredDuringExecution"
EVERYWHERE = {"clusterAffinity": {}}
ONE_CLUSTER = {**EVERYWHERE, "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]}
REGION = "topology.karmada.io/region"


def rule(side, *, when=EXECUTION, key="", namespaces=None, **labels):
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
    if namespaces is not None:
        term["namespaces"] = namespaces
    return {"bayplan.io/placement": json.dumps({side: {when: [term]}})}


def apart(**labels):
    return rule("workloadAntiAffinity", **labels)


def near(**labels):
    return rule("workloadAffinity", **labels)


def simulation(settings=GRACE, **more):
    fleet = FleetSimulation(enforcement=settings, **more)
    for name, region in (("one", "north"), ("two", "north"), ("three", "south")):
        fleet.cluster(name, region=region)
    return fleet


def run(fleet, name, clusters, *, labels=None, rules=None, priority=0, placement=ONE_CLUSTER, replicas=2, **spec):
    """A workload that has been scheduled to these clusters before."""
    if priority:
        spec["schedulePriority"] = {"priority": priority}
    applied = placement | {k: v for text in (rules or {}).values() for k, v in json.loads(text).items()}
    annotations = {"policy.karmada.io/applied-placement": json.dumps(applied)}
    fleet.template(name, labels or {}, rules)
    placed = dict.fromkeys(clusters, replicas)
    fleet.bind(name, placement, placed, replicas=replicas, annotations=annotations, **spec)


async def enforce(fleet, seconds=0.0):
    """Advance the time step by step, carry out the evictions that are due, and let everything else happen."""
    enforcement, end = fleet.parts.enforcement, fleet.now + seconds
    await fleet.settle()
    while True:
        plan = await enforcement.plan_evictions()
        enforcement.report_withheld(plan)
        for eviction in plan.evict:
            await enforcement._evict(eviction)
        await fleet.settle()
        if plan.evict:
            continue
        due = enforcement._next_at(plan)
        if due > end:
            break
        fleet.now = max(fleet.now, due)
    fleet.now = end
    await fleet.settle()


def notes(fleet, name, reason):
    return [note for subject, why, note in fleet.server.events if (subject, why) == (name, reason)]


async def test_a_workload_relabelled_into_a_conflict_leaves_the_cluster_after_the_grace_period():
    fleet = simulation()
    run(fleet, "quiet", ["one"], rules=apart(app="loud"), priority=5)
    run(fleet, "other", ["one"], labels={"app": "harmless"})
    await enforce(fleet, 600)
    assert fleet.server.evictions == []
    fleet.template("other", {"app": "loud"})
    await enforce(fleet, 59)
    assert fleet.server.evictions == []
    await enforce(fleet, 2)
    assert fleet.server.evictions == [("other-deployment", "one")], "the one of lower priority"
    (task,) = fleet.of("other")["spec"]["gracefulEvictionTasks"]
    why = "lower priority than a workload that it conflicts with: shop/quiet-deployment rejects app=loud in cluster=one"
    assert task == {
        "fromCluster": "one",
        "purgeMode": "Gracefully",
        "reason": "RuleBroken",
        "message": why,
        "producer": "bayplan",
        "replicas": 2,
    }
    assert fleet.shares("other").keys() <= {"two", "three"}, "it is scheduled again, elsewhere"
    assert sum(fleet.shares("other").values()) == 2
    assert notes(fleet, "other", "RuleBroken") == [f"evicted from one because {why}"]
    assert notes(fleet, "other-deployment", "RuleBroken") == notes(fleet, "other", "RuleBroken")
    assert len(notes(fleet, "quiet-deployment", "NeighbourEvicted")) == 1


async def test_a_rule_for_scheduling_alone_and_a_group_are_reported_once_and_never_enforced():
    fleet = simulation()
    run(fleet, "quiet", ["one"], rules=apart(app="loud", when=SCHEDULING))
    run(fleet, "loud", ["one"], labels={"app": "loud"})
    for name, cluster in (("left", "two"), ("right", "three")):
        run(fleet, name, [cluster], workloadAffinityGroups={"affinityGroup": "set=x"})
    await enforce(fleet, 59)
    assert not notes(fleet, "quiet-deployment", "RuleBroken")
    await enforce(fleet, 3600)
    assert fleet.server.evictions == []
    (note,) = notes(fleet, "quiet-deployment", "RuleBroken")
    assert note == (
        "broken on one, and not enforced: it is not required during execution: "
        "shop/quiet-deployment rejects app=loud in cluster=one"
    )
    assert len(notes(fleet, "left-deployment", "RuleBroken")) == 1
    assert not notes(fleet, "loud-deployment", "RuleBroken")


async def test_affinity_evicts_its_owner_only_where_the_peer_is_missing():
    fleet = simulation()
    run(fleet, "cache", ["one"], labels={"app": "cache"})
    run(fleet, "web", ["one", "two"], rules=near(app="cache"), placement=EVERYWHERE)
    await enforce(fleet, 301)
    assert fleet.server.evictions == [("web-deployment", "two")]
    assert fleet.shares("web") == {"one": 2}


async def test_in_a_region_every_copy_of_the_less_important_workload_leaves_one_after_the_other():
    fleet = simulation()
    run(fleet, "quiet", ["one"], rules=apart(app="loud", key=REGION), priority=5)
    run(fleet, "loud", ["one", "two", "three"], labels={"app": "loud"}, placement=EVERYWHERE)
    await enforce(fleet, 61)
    assert len(fleet.server.evictions) == 1, "one cluster of a workload at a time"
    fleet.end_evictions("loud")
    await enforce(fleet, 31)
    assert sorted(fleet.server.evictions) == [("loud-deployment", "one"), ("loud-deployment", "two")]
    fleet.end_evictions("loud")
    await enforce(fleet, 600)
    assert fleet.shares("loud") == {"three": 2}
    assert len(fleet.server.evictions) == 2


async def test_a_rule_of_another_namespace_needs_consent():
    fleet = simulation()
    fleet.namespace("shop")
    fleet.namespace("bank")
    run(fleet, "tenant", ["one"], rules=apart(app="loud", namespaces=["shop", "bank"]), priority=5)
    labels = fleet.of("tenant")["metadata"]["labels"]
    content = fleet.of("tenant") | {"metadata": {"name": "loud-deployment", "namespace": "bank", "labels": labels}}
    content["spec"] = {
        **content["spec"],
        "schedulePriority": None,
        "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "bank", "name": "loud", "uid": "u"},
    }
    fleet.server.put(content | {"status": {}})
    fleet.template_of("bank", "loud", {"app": "loud"})
    fleet.report()
    await enforce(fleet, 600)
    assert fleet.server.evictions == []
    (note,) = notes(fleet, "tenant-deployment", "RuleNotEnforced")
    assert note.startswith("not enforced, because 1 workload of another scheduler or of namespaces without consent ")
    fleet.namespace("bank", {"bayplan.io/evictable-by": "shop"})
    await enforce(fleet, 61)
    assert fleet.server.evictions == [("loud-deployment", "one")]
    (note,) = notes(fleet, "loud-deployment", "RuleBroken")
    assert "a workload of another namespace rejects app=loud" in note
    assert "tenant" not in note


async def test_a_workload_of_another_scheduler_is_never_evicted():
    fleet = simulation()
    run(fleet, "quiet", ["one"], rules=apart(app="loud"), priority=5)
    run(fleet, "loud", ["one"], labels={"app": "loud"})
    run(fleet, "even", ["two"], rules=apart(app="shrill"))
    run(fleet, "shrill", ["two"], labels={"app": "shrill"})
    for name in ("loud", "shrill"):
        fleet.change(name, {"spec": {"schedulerName": "default-scheduler"}})
    fleet.report()
    await enforce(fleet, 600)
    assert fleet.server.evictions == [("even-deployment", "two")], "the owner goes, unless it is more important"
    assert notes(fleet, "quiet-deployment", "RuleNotEnforced")


async def test_labels_that_are_not_known_evict_nobody():
    fleet = simulation()
    run(fleet, "web", ["one"], rules=near(app="cache"))
    cache = WorkloadKey("shop/cache-deployment")
    fleet.bind("cache", ONE_CLUSTER, {"one": 2})  # its template has not been seen
    assert cache in fleet.state.index.records
    await enforce(fleet, 3600)
    assert fleet.server.evictions == []
    fleet.template("cache", {"app": "something-else"})
    await enforce(fleet, 301)
    assert fleet.server.evictions == [("web-deployment", "one")]


async def test_the_limits_are_kept():
    fleet = simulation(EnforcementSettings(anti_affinity_grace=60, per_minute=2, at_once=10))
    run(fleet, "quiet", ["one"], rules=apart(app="loud"), priority=5)
    for i in range(5):
        run(fleet, f"loud-{i}", ["one"], labels={"app": "loud"})
    await enforce(fleet, 61)
    assert len(fleet.server.evictions) == 2
    await enforce(fleet, 60)
    assert len(fleet.server.evictions) == 4


async def test_no_more_evictions_are_in_progress_than_allowed():
    fleet = simulation(EnforcementSettings(anti_affinity_grace=60, per_minute=30, at_once=2))
    run(fleet, "quiet", ["one"], rules=apart(app="loud"), priority=5)
    for i in range(3):
        run(fleet, f"loud-{i}", ["one"], labels={"app": "loud"})
    await enforce(fleet, 120)
    assert len(fleet.server.evictions) == 2
    name = fleet.server.evictions[0][0].removesuffix("-deployment")
    fleet.end_evictions(name)
    await enforce(fleet)
    assert len(fleet.server.evictions) == 3


async def test_a_workload_that_fits_nowhere_else_stays_if_that_is_wanted():
    fleet = simulation(EnforcementSettings(anti_affinity_grace=60, only_if_placeable=True))
    run(fleet, "quiet", ["one"], rules=apart(app="loud"), priority=5)
    only = {"clusterAffinity": {"clusterNames": ["one"]}}
    run(fleet, "bound", ["one"], labels={"app": "loud"}, placement=only)
    run(fleet, "free", ["one"], labels={"app": "loud"})
    await enforce(fleet, 600)
    assert fleet.server.evictions == [("free-deployment", "one")]


async def test_a_refused_eviction_is_told_and_tried_again():
    fleet = simulation()
    run(fleet, "quiet", ["one"], rules=apart(app="loud"), priority=5)
    run(fleet, "loud", ["one"], labels={"app": "loud"})
    fleet.server.eviction_faults = [RejectedError("the quota says no")]
    await enforce(fleet, 61)
    assert fleet.server.evictions == []
    (note,) = notes(fleet, "loud-deployment", "EvictionRefused")
    assert note.endswith("the quota says no")
    await enforce(fleet, 31)
    assert fleet.server.evictions == [("loud-deployment", "one")]


async def test_an_eviction_whose_answer_is_lost_is_not_made_twice():
    fleet = simulation()
    run(fleet, "quiet", ["one"], rules=apart(app="loud"), priority=5)
    run(fleet, "loud", ["one"], labels={"app": "loud"})
    evict = fleet.server.evict

    async def without_answer(binding, task):
        await evict(binding, task)
        raise UnknownOutcomeError("no answer")

    fleet.server.evict = without_answer
    await enforce(fleet, 600)
    assert fleet.server.evictions == [("loud-deployment", "one")]


async def test_other_tasks_of_the_binding_are_kept_and_come_first():
    fleet = simulation()
    run(fleet, "quiet", ["one"], rules=apart(app="loud"), priority=5)
    task = {"fromCluster": "two", "purgeMode": "Gracefully", "producer": "TaintManager", "creationTimestamp": "t"}
    run(fleet, "loud", ["one"], labels={"app": "loud"}, gracefulEvictionTasks=[task])
    await enforce(fleet, 61)
    assert fleet.server.evictions == [], "it is leaving another cluster"
    assert not notes(fleet, "loud-deployment", "EvictionRefused")
    fleet.end_evictions("loud")
    await enforce(fleet, 31)
    assert fleet.server.evictions == [("loud-deployment", "one")]


@pytest.mark.parametrize("off", ["dry run", "switched off"])
async def test_nothing_is_evicted_in_a_dry_run_or_when_switched_off(off, caplog):
    caplog.set_level(logging.INFO, "bayplan.enforcement")
    fleet = simulation(enforcement_dry_run=off == "dry run")
    run(fleet, "quiet", ["one"], rules=apart(app="loud"), priority=5)
    run(fleet, "loud", ["one"], labels={"app": "loud"})
    if off == "switched off":
        fleet.parts.enforcement.switch(on=False)
    await enforce(fleet, 600)
    assert fleet.server.evictions == []
    logged = [record.workload for record in caplog.records if record.message == "would evict"]
    assert logged == (["shop/loud-deployment@one"] if off == "dry run" else [])


async def test_violations_are_counted_in_the_metrics():
    fleet = simulation()
    run(fleet, "quiet", ["one"], rules=apart(app="loud"), priority=5)
    run(fleet, "loud", ["one"], labels={"app": "loud"})
    await fleet.settle()
    assert 'bayplan_violations{rule="apart"} 1.0' in fleet.parts.metrics.text().decode()
    await enforce(fleet, 61)
    assert 'bayplan_evictions_total{outcome="evicted"} 1.0' in fleet.parts.metrics.text().decode()


async def test_until_the_watch_reports_it_an_eviction_is_not_made_again():
    fleet = simulation()
    run(fleet, "quiet", ["one"], rules=apart(app="loud"), priority=5)
    run(fleet, "loud", ["one"], labels={"app": "loud"})
    await enforce(fleet, 59)
    fleet.now += 2
    (eviction,) = (await fleet.parts.enforcement.plan_evictions()).evict
    await fleet.parts.enforcement._evict(eviction)
    assert (await fleet.parts.enforcement.plan_evictions()).evict == ()


def test_the_patch_of_an_eviction_keeps_what_else_is_in_the_lists():
    task = {"fromCluster": "two", "preservedLabelState": {"a": "b"}}
    clusters = [{"name": "one", "replicas": 1}, {"name": "three", "components": []}]
    found = {"metadata": {"uid": "u", "resourceVersion": "7"}, "spec": {"clusters": clusters}}
    found["spec"]["gracefulEvictionTasks"] = [task]
    binding = ObjectRef("shop", "web-deployment", "u", "work.karmada.io/v1alpha2", "ResourceBinding")
    assert eviction_patch(found, binding, {"fromCluster": "one"}) == {
        "metadata": {"uid": "u", "resourceVersion": "7"},
        "spec": {
            "clusters": [{"name": "three", "components": []}],
            "gracefulEvictionTasks": [task, {"fromCluster": "one"}],
        },
    }
    with pytest.raises(PodGoneError):
        eviction_patch(found, binding, {"fromCluster": "two"})
