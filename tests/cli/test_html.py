"""`-o html`: one file that loads and runs nothing, with a picture, tables and what it was made from."""

import hashlib
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
REPORTS = {
    "place": ("place", "-f", "examples/01-first-pod"),
    "place-explained": ("place", "-f", "examples/01-first-pod", "--explain"),
    "place-lost": ("place", "--state", "examples/01-first-pod", "--lose", "node/node-a1"),
    "place-fleet": ("place", "-f", "examples/10-fleet-idc-first/fleet", "-f", "examples/10-fleet-idc-first/shop-30.yaml"),
    "explain": ("explain", "pod/web-4", "-f", "examples/01-first-pod"),
    "explain-placed": ("explain", "pod/web-1", "-f", "examples/01-first-pod"),
    "explain-fleet": ("explain", "deployment/shop", "-f", "examples/10-fleet-idc-first/fleet", "-f", "examples/10-fleet-idc-first/shop-30.yaml"),
    "violations": ("violations", "-f", "examples/16-broken-while-running/cluster.yaml"),
    "no-violations": ("violations", "-f", "examples/01-first-pod"),
    "rebalance": ("rebalance", "-f", "examples/17-after-a-node-came-back"),
    "audit": ("audit", "-f", "examples/12-audit/nodes.yaml"),
    "audits": ("audit", "--cluster", "a=examples/12-audit/nodes.yaml", "--cluster", "b=examples/12-audit/nodes.yaml", "--repair"),
}  # fmt: skip


@pytest.fixture
def report(run, monkeypatch):
    def written(name):
        monkeypatch.chdir(ROOT)
        words = [*REPORTS[name], "-o", "html"]
        monkeypatch.setattr(sys, "argv", ["bayplan", *words])
        return run(*words).stdout

    return written


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_loads_and_runs_nothing_and_says_what_it_was_made_from(report, name):
    page = report(name)
    assert page.startswith("<!doctype html>")
    assert page.endswith("</html>\n")
    assert "default-src 'none'" in page
    assert not re.search(r"<(script|img|link|iframe|object)|https?://|\son\w+=", page)
    assert "<h2>Made from</h2>" in page
    assert f"command: bayplan {REPORTS[name][0]} " in page
    assert re.search(r"date: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", page)
    assert re.search(r"version: Bayplan \d", page)
    named = re.findall(r"input: (\S+) sha256:(\w+)", page)
    assert named
    for path, digest in named:
        assert hashlib.sha256((ROOT / path).read_bytes()).hexdigest() == digest


@pytest.mark.parametrize("name, expected", [
    ("place",          ["shop/web-1, web, moved", "pending: 1", "zone-a"]),
    ("place-lost",     ["node-b1", "pending: 2"]),
    ("place-fleet",    ["shop/shop-deployment: 12 replicas", "idc-2"]),
    ("explain",        ["node-c2, rejected, taint", "tolerate dedicated=batch:NoSchedule: fits on node-c2", "requests 500m cpu, 200m of 4 is free"]),
    ("explain-placed", ["node-a1, chosen, score 854", "InterPodAffinity 200"]),
    ("explain-fleet",  ["idc-1, chosen, 12 replicas"]),
    ("violations",     ["violated"]),
    ("no-violations",  ["no violations"]),
    ("rebalance",      ['class="arrow"', "shop/api-1", "+200"]),
    ("audit",          ["zone nova", "etcd on control-1", "scs-0214-cp-machines", "inferred", "SCS-0214-v2, MUST"]),
    ("audits",         ["Overview", "a: Checks", "b: Layout", "b: Repair"]),
])  # fmt: skip
def test_a_report_has_its_picture_and_its_evidence(report, name, expected):
    page = report(name)
    for text in expected:
        assert text in page, text


def test_a_plan_can_be_written_after_other_questions():
    """The picture is of the end of the plan, whatever the state was asked since."""
    import bayplan

    cluster = bayplan.Cluster.from_manifests(ROOT / "examples/01-first-pod")
    plan = cluster.place()
    first = plan.to_text("html")
    cluster.lose("node/node-a1").place()
    assert plan.to_text("html") == first


def test_moves_that_are_made_have_no_report(run):
    result = run("rebalance", "--context", "x", "--apply", "--yes", "-o", "html")
    assert result.exit_code == 2
    assert "-o html is a report on a plan" in result.stderr


def test_a_token_is_not_in_the_report(run, monkeypatch, tmp_path):
    words = ["place", "-f", str(ROOT / "examples/01-first-pod"), "-o", "html", "--token", "very-secret"]
    monkeypatch.setattr(sys, "argv", ["bayplan", *words])
    assert "very-secret" not in run(*words).stdout
