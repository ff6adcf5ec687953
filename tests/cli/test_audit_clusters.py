"""One report on several clusters."""

import json
import xml.etree.ElementTree as ET

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

import document_schemas


def write(path, *hosts):
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"control-{i}",
                "labels": {
                    "node-role.kubernetes.io/control-plane": "",
                    "topology.scs.community/host-id": host,
                    "topology.kubernetes.io/zone": "z",
                    "topology.kubernetes.io/region": "r",
                },
            },
        }
        for i, host in enumerate(hosts)
    ]
    path.write_text(yaml.safe_dump_all(nodes))


@pytest.fixture
def clusters(tmp_path):
    write(tmp_path / "prod.yaml", "a", "b", "c")
    write(tmp_path / "test.yaml", "a", "a", "a")
    return ["--cluster", f"prod={tmp_path / 'prod.yaml'}", "--cluster", f"test={tmp_path / 'test.yaml'}"]


def test_one_table_has_a_row_for_each_cluster(run, clusters):
    done = run("audit", *clusters)
    assert done.exit_code == 1  # one of them does not pass
    assert "Cluster prod\n" in done.stdout
    last = done.stdout.rstrip().splitlines()[-2:]
    assert [line.split()[:2] for line in last] == [["prod", "passed"], ["test", "not"]]
    assert run("audit", *clusters[:2]).exit_code == 0


def test_json_is_a_list_of_reports(run, clusters):
    found = json.loads(run("audit", *clusters, "-o", "json").stdout)
    assert (found["kind"], found["passed"]) == ("AuditReportList", False)
    assert [(item["cluster"], item["passed"]) for item in found["items"]] == [("prod", True), ("test", False)]
    document_schemas.check(found)
    alone = json.loads(run("audit", *clusters[2:], "-o", "json").stdout)
    assert (alone["kind"], alone["cluster"]) == ("AuditReport", "test")


def test_other_formats_tell_the_clusters_apart(run, clusters):
    suites = ET.fromstring(run("audit", *clusters, "-o", "junit").stdout)
    assert [suite.get("name") for suite in suites] == [
        "bayplan audit scs-0214-v2 of prod", "bayplan audit scs-0214-v2 of test",
    ]  # fmt: skip
    assert int(suites.get("tests")) == sum(int(suite.get("tests")) for suite in suites)
    runs = json.loads(run("audit", *clusters, "-o", "sarif").stdout)["runs"]
    assert [one["automationDetails"]["id"] for one in runs] == ["bayplan-audit/prod", "bayplan-audit/test"]
    families = text_string_to_metric_families(run("audit", *clusters, "-o", "prometheus").stdout)
    passed = next(family for family in families if family.name == "bayplan_audit_passed")
    assert {sample.labels["cluster"]: sample.value for sample in passed.samples} == {"prod": 1, "test": 0}
    text = run("audit", *clusters, "-o", "markdown").stdout
    assert text.startswith("# Audit of 2 clusters\n")
    assert text.count("## Audit of ") == 2


@pytest.mark.parametrize("cluster, code", [("test", 0), ("prod", 1)])
def test_what_is_accepted_in_one_cluster_is_not_in_another(run, clusters, tmp_path, cluster, code):
    one = {"check": "scs-0214-cp-machines", "reason": "small", "expires": "9999-12-31", "cluster": cluster}
    (tmp_path / "accepted.yaml").write_text(yaml.safe_dump([one]))
    done = run("audit", *clusters, "--accept", tmp_path / "accepted.yaml")
    assert done.exit_code == code
    unused = "warning: prod: the acceptance of scs-0214-cp-machines has nothing to accept"
    assert (unused in done.stderr) == (cluster == "prod")


def test_bad_input_of_all_clusters_is_reported_at_once(run, clusters, tmp_path):
    (tmp_path / "bad.yaml").write_text("kind: Node\napiVersion: v1\nmetadata: {name: 5}\n")
    done = run(
        "audit", "--cluster", f"a={tmp_path / 'bad.yaml'}", "--cluster", f"b={tmp_path / 'none.yaml'}", *clusters
    )
    assert done.exit_code == 2
    assert "bad.yaml" in done.stderr
    assert "none.yaml" in done.stderr


@pytest.mark.parametrize("words", [
    ("-o", "scs"),
    ("-f", "nodes.yaml"),
    ("--cluster", "nameless"),
])  # fmt: skip
def test_what_cannot_be_combined(run, clusters, words):
    assert run("audit", *clusters, *words).exit_code == 2
