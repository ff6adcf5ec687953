import ast
import json
from pathlib import Path

import pytest

from bayplan import rules
from bayplan.cli import explain_rule
from bayplan.rules import profiles


def _text(node):
    """A string of the source, with X for each placeholder; None if it is not a string."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
    return None


def reasons():
    """(id, text or None) of every reason that a rule can give, read from the source of the rules."""
    for path in sorted(Path(rules.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Reason", "_never"):
                name, text = _text(node.args[0]), _text(node.args[1])
                if name is not None:
                    yield pytest.param(name, text, id=f"{path.stem}-{name}")


@pytest.mark.parametrize("name, text", list(reasons()))
def test_every_reason_has_a_page(name, text):
    (page,) = explain_rule.find(name)
    if text is not None:
        assert page.says(text)


def test_pages_name_rules_that_exist():
    known = {(rule.id, rule.name) for rule in (*profiles.pod_rules(), *profiles.fleet_rules())}
    known.add(("placeable", "SchedulingGates"))
    assert {(page.rule, page.plugin) for page in explain_rule.PAGES} <= known


def test_every_reason_has_one_page():
    ids = [page.id for page in explain_rule.PAGES]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("code, ids", [
    ("taint", ["taint"]),
    ("TAINT", ["taint"]),
    ("TaintToleration", ["taint", "cluster-taint"]),
    ("InterPodAffinity", ["pod-affinity", "pod-anti-affinity", "existing-anti-affinity"]),
    ("insufficient-nvidia.com/gpu", ["insufficient-<resource>"]),
    ("Insufficient memory", ["insufficient-<resource>"]),
    ("node(s) were unschedulable", ["node-unschedulable"]),
    ('persistentvolumeclaim "data" not found', ["claim-missing"]),
    ("node(s) didn't match pod topology spread constraints (missing required label)", ["topology-spread-label"]),
    ("0/3 nodes are available: 1 Too many pods, 2 node(s) had untolerated taint(s).", ["taint", "too-many-pods"]),
    ("cluster(s) had untolerated taint {cluster.karmada.io/not-ready:NoSchedule}", ["cluster-taint"]),
    ("SpreadConstraint", ["provider-missing", "region-missing", "zone-missing", "label-missing"]),
    ("nothing of the kind", []),
])  # fmt: skip
def test_a_reason_is_found_by_all_its_names(code, ids):
    assert [page.id for page in explain_rule.find(code)] == ids


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
    assert len(lines) == len(explain_rule.PAGES) + 1


def test_the_document_lists_the_pages(run):
    found = json.loads(run("explain-rule", "taint", "-o", "json").stdout)
    assert (found["kind"], found["items"][0]["plugin"]) == ("ReasonList", "TaintToleration")
