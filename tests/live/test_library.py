"""The library on real API servers: listed once, the same answers as the commands, also while an event loop runs."""

import asyncio
import json
import pickle

import pytest
from click.testing import CliRunner

import bayplan
from bayplan.cli import main
from live.admin import pod, wait_for
from live.fleet_user import BINDINGS, PATIENCE

CPU = {"containers": [{"name": "c", "image": "c", "resources": {"requests": {"cpu": "100m"}}}]}


@pytest.fixture
def cluster(sync_admin, namespace):
    """Three nodes; a running pod, and two pending ones that must not share a node with it."""
    sync_admin.create_nodes(3)
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    meta = {"labels": {"app": "web"}}
    for name, rest in (("web-0", {"nodeName": "node-0"}), ("web-1", {}), ("web-2", {"nodeSelector": {"no": "such"}})):
        sync_admin.create(pod(name, namespace, meta=meta, affinity=apart, **rest))
    return sync_admin


def command(*words):
    result = CliRunner().invoke(main.cli, [*map(str, words), "-o", "json"], prog_name="bayplan")
    return json.loads(result.stdout)


def test_a_live_cluster_answers_as_the_commands_do(kube_server, cluster, namespace):
    config = kube_server.kubeconfig()
    live = bayplan.Cluster.from_context(kubeconfig=config)
    assert live.place().to_dict() == command("place", "--kubeconfig", config)
    lost = live.lose("node/node-1").place().to_dict()
    assert lost == command("place", "--kubeconfig", config, "--lose", "node/node-1")
    explained = live.explain(f"{namespace}/web-2").to_dict()
    assert explained == command("explain", f"{namespace}/web-2", "--kubeconfig", config)
    assert live.violations().to_dict() == command("violations", "--kubeconfig", config)
    assert live.quota().to_dict() == command("quota", "--kubeconfig", config)
    audited = command("audit", "--kubeconfig", config)
    assert [one.verdict for one in live.audit()] == [one["verdict"] for one in audited["checks"]]


def test_a_live_cluster_is_listed_once(kube_server, cluster, namespace):
    live = bayplan.Cluster.from_context(kubeconfig=kube_server.kubeconfig(), namespace=namespace)
    before = live.place().to_dict()
    web = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "more"}, "spec": CPU}
    cluster.create(pod("later", namespace))
    assert live.place().to_dict() == before
    changed = live.apply(web).place()
    assert set(changed.pods) == {*live.place().pods, f"{namespace}/more"}
    assert pickle.loads(pickle.dumps(live)).place().to_dict() == before
    again = bayplan.Cluster.from_context(kubeconfig=kube_server.kubeconfig())
    assert f"{namespace}/later" in again.pods


def test_a_notebook_has_an_event_loop_of_its_own(kube_server, cluster, namespace):
    async def cell():
        live = bayplan.Cluster.from_context(kubeconfig=kube_server.kubeconfig())
        explanation = live.place().pods[f"{namespace}/web-2"].explain()
        live.audit()
        live.quota()
        return explanation.to_dict()

    direct = bayplan.Cluster.from_context(kubeconfig=kube_server.kubeconfig()).explain(f"{namespace}/web-2")
    assert asyncio.run(cell()) == direct.to_dict()


async def test_a_live_fleet_answers_as_the_commands_do(karmada, fleet):
    config = karmada.server.kubeconfig()
    await fleet.deploy("web", 6)
    await fleet.propagate("web", placement={"clusterAffinity": {"clusterNames": ["member1", "member2"]}})
    await wait_for(lambda: fleet.admin.items(BINDINGS, fleet.namespace), PATIENCE)
    live = bayplan.Fleet.from_context(kubeconfig=config)
    key = next(iter(live.bindings))
    for state, words in ((live, ()), (live.lose("cluster/member1"), ("--lose", "cluster/member1"))):
        expected = await asyncio.to_thread(command, "place", "--kubeconfig", config, *words)
        assert state.place().to_dict() == expected
    scaled = await asyncio.to_thread(command, "place", "--kubeconfig", config, "--scale", "3,12")
    assert live.scale(3, 12).to_dict() == scaled
    assert key in live.place().bindings
    assert isinstance(live.explain("deployment/web").to_dict(), dict)
    assert set(live.clusters) >= {"member1", "member2"}
