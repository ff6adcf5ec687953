"""The scheduling loop of bindings on a control plane in memory."""

import json

import pytest

from bayplan.live.fleet_writer import DryRunFleetWriter
from bayplan.queueing.pending_pod import QueueStage
from bayplan.wire.meta import ApiObject, ObjectMeta
from live_loop.fleet_simulated import FleetSimulation, over_quota

EVERYWHERE = {"clusterAffinity": {}}
DIVIDED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
AGGREGATED = {**EVERYWHERE, "replicaScheduling": DIVIDED}
APART = {**EVERYWHERE, "workloadAffinity": {"antiAffinity": {"groupByLabelKey": "set"}}}
APPLIED = "policy.karmada.io/applied-placement"
FOREIGN = {"type": "FullyApplied", "status": "True", "reason": "x", "message": "y", "lastTransitionTime": "z"}


def apart(group):
    return {"workloadAffinityGroups": {"antiAffinityGroup": f"set={group}"}}


@pytest.fixture
def fleet():
    simulation = FleetSimulation()
    simulation.cluster("one")
    return simulation


async def test_a_result_is_two_patches_and_is_not_decided_again(fleet):
    fleet.bind("web", EVERYWHERE, status={"conditions": [FOREIGN]})
    await fleet.settle()
    assert [kind for kind, _ in fleet.server.patches] == ["object", "status"]
    found = fleet.of("web")
    assert fleet.shares("web") == {"one": 2}
    assert json.loads(found["metadata"]["annotations"][APPLIED]) == EVERYWHERE
    condition = {
        "type": "Scheduled",
        "status": "True",
        "reason": "Success",
        "message": "Binding has been scheduled successfully.",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    assert found["status"] == {
        "schedulerObservedGeneration": found["metadata"]["generation"],
        "lastScheduledTime": "2026-01-01T00:00:00Z",
        "conditions": [FOREIGN, condition],
    }
    text = "Binding has been scheduled successfully. Result: {one:2}"
    assert fleet.server.events == [(name, "ScheduleBindingSucceed", text) for name in ("web-deployment", "web")]
    assert not fleet.state.queue.pods


async def test_a_status_written_meanwhile_is_kept(fleet):
    fleet.bind("web", EVERYWHERE)
    writes = iter([{"status": {"conditions": [FOREIGN]}}, {"status": {"aggregatedStatus": [{"clusterName": "one"}]}}])

    def interfere():
        for patch in writes:
            fleet.change("web", patch)
            return

    fleet.server.before_patch = interfere
    await fleet.settle()
    assert fleet.shares("web") == {"one": 2}
    assert [one["type"] for one in fleet.of("web")["status"]["conditions"]] == ["FullyApplied", "Scheduled"]
    assert fleet.of("web")["status"]["aggregatedStatus"] == [{"clusterName": "one"}]


async def test_a_result_for_an_older_specification_is_dropped(fleet):
    fleet.bind("web", AGGREGATED)
    changes = iter([{"spec": {"replicas": 5}}])
    fleet.server.before_patch = lambda: [fleet.change("web", patch) for patch in changes]
    await fleet.settle()
    fleet.now = 2
    await fleet.settle()
    assert fleet.shares("web") == {"one": 5}
    assert fleet.of("web")["spec"]["replicas"] == 5
    assert [patch["spec"]["clusters"] for kind, patch in fleet.server.patches if kind == "object"] == [
        [{"name": "one", "replicas": 2}],
        [{"name": "one", "replicas": 5}],
    ]


async def test_an_eviction_is_not_undone_by_a_result_that_is_being_written(fleet):
    fleet.cluster("two")
    fleet.bind(
        "web", {**AGGREGATED, "spreadConstraints": [{"spreadByField": "cluster", "maxGroups": 1, "minGroups": 1}]}
    )
    await fleet.settle()
    (first,) = fleet.shares("web")
    fleet.bind("web", {**AGGREGATED, "clusterTolerations": []}, {first: 2}, replicas=3)
    task = {"fromCluster": first, "purgeMode": "Gracefully"}
    changes = iter([{"spec": {"clusters": None, "gracefulEvictionTasks": [task]}}])
    fleet.server.before_patch = lambda: [fleet.change("web", patch) for patch in changes]
    await fleet.settle()
    fleet.now = 2
    await fleet.settle()
    assert first not in fleet.shares("web")
    assert sum(fleet.shares("web").values()) == 3


async def test_a_write_whose_answer_is_lost_happens_once(fleet):
    fleet.bind("web", EVERYWHERE)
    fleet.server.lost_answers = 1
    await fleet.settle()
    assert [kind for kind, _ in fleet.server.patches] == ["object", "status"]
    assert fleet.condition("web")["status"] == "True"
    assert fleet.of("web")["status"]["schedulerObservedGeneration"] == fleet.of("web")["metadata"]["generation"]


async def test_every_generation_is_observed(fleet):
    fleet.bind("web", AGGREGATED)
    await fleet.settle()
    fleet.change("web", {"spec": {"resource": {"resourceVersion": "2"}}})
    fleet.report()
    await fleet.settle()
    found = fleet.of("web")
    assert found["status"]["schedulerObservedGeneration"] == found["metadata"]["generation"] == 3
    assert [kind for kind, _ in fleet.server.patches] == ["object", "status", "status"]


async def test_a_status_whose_write_was_cut_off_is_completed(fleet):
    fleet.bind("web", AGGREGATED, {"one": 2}, annotations={APPLIED: json.dumps(AGGREGATED)})
    await fleet.settle()
    status = fleet.of("web")["status"]
    assert fleet.condition("web")["reason"] == "Success"
    assert status["lastScheduledTime"]
    assert status["schedulerObservedGeneration"] == 1


async def test_another_order_of_the_same_clusters_is_not_written(fleet):
    fleet.cluster("two", cpu="10")
    fleet.bind("web", EVERYWHERE)
    await fleet.settle()
    n_patches, generation = len(fleet.server.patches), fleet.of("web")["metadata"]["generation"]
    fleet.cluster("two", cpu="1000", labels={"changed": "yes"}, generation=2)
    await fleet.settle()
    assert len(fleet.server.patches) == n_patches
    assert fleet.of("web")["metadata"]["generation"] == generation


async def test_only_the_binding_that_a_peer_has_blocked_is_tried_when_it_goes(fleet):
    fleet.bind("first", APART, **apart("a"))
    await fleet.settle()
    fleet.bind("second", APART, **apart("a"))
    fleet.bind("stuck", {**APART, "clusterAffinity": {"clusterNames": ["none"]}}, **apart("b"))
    await fleet.settle()
    assert fleet.condition("second")["reason"] == "NoClusterFit"
    waiting = {pending.workload.name: pending for pending in fleet.state.queue.pods.values()}
    fleet.now = 20
    fleet.delete("first")
    await fleet.settle()
    assert fleet.shares("second") == {"one": 2}
    assert waiting["stuck-deployment"].attempts == 1
    assert waiting["stuck-deployment"].stage is QueueStage.UNSCHEDULABLE


async def test_the_event_names_the_peer_and_not_one_of_another_namespace(fleet):
    fleet.bind("first", APART, **apart("a"))
    await fleet.settle()
    fleet.bind("second", APART, **apart("a"))
    await fleet.settle()
    (note,) = {note for name, reason, note in fleet.server.events if reason == "ScheduleBindingFailed"}
    assert note.endswith("Blocked by shop/first-deployment in one.")
    assert "Blocked by" not in fleet.condition("second")["message"]


async def test_capacity_wakes_and_a_cluster_that_does_not_help_does_not(fleet):
    fleet.cluster("one", cpu="1")
    fleet.bind("web", AGGREGATED, replicas=4)
    await fleet.settle()
    assert fleet.condition("web")["reason"] == "Unschedulable"
    fleet.now = 20
    fleet.cluster("one", cpu="2")
    await fleet.settle()
    (pending,) = fleet.state.queue.pods.values()
    assert pending.attempts == 1
    fleet.cluster("one", cpu="4")
    await fleet.settle()
    assert fleet.shares("web") == {"one": 4}


async def test_the_reason_is_another_one_when_the_peer_goes_and_there_is_no_capacity(fleet):
    scarce = {**AGGREGATED, "workloadAffinity": APART["workloadAffinity"]}
    fleet.cluster("one", cpu="2")
    fleet.bind("first", scarce, **apart("a"))
    await fleet.settle()
    fleet.bind("second", scarce, replicas=4, **apart("a"))
    await fleet.settle()
    assert fleet.condition("second")["reason"] == "NoClusterFit"
    fleet.now = 20
    fleet.delete("first")
    await fleet.settle()
    assert fleet.condition("second")["reason"] == "Unschedulable"
    (pending,) = fleet.state.queue.pods.values()
    attempts = pending.attempts
    for fleet.now in (40, 341, 642):
        await fleet.settle()
    assert pending.attempts == attempts, "what is true is not written again"


async def test_another_reason_is_told_at_once_and_other_words_after_five_minutes(fleet):
    fleet.cluster("one", cpu="1")
    fleet.bind("web", AGGREGATED, replicas=4)
    await fleet.settle()
    first = fleet.condition("web")["message"]
    fleet.now = 20
    fleet.cluster("one", cpu="2")
    await fleet.settle()
    assert fleet.condition("web")["message"] == first, "clusters report other numbers all the time"
    fleet.cluster("one", cpu="2", generation=2, taints=[{"key": "closed", "value": "yes", "effect": "NoSchedule"}])
    await fleet.settle()
    assert fleet.condition("web")["reason"] == "NoClusterFit"
    fleet.now = 40
    fleet.cluster("one", cpu="3", generation=3)
    await fleet.settle()
    assert "Clusters available replicas 3" in fleet.condition("web")["message"]
    fleet.cluster("one", cpu="2", generation=3)
    await fleet.settle()
    fleet.now = 400
    await fleet.settle()
    assert "Clusters available replicas 2" in fleet.condition("web")["message"]
    assert b"bayplan_missed_requeues_total 0.0" in fleet.parts.metrics.text()


async def test_a_suspended_binding_and_one_of_another_scheduler_only_count(fleet):
    fleet.bind("web", AGGREGATED, {"one": 1}, suspension={"scheduling": True})
    await fleet.settle()
    assert fleet.counted("web") == {"one": 1}
    assert not fleet.server.patches
    fleet.change("web", {"spec": {"suspension": None}})
    fleet.report()
    await fleet.settle()
    assert fleet.shares("web") == {"one": 2}


async def test_a_quota_that_is_exceeded_is_reported_and_tried_again(fleet):
    text = "FederatedResourceQuota(shop/q) exceeded for resource cpu: requested sum 2, limit 1."
    fleet.bind("web", EVERYWHERE)
    fleet.server.refusals.append(over_quota(text))
    await fleet.settle()
    assert fleet.condition("web")["reason"] == "QuotaExceeded"
    assert fleet.condition("web")["message"] == text
    assert fleet.counted("web") == {}
    fleet.now = 20
    await fleet.settle()
    assert fleet.condition("web")["reason"] == "Success"


BROKEN = {
    "no placement": (None, {}, "failed to get placement from resourceBinding(shop/web-deployment)"),
    "an unknown strategy": ({"replicaScheduling": {"replicaSchedulingType": "Halved"}}, {}, "replicaSchedulingType"),
    "a malformed annotation": (EVERYWHERE, {"bayplan.io/placement": "{"}, "bayplan.io/placement"),
    "labels that are no labels": (EVERYWHERE, {"bayplan.io/workload-labels": "[]"}, "bayplan.io/workload-labels"),
}


@pytest.mark.parametrize("placement, annotations, says", BROKEN.values(), ids=BROKEN.keys())
async def test_a_binding_that_cannot_be_read_is_told_so_and_the_queue_goes_on(fleet, placement, annotations, says):
    fleet.bind("web", placement, annotations=annotations)
    fleet.bind("fine", EVERYWHERE)
    await fleet.settle()
    assert fleet.condition("web")["reason"] == "SchedulerError"
    assert says in fleet.condition("web")["message"]
    assert any(says in note for name, _, note in fleet.server.events if name == "web-deployment")
    assert fleet.shares("web") == {}
    assert fleet.shares("fine") == {"one": 2}


async def test_times_that_cannot_be_read_are_an_error_of_the_binding(fleet):
    status = {"lastScheduledTime": "2026-01-01T00:00:00Z"}
    fleet.bind("web", EVERYWHERE, status=status, rescheduleTriggeredAt="soon")
    fleet.bind("fine", EVERYWHERE)
    await fleet.settle()
    assert "rescheduleTriggeredAt" in fleet.condition("web")["message"]
    assert fleet.shares("fine") == {"one": 2}


async def test_a_binding_on_a_cluster_that_is_gone_is_placed_elsewhere(fleet):
    fleet.bind("web", EVERYWHERE, {"gone": 2}, annotations={APPLIED: json.dumps(EVERYWHERE)})
    await fleet.settle()
    assert fleet.shares("web") == {"one": 2}


async def test_nothing_more_is_placed_on_a_cluster_that_cannot_be_read(fleet):
    fleet.bind("web", EVERYWHERE)
    await fleet.settle()
    fleet.state.set_aside_cluster(ApiObject(metadata=ObjectMeta(name="one")))
    fleet.bind("late", EVERYWHERE)
    await fleet.settle()
    assert fleet.shares("web") == fleet.counted("web") == {"one": 2}
    assert fleet.condition("late")["reason"] == "NoClusterFit"
    fleet.now = 20
    fleet.cluster("one", generation=2)
    await fleet.settle()
    assert fleet.shares("late") == {"one": 2}


async def test_a_cluster_that_is_deleted_is_left(fleet):
    fleet.cluster("two")
    fleet.bind("web", {**AGGREGATED, "clusterAffinity": {"clusterNames": ["one", "two"]}}, replicas=1)
    await fleet.settle()
    (where,) = fleet.shares("web")
    fleet.cluster(where, leaving=True, generation=2)
    await fleet.settle()
    assert list(fleet.shares("web")) == [{"one": "two", "two": "one"}[where]]


async def test_a_deleted_binding_no_longer_counts(fleet):
    fleet.bind("web", EVERYWHERE)
    await fleet.settle()
    fleet.delete("web")
    assert fleet.counted("web") == {}
    assert not fleet.state.bindings
    assert not fleet.state.queue.pods


async def test_no_missed_requeue_is_found_by_the_sweep(fleet):
    fleet.bind("web", {**EVERYWHERE, "clusterAffinity": {"clusterNames": ["late"]}})
    await fleet.settle()
    fleet.now = 301
    await fleet.settle()
    fleet.cluster("late")
    await fleet.settle()
    assert fleet.shares("web") == {"late": 2}
    assert b"bayplan_missed_requeues_total 0.0" in fleet.parts.metrics.text()


async def test_what_others_write_after_a_result_that_changed_nothing_counts(fleet):
    fleet.cluster("two")
    fleet.bind("web", EVERYWHERE)
    await fleet.settle()
    fleet.cluster("two", labels={"changed": "yes"}, generation=2)
    await fleet.settle()
    fleet.change("web", {"spec": {"clusters": [{"name": "one", "replicas": 2}], "suspension": {"scheduling": True}}})
    fleet.report()
    assert fleet.counted("web") == {"one": 2}


async def test_a_dry_run_writes_nothing_and_counts_what_it_would_write():
    fleet = FleetSimulation()
    fleet.server.patch = DryRunFleetWriter().patch
    fleet.cluster("one")
    fleet.bind("web", AGGREGATED)
    await fleet.settle()
    assert fleet.shares("web") == {}
    assert fleet.counted("web") == {"one": 2}
    fleet.change("web", {"metadata": {"labels": {"a": "b"}}})
    fleet.report()
    assert fleet.counted("web") == {"one": 2}
    fleet.change("web", {"spec": {"replicas": 3}})
    fleet.report()
    await fleet.settle()
    assert fleet.counted("web") == {"one": 3}


def groups(n):
    return {"clusterAffinities": [{"affinityName": f"g{i}", "clusterNames": [f"no-{i}"]} for i in range(n)]}


async def test_a_placement_beyond_the_limit_is_refused_and_others_are_scheduled():
    fleet = FleetSimulation(max_binding_constraints=50)
    fleet.cluster("one")
    fleet.bind("large", groups(6))
    fleet.bind("within", {"clusterAffinities": [*groups(4)["clusterAffinities"], {"affinityName": "last"}]})
    await fleet.settle()
    assert fleet.shares("within") == {"one": 2}
    assert fleet.shares("large") == {}
    text = "the placement has 60 scheduling constraints, more than the 50 that this scheduler accepts (--max-binding-constraints)"  # fmt: skip
    assert (fleet.condition("large")["reason"], fleet.condition("large")["message"]) == ("SchedulerError", text)
    assert ("large", "ScheduleBindingFailed", text) in fleet.server.events


async def test_a_placement_that_grows_beyond_the_limit_stays_where_it_is():
    fleet = FleetSimulation(max_binding_constraints=50)
    fleet.cluster("one")
    fleet.template("web", {"app": "web"})
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {"matchLabels": {"app": "db"}}}]}
    apart_from_db = {"bayplan.io/placement": json.dumps({"workloadAntiAffinity": terms})}
    fleet.bind("web", EVERYWHERE, annotations=apart_from_db)
    await fleet.settle()
    fleet.bind("web", groups(6), {"one": 2}, annotations=apart_from_db)
    fleet.template("db", {"app": "db"})
    fleet.bind("db", EVERYWHERE)
    await fleet.settle()
    assert (fleet.shares("web"), fleet.counted("web")) == ({"one": 2}, {"one": 2})
    assert fleet.shares("db") == {}  # the rule of web holds while it runs


async def test_without_a_limit_every_placement_is_read():
    fleet = FleetSimulation(max_binding_constraints=0)
    fleet.cluster("one")
    fleet.bind("large", {"clusterAffinities": [*groups(200)["clusterAffinities"], {"affinityName": "last"}]})
    await fleet.settle()
    assert fleet.shares("large") == {"one": 2}
