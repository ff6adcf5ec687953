"""What commands write as JSON is valid by the schemas in docs/reference/schemas."""

import json
import pathlib

import jsonschema
import pytest

ROOT = pathlib.Path(__file__).parents[2]
SCHEMAS = {
    schema["properties"]["kind"]["const"]: schema
    for path in sorted((ROOT / "docs" / "reference" / "schemas").glob("*.schema.json"))
    for schema in [json.loads(path.read_text(encoding="utf-8"))]
}
FLEET = "examples/10-fleet-idc-first"
FIRST, STUCK, BROKEN = "examples/01-first-pod", "examples/18-stuck-rollout", "examples/16-broken-while-running"


@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_schema_is_one(kind):
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[kind])
    assert SCHEMAS[kind]["properties"]["apiVersion"] == {"const": "bayplan.io/v1alpha1"}


@pytest.mark.parametrize("kind, words", [
    ("Explanation", ["explain", "pod/web-4", "-f", FIRST]),
    ("Explanation", ["explain", "pod/web-1", "-f", FIRST]),
    ("Explanation", ["explain", "pod/solver", "-f", "examples/03-exclusive-node"]),
    ("Explanation", ["explain", "deployment/shop", "-f", f"{FLEET}/fleet", "-f", f"{FLEET}/shop-3.yaml"]),
    ("PlacementList", ["place", "-f", FIRST, "--explain"]),
    ("PlacementList", ["place", "-f", FIRST, "--lose", "node/node-a1"]),
    ("PlacementList", ["place", "-f", FIRST, "--drain", "node/node-a1"]),
    ("PlacementList", ["place", "--state", f"{STUCK}/state.yaml", "-f", f"{STUCK}/web.yaml"]),
    ("RoomList", ["place", "-f", FIRST, "--replicas", "max"]),
    ("RoomList", ["place", "-f", FIRST, "--replicas", "2"]),
    ("ViolationList", ["violations", "-f", BROKEN]),
    ("ViolationList", ["violations", "-f", FIRST]),
    ("ValidationReport", ["validate", "-f", FIRST]),
    ("ValidationReport", ["validate", "-f", "examples", "-R"]),
])  # fmt: skip
def test_the_document_is_valid(run, monkeypatch, kind, words):
    monkeypatch.chdir(ROOT)
    document = json.loads(run(*words, "-o", "json").stdout)
    assert document["kind"] == kind
    jsonschema.Draft202012Validator(SCHEMAS[kind]).validate(document)


def test_every_kind_of_document_about_pods_has_a_schema():
    assert set(SCHEMAS) == {"Explanation", "PlacementList", "RoomList", "ViolationList", "ValidationReport"}
