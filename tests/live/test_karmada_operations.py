"""Running Bayplan for a real Karmada control plane: rights, recordings, dry runs, failures of members and servers."""

import asyncio

import yaml
from click.testing import CliRunner

from bayplan.cli import main
from live import bayplan_running
from live.admin import ApiError, wait_for
from live.fleet_rounds import recorded, rounds
from live.fleet_user import DUPLICATED, DYNAMIC, PATIENCE, POLICIES, is_observed, scheduled, shares_of
from live.karmada_control_plane import BINDINGS, CLUSTERS
from live.kubectl import kubectl
from live.shipped import DEPLOY

MEMBERS = {"clusterAffinity": {"clusterNames": ["member1", "member2"]}}


async def test_the_shipped_rights_are_enough_and_the_api_is_discovered(karmada, fleet):
    kubeconfig = await shipped(karmada, fleet)
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


@rounds
async def test_a_dead_member_is_evacuated_within_the_first_group_that_can(karmada, fleet, round_):
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
    with recorded("a member down"):
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


@rounds
async def test_bindings_are_scheduled_while_the_aggregated_server_is_down(karmada, fleet, round_):
    with recorded("aggregated API down"):
        async with bayplan_running.fleet_in_process(karmada.server) as running:
            karmada.aggregated.kill()
            await fleet.deploy("web", 4)
            await fleet.propagate("web", placement={**MEMBERS, "replicaScheduling": DYNAMIC})
            await fleet.until_placed("web", {"member1": 2, "member2": 2})
            await asyncio.to_thread(karmada.aggregated.start)
            await wait_for(lambda: _changes_label(fleet, "member1"), PATIENCE)
            await wait_for(lambda: _label_of(running, "member1") == fleet.namespace, PATIENCE)


async def _is_observed(fleet, name):
    try:
        found = await fleet.binding(name)
    except ApiError:  # not created yet
        return False
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


async def shipped(karmada, fleet):
    """A kubeconfig of the ServiceAccount of deploy/fleet, with its rights and no others."""
    fleet.admin.retried = (*fleet.admin.retried, "object is being deleted")  # the namespace of the test before
    for file in ("namespace", "service-account", "rbac"):
        for manifest in yaml.safe_load_all((DEPLOY / "fleet" / f"{file}.yaml").read_text()):
            if manifest["kind"] in ("ServiceAccount", "Role", "RoleBinding"):
                manifest["metadata"]["namespace"] = "bayplan-system"
            await fleet.create(manifest)
    token = await fleet.admin.service_account_token("bayplan-system", "bayplan-fleet")
    return karmada.server.kubeconfig(entry={"token": token})


async def test_the_deployment_that_is_shipped_schedules_and_kubectl_shows_it(karmada, fleet):
    """As the how-to page installs it, but for addresses: rights, a token by kubectl, and the flags of the Deployment."""
    await shipped(karmada, fleet)
    admin = karmada.server.kubeconfig()
    asked = ("create", "token", "bayplan-fleet", "-n", "bayplan-system", "--duration=8760h")
    token = (await asyncio.to_thread(kubectl, *asked, kubeconfig=admin)).stdout.strip()
    kubeconfig = karmada.server.kubeconfig(entry={"token": token})
    given = [flag for flag in host_flags() if not flag.startswith(("--kubeconfig", "--metrics", "--health"))]
    replicas = [bayplan_running.process(karmada.server, *given, kubeconfig=kubeconfig) for _ in range(2)]
    karmada.schedulers.extend(replicas)
    await fleet.deploy("web", 2)
    await fleet.propagate("web", placement={**MEMBERS, "replicaScheduling": DUPLICATED})
    await fleet.until_placed("web", {"member1": 2, "member2": 2})
    await fleet.deploy("lost", 2)
    await fleet.propagate("lost", placement={"clusterAffinity": {"clusterNames": ["nowhere"]}})
    await fleet.until_refused("lost", "NoClusterFit")

    async def shown():
        """The first three columns of `kubectl get resourcebindings`, once everything is applied."""
        done = await asyncio.to_thread(kubectl, "get", "rb", "-n", fleet.namespace, kubeconfig=admin)
        rows = [line.split()[:3] for line in done.stdout.splitlines()]
        return rows if ["web-deployment", "True", "True"] in rows else None

    found = await wait_for(shown, PATIENCE)
    assert found[0] == ["NAME", "SCHEDULED", "FULLYAPPLIED"]
    assert next(row for row in found if row[0] == "lost-deployment")[1] == "False"
    assert not any("no rights" in one.log.read_text() for one in replicas)


def host_flags():
    """The flags of the Deployment in deploy/fleet-host."""
    found = yaml.safe_load((DEPLOY / "fleet-host" / "deployment.yaml").read_text())
    return found["spec"]["template"]["spec"]["containers"][0]["args"][1:]


async def test_a_policy_changes_hands_and_back(karmada, fleet):
    """`schedulerName` of a policy is immutable, so it is deleted and created again; the workload stays meanwhile."""
    karmada.start_karmada_scheduler()
    placement = {**MEMBERS, "replicaScheduling": DYNAMIC}
    async with bayplan_running.fleet_in_process(karmada.server):
        await fleet.deploy("web", 2)
        await fleet.propagate("web", placement=placement, scheduler="default-scheduler", policy="hand-2")
        await fleet.until_placed("web", {"member1": 1, "member2": 1})
        for scheduler, replicas in (("bayplan", 4), ("default-scheduler", 6), ("bayplan", 8)):
            await fleet.admin.delete(POLICIES, f"hand-{replicas - 2}", fleet.namespace)
            await fleet.propagate("web", placement=placement, scheduler=scheduler, policy=f"hand-{replicas}")
            await wait_for(lambda wanted=scheduler: _belongs_to(fleet, "web", wanted), PATIENCE)
            assert sum((await fleet.shares("web")).values()) >= replicas - 2, "nothing is lost on the way"
            await fleet.scale("web", replicas)
            await fleet.until_placed("web", {"member1": replicas // 2, "member2": replicas // 2})
        await wait_for(lambda: _is_on_members(fleet, "web", {"member1": 4, "member2": 4}), PATIENCE)


async def test_bindings_of_a_policy_that_is_edited_again_and_again_end_where_their_placement_says(karmada, fleet):
    """Which edit is the last one that Karmada copies to a binding is up to its detector."""
    async with bayplan_running.fleet_in_process(karmada.server) as running:
        names = [f"web-{number}" for number in range(6)]
        for name in names:
            await fleet.deploy(name, 2)
        placement = {"clusterAffinity": {"clusterNames": ["member1"]}, "replicaScheduling": DUPLICATED}
        await fleet.propagate(*names, placement=placement, policy="edited")
        for number in range(15):
            member = f"member{1 + number % 2}"
            change = {"spec": {"placement": {"clusterAffinity": {"clusterNames": [member]}}}}
            await fleet.admin.patch(POLICIES, "edited", change, fleet.namespace)
        await wait_for(lambda: _follow_their_placement(running, fleet, names), PATIENCE)


async def test_templates_that_are_deleted_and_created_again_under_the_same_name_are_placed(karmada, fleet):
    async with bayplan_running.fleet_in_process(karmada.server) as running:
        await fleet.propagate("web", placement={**MEMBERS, "replicaScheduling": DUPLICATED})
        for replicas in (1, 2, 3):
            await fleet.deploy("web", replicas)
            if replicas != 2:  # the second is deleted while it may be being scheduled
                await fleet.until_placed("web", {"member1": replicas, "member2": replicas})
            if replicas < 3:
                await fleet.admin.delete("apps/v1/deployments", "web", fleet.namespace, grace=None)
        found = await fleet.until_placed("web", {"member1": 3, "member2": 3})
        await wait_for(lambda: _counts(running, fleet, ["web"], {"member1": 3, "member2": 3}), PATIENCE)
        known = running.state.bindings[f"{fleet.namespace}/web-deployment"]
        assert known.metadata.uid == found["metadata"]["uid"]


async def test_a_replica_takes_over_from_a_suspended_leader_with_the_shipped_rights(karmada, fleet):
    kubeconfig = await shipped(karmada, fleet)
    election = (
        "--leader-elect-resource-namespace=bayplan-system",
        "--leader-elect-lease-duration=4s",
        "--leader-elect-renew-deadline=3s",
        "--leader-elect-retry-period=1s",
    )
    replicas = [bayplan_running.process(karmada.server, "--fleet", *election, kubeconfig=kubeconfig) for _ in range(2)]
    karmada.schedulers.extend(replicas)
    leader = await wait_for(lambda: _leading(replicas), PATIENCE)
    await fleet.deploy("web", 2)
    await fleet.propagate("web", placement={**MEMBERS, "replicaScheduling": DUPLICATED})
    await fleet.until_placed("web", {"member1": 2, "member2": 2})
    leader.suspend()
    await fleet.scale("web", 3)
    found = await fleet.until_placed("web", {"member1": 3, "member2": 3})
    leader.resume()
    await wait_for(lambda: not leader.running, PATIENCE)
    assert (await fleet.binding("web"))["metadata"]["generation"] == found["metadata"]["generation"]
    assert not any("no rights" in one.log.read_text() for one in replicas)


async def _leading(replicas):
    """The replica that schedules, by its log; None while none does."""
    return next((one for one in replicas if " scheduling schedulers=" in one.log.read_text()), None)


async def _follow_their_placement(running, fleet, names):
    """Whether bindings, and the index of a scheduler in this process, have the one cluster of the placement."""
    for name in names:
        found = await fleet.binding(name)
        (member,) = found["spec"]["placement"]["clusterAffinity"]["clusterNames"]
        is_there = shares_of(found) == {member: 2} and is_observed(found)
        if not is_there or not await _counts(running, fleet, [name], {member: 2}):
            return False
    return True


async def _belongs_to(fleet, name, scheduler):
    return (await fleet.binding(name))["spec"].get("schedulerName") == scheduler


async def _is_on_members(fleet, name, expected):
    return await fleet.replicas_on_members(name) == expected


async def _counts(running, fleet, names, expected):
    """Whether the index of a scheduler in this process has the workloads where they are."""
    records = running.state.index.records
    found = [records.get(f"{fleet.namespace}/{name}-deployment") for name in names]
    return all(record is not None and dict(record.shares) == expected for record in found)
