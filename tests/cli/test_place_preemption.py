"""`place` and `explain` tell what preemption would do."""

import json

import pytest

NODE = {
    "apiVersion": "v1", "kind": "Node",
    "metadata": {"name": "node-a1", "labels": {"kubernetes.io/hostname": "node-a1"}},
    "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"}},
}  # fmt: skip
HIGH = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100}


def pod(name, cpu, **spec):
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    meta = {"name": name, "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers, **spec}}


@pytest.fixture
def full(tmp_path):
    running, urgent = pod("batch-3", "2", nodeName="node-a1"), pod("web", "1", priorityClassName="high")
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, HIGH, running, urgent]}))
    return str(path)


def test_the_table_names_victims_and_what_becomes_of_them(run, full):
    answer = run("place", "-f", full)
    assert answer.exit_code == 1  # a running pod is lost
    assert "would preempt shop/batch-3 on node-a1" in answer.stdout
    assert "preempted from node-a1 by shop/web; no controller creates it again" in answer.stdout


def test_the_document_has_victims(run, full):
    items = json.loads(run("place", "-f", full, "-o", "json").stdout)["items"]
    web, batch = items
    assert (web["target"], web["victims"]) == ("node-a1", ["shop/batch-3"])
    assert (batch["target"], batch["preemptedBy"], batch["preemptedFrom"], batch["lost"]) == (
        "", "shop/web", "node-a1", True,
    )  # fmt: skip


def test_no_preemption_leaves_it_out(run, full):
    answer = run("place", "-f", full, "--no-preemption")
    assert answer.exit_code == 1
    assert "preempt" not in answer.stdout
    assert "Insufficient cpu" in answer.stdout


def test_explain_says_what_would_be_preempted_and_why_it_must(run, full):
    answer = run("explain", "pod/web", "-f", full)
    assert answer.exit_code == 0
    assert answer.stdout.startswith(
        "shop/web would preempt shop/batch-3 on node-a1. Without that: 0/1 nodes are available: 1 Insufficient cpu."
    )
    document = json.loads(run("explain", "pod/web", "-f", full, "-o", "json").stdout)
    assert (document["nominated"], document["victims"], document["target"]) == ("node-a1", ["shop/batch-3"], "")
    assert run("explain", "pod/web", "-f", full, "--no-preemption").exit_code == 1
