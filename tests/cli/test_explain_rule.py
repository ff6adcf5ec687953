import json

import pytest

from bayplan.library import reason_pages


def test_pages_are_in_the_order_of_the_rules():
    ids = [page.id for page in reason_pages.all_pages()]
    assert ids.index("unreadable-rule") < ids.index("taint") < ids.index("pod-affinity") < ids.index("cluster-taint")
    assert len(ids) == len(set(ids))


def test_a_reason_that_no_rule_gives_names_its_plugin():
    (page,) = reason_pages.find("scheduling-gates")
    assert (page.rule, page.plugin) == ("placeable", "SchedulingGates")


@pytest.mark.parametrize("code, ids", [
    ("taint", ["taint"]),
    ("TAINT", ["taint"]),
    ("TaintToleration", ["taint", "cluster-taint"]),
    ("InterPodAffinity", ["pod-affinity", "pod-anti-affinity", "existing-anti-affinity", "pod-anti-affinity-key"]),
    ("insufficient-nvidia.com/gpu", ["insufficient-<resource>"]),
    ("Insufficient memory", ["insufficient-<resource>"]),
    ("node(s) were unschedulable", ["node-unschedulable"]),
    ('persistentvolumeclaim "data" not found', ["claim-missing"]),
    ("node(s) didn't match pod topology spread constraints (missing required label)", ["topology-spread-label"]),
    ("0/3 nodes are available: 1 Too many pods, 2 node(s) had untolerated taint(s).", ["taint", "too-many-pods"]),
    ("cluster(s) had untolerated taint {cluster.karmada.io/not-ready:NoSchedule}", ["cluster-taint"]),
    ("SpreadConstraint", ["provider-missing", "region-missing", "zone-missing", "label-missing"]),
    ("failed to select clusters: no enough resource when selecting 2 clusters", ["no-capacity-in-clusters"]),
    ("the number of feasible region is less than spreadConstraint.MinGroups", ["too-few-regions"]),
    ("failed to scale up: Clusters available replicas 3 are not enough to schedule.", ["no-capacity"]),
    ("Clusters available replicas are not enough to schedule.", ["no-capacity-in-tiers"]),
    ("Clusters available replicas 3 are not enough to schedule", ["no-capacity"]),
    ("evicted, and not scheduled again, because it is suspended", ["evicted"]),
    ("spans 1 cluster, minGroups is 2", ["spread-unmet"]),
    ("assign-replicas", ["no-capacity", "no-capacity-in-tiers", "unsupported-strategy"]),
    ("nothing of the kind", []),
])  # fmt: skip
def test_a_reason_is_found_by_all_its_names(code, ids):
    assert [page.id for page in reason_pages.find(code)] == ids


def test_a_page_has_the_meaning_and_what_to_do(run):
    assert run("explain-rule", "too-many-pods").stdout == (
        "too-many-pods\n  rule    resources\n  plugin  NodeResourcesFit\n  text    Too many pods\n"
        "\nWhat it means\n"
        "  The node runs as many pods as its kubelet allows (allocatable pods, often 110).\n"
        "\nWhat to do\n"
        "  Add nodes, or raise maxPods of the kubelet if the pod network has enough addresses.\n"
    )


def test_without_a_code_all_reasons_are_listed(run):
    lines = run("explain-rule").stdout.splitlines()
    assert lines[0].split() == ["CODE", "PLUGIN", "TEXT"]
    assert len(lines) == len(reason_pages.all_pages()) + 1


def test_the_document_lists_the_pages(run):
    found = json.loads(run("explain-rule", "taint", "-o", "json").stdout)
    assert (found["kind"], found["items"][0]["plugin"]) == ("ReasonList", "TaintToleration")
