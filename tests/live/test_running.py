"""The scheduler on a real API server: binding, preemption, pods of other schedulers, events and errors."""

import asyncio
import pathlib
import subprocess
import sys

import pytest
import yaml

from bayplan.live.assembly import Election
from live.admin import wait_for
from live.bayplan_running import NAME, in_process, process

DEPLOY = pathlib.Path(__file__).parents[2] / "deploy"
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def apart(key=HOST, **labels):
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def near(key=ZONE, **labels):
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


async def bound(admin, namespace):
    pods = await admin.items("pods", namespace)
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods}


async def all_bound(admin, namespace):
    found = await bound(admin, namespace)
    return found if found and all(found.values()) else None


async def events_of(admin, namespace, reason):
    found = await admin.items("events.k8s.io/v1/events", namespace)
    return [event for event in found if event["reason"] == reason]


async def priority_class(admin, name, value):
    body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
    await admin.create(body)


async def test_required_anti_affinity_holds(kube_server, admin, namespace):
    await admin.create_nodes(6)
    async with in_process(kube_server):
        await asyncio.gather(
            *(
                admin.create_pod(
                    f"web-{i}", namespace, scheduler=NAME, meta={"labels": {"app": "web"}}, affinity=apart(app="web")
                )
                for i in range(6)
            )
        )
        found = await wait_for(lambda: all_bound(admin, namespace))
        assert len(set(found.values())) == 6
        await wait_for(lambda: len_of(events_of(admin, namespace, "Scheduled"), 6))
        (event,) = [e for e in await events_of(admin, namespace, "Scheduled") if e["regarding"]["name"] == "web-0"]
        assert event["note"] == f"Successfully assigned {namespace}/web-0 to {found['web-0']}"


async def len_of(coroutine, expected):
    return len(await coroutine) == expected


async def test_an_unschedulable_pod_gets_an_event_and_is_scheduled_when_there_is_room(kube_server, admin, namespace):
    await admin.create_nodes(1)
    labels = {"labels": {"app": "web"}}
    async with in_process(kube_server):
        for i in range(2):
            await admin.create_pod(f"web-{i}", namespace, scheduler=NAME, meta=labels, affinity=apart(app="web"))
            await wait_for(lambda: told_or_bound(admin, namespace, f"web-{i}"))  # noqa: B023
        pod = await admin.get("pods", "web-1", namespace)
        (condition,) = [one for one in pod["status"]["conditions"] if one["type"] == "PodScheduled"]
        assert condition["reason"] == "Unschedulable"
        assert condition["message"].startswith(
            "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules. preemption: 0/1 nodes"
        )
        (event,) = await events_of(admin, namespace, "FailedScheduling")
        assert event["note"].endswith(f"Blocked by {namespace}/web-0 on node-0.")
        await admin.create_nodes(1, prefix="new-")
        await wait_for(lambda: admin.node_of("web-1", namespace))
        assert await admin.node_of("web-1", namespace) == "new-0"


async def told_or_bound(admin, namespace, name):
    pod = await admin.get("pods", name, namespace)
    return pod["spec"].get("nodeName") or pod["status"].get("conditions")


async def test_an_uncordoned_node_is_freed_for_a_pending_pod_of_higher_priority(kube_server, admin, namespace):
    await admin.create_nodes(1, cpu="1")
    await priority_class(admin, "high", 1000)
    async with in_process(kube_server):
        await admin.create_pod("low", namespace, scheduler=NAME, cpu="1", terminationGracePeriodSeconds=0)
        await wait_for(lambda: admin.node_of("low", namespace))
        await admin.patch("nodes", "node-0", {"spec": {"unschedulable": True}})
        await admin.create_pod("vip", namespace, scheduler=NAME, cpu="1", priorityClassName="high")
        await wait_for(lambda: events_of(admin, namespace, "FailedScheduling"))
        await admin.patch("nodes", "node-0", {"spec": {"unschedulable": None}})
        await wait_for(lambda: admin.node_of("vip", namespace))
    assert list(await bound(admin, namespace)) == ["vip"]


async def test_a_pod_of_higher_priority_preempts(kube_server, admin, namespace):
    await admin.create_nodes(2, cpu="2")
    await priority_class(admin, "vip", 1000)
    async with in_process(kube_server):
        for i in range(2):
            await admin.create_pod(f"low-{i}", namespace, scheduler=NAME, cpu="1500m", terminationGracePeriodSeconds=0)
        await wait_for(lambda: all_bound(admin, namespace))
        await admin.create_pod("vip", namespace, scheduler=NAME, cpu="1500m", priorityClassName="vip")
        await wait_for(lambda: admin.node_of("vip", namespace))
        assert len(await bound(admin, namespace)) == 2, "one of the others was preempted"
        (event,) = await wait_for(lambda: events_of(admin, namespace, "Preempted"))
        assert event["note"].startswith("Preempted by pod ")


async def test_a_budget_without_allowed_disruptions_is_respected_if_there_are_other_victims(
    kube_server, admin, namespace
):
    await admin.create_nodes(2, cpu="2")
    await priority_class(admin, "vip", 1000)
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep", "namespace": namespace},
    }
    await admin.create(budget | {"spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "precious"}}}})
    async with in_process(kube_server):
        for name in ("precious", "other"):
            meta = {"labels": {"app": name}}
            await admin.create_pod(
                name, namespace, scheduler=NAME, cpu="1500m", meta=meta, terminationGracePeriodSeconds=0
            )
        await wait_for(lambda: all_bound(admin, namespace))
        await admin.create_pod("vip", namespace, scheduler=NAME, cpu="1500m", priorityClassName="vip")
        await wait_for(lambda: admin.node_of("vip", namespace))
        assert sorted(await bound(admin, namespace)) == ["precious", "vip"]


async def test_a_gated_pod_is_not_scheduled(kube_server, admin, namespace):
    await admin.create_nodes(1)
    async with in_process(kube_server):
        await admin.create_pod("gated", namespace, scheduler=NAME, schedulingGates=[{"name": "example.com/quota"}])
        await admin.create_pod("free", namespace, scheduler=NAME)
        await wait_for(lambda: admin.node_of("free", namespace))
        assert not await admin.node_of("gated", namespace)
        await admin.patch("pods", "gated", {"spec": {"schedulingGates": None}}, namespace)
        await wait_for(lambda: admin.node_of("gated", namespace))


async def test_a_daemon_pod_is_bound_to_its_node(kube_server, admin, namespace):
    await admin.create_nodes(4)
    match = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-2"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [match]}}}
    async with in_process(kube_server):
        await admin.create_pod("agent", namespace, scheduler=NAME, affinity=affinity)
        assert await wait_for(lambda: admin.node_of("agent", namespace)) == "node-2"


async def test_a_claim_waits_for_its_first_consumer(kube_server, admin, namespace):
    await admin.create_nodes(3)
    await admin.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "late"},
            "provisioner": "example.com/disk",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )
    await admin.create(claim("data", namespace, "late"))
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    async with in_process(kube_server):
        await admin.create_pod("db", namespace, scheduler=NAME, volumes=volumes)
        selected = await wait_for(lambda: selected_node(admin, "data", namespace))
        assert not await admin.node_of("db", namespace), "the pod waits for its volume"
        await provision(admin, "data", namespace, selected)
        assert await wait_for(lambda: admin.node_of("db", namespace)) == selected


async def test_an_existing_volume_is_bound_to_the_claim(kube_server, admin, namespace):
    await admin.create_nodes(3)
    await admin.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )
    await admin.create(volume("disk", "local", node="node-1"))
    await admin.patch("persistentvolumes", "disk", {"status": {"phase": "Available"}}, subresource="status")
    await admin.create(claim("data", namespace, "local"))
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    async with in_process(kube_server):
        await admin.create_pod("db", namespace, scheduler=NAME, volumes=volumes)
        await wait_for(lambda: reserved(admin, "disk"))
        assert (await admin.get("persistentvolumes", "disk"))["spec"]["claimRef"]["name"] == "data"
        await bind_claim(admin, "data", namespace, "disk")
        assert await wait_for(lambda: admin.node_of("db", namespace)) == "node-1"


def claim(name, namespace, storage_class):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "storageClassName": storage_class,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def volume(name, storage_class, *, node, claim_ref=None):
    term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [node]}]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "hostPath": {"path": "/tmp/none"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            **({"claimRef": claim_ref} if claim_ref else {}),
        },
    }


async def selected_node(admin, name, namespace):
    found = await admin.get("persistentvolumeclaims", name, namespace)
    return (found["metadata"].get("annotations") or {}).get("volume.kubernetes.io/selected-node")


async def reserved(admin, name):
    return "claimRef" in (await admin.get("persistentvolumes", name))["spec"]


async def provision(admin, name, namespace, node):
    """Provision and bind, as an external provisioner and the volume controller would."""
    found = await admin.get("persistentvolumeclaims", name, namespace)
    reference = {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": name, "uid": found["metadata"]["uid"]}
    await admin.create(volume("made", found["spec"]["storageClassName"], node=node, claim_ref=reference))
    await bind_claim(admin, name, namespace, "made")


async def bind_claim(admin, name, namespace, volume_name):
    annotations = {"pv.kubernetes.io/bind-completed": "yes"}
    change = {"metadata": {"annotations": annotations}, "spec": {"volumeName": volume_name}}
    await admin.patch("persistentvolumeclaims", name, change, namespace)


async def test_a_pod_deleted_while_it_is_bound_leaves_nothing_behind(kube_server, admin, namespace):
    await admin.create_nodes(1, cpu="1")
    async with in_process(kube_server) as running:
        for i in range(10):
            await admin.create_pod(f"brief-{i}", namespace, scheduler=NAME, cpu="900m")
            await admin.delete("pods", f"brief-{i}", namespace)
        await admin.create_pod("last", namespace, scheduler=NAME, cpu="900m")
        await wait_for(lambda: admin.node_of("last", namespace))
        assert list(running._parts.state.index.records) == [f"{namespace}/last"]


async def test_two_schedulers_share_a_cluster(kube_server, admin, namespace):
    await admin.create_nodes(8)
    kube_server.start_scheduler("default-scheduler")
    async with in_process(kube_server):
        meta = {"labels": {"app": "web"}}
        for i in range(8):
            name = NAME if i % 2 else "default-scheduler"
            await admin.create_pod(f"web-{i}", namespace, scheduler=name, meta=meta, affinity=apart(app="web"))
            await wait_for(lambda: admin.node_of(f"web-{i}", namespace))  # noqa: B023
        found = await bound(admin, namespace)
        assert len(set(found.values())) == 8


async def test_an_unreadable_rule_is_reported_and_other_pods_are_scheduled(kube_server, admin, namespace):
    await admin.create_nodes(1)
    async with in_process(kube_server):
        broken = {"annotations": {"bayplan.io/affinity": "podAffinity: {requiredDuringExecution: []}"}}
        await admin.create_pod("broken", namespace, scheduler=NAME, meta=broken)
        await admin.create_pod("fine", namespace, scheduler=NAME)
        await wait_for(lambda: admin.node_of("fine", namespace))
        (event,) = await wait_for(lambda: events_of(admin, namespace, "FailedScheduling"))
        assert "podAffinity.requiredDuringExecution" in event["note"]


async def test_the_event_loop_is_never_blocked_for_long(kube_server, admin, namespace):
    await admin.create_nodes(200)
    async with in_process(kube_server) as running:
        pods = (
            admin.create_pod(
                f"web-{i}", namespace, scheduler=NAME, meta={"labels": {"app": "web"}}, affinity=near(app="web")
            )
            for i in range(100)
        )
        await asyncio.gather(*pods)
        await wait_for(lambda: all_bound(admin, namespace))
        longest = running._parts.scheduler.longest_step
        assert longest < 0.05


async def test_the_lease_is_renewed_while_every_connection_waits_for_a_response(
    kube_server, proxy, admin, namespace, monkeypatch
):
    monkeypatch.setattr("bayplan.kube_api.connection._MAX_CONNECTIONS", 24)  # watches need more than half of them
    await admin.create_nodes(2)
    election = Election(lease_duration=3.0, renew_deadline=2.0, retry_period=0.2)
    async with in_process(kube_server, url=proxy.url, election=election) as running:
        proxy.swallow(matching=lambda method, path: path.endswith("/binding"))
        for i in range(30):
            await admin.create_pod(f"web-{i}", namespace, scheduler=NAME)
        await wait_for(lambda: proxy.swallowed >= 8)
        renewals = set()
        async with asyncio.timeout(30):
            while len(renewals) < 15:  # three seconds, longer than the renew deadline
                renewals.add(await renewed(admin))
        assert running._may_write()
        assert await bound(admin, namespace) == {f"web-{i}": "" for i in range(30)}
        proxy.calm()
        await wait_for(lambda: all_bound(admin, namespace))


async def renewed(admin):
    return (await admin.get("coordination.k8s.io/v1/leases", "bayplan", "kube-system"))["spec"].get("renewTime")


def shipped(*kinds):
    kubectl = pathlib.Path(sys.executable).with_name("kubectl")
    rendered = subprocess.run([kubectl, "kustomize", DEPLOY / "base"], capture_output=True, check=True, text=True)
    return [manifest for manifest in yaml.safe_load_all(rendered.stdout) if manifest["kind"] in kinds]


async def test_exactly_the_shipped_rights_are_enough(kube_server, admin, namespace):
    await admin.create_nodes(2, cpu="2")
    await priority_class(admin, "vip", 1000)
    for manifest in shipped("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"):
        await admin.create(manifest)
    token = await admin.service_account_token("bayplan-system", "bayplan")
    kubeconfig = kube_server.kubeconfig(entry={"token": token})
    running = process(kube_server, "--leader-elect-resource-namespace", "bayplan-system", kubeconfig=kubeconfig)
    for i in range(2):
        await admin.create_pod(f"low-{i}", namespace, scheduler=NAME, cpu="1500m", terminationGracePeriodSeconds=0)
    await wait_for(lambda: all_bound(admin, namespace))
    await admin.create_pod("vip", namespace, scheduler=NAME, cpu="1500m", priorityClassName="vip")
    await wait_for(lambda: admin.node_of("vip", namespace))
    await wait_for(lambda: events_of(admin, namespace, "Preempted"))
    running.stop()
    assert running.child.returncode == 0
    assert "no rights" not in running.log.read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--context", "nowhere"], 3, "nowhere"),
        (["--server", "https://127.0.0.1:1"], 3, "127.0.0.1:1"),
        (["--token", "wrong"], 3, "credentials"),
        (["--leader-elect-lease-duration", "soon"], 2, "duration"),
        (["--metrics-bind-address", "everywhere"], 2, "address"),
        (["--semantics", "mine"], 2, "semantics"),
    ],
    ids=["unknown context", "unreachable", "wrong token", "no duration", "no address", "no preset"],
)
def test_a_startup_error_is_reported_in_one_line(kube_server, arguments, code, says):
    command = [sys.executable, "-m", "bayplan", "run", "--kubeconfig", str(kube_server.kubeconfig()), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30, env=environment())
    assert done.returncode == code
    (line,) = [line for line in done.stderr.splitlines() if line.lower().startswith("error")]
    assert says in line


def test_missing_rights_are_named(kube_server):
    kubeconfig = str(kube_server.kubeconfig("restricted"))
    command = [sys.executable, "-m", "bayplan", "run", "--kubeconfig", kubeconfig, "--metrics-bind-address", "0"]
    command += ["--health-probe-bind-address", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30, env=environment())
    assert done.returncode == 3
    assert "no rights" in done.stderr
    assert "cannot list resource" in done.stderr


def environment():
    import os

    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
