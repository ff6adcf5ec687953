"""The parts of `deploy/` that are put on top of its base: each has exactly the rights that its flag needs."""

import asyncio
import os
import pathlib
import subprocess
import sys

import pytest
import yaml

from bayplan.cli.audit_live import AuditFetching
from bayplan.kube_api import connect
from live.admin import wait_for
from live.bayplan_running import process
from live.breaking import Cluster, apart

DEPLOY = pathlib.Path(__file__).parents[2] / "deploy"
RIGHTS = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
BEYOND_THE_BASE = {"leases", "endpointslices", "deployments", "priorityclasses", "machines"}


def rendered(folder, *components):
    """All manifests of the base with these components, as kubectl would apply them."""
    at = {name: os.path.relpath(DEPLOY / name, folder) for name in ("base", *components)}
    content = {"resources": [at["base"]], "components": [at[name] for name in components]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(content))
    kubectl = pathlib.Path(sys.executable).with_name("kubectl")
    done = subprocess.run([kubectl, "kustomize", folder], capture_output=True, check=True, text=True)
    return list(yaml.safe_load_all(done.stdout))


def flags(manifests):
    """How the Deployment starts the scheduler; where it listens is for the test to say."""
    (deployment,) = (one for one in manifests if one["kind"] == "Deployment")
    return deployment["spec"]["template"]["spec"]["containers"][0]["args"][1:]


@pytest.fixture
def apply(kube_server, admin, tmp_path):
    """Applies the base with components: the flags of its Deployment, and a kubeconfig of its service account."""

    async def run(*components):
        manifests = rendered(tmp_path, *components)
        for manifest in manifests:
            if manifest["kind"] in RIGHTS:
                await admin.create(manifest)
        token = await admin.service_account_token("bayplan-system", "bayplan")
        return flags(manifests), kube_server.kubeconfig(entry={"token": token})

    return run


@pytest.fixture
async def conflict(admin, namespace):
    """A pod that must not stand beside its neighbour, and will as soon as the neighbour is called loud."""
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
    fetching = AuditFetching(connect.from_kubeconfig(kubeconfig))
    names = [source.name for source in fetching.sources()]
    return {one.resource for one in fetching.unlisted}, names


@pytest.mark.parametrize("components, unlisted", [((), BEYOND_THE_BASE), (("auditing",), set())])
async def test_auditing_may_read_all_that_an_audit_wants(components, unlisted, admin, apply):
    await admin.create_nodes(1)
    meta = {"name": "kubeadm-config", "namespace": "kube-system"}
    await admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {}})
    given, kubeconfig = await apply(*components)
    assert ("--audit" in given) is bool(components)
    missing, names = await asyncio.to_thread(looked_at, kubeconfig)
    assert missing == unlisted
    assert any("kubeadm-config" in name for name in names) is bool(components)


async def test_a_scheduler_with_all_parts_runs_by_its_shipped_flags(kube_server, admin, namespace, apply):
    await admin.create_nodes(2)
    given, kubeconfig = await apply("enforcing", "auditing")
    running = process(kube_server, *given, kubeconfig=kubeconfig)
    await admin.create_pod("web", namespace, scheduler="bayplan")
    await wait_for(lambda: admin.node_of("web", namespace))
    running.stop()
    assert running.child.returncode == 0
    assert "no rights" not in running.log.read_text()
