"""Bayplan beside a real Karmada control plane: webhook, explanations, pods in the same process, servers that are not there yet."""

import asyncio
import base64
import json
import os
import pathlib
import subprocess
import sys
import urllib.parse
import urllib.request

import pytest
import yaml

from bayplan.webhook import in_cluster
from live import bayplan_running
from live.admin import ApiError, pod, wait_for
from live.fleet_user import DUPLICATED, DYNAMIC, PATIENCE
from live.open_webhook import CONFIGURATIONS
from live.processes import free_port
from live.shipped import DEPLOY, POLICIES, RIGHTS, reached_at

MEMBERS = {"clusterAffinity": {"clusterNames": ["member1", "member2"]}}
EVERYWHERE = {**MEMBERS, "replicaScheduling": DUPLICATED}
OWN = "bayplan-system"
PLACEMENT = "bayplan.io/placement"
API_SERVICES = "apiregistration.k8s.io/v1/apiservices"


def rendered(name):
    """The manifests of a folder of deploy/, as kubectl applies them."""
    kubectl = pathlib.Path(sys.executable).with_name("kubectl")
    done = subprocess.run([kubectl, "kustomize", DEPLOY / name], capture_output=True, check=True, text=True)
    return list(yaml.safe_load_all(done.stdout))


async def applied(fleet, name, url=""):
    for manifest in rendered(name):
        if manifest["kind"] in RIGHTS:
            await fleet.create(manifest)
        elif manifest["kind"].endswith("WebhookConfiguration"):
            await fleet.create(reached_at(url, manifest))


async def account(karmada, fleet, name):
    """A kubeconfig of a ServiceAccount on Karmada's API server."""
    return karmada.server.kubeconfig(entry={"token": await fleet.admin.service_account_token(OWN, name)})


def rotate(*options):
    words = ["-m", "bayplan", "webhook-certificates", "--once", *map(str, options)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run([sys.executable, *words], check=False, capture_output=True, text=True, env=env)


@pytest.fixture
async def webhook(karmada, fleet, tmp_path):
    """A scheduler of bindings with its webhook, as the manifests install them; member1 is the cluster it runs in."""
    where = f"127.0.0.1:{free_port()}"
    url = f"https://{where}"
    await applied(fleet, "fleet")
    await applied(fleet, "fleet-webhook", url)
    host = fleet.members["member1"]
    certificates = await account(karmada, fleet, "bayplan-webhook-certificates")
    own = karmada.members["member1"].kubeconfig()
    where_kept = "--webhook-service=default/bayplan-webhook"  # the namespaces of Karmada are also those of its members
    done = await asyncio.to_thread(
        rotate, "--kubeconfig", own, "--fleet-kubeconfig", certificates, "--webhook-url", url, where_kept
    )
    assert done.returncode == 0, done.stderr
    secret = await host.get("secrets", in_cluster.SECRET, "default")
    for name in in_cluster.SERVED_FILES:
        (tmp_path / name).write_bytes(base64.b64decode(secret["data"][name]))
    files = [
        f"--webhook-{option}-file={tmp_path / name}"
        for option, name in (("cert", "tls.crt"), ("key", "tls.key"), ("path", "paths"))
    ]
    running = bayplan_running.process(
        karmada.server,
        "--webhook",
        f"--webhook-bind-address={where}",
        f"--webhook-url={url}",
        f"--leader-elect-resource-namespace={OWN}",
        *files,
        kubeconfig=await account(karmada, fleet, "bayplan-fleet"),
        discovers=True,
    )
    karmada.schedulers.append(running)
    yield running
    await host.delete("secrets", in_cluster.SECRET, "default")
    for resource in (*CONFIGURATIONS[:1], *POLICIES):
        for one in await fleet.admin.items(resource):
            if one["metadata"]["name"].startswith("bayplan"):
                await fleet.admin.delete(resource, one["metadata"]["name"])


async def rejection(fleet, content):
    """Why the API server rejects an object; empty if it does not. Nothing is stored."""
    try:
        await fleet.admin.create(content, namespace=fleet.namespace, dryRun="All")
    except ApiError as error:
        return "" if "failed calling webhook" in str(error) else str(error)
    return ""


def policy(name, text=None, **spec):
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": name, "annotations": {} if text is None else {PLACEMENT: text}},
        "spec": {"resourceSelectors": [selector], "schedulerName": "bayplan", "placement": EVERYWHERE, **spec},
    }


async def test_the_webhook_checks_the_annotation_of_policies_and_of_templates_of_any_kind(webhook, fleet):
    broken = "workloadAntiAffinity: 3"
    said = await wait_for(lambda: rejection(fleet, policy("web", broken)), PATIENCE)
    assert f"metadata.annotations[{PLACEMENT}].workloadAntiAffinity" in said
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "annotations": {PLACEMENT: "{"}}}
    assert f"metadata.annotations[{PLACEMENT}]" in await rejection(fleet, settings)
    settings["metadata"]["annotations"][PLACEMENT] = json.dumps({"replicaScheduling": {}})
    assert "Karmada has a field for this" in await rejection(fleet, settings)

    term = {"labelSelector": {"matchLabels": {"app": "web"}}}
    fine = json.dumps({"workloadAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    await fleet.create(policy("web", fine))
    await fleet.deploy("web", 2)
    await fleet.until_placed("web", {"member1": 2, "member2": 2})
    with pytest.raises(ApiError, match="workloadAntiAffinity"):
        await fleet.admin.patch(
            "policy.karmada.io/v1alpha1/propagationpolicies",
            "web",
            {"metadata": {"annotations": {PLACEMENT: broken}}},
            fleet.namespace,
        )
    webhook.stop()
    assert webhook.child.returncode == 0
    assert "no rights" not in webhook.log.read_text()


async def asked(port, path, **query):
    url = f"http://127.0.0.1:{port}{path}?{urllib.parse.urlencode(query)}"
    try:
        with await asyncio.to_thread(urllib.request.urlopen, url) as answer:
            return answer.read().decode()
    except OSError:
        return ""


async def test_one_process_schedules_pods_and_bindings(karmada, fleet, kube_server, admin, namespace):
    """Pods need not wait for a Karmada control plane that is not there at the start."""
    karmada.server.apiserver.kill()
    try:
        port = free_port()
        running = bayplan_running.process(
            kube_server,
            f"--fleet-kubeconfig={karmada.server.kubeconfig()}",
            "--no-leader-elect",
            f"--explain-bind-address=127.0.0.1:{port}",
            discovers=True,
            wait=False,
        )
        await admin.create_nodes(1, cpu="4")
        await admin.create(pod("web", namespace, scheduler="bayplan"))
        await wait_for(lambda: admin.node_of("web", namespace), PATIENCE)
        assert not await asked(running.port, "/readyz")
    finally:
        await asyncio.to_thread(karmada.server.apiserver.start)
    await wait_for(lambda: asked(running.port, "/readyz"), PATIENCE)
    await fleet.deploy("web", 2)
    await fleet.propagate("web", placement=EVERYWHERE)
    await fleet.until_placed("web", {"member1": 2, "member2": 2})

    metrics = await asked(running.port, "/metrics")
    assert 'bayplan_leading{workloads="pods"} 1.0' in metrics
    assert 'bayplan_leading{workloads="bindings"} 1.0' in metrics
    assert "scheduler_pending_pods{" in metrics
    assert "karmada_scheduler_schedule_attempts_total{" in metrics
    of_binding = json.loads(await asked(port, "/explain", binding=f"{fleet.namespace}/web-deployment"))
    of_pod = json.loads(await asked(port, "/explain", pod=f"{namespace}/web"))
    assert of_binding["current"] == "member1:2, member2:2"
    assert of_pod["current"] == "node-0"
    log = running.log.read_text()
    assert log.count("waiting for the API server") == 1
    running.stop()
    assert running.child.returncode == 0


@pytest.mark.parametrize("missing", ["the server", "the API"])
async def test_a_missing_aggregated_api_is_waited_for_at_the_start(karmada, fleet, missing):
    service = await fleet.admin.get(API_SERVICES, "v1alpha1.cluster.karmada.io")
    if missing == "the server":
        karmada.aggregated.kill()
    else:
        await fleet.admin.delete(API_SERVICES, service["metadata"]["name"])
    try:
        running = bayplan_running.process(karmada.server, "--no-leader-elect", discovers=True, wait=False)
        karmada.schedulers.append(running)
        await wait_for(lambda: "clusters.cluster.karmada.io: " in running.log.read_text(), PATIENCE)
        assert running.running
        assert not await asked(running.port, "/readyz")
    finally:
        if missing == "the server":
            await asyncio.to_thread(karmada.aggregated.start)
        else:
            await fleet.admin.create(karmada._api_service())
    # The API server looks for its aggregated servers every half minute, and so does what waits for them in the end.
    await wait_for(lambda: asked(running.port, "/readyz"), 3 * PATIENCE)
    await fleet.deploy("web", 4)
    await fleet.propagate("web", placement={**MEMBERS, "replicaScheduling": DYNAMIC})
    await fleet.until_placed("web", {"member1": 2, "member2": 2})
    told = [line for line in running.log.read_text().splitlines() if "clusters.cluster.karmada.io: " in line]
    assert len(told) == 1, told


FARMS = "farms.example/v1/farms"
SCRIPTS = {
    "replicaResource": "function GetReplicas(obj)\n  return obj.spec.replicas, nil\nend\n",
    "replicaRevision": "function ReviseReplica(obj, desired)\n  obj.spec.replicas = desired\n  return obj\nend\n",
}


def farm_definition():
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "farms.farms.example"},
        "spec": {
            "group": "farms.example",
            "names": {"kind": "Farm", "listKind": "FarmList", "plural": "farms", "singular": "farm"},
            "scope": "Cluster",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


async def test_a_cluster_scoped_workload_is_divided(karmada, fleet):
    """A kind of the test's own, whose replicas Karmada reads and writes by scripts; its binding is cluster-scoped."""
    name = f"{fleet.namespace}-farm"
    for admin in (fleet.admin, *fleet.members.values()):
        await admin.create(farm_definition())
    try:
        await wait_for(lambda: fleet.members_serve("farms.example/v1"), PATIENCE)
        await fleet.create(
            {
                "apiVersion": "config.karmada.io/v1alpha1",
                "kind": "ResourceInterpreterCustomization",
                "metadata": {"name": name},
                "spec": {
                    "target": {"apiVersion": "farms.example/v1", "kind": "Farm"},
                    "customizations": {what: {"luaScript": script} for what, script in SCRIPTS.items()},
                },
            }
        )
        async with bayplan_running.fleet_in_process(karmada.server):
            placement = {**MEMBERS, "replicaScheduling": DYNAMIC}
            selector = {"apiVersion": "farms.example/v1", "kind": "Farm", "name": name}
            spec = {"resourceSelectors": [selector], "schedulerName": "bayplan", "placement": placement}
            await fleet.create(
                {
                    "apiVersion": "policy.karmada.io/v1alpha1",
                    "kind": "ClusterPropagationPolicy",
                    "metadata": {"name": name},
                    "spec": spec,
                }
            )
            await fleet.create(
                {"apiVersion": "farms.example/v1", "kind": "Farm", "metadata": {"name": name}, "spec": {"replicas": 6}}
            )
            await wait_for(lambda: _are_on_members(fleet, name, 3), PATIENCE)
            await fleet.admin.patch(FARMS, name, {"spec": {"replicas": 8}})
            await wait_for(lambda: _are_on_members(fleet, name, 4), PATIENCE)
            events = await wait_for(lambda: _notes(fleet, f"{name}-farm"))
            await fleet.admin.delete(FARMS, name)
            await wait_for(lambda: _are_gone(fleet, name), PATIENCE)
    finally:
        for admin in (fleet.admin, *fleet.members.values()):
            await admin.delete("apiextensions.k8s.io/v1/customresourcedefinitions", "farms.farms.example")
    assert "Binding has been scheduled successfully. Result {member1:3, member2:3}" in events


async def _are_on_members(fleet, name, replicas):
    try:
        found = [await admin.get(FARMS, name) for admin in fleet.members.values()]
    except ApiError:
        return False
    return all(one["spec"]["replicas"] == replicas for one in found)


async def _are_gone(fleet, name):
    for admin in fleet.members.values():
        if any(one["metadata"]["name"] == name for one in await admin.items(FARMS)):
            return False
    return True


async def _notes(fleet, name):
    found = await fleet.admin.items("events.k8s.io/v1/events", "default")
    return [one["note"] for one in found if one["regarding"]["name"] == name]
