"""
Every output format against its golden file and, where there is one, against its schema.

After an intended change of the output, `python tests/auditing/test_audit_formats.py` writes the golden files again.
"""

import json
import os
import pathlib
import re
import xml.etree.ElementTree as ET

import jsonschema
import pytest
import yaml
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

import bayplan
from bayplan.cli import main

HERE = pathlib.Path(__file__).parent
GOLDEN = HERE / "golden"
REPORT_SCHEMA = HERE.parents[1] / "docs/reference/schemas/audit-report.schema.json"
FORMS = {
    "table": "table.txt",
    "json": "report.json",
    "yaml": "report.yaml",
    "junit": "junit.xml",
    "sarif": "report.sarif",
    "markdown": "report.md",
    "scs": "scs.txt",
    "scs-report": "scs-report.yaml",
    "prometheus": "metrics.txt",
}
REPAIRABLE = ("table", "json", "yaml", "markdown")
SCENARIOS = ["success-1", "success-2", "no-distribution-1", "no-distribution-2", "missing-labels", "not-enough-nodes"]


def run(*words):
    before = pathlib.Path.cwd()
    os.chdir(HERE)
    os.environ["SOURCE_DATE_EPOCH"] = "1792000000"
    try:
        done = CliRunner().invoke(main.cli, ["audit", *words], prog_name="bayplan")
    finally:
        os.chdir(before)
        del os.environ["SOURCE_DATE_EPOCH"]
    assert done.exit_code in (0, 1), done.output
    return done.stdout.replace(f"with Bayplan {bayplan.__version__} ", "with Bayplan X ")


def scenario(form, name="success-2", *words):
    return run("-f", "scenarios.yaml", "--scenario", name, "-o", form, *words)


def whole(form):
    """A cluster with pods by a strict profile, with the repair in the formats that have it."""
    words = ["--repair"] if form in REPAIRABLE else ["--subject", "test"] if form == "scs-report" else []
    text = run("-f", "cluster.yaml", "--lose", "all", "--lose", "kernel", "--ha", "-o", form, *words)
    text = text.replace(f'"version": "{bayplan.__version__}"', '"version": "X"')
    text = text.replace(f"version: {bayplan.__version__}\n", "version: X\n")
    if form == "scs-report":
        text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(?=[:\n'])", "ID", text)
        text = re.sub(r"(?m)^(checked_at|reference_date): .*", r"\1: DATE", text)
        text = re.sub(r"(?m)^  argv:.*(\n  - .*)*", "  argv: ARGV", text)
        text = re.sub(r"(?m)^      cmd:.*(\n        .*)*", "      cmd: CMD", text)
    return text


@pytest.mark.parametrize("form", FORMS)
def test_the_form_is_as_recorded(form):
    assert whole(form) == (GOLDEN / FORMS[form]).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SCENARIOS)
def test_json_validates_against_its_schema(name):
    schema = json.loads(REPORT_SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(json.loads(scenario("json", name)))
    validator.validate(json.loads(scenario("json", name, "--repair")))
    validator.validate(json.loads(scenario("json", name, "--profile", "legacy")))


def test_json_with_losses_validates_against_its_schema():
    report = json.loads(whole("json"))
    schema = json.loads(REPORT_SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(report)
    assert yaml.safe_load(whole("yaml")) == report
    broken = {**report, "checks": [{**report["checks"][0], "verdict": "MAYBE"}]}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate(broken)


def test_json_has_a_version_and_every_check():
    report = json.loads(scenario("json", "missing-labels"))
    assert (report["apiVersion"], report["kind"]) == ("bayplan.io/v1alpha1", "AuditReport")
    assert report["passed"] is False
    found = {check["id"]: check for check in report["checks"]}
    assert found["scs-0214-cp-machines"]["verdict"] == "UNDECIDED"
    assert found["scs-0214-cp-machines"]["nodes"] == ["control-1"]
    assert found["fd-quorum-etcd-host"]["evidence"] == "inferred"
    assert report["stage"]["distributed"] == {"atLeast": "none", "atMost": "machines"}


def test_junit_is_read_by_a_parser():
    suite = ET.fromstring(scenario("junit", "missing-labels")).find("testsuite")
    cases = {case.get("name"): case for case in suite.findall("testcase")}
    assert int(suite.get("tests")) == len(cases)
    assert int(suite.get("failures")) == len(suite.findall("testcase/failure"))
    assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped"))
    assert cases["scs-0214-cp-machines"].find("failure").get("message").startswith("UNDECIDED: ")
    failed = ET.fromstring(scenario("junit")).findall("testsuite/testcase/failure/..")
    assert {case.get("name") for case in failed} == {"scs-0214-cp-machines", "lbl-host-one-zone"}


def test_junit_is_red_exactly_where_the_audit_does_not_pass():
    undecided = ET.fromstring(scenario("junit", "missing-labels")).find("testsuite")
    assert int(undecided.get("failures")) > 0
    allowed = ET.fromstring(scenario("junit", "missing-labels", "--allow-undecided")).find("testsuite")
    assert int(allowed.get("failures")) == 0
    cases = {case.get("name"): case for case in allowed.findall("testcase")}
    assert cases["scs-0214-cp-machines"].find("skipped").get("message")


def test_junit_reports_the_effect_of_losses():
    suite = ET.fromstring(whole("junit")).find("testsuite")
    found = {one.get("name"): one.get("value") for one in suite.findall("properties/property")}
    assert "the control plane tolerates 0 (single points hv-1)" in found["loss of a host"]
    assert "loss of a kernel" in found
    assert next(iter(suite)).tag == "properties"  # as the schemas of JUnit require


@pytest.fixture(scope="module")
def sarif_schema():
    schema = json.loads((HERE / "schemas" / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
    return jsonschema.Draft4Validator(schema, format_checker=jsonschema.FormatChecker())


@pytest.mark.parametrize("name", SCENARIOS)
def test_sarif_validates_against_its_schema(name, sarif_schema):
    log = json.loads(scenario("sarif", name))
    sarif_schema.validate(log)
    (found,) = log["runs"]
    ids = [rule["id"] for rule in found["tool"]["driver"]["rules"]]
    for result in found["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        for location in result["locations"]:
            physical = location["physicalLocation"]
            assert physical["artifactLocation"]["uri"] == "scenarios.yaml"


def test_sarif_of_a_cluster_with_losses_validates_too(sarif_schema):
    log = json.loads(whole("sarif"))
    sarif_schema.validate(log)
    assert "tolerates 0" in log["runs"][0]["properties"]["losses"]["host"]
    log["runs"][0]["results"][0]["level"] = "terrible"
    with pytest.raises(jsonschema.ValidationError):
        sarif_schema.validate(log)


def test_undecided_is_dnf_in_the_lines_of_scs():
    lines = scenario("scs", "missing-labels").splitlines()
    assert "scs-0214-cp-machines: DNF" in lines
    assert lines[-1] == "node-distribution-check: DNF"
    assert scenario("scs", "missing-labels", "--allow-undecided").splitlines()[-1] == "node-distribution-check: PASS"
    assert scenario("scs", "success-1").splitlines()[-1] == "node-distribution-check: PASS"
    assert scenario("scs", "success-2").splitlines()[-1] == "node-distribution-check: FAIL"
    legacy = scenario("scs", "success-2", "--profile", "legacy=old").splitlines()
    assert [line for line in legacy if not line.startswith("INFO: ")] == ["node-distribution-check: PASS"]


def upstream_results(lines):
    """The verdicts that the runner of SCS would take from the lines: the text after the last colon."""
    values = {"PASS": 1, "ABORT": 0, "DNF": 0, "FAIL": -1}
    found = (line.rpartition(":") for line in lines)
    return {name.strip(): values[word.strip()] for name, _, word in found if word.strip() in values}


@pytest.mark.parametrize("name", ["success-1", "success-2", "missing-labels"])
def test_the_report_of_scs_holds_what_its_runner_would_have_found(name):
    report = yaml.safe_load(scenario("scs-report", name, "--subject", "my-cluster"))
    assert report["subject"] == "my-cluster"
    assert report["spec"]["name"] == "SCS-compatible KaaS"
    ((key, invocation),) = report["run"]["invocations"].items()
    assert invocation["id"] == key
    assert invocation["results"] == upstream_results(invocation["stdout"])
    whole = {"success-1": 1, "success-2": -1, "missing-labels": 0}
    assert invocation["results"]["node-distribution-check"] == whole[name]
    assert invocation["rc"] == (0 if name == "success-1" else 1)
    assert invocation["warning"] == sum(line.startswith("WARNING") for line in invocation["stdout"])
    assert report["checked_at"].date() == report["reference_date"]


def test_gauges_are_read_by_prometheus():
    families = {family.name: family for family in text_string_to_metric_families(whole("prometheus"))}
    tolerance = {one.labels["level"]: one.value for one in families["bayplan_audit_tolerance"].samples}
    assert (tolerance["node"], tolerance["host"]) == (1, 0)
    verdicts = [one for one in families["bayplan_audit_check"].samples if one.labels["check"] == "fd-quorum-etcd-host"]
    assert {one.labels["verdict"]: one.value for one in verdicts}["FAIL"] == 1
    assert sum(one.value for one in verdicts) == 1
    assert families["bayplan_audit_passed"].samples[0].value == 0


def rewrite():
    GOLDEN.mkdir(exist_ok=True)
    for form, name in FORMS.items():
        (GOLDEN / name).write_text(whole(form), encoding="utf-8")


if __name__ == "__main__":
    rewrite()
