"""Where Bayplan differs from karmada-scheduler on a real control plane, each under its switch; priority and quota."""

import msgspec

from bayplan.model.semantics import UPSTREAM
from live import bayplan_running
from live.admin import wait_for
from live.fleet_user import AGGREGATED, DEPLOYMENTS, DUPLICATED, DYNAMIC, PATIENCE, POLICIES, shares_of
from live.karmada_control_plane import BINDINGS, CLUSTERS

MEMBERS = ["member1", "member2"]
ONE_OF_BOTH = {
    "clusterAffinity": {"clusterNames": MEMBERS},
    "replicaScheduling": DUPLICATED,
    "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
}
APART = {**ONE_OF_BOTH, "workloadAffinity": {"antiAffinity": {"groupByLabelKey": "apart"}}}
TOGETHER = {**ONE_OF_BOTH, "workloadAffinity": {"affinity": {"groupByLabelKey": "together"}}}
QUOTAS = "policy.karmada.io/v1alpha1/federatedresourcequotas"


def switched(**switches):
    return msgspec.structs.replace(UPSTREAM, **switches)


async def evict(fleet, name, cluster):
    """Evict as the taint manager does; the old copy stays until `let_go`, as that of a workload that never gets healthy."""
    task = {"fromCluster": cluster, "purgeMode": "Gracefully", "reason": "test", "producer": "test"}
    patch = {"spec": {"clusters": None, "gracefulEvictionTasks": [{**task, "suppressDeletion": True}]}}
    await fleet.admin.patch(BINDINGS, f"{name}-deployment", patch, fleet.namespace)


async def let_go(fleet, name):
    patch = {"spec": {"gracefulEvictionTasks": None}}
    await fleet.admin.patch(BINDINGS, f"{name}-deployment", patch, fleet.namespace)


async def cluster_of(fleet, name):
    """The only cluster of a workload, once it has one."""

    async def found():
        return await fleet.shares(name) or None

    ((cluster, _replicas),) = (await wait_for(found, PATIENCE)).items()
    return cluster


def other(cluster):
    return next(name for name in MEMBERS if name != cluster)


async def one_is_draining(fleet):
    """Deploy two workloads that must not share a cluster, and evict the first one; returns the cluster that it leaves."""
    for name in ("first", "second"):
        await fleet.deploy(name, 1, labels={"apart": "flink"})
    await fleet.propagate("first", placement=APART)
    left = await cluster_of(fleet, "first")
    await evict(fleet, "first", left)
    await fleet.until_placed("first", {other(left): 1})
    await fleet.propagate("second", placement=APART)
    return left


async def test_a_copy_that_still_drains_keeps_anti_affine_workloads_out(karmada, fleet):
    async with bayplan_running.fleet_in_process(karmada.server, semantics=switched(draining_copies_count=True)):
        left = await one_is_draining(fleet)
        await fleet.until_refused("second", "NoClusterFit")
        await let_go(fleet, "first")
        await fleet.until_placed("second", {left: 1})


async def test_a_draining_copy_does_not_count_for_karmada(karmada, fleet):
    async with bayplan_running.fleet_in_process(karmada.server):
        left = await one_is_draining(fleet)
        await fleet.until_placed("second", {left: 1})


async def test_a_co_located_group_fails_over_together(karmada, fleet):
    names = ("front", "back", "cache")
    async with bayplan_running.fleet_in_process(karmada.server, semantics=switched(groups_move_together=True)):
        for name in names:
            await fleet.deploy(name, 1, labels={"together": "shop"})
            await fleet.propagate(name, placement=TOGETHER)
        lost = await cluster_of(fleet, "front")
        for name in names:
            await fleet.until_placed(name, {lost: 1})
        for name in names:  # one after another: each finds the others still there, or gone already
            await evict(fleet, name, lost)
        for name in names:
            await fleet.until_placed(name, {other(lost): 1})


async def test_a_group_waits_for_its_last_member_as_for_karmada(karmada, fleet):
    async with bayplan_running.fleet_in_process(karmada.server):
        for name in ("front", "back"):
            await fleet.deploy(name, 1, labels={"together": "shop"})
            await fleet.propagate(name, placement=TOGETHER)
        lost = await cluster_of(fleet, "front")
        await fleet.until_placed("back", {lost: 1})
        await evict(fleet, "front", lost)
        await fleet.until_refused("front", "NoClusterFit")
        await evict(fleet, "back", lost)
        await fleet.until_placed("back", {other(lost): 1})
        await fleet.until_placed("front", {other(lost): 1})


async def test_a_workload_fails_back_once_its_first_group_has_lasted(karmada, fleet):
    groups = [{"affinityName": name, "clusterNames": [name]} for name in MEMBERS]
    async with bayplan_running.fleet_in_process(karmada.server, semantics=switched(fail_back_after=3)):
        await fleet.deploy("web", 2)
        await taint(fleet, "member1", "NoSchedule")
        await fleet.propagate("web", placement={"clusterAffinities": groups, "replicaScheduling": DUPLICATED})
        await fleet.until_placed("web", {"member2": 2})
        await wait_for(lambda: _runs_only_on(fleet, "member2"), PATIENCE)
        await taint(fleet, "member1", None)
        found = await fleet.until_placed("web", {"member1": 2})
        await wait_for(lambda: _runs_only_on(fleet, "member1"), PATIENCE)
        events = await fleet.events_of("web-deployment")

    assert found["status"]["schedulerObservingAffinityName"] == "member1"
    assert any("It fails back from member2." in note for _reason, note in events)


async def taint(fleet, cluster, effect):
    """Let a cluster have the taint of a test, or none of it."""
    found = await fleet.admin.get(CLUSTERS, cluster)
    taints = [one for one in found["spec"].get("taints") or () if one["key"] != "closed"]
    taints += [{"key": "closed", "effect": effect}] if effect else []
    await fleet.admin.patch(CLUSTERS, cluster, {"spec": {"taints": taints or None}})


async def _runs_only_on(fleet, member):
    return await fleet.replicas_on_members("web") == {member: 2}


async def test_what_was_just_placed_is_deducted(karmada, fleet):
    await fleet.add_cluster("small", cpu="10")
    placement = {"clusterAffinity": {"clusterNames": ["small"]}, "replicaScheduling": DYNAMIC}
    switches = switched(scheduling_overcommit_protection=True)
    async with bayplan_running.fleet_in_process(karmada.server, semantics=switches):
        for name in ("first", "second"):
            await fleet.deploy(name, 6, cpu="1")
        await fleet.propagate("first", placement=placement)
        await fleet.until_placed("first", {"small": 6})
        await fleet.propagate("second", placement=placement)
        message = await fleet.until_refused("second", "Unschedulable")
        await fleet.admin.delete(POLICIES, "first-policy", fleet.namespace)
        await fleet.admin.delete(DEPLOYMENTS, "first", fleet.namespace, grace=None)
        await fleet.until_placed("second", {"small": 6})

    assert "Clusters available replicas 4 are not enough to schedule." in message


async def test_what_was_just_placed_counts_again_once_it_is_healthy_and_reported(karmada, fleet):
    placement = {"clusterAffinity": {"clusterNames": ["member1"]}, "replicaScheduling": AGGREGATED}
    switches = switched(scheduling_overcommit_protection=True)
    async with bayplan_running.fleet_in_process(karmada.server, semantics=switches) as running:
        await fleet.deploy("first", 12, cpu="1")  # of 16 that the model of the member has room for
        await fleet.propagate("first", placement=placement)
        await fleet.until_placed("first", {"member1": 12})
        await wait_for(lambda: not running.state.capacity.n_loads, PATIENCE)
        await fleet.deploy("second", 12, cpu="1")  # nothing runs pods on the members, so they report all as free
        await fleet.propagate("second", placement=placement)
        await fleet.until_placed("second", {"member1": 12})


async def test_the_binding_of_higher_priority_is_scheduled_first(karmada, fleet):
    await fleet.add_cluster("small", cpu="5")
    placement = {"clusterAffinity": {"clusterNames": ["small"]}, "replicaScheduling": DYNAMIC}
    switches = switched(scheduling_overcommit_protection=True)
    important = f"important-{fleet.namespace}"
    await fleet.create(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": important},
            "value": 1000,
        }
    )
    chosen = {"schedulePriority": {"priorityClassSource": "KubePriorityClass", "priorityClassName": important}}
    for name, further in (("low", {}), ("high", chosen)):
        await fleet.deploy(name, 4, cpu="1")
        await fleet.propagate(name, placement=placement, **further)
        await wait_for(lambda name=name: _is_there(fleet, name), PATIENCE)
    async with bayplan_running.fleet_in_process(karmada.server, semantics=switches):
        found = await fleet.until_placed("high", {"small": 4})
        await fleet.until_refused("low", "Unschedulable")

    assert found["spec"]["schedulePriority"] == {"priority": 1000}


async def _is_there(fleet, name):
    return await fleet.shares(name) is not None


async def test_a_refusal_by_a_federated_quota_is_told_and_tried_again(karmada, fleet):
    await fleet.create(
        {
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": "FederatedResourceQuota",
            "metadata": {"name": "quota"},
            "spec": {"overall": {"cpu": "1"}},
        }
    )
    await wait_for(lambda: _quota_is_known(fleet), PATIENCE)
    async with bayplan_running.fleet_in_process(karmada.server):
        await fleet.deploy("web", 4, cpu="500m")
        await fleet.propagate("web", placement={**ONE_OF_BOTH, "replicaScheduling": DYNAMIC})
        message = await fleet.until_refused("web", "QuotaExceeded")
        events = await wait_for(lambda: fleet.events_of("web-deployment"))
        await fleet.admin.patch(QUOTAS, "quota", {"spec": {"overall": {"cpu": "10"}}}, fleet.namespace)

        async def has_replicas():
            return sum(shares_of(await fleet.binding("web")).values()) == 4

        await wait_for(has_replicas, PATIENCE)

    assert f"FederatedResourceQuota({fleet.namespace}/quota) exceeded for resource cpu" in message
    assert ("ScheduleBindingFailed", message) in events


async def _quota_is_known(fleet):
    return (await fleet.admin.get(QUOTAS, "quota", fleet.namespace)).get("status", {}).get("overall")
