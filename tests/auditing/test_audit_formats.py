"""
Every form of the answer, against a file that holds what it should be.

Where the output has changed for a good reason, `python tests/auditing/test_audit_formats.py` writes the files anew.
"""

import json
import os
import pathlib
import xml.etree.ElementTree as ET

import pytest
from click.testing import CliRunner

import bayplan
from bayplan.cli import main

HERE = pathlib.Path(__file__).parent
GOLDEN = HERE / "golden"
FORMS = {
    "table": "table.txt",
    "json": "report.json",
    "yaml": "report.yaml",
    "junit": "junit.xml",
    "sarif": "report.sarif",
    "markdown": "report.md",
    "scs": "scs.txt",
}
LEVELS = {"none", "note", "warning", "error"}


def written(form, scenario="success-2", *words):
    before = pathlib.Path.cwd()
    os.chdir(HERE)
    try:
        done = CliRunner().invoke(
            main.cli, ["audit", "-f", "scenarios.yaml", "--scenario", scenario, "-o", form, *words], prog_name="bayplan"
        )
    finally:
        os.chdir(before)
    assert done.exit_code in (0, 1), done.output
    return done.stdout


@pytest.mark.parametrize("form", FORMS)
def test_the_form_is_as_recorded(form):
    recorded = (GOLDEN / FORMS[form]).read_text(encoding="utf-8")
    assert written(form).replace(f'"version": "{bayplan.__version__}"', '"version": "X"') == recorded


def test_json_has_a_version_and_every_check():
    report = json.loads(written("json", "missing-labels"))
    assert (report["apiVersion"], report["kind"]) == ("bayplan.io/v1alpha1", "AuditReport")
    assert report["passed"] is False
    found = {check["id"]: check for check in report["checks"]}
    assert {check["verdict"] for check in report["checks"]} <= {"PASS", "FAIL", "WARN", "UNDECIDED", "N/A"}
    assert found["scs-0214-cp-machines"]["verdict"] == "UNDECIDED"
    assert found["scs-0214-cp-machines"]["nodes"] == ["control-1"]
    assert found["fd-quorum-etcd-host"]["evidence"] == "inferred"
    assert report["stage"]["distributed"] == {"atLeast": "none", "atMost": "machines"}


def test_junit_is_read_by_a_parser():
    root = ET.fromstring(written("junit", "missing-labels"))
    suite = root.find("testsuite")
    cases = {case.get("name"): case for case in suite.findall("testcase")}
    assert int(suite.get("tests")) == len(cases)
    assert int(suite.get("failures")) == len(suite.findall("testcase/failure"))
    assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped"))
    assert cases["scs-0214-cp-machines"].find("skipped").get("message")
    failed = ET.fromstring(written("junit")).findall("testsuite/testcase/failure/..")
    assert {case.get("name") for case in failed} == {"scs-0214-cp-machines", "lbl-host-one-zone"}


@pytest.mark.parametrize("scenario", ["success-1", "success-2", "missing-labels"])
def test_sarif_has_the_structure_of_its_schema(scenario):
    log = json.loads(written("sarif", scenario))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    ids = [rule["id"] for rule in rules]
    assert len(ids) == len(set(ids))
    for rule in rules:
        assert rule["shortDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] in LEVELS
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in LEVELS
        assert result["message"]["text"]
        assert all(isinstance(value, str) for value in result["partialFingerprints"].values())
        assert result["locations"]
        for location in result["locations"]:
            physical = location["physicalLocation"]
            assert physical["artifactLocation"]["uri"] == "scenarios.yaml"
            assert physical["region"]["startLine"] >= 1


def test_undecided_is_dnf_in_the_lines_of_scs():
    lines = written("scs", "missing-labels").splitlines()
    assert "scs-0214-cp-machines: DNF" in lines
    assert lines[-1] == "node-distribution-check: DNF"
    assert written("scs", "missing-labels", "--allow-undecided").splitlines()[-1] == "node-distribution-check: PASS"
    assert written("scs", "success-1").splitlines()[-1] == "node-distribution-check: PASS"
    assert written("scs", "success-2").splitlines()[-1] == "node-distribution-check: FAIL"
    assert written("scs", "success-2", "--profile", "legacy=old") == "node-distribution-check: PASS\n"


def rewrite():
    GOLDEN.mkdir(exist_ok=True)
    for form, name in FORMS.items():
        text = written(form).replace(f'"version": "{bayplan.__version__}"', '"version": "X"')
        (GOLDEN / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    rewrite()
