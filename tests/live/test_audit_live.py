"""`bayplan audit` on a live cluster: the same verdicts as its dump, within the rights of the user."""

import json
import urllib.request

import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from bayplan.cli import main
from live import bayplan_running
from live.objects import pod

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
HOST = "topology.scs.community/host-id"
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")


def audit(*words):
    return CliRunner().invoke(main.cli, ["audit", "-o", "json", *map(str, words)], prog_name="bayplan")


def verdicts(done):
    return {check["id"]: check["verdict"] for check in json.loads(done.stdout)["checks"]}


@pytest.fixture
def cluster(sync_admin):
    """Three control-plane nodes, two on one machine; their components, and a workload on one node."""
    labels = lambda number: {HOST: f"hv-{number // 2}", CONTROL_PLANE: ""}  # noqa: E731
    sync_admin.create_nodes(3, labels=labels, zones=1)
    for number in range(3):
        for part in COMPONENTS:
            meta = {"labels": {"component": part, "tier": "control-plane"}}
            name = f"{part}-{number}"
            sync_admin.create(pod(name, "kube-system", nodeName=f"node-{number}", meta=meta))
            running = {"status": {"phase": "Running"}}
            sync_admin.patch("pods", name, running, "kube-system", subresource="status")
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d9f", "uid": "1", "controller": True}
    meta = {"labels": {"app": "web", "pod-template-hash": "5d9f"}, "ownerReferences": [owner]}
    for number in range(2):
        sync_admin.create(pod(f"web-{number}", nodeName="node-0", cpu="1", meta=meta))
    return sync_admin


def grant(admin, user, *resources):
    """Let the user list these resources everywhere, and nothing else."""
    group = "rbac.authorization.k8s.io"
    rule = {"apiGroups": ["*"], "resources": list(resources), "verbs": ["get", "list"]}
    role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": "reader"}, "rules": [rule]}
    admin.create(role)
    subject = {"kind": "User", "name": user, "apiGroup": group}
    reference = {"kind": "ClusterRole", "name": "reader", "apiGroup": group}
    binding = {"metadata": {"name": "reader"}, "subjects": [subject], "roleRef": reference}
    admin.create({"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", **binding})


def test_a_cluster_and_its_dump_get_the_same_verdicts(kube_server, cluster, tmp_path):
    done = audit("--kubeconfig", kube_server.kubeconfig(), "--ha")
    assert done.exit_code == 1, done.stderr
    found = verdicts(done)
    assert found["fd-quorum-etcd-host"] == "FAIL"
    assert found["scs-0213-dup-etcd"] == "PASS"
    assert found["fd-n1-workloads-host"] == "WARN"
    kinds = ("nodes", "pods", "namespaces", "coordination.k8s.io/v1/leases", "discovery.k8s.io/v1/endpointslices")
    dumped = [cluster.list(kind) for kind in kinds]
    (tmp_path / "dump.json").write_text("\n".join(map(json.dumps, dumped)))
    assert verdicts(audit("-f", tmp_path / "dump.json", "--ha")) == found


def test_a_file_replaces_the_object_of_the_cluster(kube_server, cluster, tmp_path):
    moved = cluster.get("nodes", "node-0")
    moved["metadata"]["labels"][HOST] = "hv-9"
    (tmp_path / "moved.json").write_text(json.dumps(moved))
    done = audit("--kubeconfig", kube_server.kubeconfig(), "-f", tmp_path / "moved.json")
    assert verdicts(done)["fd-quorum-etcd-host"] == "PASS"
    assert "more than once" not in done.stderr


def test_a_user_who_may_only_list_nodes_gets_their_verdicts(kube_server, cluster):
    grant(cluster, "system:serviceaccount:default:restricted", "nodes")
    done = audit("--kubeconfig", kube_server.kubeconfig("restricted"))
    assert done.exit_code == 0, done.stderr  # the current standard only checks nodes
    found = verdicts(done)
    assert found["scs-0214-cp-machines"] == "PASS"
    assert found["scs-0213-dup-etcd"] == "UNDECIDED"
    (line,) = done.stderr.splitlines()
    assert line.startswith("warning: pods, namespaces, ")
    assert line.endswith(" could not be listed (forbidden): what depends on them is left undecided")
    assert audit("--kubeconfig", kube_server.kubeconfig("restricted"), "--ha").exit_code == 1


def test_without_nodes_there_is_no_access(kube_server, cluster):
    done = audit("--kubeconfig", kube_server.kubeconfig("restricted"))
    assert done.exit_code == 3
    assert "nodes" in done.stderr


def gauges(running):
    with urllib.request.urlopen(f"http://127.0.0.1:{running.port}/metrics") as answer:
        families = text_string_to_metric_families(answer.read().decode())
        return {
            sample.name: sample for family in families for sample in family.samples if not sample.labels.get("verdict")
        }


def test_a_running_scheduler_exports_audit_results(kube_server, cluster):
    running = bayplan_running.process(kube_server, "--audit", "--audit-interval", "1s")
    cluster.wait_for(lambda: "bayplan_audit_passed" in gauges(running))
    assert gauges(running)["bayplan_audit_passed"].value == 1
    assert gauges(running)["bayplan_audit_passed"].labels == {"profile": "scs-0214-v2"}
    cluster.patch("nodes", "node-2", {"metadata": {"labels": {HOST: "hv-0"}}})
    cluster.wait_for(lambda: gauges(running)["bayplan_audit_passed"].value == 0)
    assert gauges(running)["bayplan_audit_failures_total"].value == 0
    running.stop()
    assert "Traceback" not in running.log_tail()
