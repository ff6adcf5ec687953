"""Execution-time rules of a fleet, enforced on a real control plane by Karmada's graceful eviction."""

import json

from bayplan.enforcing.planning import EnforcementSettings
from live import bayplan_running
from live.admin import wait_for
from live.fleet_user import DEPLOYMENTS, DUPLICATED, PATIENCE
from live.karmada_control_plane import BINDINGS

QUICK = EnforcementSettings(affinity_grace=1, anti_affinity_grace=1, retry_after=1)
EXECUTION = "requiredDuringSchedulingRequiredDuringExecution"
SCHEDULING = "requiredDuringSchedulingIgnoredDuringExecution"
MEMBERS = ["member1", "member2"]


def rule(side, when, **labels):
    return json.dumps({side: {when: [{"labelSelector": {"matchLabels": labels}}]}})


async def run(fleet, name, clusters, *, labels=None, rules="", most=1):
    """Deploy a workload on one of the clusters, or on as many as `most`."""
    await fleet.deploy(name, 2, labels=labels)
    placement = {
        "clusterAffinity": {"clusterNames": clusters},
        "replicaScheduling": DUPLICATED,
        "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": most}],
    }
    annotations = {"bayplan.io/placement": rules} if rules else {}
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    await fleet.create(
        {
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": "PropagationPolicy",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"resourceSelectors": [selector], "schedulerName": "bayplan", "placement": placement},
        }
    )


async def relabel(fleet, name, **labels):
    await fleet.admin.patch(DEPLOYMENTS, name, {"metadata": {"labels": labels}}, fleet.namespace)


async def notes(fleet, name, reason):
    return [note for why, note in await fleet.events_of(name) if why == reason]


async def test_a_workload_whose_rule_is_broken_moves_and_others_are_only_reported(karmada, fleet):
    async with bayplan_running.fleet_in_process(karmada.server, enforcement=QUICK):
        await run(fleet, "loud", ["member1"])
        await fleet.until_placed("loud", {"member1": 2})
        await run(fleet, "calm", ["member1"], rules=rule("workloadAntiAffinity", SCHEDULING, noise="loud"))
        await fleet.until_placed("calm", {"member1": 2})
        await run(fleet, "quiet", ["member1"], rules=rule("workloadAntiAffinity", EXECUTION, noise="loud"))
        await fleet.until_placed("quiet", {"member1": 2})
        # Only now it may go elsewhere; a duplicated workload that has a cluster stays there.
        wider = {"spec": {"placement": {"clusterAffinity": {"clusterNames": MEMBERS}}}}
        await fleet.admin.patch("policy.karmada.io/v1alpha1/propagationpolicies", "quiet", wider, fleet.namespace)
        await fleet.until_placed("quiet", {"member1": 2})
        await wait_for(lambda: _runs_on(fleet, "quiet", ["member1"]), PATIENCE)
        await relabel(fleet, "loud", noise="loud")
        await fleet.until_placed("quiet", {"member2": 2})
        # The old copy is removed by Karmada once the new one is healthy.
        await wait_for(lambda: _runs_on(fleet, "quiet", ["member2"]), PATIENCE)
        await wait_for(lambda: _has_no_tasks(fleet, "quiet"), PATIENCE)
        told = await wait_for(lambda: notes(fleet, "quiet-deployment", "RuleBroken"), PATIENCE)
        reported = await wait_for(lambda: notes(fleet, "calm-deployment", "RuleBroken"), PATIENCE)
        await fleet.until_placed("calm", {"member1": 2})

    why = "owner of the broken rule, at equal priority"
    assert told == [f"evicted from member1 because {why}: {rejects(fleet, 'quiet')}"]
    why = "it is not required during execution"
    assert reported == [f"broken on member1, and not enforced: {why}: {rejects(fleet, 'calm')}"]


async def test_affinity_is_enforced_on_the_cluster_that_its_peer_has_left(karmada, fleet):
    async with bayplan_running.fleet_in_process(karmada.server, enforcement=QUICK):
        for name, member in (("cache-1", "member1"), ("cache-2", "member2")):
            await run(fleet, name, [member], labels={"app": "cache"})
            await fleet.until_placed(name, {member: 2})
        await run(fleet, "web", MEMBERS, rules=rule("workloadAffinity", EXECUTION, app="cache"), most=2)
        await fleet.until_placed("web", dict.fromkeys(MEMBERS, 2))
        await wait_for(lambda: _runs_on(fleet, "web", MEMBERS), PATIENCE)
        await relabel(fleet, "cache-2", app="another")
        await fleet.until_placed("web", {"member1": 2})
        await wait_for(lambda: _runs_on(fleet, "web", ["member1"]), PATIENCE)


def rejects(fleet, name):
    return f"{fleet.namespace}/{name}-deployment rejects noise=loud in cluster=member1"


async def _runs_on(fleet, name, members):
    return sorted(await fleet.replicas_on_members(name)) == members


async def _has_no_tasks(fleet, name):
    found = await fleet.admin.get(BINDINGS, f"{name}-deployment", fleet.namespace)
    return not found["spec"].get("gracefulEvictionTasks")
