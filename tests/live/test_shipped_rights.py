"""The components of `deploy/`: each has exactly the rights that its flag needs."""

import asyncio

import pytest
import yaml

from bayplan.kube_api import connect
from bayplan.watching.audit_fetching import AuditFetcher, audited_resources
from live.admin import wait_for
from live.bayplan_running import process
from live.breaking import Cluster, apart
from live.shipped import DEPLOY


def beyond_the_base():
    """The resources that an audit lists and the base may not."""
    manifests = yaml.safe_load_all((DEPLOY / "base" / "rbac.yaml").read_text())
    (role,) = (one for one in manifests if one["kind"] == "ClusterRole")
    listed = {name for rule in role["rules"] if "list" in rule["verbs"] for name in rule["resources"]}
    return {one.plural for one in audited_resources()} - listed


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
