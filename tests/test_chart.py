"""The Helm chart without Helm: it has what deploy/ has, its values meet their schema, and alerts have what they name."""

import importlib.util
import json
import pathlib
import re

import jsonschema
import pytest
import yaml

ROOT = pathlib.Path(__file__).parent.parent
CHART = ROOT / "charts" / "bayplan"
METRICS = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
(RULES,) = yaml.safe_load_all((ROOT / "deploy" / "monitoring" / "rules.yaml").read_text(encoding="utf-8"))
ALERTS = [alert for group in RULES["spec"]["groups"] for alert in group["rules"]]
DASHBOARD = json.loads((ROOT / "deploy" / "monitoring" / "dashboard.json").read_text(encoding="utf-8"))
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
VALUES = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_templates_are_made_from_the_manifests():
    make_chart = load(ROOT / "tools" / "chart" / "make_chart.py")
    assert make_chart.outdated(make_chart.templates()) == [], "run `make chart`"


def test_every_manifest_is_in_the_chart_or_left_out_with_a_reason():
    make_chart = load(ROOT / "tools" / "chart" / "make_chart.py")
    there = {path.relative_to(ROOT / "deploy").as_posix() for path in ROOT.glob("deploy/*/*.yaml")}
    left_out = {
        "base/namespace.yaml",  # Helm creates the namespace
        "base/deployment.yaml",  # a template of its own
        "fleet/namespace.yaml",
        "fleet-host/namespace.yaml",
        "fleet-webhook/configurations.yaml",  # for Karmada's API server, by kubectl apply -k
    }
    rest = there - set(make_chart.CONDITIONS) - {path for path in there if path.endswith("kustomization.yaml")}
    assert rest == left_out


def test_the_values_meet_their_schema():
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    jsonschema.Draft7Validator(SCHEMA).validate(VALUES)


def test_every_value_has_a_schema_and_the_other_way_round():
    def keys(value, schema, path=""):
        for name in {*value, *schema.get("properties", {})} - {"global"}:
            assert name in value, f"{path}{name} has no default"
            assert name in schema["properties"], f"{path}{name} has no schema"
            below = schema["properties"][name]
            if isinstance(value[name], dict) and "properties" in below:
                keys(value[name], below, f"{path}{name}.")

    keys(VALUES, SCHEMA)


@pytest.mark.parametrize("wrong", [
    {"replicas": "two"},
    {"pod": {"enabled": True}},
    {"enforcement": {"mode": True}},  # what YAML makes of an `on` without quotes
    {"guard": {"exemptUsers": ["a', 'b"]}},  # would end the string of the CEL expression
    {"guard": {"exemptUsers": ["{{ .Values }}"]}},
    {"image": {"digest": "sha256:12"}},
    {"image": {"tag": "a b"}},
    {"pods": {"schedulerNames": []}},
    {"extraArgs": ["run"]},
])  # fmt: skip
def test_wrong_values_are_refused(wrong):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(SCHEMA).validate(wrong)


def test_the_versions_agree():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    (version,) = re.findall(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert chart["version"] == chart["appVersion"] == version
    images = {
        image for path in ROOT.glob("deploy/*/*.yaml") for image in re.findall(r"image: (\S+)", path.read_text("utf-8"))
    }
    assert images == {f"bayplan:{version}"}


# What watches it


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_each_alert_has_a_runbook(alert):
    name = re.fullmatch(r"runbooks/([a-z-]+)/", alert["annotations"]["runbook_url"])[1]
    page = (ROOT / "docs" / "runbooks" / f"{name}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {alert['alert']}\n")
    assert alert["labels"]["severity"] in {"critical", "warning"}
    for part in ("**Meaning.**", "**Impact.**", "**Diagnosis.**", "**What to do.**"):
        assert part in page


def test_each_runbook_has_an_alert():
    urls = {alert["annotations"]["runbook_url"] for alert in ALERTS}
    assert {f"runbooks/{path.stem}/" for path in ROOT.glob("docs/runbooks/*.md")} == urls


def metrics_of(query):
    """The names of metrics in a query: what is left without strings, labels, grouping, functions and numbers."""
    bare = re.sub(r'"[^"]*"|\{[^}]*\}|\[[^]]*\]|\b(?:by|on|ignoring) \([^)]*\)', "", query)
    return set(re.findall(r"\b([a-z]+_[a-z_]+)\b(?!\s*\()", bare))


def exported():
    rows = [line for line in METRICS.splitlines() if re.search(r"\| (counter|gauge|histogram) \|", line)]
    names = {name: row for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    histograms = {name for name, row in names.items() if "| histogram |" in row}
    return {*names, *(f"{name}_{end}" for name in histograms for end in ("bucket", "count", "sum"))} - histograms


@pytest.mark.parametrize("query", [*(alert["expr"] for alert in ALERTS), *QUERIES])
def test_queries_are_about_metrics_that_exist(query):
    """tests/live_loop/test_metric_types.py compares the page with what is served."""
    assert metrics_of(query)
    assert metrics_of(query) - exported() == set()


def test_the_dashboard_can_be_loaded():
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    names = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    assert set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD["panels"]))) <= names
