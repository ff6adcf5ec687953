"""Running Bayplan for a real Karmada control plane: rights, recordings, dry runs, failures of members and servers."""

import asyncio

import yaml
from click.testing import CliRunner

from bayplan.cli import main
from live import bayplan_running
from live.admin import ApiError, wait_for
from live.fleet_user import DUPLICATED, DYNAMIC, PATIENCE, scheduled
from live.karmada_control_plane import BINDINGS, CLUSTERS
from live.shipped import DEPLOY

MEMBERS = {"clusterAffinity": {"clusterNames": ["member1", "member2"]}}


async def test_the_shipped_rights_are_enough_and_the_api_is_discovered(karmada, fleet):
    for file in ("namespace", "service-account", "rbac"):
        for manifest in yaml.safe_load_all((DEPLOY / "fleet" / f"{file}.yaml").read_text()):
            if manifest["kind"] in ("ServiceAccount", "Role", "RoleBinding"):
                manifest["metadata"]["namespace"] = "bayplan-system"
            await fleet.create(manifest)
    token = await fleet.admin.service_account_token("bayplan-system", "bayplan-fleet")
    kubeconfig = karmada.server.kubeconfig(entry={"token": token})
    arguments = ("--leader-elect-resource-namespace", "bayplan-system")
    running = bayplan_running.process(karmada.server, *arguments, kubeconfig=kubeconfig, discovers=True)
    await fleet.deploy("web", 2)
    await fleet.propagate("web", placement={**MEMBERS, "replicaScheduling": DUPLICATED})
    await fleet.until_placed("web", {"member1": 2, "member2": 2})
    await wait_for(lambda: fleet.events_of("web"))
    running.stop()
    assert running.child.returncode == 0
    assert "no rights" not in running.log.read_text()


async def test_a_dry_run_writes_nothing(karmada, fleet):
    running = bayplan_running.process(karmada.server, "--fleet", "--dry-run")
    await fleet.deploy("web", 2)
    await fleet.propagate("web", placement={**MEMBERS, "replicaScheduling": DUPLICATED})
    await wait_for(lambda: "would patch the status" in running.log.read_text(), PATIENCE)
    found = await fleet.binding("web")
    assert "clusters" not in found["spec"]
    assert not scheduled(found)
    assert "member1" in running.log.read_text()


async def test_recorded_decisions_are_repeated(karmada, fleet, tmp_path):
    file = tmp_path / "decisions.jsonl"
    async with bayplan_running.fleet_in_process(karmada.server, record=str(file)):
        for name, replicas in (("web", 6), ("api", 3)):
            await fleet.deploy(name, replicas)
            await fleet.propagate(name, placement={**MEMBERS, "replicaScheduling": DYNAMIC})
        await fleet.until_placed("web", {"member1": 3, "member2": 3})
        await wait_for(lambda: _is_observed(fleet, "api"), PATIENCE)
        await fleet.scale("web", 8)
        await fleet.until_placed("web", {"member1": 4, "member2": 4})
    done = await asyncio.to_thread(CliRunner().invoke, main.cli, ["replay", str(file)])
    assert done.exit_code == 0, done.output
    assert "member1:4, member2:4" in done.stdout
    assert " 0 of them differ" in done.stderr


async def test_a_dead_member_is_evacuated_within_the_first_group_that_can(karmada, fleet):
    await fleet.create(
        {
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": "ClusterTaintPolicy",
            "metadata": {"name": fleet.namespace},
            "spec": {
                "targetClusters": {"clusterNames": ["member1"]},
                "addOnConditions": [{"conditionType": "Ready", "operator": "NotIn", "statusValues": ["True"]}],
                "removeOnConditions": [{"conditionType": "Ready", "operator": "In", "statusValues": ["True"]}],
                "taints": [{"key": "dead", "effect": "NoExecute"}],
            },
        }
    )
    groups = [{"affinityName": name, "clusterNames": [name]} for name in ("member1", "member2")]
    async with bayplan_running.fleet_in_process(karmada.server):
        await fleet.deploy("web", 2)
        placement = {"clusterAffinities": groups, "replicaScheduling": DUPLICATED}
        failover = {"cluster": {"purgeMode": "Gracefully"}}
        await fleet.propagate("web", placement=placement, failover=failover)
        await fleet.until_placed("web", {"member1": 2})
        await wait_for(lambda: _runs_on(fleet, "web", "member1"), PATIENCE)
        karmada.members["member1"].kill_apiserver()
        found = await fleet.until_placed("web", {"member2": 2})
        await wait_for(lambda: _runs_on(fleet, "web", "member2"), PATIENCE)
        await wait_for(lambda: _eviction_has_ended(fleet, "web"), PATIENCE)
        karmada.members["member1"].start_apiserver()
        await wait_for(lambda: _is_untainted(fleet, "member1"), PATIENCE)
        await fleet.scale("web", 3)
        await fleet.until_placed("web", {"member2": 3})  # the member has recovered, and nothing moves back

    assert found["status"]["schedulerObservingAffinityName"] == "member2"


async def test_bindings_are_scheduled_while_the_aggregated_server_is_down(karmada, fleet):
    async with bayplan_running.fleet_in_process(karmada.server) as running:
        karmada.aggregated.kill()
        await fleet.deploy("web", 4)
        await fleet.propagate("web", placement={**MEMBERS, "replicaScheduling": DYNAMIC})
        await fleet.until_placed("web", {"member1": 2, "member2": 2})
        await asyncio.to_thread(karmada.aggregated.start)
        await wait_for(lambda: _changes_label(fleet, "member1"), PATIENCE)
        await wait_for(lambda: _label_of(running, "member1") == fleet.namespace, PATIENCE)


async def _is_observed(fleet, name):
    found = await fleet.binding(name)
    return bool(scheduled(found)) and found["spec"].get("clusters")


async def _runs_on(fleet, name, member):
    return member in await fleet.replicas_on_members(name)


async def _eviction_has_ended(fleet, name):
    return not (await fleet.admin.get(BINDINGS, f"{name}-deployment", fleet.namespace))["spec"].get(
        "gracefulEvictionTasks"
    )


async def _is_untainted(fleet, name):
    return not (await fleet.admin.get(CLUSTERS, name))["spec"].get("taints")


async def _changes_label(fleet, name):
    try:
        return await fleet.admin.patch(CLUSTERS, name, {"metadata": {"labels": {"seen": fleet.namespace}}})
    except ApiError:  # the API server has not noticed yet that it is back
        return None


def _label_of(running, name):
    slots = running.state.index.slots
    return slots.at(slots.by_name[name]).labels.get("seen")
