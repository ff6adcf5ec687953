"""A live cluster is decided about as the version of its API server does: a proxy reports other versions of it."""

import json

import pytest
from aiohttp import web
from click.testing import CliRunner

from bayplan.cli import main
from live import bayplan_running
from live.admin import pod
from live.proxy import Proxy

UNKNOWN = "the API server is of Kubernetes"


class Reporting(Proxy):
    """A proxy in front of an API server that reports the version of another one."""

    def __init__(self, server, version):
        super().__init__(server)
        self.version = version

    async def handle(self, request):
        if request.path == "/version":
            return web.json_response({"gitVersion": self.version})
        return await super().handle(request)


def decided(written):
    """The pod, if a scheduler has placed it or said that it fits nowhere."""
    return written if written["spec"].get("nodeName") or written["status"].get("conditions") else None


def place(proxy, *options):
    words = ["place", "--kubeconfig", str(proxy.kubeconfig()), "-o", "json", *options]
    return CliRunner().invoke(main.cli, words, prog_name="bayplan")


@pytest.fixture
def apart(sync_admin, namespace):
    """A pod beside which one of another namespace runs: 1.36 takes its negative namespaceSelector for every namespace."""
    sync_admin.create_nodes(1)
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    elsewhere = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["default"]}
    term["namespaceSelector"] = {"matchExpressions": [elsewhere]}
    sync_admin.create(pod("runs", "default", meta={"labels": {"app": "web"}}, nodeName="node-0"))
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    sync_admin.create(pod("waits", namespace, affinity=affinity, schedulerName="bayplan"))
    return sync_admin


@pytest.mark.parametrize(
    "version, options, fits, nearest",
    [
        ("v1.36.4", (), False, ""),
        ("v1.37.1", (), True, ""),
        ("v1.37.3-eks-1a2b3c4", (), True, ""),
        ("v1.39.0", (), True, "1.37"),
        ("v1.31.2+k3s1", (), False, "1.36"),
        ("v1.37.1", ("--kubernetes-version", "1.36"), False, ""),
        ("v1.39.0", ("--kubernetes-version", "1.36"), False, ""),
    ],
)
def test_a_live_cluster_is_decided_about_as_its_version_does(kube_server, apart, version, options, fits, nearest):
    with Reporting(kube_server, version) as proxy:
        done = place(proxy, *options)
    (waits,) = (one for one in json.loads(done.stdout)["items"] if one["name"] == "waits")
    assert bool(waits.get("target")) == fits, done.stderr
    assert done.stderr.count(UNKNOWN) == bool(nearest)
    if nearest:
        assert f"{UNKNOWN} {version}; decisions are those of {nearest}, the nearest known version" in done.stderr


@pytest.mark.parametrize("options, fits", [((), True), (("--kubernetes-version", "1.36"), False)])
def test_the_running_scheduler_decides_as_its_api_server_does(kube_server, apart, namespace, options, fits):
    with Reporting(kube_server, "v1.39.0") as proxy:
        running = bayplan_running.process(kube_server, "--no-leader-elect", *options, kubeconfig=proxy.kubeconfig())
        try:
            found = apart.wait_for(lambda: decided(apart.get("pods", "waits", namespace)))
            assert bool(found["spec"].get("nodeName")) == fits, running.log_tail()
        finally:
            running.stop()
    assert running.log.read_text(encoding="utf-8").count(UNKNOWN) == (0 if options else 1)
