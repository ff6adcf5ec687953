"""Bayplan as the scheduler of a real Karmada control plane: from a policy to the objects on the members."""

import json

from live import bayplan_running
from live.admin import ApiError, wait_for
from live.fleet_user import (
    AGGREGATED,
    DEPLOYMENTS,
    DUPLICATED,
    DYNAMIC,
    PATIENCE,
    POLICIES,
    is_observed,
    scheduled,
    shares_of,
)
from live.karmada_control_plane import BINDINGS, CLUSTER_BINDINGS, CLUSTERS

ANTI_AFFINITY = {"antiAffinity": {"groupByLabelKey": "pipeline"}}
MEMBERS = {"clusterAffinity": {"clusterNames": ["member1", "member2"]}}


def overflow(name):
    return {"affinityName": name, "clusterNames": [name]}


async def test_a_duplicated_deployment_runs_on_every_member(karmada, fleet):
    async with bayplan_running.fleet_in_process(karmada.server):
        await fleet.deploy("web", 2)
        await fleet.propagate("web", placement={**MEMBERS, "replicaScheduling": DUPLICATED})
        found = await fleet.until_placed("web", {"member1": 2, "member2": 2})
        await wait_for(lambda: _is(fleet, "web", {"member1": 2, "member2": 2}), PATIENCE)

    assert (
        json.loads(found["metadata"]["annotations"]["policy.karmada.io/applied-placement"])
        == found["spec"]["placement"]
    )
    assert found["status"]["lastScheduledTime"]
    assert scheduled(found)["message"] == "Binding has been scheduled successfully."


async def test_a_divided_deployment_is_divided_by_capacity(karmada, fleet):
    async with bayplan_running.fleet_in_process(karmada.server):
        await fleet.deploy("web", 6)
        await fleet.propagate("web", placement={**MEMBERS, "replicaScheduling": DYNAMIC})
        await fleet.until_placed("web", {"member1": 3, "member2": 3})
        await wait_for(lambda: _is(fleet, "web", {"member1": 3, "member2": 3}), PATIENCE)
        await wait_for(lambda: _is_fully_applied(fleet, "web"), PATIENCE)
        events = await wait_for(lambda: fleet.events_of("web-deployment"))

    text = "Binding has been scheduled successfully. Result: {member1:3, member2:3}"
    assert ("ScheduleBindingSucceed", text) in events


async def test_a_cluster_scoped_resource_is_propagated(karmada, fleet):
    name = f"{fleet.namespace}-viewer"
    async with bayplan_running.fleet_in_process(karmada.server):
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}}
        await fleet.create({**role, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]})
        selector = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": name}
        await fleet.create(
            {
                "apiVersion": "policy.karmada.io/v1alpha1",
                "kind": "ClusterPropagationPolicy",
                "metadata": {"name": name},
                "spec": {"resourceSelectors": [selector], "schedulerName": "bayplan", "placement": MEMBERS},
            }
        )
        binding = f"{name}-clusterrole"
        found = await wait_for(lambda: _observed(fleet, CLUSTER_BINDINGS, binding), PATIENCE)
        roles = "rbac.authorization.k8s.io/v1/clusterroles"
        for admin in fleet.members.values():
            await wait_for(lambda admin=admin: _exists(admin, roles, name), PATIENCE)
        events = await wait_for(lambda: _events_of(fleet, "default", binding))

    assert shares_of(found) == {"member1": 0, "member2": 0}
    assert any(one["note"].startswith("Binding has been scheduled successfully. Result {member") for one in events)


async def test_a_config_map_of_a_policy_for_another_scheduler_is_left_alone(karmada, fleet):
    async with bayplan_running.fleet_in_process(karmada.server):
        await fleet.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}, "data": {"a": "b"}}
        )
        await fleet.propagate("theirs", kind="ConfigMap", placement=MEMBERS, scheduler="another")
        await fleet.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ours"}, "data": {"a": "b"}})
        await fleet.propagate("ours", kind="ConfigMap", placement=MEMBERS)
        await fleet.until_placed("ours", {"member1": 0, "member2": 0}, "configmap")
        theirs = await fleet.binding("theirs", "configmap")

    assert "clusters" not in theirs["spec"]
    assert not scheduled(theirs)


async def test_tiers_are_filled_in_order_and_emptied_in_reverse(karmada, fleet):
    await fleet.add_cluster("idc", cpu="5", labels={"tier": fleet.namespace})
    await fleet.add_cluster("cloud", cpu="100")
    tiers = [{"affinityName": "idc", "clusterNames": ["idc"], "overflowAffinities": [overflow("cloud")]}]
    async with bayplan_running.fleet_in_process(karmada.server):
        await fleet.deploy("web", 3, cpu="500m")
        await fleet.propagate("web", placement={"clusterAffinities": tiers, "replicaScheduling": DYNAMIC})
        first = await fleet.until_placed("web", {"idc": 3})
        await fleet.report("idc", cpu="3500m")  # what is left beside its three replicas
        await wait_for(lambda: _knows(fleet, "idc", "3500m"))
        await fleet.scale("web", 30)
        await fleet.until_placed("web", {"idc": 10, "cloud": 20})
        await fleet.report("idc", cpu="0")
        await fleet.scale("web", 12)
        await fleet.until_placed("web", {"idc": 10, "cloud": 2})
        await fleet.scale("web", 3)
        last = await fleet.until_placed("web", {"idc": 3})

    assert (
        first["status"]["schedulerObservingAffinityName"] == last["status"]["schedulerObservingAffinityName"] == "idc"
    )


async def test_recovery_moves_nothing_and_a_rebalancer_does(karmada, fleet):
    for name in ("first", "second"):
        await fleet.add_cluster(name)
    await fleet.report("first", cpu="1")
    placement = {"clusterAffinity": {"clusterNames": ["first", "second"]}, "replicaScheduling": AGGREGATED}
    async with bayplan_running.fleet_in_process(karmada.server):
        await fleet.deploy("web", 4, cpu="1")
        await fleet.propagate("web", placement=placement)
        await fleet.until_placed("web", {"second": 4})
        await fleet.report("first", cpu="500")
        await fleet.admin.patch(CLUSTERS, "first", {"metadata": {"labels": {"recovered": "yes"}}})
        await fleet.scale("web", 5)  # observed after the recovery, and Aggregated prefers where it is
        await fleet.until_placed("web", {"second": 5})
        await fleet.rebalance("web")
        await fleet.until_placed("web", {"first": 5})


async def test_groups_are_tried_in_order_and_the_observed_one_is_kept(karmada, fleet):
    for name in ("first", "second"):
        await fleet.add_cluster(name)
    groups = [overflow(name) for name in ("first", "second")]
    await fleet.report("first", cpu="1")
    async with bayplan_running.fleet_in_process(karmada.server):
        await fleet.deploy("web", 4, cpu="1")
        await fleet.propagate("web", placement={"clusterAffinities": groups, "replicaScheduling": DYNAMIC})
        found = await fleet.until_placed("web", {"second": 4})
        await fleet.report("first", cpu="100")
        await fleet.scale("web", 6)
        later = await fleet.until_placed("web", {"second": 6})
        events = await fleet.events_of("web-deployment")

    observed = [one["status"]["schedulerObservingAffinityName"] for one in (found, later)]
    assert observed == ["second", "second"]
    assert any("with clusterAffiliates index(0): " in note for _reason, note in events)


async def test_a_workload_waits_for_the_peer_that_blocks_it_and_no_other(karmada, fleet):
    await fleet.add_cluster("alone")
    placement = {"clusterAffinity": {"clusterNames": ["alone"]}, "replicaScheduling": DUPLICATED}
    async with bayplan_running.fleet_in_process(karmada.server) as running:
        for name in ("one", "two", "other"):
            await fleet.deploy(name, 1, labels={"pipeline": "p" if name != "other" else "q"})
        await fleet.propagate("one", placement={**placement, "workloadAffinity": ANTI_AFFINITY})
        await fleet.until_placed("one", {"alone": 1})
        await fleet.propagate("two", placement={**placement, "workloadAffinity": ANTI_AFFINITY})
        message = await fleet.until_refused("two", "NoClusterFit")
        events = await wait_for(lambda: _failures(fleet, "two-deployment"))
        await fleet.propagate("other", placement={**placement, "workloadAffinity": ANTI_AFFINITY})
        await fleet.until_placed("other", {"alone": 1})
        (waiting,) = (one for one in running.state.queue.pods.values() if one.workload.name == "two-deployment")
        attempts = waiting.attempts
        await fleet.admin.delete(POLICIES, "one-policy", fleet.namespace)
        await fleet.admin.delete(DEPLOYMENTS, "one", fleet.namespace, grace=None)
        await fleet.until_placed("two", {"alone": 1})
        assert waiting.attempts == attempts + 1

    assert "cluster already has workload with the same anti-affinity group" in message
    assert f"Blocked by {fleet.namespace}/one-deployment in alone." in events[0]


async def test_a_workload_is_tried_again_when_there_is_capacity(karmada, fleet):
    await fleet.add_cluster("small", cpu="1")
    placement = {"clusterAffinity": {"clusterNames": ["small"]}, "replicaScheduling": DYNAMIC}
    async with bayplan_running.fleet_in_process(karmada.server):
        await fleet.deploy("web", 4, cpu="1")
        await fleet.propagate("web", placement=placement)
        message = await fleet.until_refused("web", "Unschedulable")
        await fleet.report("small", cpu="10")
        await fleet.until_placed("web", {"small": 4})

    assert "Clusters available replicas 1 are not enough to schedule." in message


async def test_a_workload_is_tried_again_when_a_cluster_of_an_overflow_tier_is_opened(karmada, fleet):
    closed = {"key": "closed", "value": "yes", "effect": "NoSchedule"}
    await fleet.add_cluster("idc", cpu="2")
    await fleet.add_cluster("cloud", taints=[closed])
    tiers = [{**overflow("idc"), "overflowAffinities": [overflow("cloud")]}]
    async with bayplan_running.fleet_in_process(karmada.server):
        await fleet.deploy("web", 4, cpu="1")
        await fleet.propagate("web", placement={"clusterAffinities": tiers, "replicaScheduling": DYNAMIC})
        await fleet.until_refused("web", "Unschedulable")
        await fleet.admin.patch(CLUSTERS, "cloud", {"spec": {"taints": None}})
        await fleet.until_placed("web", {"idc": 2, "cloud": 2})


async def test_a_pair_that_belongs_together_is_placed_on_one_cluster(karmada, fleet):
    together = {"affinity": {"groupByLabelKey": "app-group"}}
    await fleet.add_cluster("near")
    await fleet.add_cluster("far", cpu="200")
    placement = {
        "clusterAffinity": {"clusterNames": ["near", "far"]},
        "replicaScheduling": AGGREGATED,
        "workloadAffinity": together,
    }
    async with bayplan_running.fleet_in_process(karmada.server):
        await fleet.deploy("front", 2, labels={"app-group": "shop"})
        await fleet.propagate("front", placement=placement)
        await fleet.until_placed("front", {"far": 2})
        await fleet.report("far", cpu="50")
        await fleet.deploy("back", 2, labels={"app-group": "shop"})
        await fleet.propagate("back", placement=placement)
        await fleet.until_placed("back", {"far": 2})


async def test_an_edited_policy_moves_and_a_suspended_binding_waits(karmada, fleet):
    async with bayplan_running.fleet_in_process(karmada.server):
        await fleet.deploy("web", 2)
        one = {"clusterAffinity": {"clusterNames": ["member1"]}, "replicaScheduling": DUPLICATED}
        await fleet.propagate("web", placement=one)
        await fleet.until_placed("web", {"member1": 2})
        await fleet.admin.patch(
            BINDINGS, "web-deployment", {"spec": {"suspension": {"scheduling": True}}}, fleet.namespace
        )
        other = {"spec": {"placement": {"clusterAffinity": {"clusterNames": ["member2"]}}}}
        await fleet.admin.patch(POLICIES, "web-policy", other, fleet.namespace)
        await wait_for(lambda: _names(fleet, "web", ["member2"]))
        assert await fleet.shares("web") == {"member1": 2}
        await fleet.admin.patch(BINDINGS, "web-deployment", {"spec": {"suspension": None}}, fleet.namespace)
        await fleet.until_placed("web", {"member2": 2})
        await wait_for(lambda: _is(fleet, "web", {"member2": 2}), PATIENCE)


async def test_a_cluster_that_joins_gets_what_is_for_every_cluster(karmada, fleet):
    selected = {"clusterAffinity": {"labelSelector": {"matchLabels": {"fleet": fleet.namespace}}}}
    await fleet.add_cluster("early", labels={"fleet": fleet.namespace})
    async with bayplan_running.fleet_in_process(karmada.server):
        await fleet.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "all"}, "data": {"a": "b"}})
        await fleet.propagate("all", kind="ConfigMap", placement=selected)
        await fleet.until_placed("all", {"early": 0}, "configmap")
        await fleet.add_cluster("late")
        await fleet.admin.patch(CLUSTERS, "late", {"metadata": {"labels": {"fleet": fleet.namespace}}})
        await fleet.until_placed("all", {"early": 0, "late": 0}, "configmap")


async def _is(fleet, name, expected):
    return await fleet.replicas_on_members(name) == expected


async def _is_fully_applied(fleet, name):
    """Another controller's condition stands beside that of the scheduler."""
    conditions = (await fleet.binding(name)).get("status", {}).get("conditions", ())
    return {one["type"]: one["status"] for one in conditions} == {"Scheduled": "True", "FullyApplied": "True"}


async def _observed(fleet, resource, name):
    try:
        found = await fleet.admin.get(resource, name)
    except ApiError:
        return None
    return found if scheduled(found) and is_observed(found) else None


async def _exists(admin, resource, name):
    try:
        return await admin.get(resource, name)
    except ApiError:
        return None


async def _events_of(fleet, namespace, name):
    found = await fleet.admin.items("events.k8s.io/v1/events", namespace)
    return [one for one in found if one["regarding"]["name"] == name and one["reason"].startswith("ScheduleBinding")]


async def _knows(fleet, name, cpu):
    found = await fleet.admin.get(CLUSTERS, name)
    return found["status"]["resourceSummary"]["allocatable"]["cpu"] == cpu


async def _failures(fleet, name):
    return [note for reason, note in await fleet.events_of(name) if reason == "ScheduleBindingFailed"]


async def _names(fleet, name, clusters):
    found = await fleet.binding(name)
    return found["spec"]["placement"]["clusterAffinity"].get("clusterNames") == clusters
