"""`bayplan snapshot` of a real API server."""

import json
import re

import pytest
from click.testing import CliRunner

from bayplan.cli import main
from bayplan.watching import fetching
from live.admin import pod

USER = "system:serviceaccount:default:restricted"


def bayplan(*words):
    return CliRunner().invoke(main.cli, [str(word) for word in words], prog_name="bayplan")


@pytest.fixture
def cluster(sync_admin, namespace):
    """Three nodes; a running pod, a pending pod with anti-affinity to it, and one that fits no node."""
    sync_admin.create_nodes(3)
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    meta = {"labels": {"app": "web"}, "annotations": {"example.com/note": "hush"}}
    containers = [{"name": "c", "image": "web", "args": ["hush"], "env": [{"name": "PASSWORD", "value": "hush"}]}]
    for name, rest in (("web-0", {"nodeName": "node-0"}), ("web-1", {}), ("web-2", {"nodeSelector": {"no": "such"}})):
        sync_admin.create(pod(name, namespace, meta=meta, affinity=apart, **rest))
    spec = {"containers": containers}
    described = {"name": "described", "namespace": namespace, **meta}
    sync_admin.create({"apiVersion": "v1", "kind": "Pod", "metadata": described, "spec": spec})
    for kind in ("Secret", "ConfigMap"):
        written = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "hush", "namespace": namespace}}
        sync_admin.create(written)
    return sync_admin


def grant(admin, *resources):
    """Let the restricted user list these resources, and nothing else."""
    group = "rbac.authorization.k8s.io"
    rule = {"apiGroups": ["*"], "resources": list(resources), "verbs": ["list"]}
    named = {"apiVersion": f"{group}/v1", "metadata": {"name": "takes-snapshots"}}
    admin.create({**named, "kind": "ClusterRole", "rules": [rule]})
    reference = {"kind": "ClusterRole", "name": "takes-snapshots", "apiGroup": group}
    subject = {"kind": "User", "name": USER, "apiGroup": group}
    admin.create({**named, "kind": "ClusterRoleBinding", "subjects": [subject], "roleRef": reference})


def test_the_snapshot_answers_as_the_cluster_does(kube_server, cluster, tmp_path):
    config = kube_server.kubeconfig()
    done = bayplan("snapshot", "--kubeconfig", config, "--output-file", tmp_path / "snapshot.json")
    assert done.exit_code == 0, done.stderr
    live = bayplan("place", "--kubeconfig", config, "-o", "json")
    again = bayplan("place", "-f", tmp_path / "snapshot.json", "-o", "json")
    assert len(json.loads(live.stdout)["items"]) == 3
    assert (again.exit_code, again.stdout) == (live.exit_code, live.stdout)


def test_it_has_no_secrets(kube_server, cluster, namespace):
    config = kube_server.kubeconfig()
    text = bayplan("snapshot", "--kubeconfig", config).stdout
    assert "described" in text
    assert "hush" not in text
    assert not {"Secret", "ConfigMap"} & {item["kind"] for item in json.loads(text)["items"]}
    hashed = bayplan("snapshot", "--kubeconfig", config, "--hash-names").stdout
    words = set(re.findall(r"[\w-]+", hashed))  # whole words: a hash may contain "web" by chance
    assert not words & {namespace, "node-0", "web", "described", "zone-0", "zone-1"}


def test_a_resource_that_may_not_be_listed_is_a_note(kube_server, cluster):
    # Another test may have defined Karmada's kinds, and the fleet would then be listed too.
    fleet = [resource.plural for resource in (fetching.FLEET_CLUSTERS, *fetching.fleet_resources())]
    grant(cluster, "nodes", "pods", "namespaces", *fleet)
    done = bayplan("snapshot", "--kubeconfig", kube_server.kubeconfig("restricted"))
    assert done.exit_code == 0, done.stderr
    assert {item["kind"] for item in json.loads(done.stdout)["items"]} == {"Node", "Pod", "Namespace"}
    assert "decided without services" in done.stderr
    assert "secrets" not in done.stderr
    assert "configmaps" not in done.stderr


def test_without_nodes_and_pods_there_is_no_access(kube_server, cluster):
    done = bayplan("snapshot", "--kubeconfig", kube_server.kubeconfig("restricted"))
    assert (done.exit_code, done.stdout) == (3, "")
