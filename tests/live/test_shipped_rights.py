"""The components of `deploy/`: each has exactly the rights that its flag needs."""

import asyncio
import contextlib
import os
import pathlib
import subprocess
import sys

import pytest
import yaml

from bayplan.cli.audit_live import AuditFetcher, audited_resources
from bayplan.kube_api import connect
from live.admin import ApiError, pod, wait_for
from live.bayplan_running import process
from live.breaking import Cluster, apart
from live.open_webhook import CONFIGURATIONS
from live.processes import free_port

DEPLOY = pathlib.Path(__file__).parents[2] / "deploy"
RIGHTS = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def beyond_the_base():
    """The resources that an audit lists and the base may not."""
    manifests = yaml.safe_load_all((DEPLOY / "base" / "rbac.yaml").read_text())
    (role,) = (one for one in manifests if one["kind"] == "ClusterRole")
    listed = {name for rule in role["rules"] if "list" in rule["verbs"] for name in rule["resources"]}
    return {one.plural for one in audited_resources()} - listed


def rendered(folder, *components):
    """Return the manifests of the base with these components, as kubectl would apply them."""
    at = {name: os.path.relpath(DEPLOY / name, folder) for name in ("base", *components)}
    content = {"resources": [at["base"]], "components": [at[name] for name in components]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(content))
    kubectl = pathlib.Path(sys.executable).with_name("kubectl")
    done = subprocess.run([kubectl, "kustomize", folder], capture_output=True, check=True, text=True)
    return list(yaml.safe_load_all(done.stdout))


def flags(manifests):
    """Return the arguments of the Deployment, with listen addresses of the test."""
    (deployment,) = (one for one in manifests if one["kind"] == "Deployment")
    return deployment["spec"]["template"]["spec"]["containers"][0]["args"][1:]


def reached_at(url, configuration):
    """Return a webhook configuration with a local port instead of the Service."""
    for webhook in configuration["webhooks"]:
        webhook["clientConfig"] = {"url": url + webhook["clientConfig"]["service"]["path"]}
    return configuration


@pytest.fixture
async def apply(kube_server, admin, tmp_path):
    """Applies the base with components: the flags of its Deployment, and a kubeconfig of its service account."""

    async def run(*components, url=""):
        manifests = rendered(tmp_path, *components)
        for manifest in manifests:
            if manifest["kind"] in RIGHTS:
                await admin.create(manifest)
            elif manifest["kind"].endswith("WebhookConfiguration"):
                await admin.create(reached_at(url, manifest))
        token = await admin.service_account_token("bayplan-system", "bayplan")
        return flags(manifests), kube_server.kubeconfig(entry={"token": token})

    yield run
    for resource in CONFIGURATIONS:
        with contextlib.suppress(ApiError):
            await admin.delete(resource, "bayplan")


@pytest.fixture
async def conflict(admin, namespace):
    """A pod with anti-affinity, and a peer that violates it once it is labelled loud."""
    await admin.create_nodes(2)
    cluster = await Cluster(admin, namespace).set_up()
    await cluster.run("quiet", annotations=apart(app="loud"), priority="high")
    await cluster.run("other", labels={"app": "loud"})
    return cluster


async def test_enforcing_may_evict(kube_server, apply, conflict):
    given, kubeconfig = await apply("enforcing")
    assert "--enforce=on" in given
    running = process(kube_server, *given, "--enforce-anti-affinity-grace", "0s", kubeconfig=kubeconfig)
    await wait_for(lambda: conflict.gone("other"))
    assert await wait_for(lambda: conflict.notes("RuleBroken"))
    running.stop()
    assert running.child.returncode == 0
    assert "no rights" not in running.log.read_text()


async def test_the_base_alone_may_not(kube_server, apply, conflict):
    given, kubeconfig = await apply()
    assert not any(flag.startswith("--enforce") for flag in given)
    running = process(kube_server, *given, "--enforce=on", "--enforce-anti-affinity-grace", "0s", kubeconfig=kubeconfig)
    await wait_for(lambda: 'cannot create resource \\"pods/eviction' in running.log.read_text())
    assert await conflict.names() == ["other", "quiet"]
    running.stop()


def looked_at(kubeconfig):
    """What an audit by these rights could not list, and the names of all that it read."""
    fetching = AuditFetcher(connect.from_kubeconfig(kubeconfig))
    names = [source.name for source in fetching.sources()]
    return {one.resource for one in fetching.unlisted}, names


@pytest.mark.parametrize("components, unlisted", [((), beyond_the_base()), (("auditing",), set())])
async def test_auditing_may_read_all_that_an_audit_needs(components, unlisted, admin, apply):
    await admin.create_nodes(1)
    meta = {"name": "kubeadm-config", "namespace": "kube-system"}
    await admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {}})
    given, kubeconfig = await apply(*components)
    assert ("--audit" in given) is bool(components)
    missing, names = await asyncio.to_thread(looked_at, kubeconfig)
    assert missing == unlisted
    assert any("kubeadm-config" in name for name in names) is bool(components)


def exclusive(key):
    return {"podAntiAffinity": {REQUIRED: [{"labelSelector": {}, "namespaceSelector": {}, "topologyKey": key}]}}


async def rejection(admin, obj):
    """Return why an object is rejected; empty if it is admitted. Nothing is stored."""
    try:
        await admin.create(obj, dryRun="All")
    except ApiError as error:
        return str(error)
    return ""


@pytest.fixture
def on_this_machine():
    """Return the flags for a local webhook address, and its URL."""
    address = f"127.0.0.1:{free_port()}"
    url = f"https://{address}"
    return ("--webhook-bind-address", address, "--webhook-url", url), url


async def test_the_webhook_has_all_rights_that_it_needs(kube_server, admin, namespace, apply, on_this_machine):
    await admin.create_nodes(2, cpu="4", labels=lambda n: {HOSTNAME: f"node-{n}"})
    where, url = on_this_machine
    given, kubeconfig = await apply("webhook", url=url)
    assert "--webhook" in given
    running = process(kube_server, *given, *where, kubeconfig=kubeconfig)
    cluster_wide = pod("cluster-wide", namespace, affinity=exclusive("topology.kubernetes.io/zone"))
    assert "reaches beyond a node" in await wait_for(lambda: rejection(admin, cluster_wide))
    limits = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bayplan-quota"}}
    await admin.create({**limits, "data": {namespace: "{cpu: 2}"}}, namespace="bayplan-system")
    alone = pod("alone", namespace, affinity=exclusive(HOSTNAME))
    assert "requested: cpu=4, used: cpu=0, limited: cpu=2" in await wait_for(lambda: rejection(admin, alone))
    secrets = [found["metadata"]["name"] for found in await admin.items("secrets", "bayplan-system")]
    assert secrets == ["bayplan-webhook-certificates"]
    running.stop()
    assert running.child.returncode == 0
    assert "no rights" not in running.log.read_text()


@pytest.mark.parametrize("gone", [CONFIGURATIONS, CONFIGURATIONS[1:]])
async def test_pods_are_scheduled_without_the_webhook_configurations(
    gone, kube_server, admin, namespace, apply, on_this_machine
):
    """Operators delete the configurations to disable a webhook in an emergency; the scheduler must still start."""
    await admin.create_nodes(1)
    where, url = on_this_machine
    given, kubeconfig = await apply("webhook", url=url)
    for resource in gone:
        await admin.delete(resource, "bayplan")
    running = process(kube_server, *given, *where, kubeconfig=kubeconfig)
    await admin.create_pod("web", namespace, scheduler="bayplan")
    await wait_for(lambda: admin.node_of("web", namespace))
    running.stop()
    for resource in CONFIGURATIONS:
        said = f"no {resource.rpartition('/')[2]} bayplan: API servers do not call"
        assert (said in running.log.read_text()) is (resource in gone)


async def test_a_scheduler_with_all_parts_runs_by_its_shipped_flags(
    kube_server, admin, namespace, apply, on_this_machine
):
    await admin.create_nodes(2)
    where, url = on_this_machine
    given, kubeconfig = await apply("enforcing", "auditing", "webhook", url=url)
    running = process(kube_server, *given, *where, kubeconfig=kubeconfig)
    await admin.create_pod("web", namespace, scheduler="bayplan")
    await wait_for(lambda: admin.node_of("web", namespace))
    running.stop()
    assert running.child.returncode == 0
    assert "no rights" not in running.log.read_text()
