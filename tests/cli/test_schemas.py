"""What commands write as JSON is valid by the schemas in docs/reference/schemas, and every document has one."""

import gzip
import json
import pathlib
import re

import jsonschema
import pytest

import document_schemas
from fuzzing import seeds

ROOT = pathlib.Path(__file__).parents[2]
FLEET = "examples/10-fleet-idc-first"
FIRST, STUCK, BROKEN = "examples/01-first-pod", "examples/18-stuck-rollout", "examples/16-broken-while-running"
SCALED = ["place", "-f", f"{FLEET}/fleet", "-f", f"{FLEET}/shop-3.yaml"]
AUDITED = ["examples/12-audit/nodes.yaml", "examples/13-losses/cluster.yaml"]
DOCUMENT = re.compile(r"versioned\.document\(\s*([\w.\"]+)")


@pytest.mark.parametrize("name", document_schemas.by_name())
def test_every_schema_is_one_and_says_its_version(name):
    schema = document_schemas.by_name()[name]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"https://bayplan.io/schemas/{name}/v1alpha1.json"
    if "kind" in schema.get("properties", ()):
        assert schema["properties"]["apiVersion"] == {"const": document_schemas.API_VERSION}
        assert name == re.sub("(?<!^)(?=[A-Z])", "-", schema["properties"]["kind"]["const"]).lower()


@pytest.mark.parametrize("kind, words", [
    ("Explanation", ["explain", "pod/web-4", "-f", FIRST]),
    ("Explanation", ["explain", "pod/web-1", "-f", FIRST]),
    ("Explanation", ["explain", "pod/solver", "-f", "examples/03-exclusive-node"]),
    ("Explanation", ["explain", "deployment/shop", "-f", f"{FLEET}/fleet", "-f", f"{FLEET}/shop-3.yaml"]),
    ("Explanation", ["explain", "statefulset/llm-green", "-f", "examples/22-groups"]),
    ("PlacementList", ["place", "-f", "examples/22-groups", "--explain"]),
    ("PlacementList", ["place", "-f", "examples/29-best-plan", "--optimize", "--moves", "1"]),
    ("PlacementList", ["place", "-f", FIRST, "--explain"]),
    ("PlacementList", ["place", "-f", FIRST, "--lose", "node/node-a1"]),
    ("PlacementList", ["place", "-f", FIRST, "--drain", "node/node-a1"]),
    ("PlacementList", ["place", "--state", f"{STUCK}/state.yaml", "-f", f"{STUCK}/web.yaml"]),
    ("RoomList", ["place", "-f", FIRST, "--replicas", "max"]),
    ("RoomList", ["place", "-f", FIRST, "--replicas", "2"]),
    ("FleetPlacementList", SCALED),
    ("FleetPlacementList", ["place", "-f", f"{FLEET}/fleet", "-f", f"{FLEET}/shop-30.yaml", "--explain"]),
    ("FleetPlacementList", ["place", "--state", "examples/19-fleet-failover/fleet.yaml", "--lose", "region=shanghai", "--explain"]),
    ("FleetPlacementList", ["place", "-f", "examples/11-fleet-anti-affinity", "-R", "--explain"]),
    ("FleetScalingList", [*SCALED, "--scale", "3,30"]),
    ("FleetScalingList", [*SCALED, "--replicas", "max"]),
    ("ViolationList", ["violations", "-f", BROKEN]),
    ("ViolationList", ["violations", "-f", FIRST]),
    ("RebalancePlan", ["rebalance", "-f", "examples/17-after-a-node-came-back"]),
    ("RebalancePlan", ["rebalance", "-f", f"{FLEET}/fleet"]),
    ("QuotaReport", ["quota", "-f", "examples/15-quota"]),
    ("QuotaReport", ["quota", "-f", "examples/15-quota", "--charge", "average"]),
    ("QuotaReport", ["quota", "-f", FIRST]),
    ("ValidationReport", ["validate", "-f", FIRST]),
    ("ValidationReport", ["validate", "-f", "examples", "-R"]),
    *(("AuditReport", ["audit", "-f", path, "--repair"]) for path in AUDITED),
    ("AuditReportList", ["audit", *(word for path in AUDITED for word in ("--cluster", f"{path[9:11]}={path}"))]),
    ("ReasonList", ["explain-rule"]),
    ("ReasonList", ["explain-rule", "too-many-pods"]),
    ("Version", ["version"]),
    ("BayplanConfiguration", ["config", "view"]),
    ("BayplanConfiguration", ["config", "view", "place", "-f", FIRST]),
    ("BayplanConfiguration", ["config", "view", "--origins"]),
    ("BayplanConfiguration", ["config", "view", "--config", "examples/07-tune-weights/scheduler.yaml"]),
])  # fmt: skip
def test_the_document_is_valid(run, monkeypatch, kind, words):
    monkeypatch.chdir(ROOT)
    n_names = 2 if words[0] == "config" else 1
    document = json.loads(run(*words[:n_names], "-o", "json", *words[n_names:]).stdout)
    assert document["kind"] == kind
    document_schemas.check(document)


def test_the_document_of_a_recording_is_valid(run, tmp_path):
    for number, recording in enumerate(seeds.recordings()):
        path = tmp_path / f"{number}.jsonl"
        path.write_text("".join(f"{json.dumps(line)}\n" for line in recording))
        document_schemas.check(json.loads(run("replay", path, "-o", "json").stdout))


@pytest.mark.parametrize("kind", ["pods", "preemption", "fleet", "admission"])
def test_the_answers_of_decide_are_valid(run, kind):
    with gzip.open(ROOT / f"tests/upstream/{kind}.jsonl.gz", "rt") as lines:
        questions = [line for line, _ in zip(lines, range(60), strict=False)]
    answers = run("decide", kind, given="".join([*questions, "no question\n"])).stdout.splitlines()
    assert len(answers) == len(questions) + 1
    for answer in answers:
        document_schemas.check(json.loads(answer), f"decide-{kind}")


@pytest.mark.parametrize("kind", ["pods", "fleet"])
def test_the_result_of_a_benchmark_is_valid(run, tmp_path, kind):
    (tmp_path / "input.json").write_text(json.dumps(seeds.benchmark_inputs(kind)[0]))
    document_schemas.check(json.loads(run("bench", kind, tmp_path / "input.json").stdout.splitlines()[-1]), "bench")


def test_every_kind_of_document_has_a_schema(source_folder):
    """Every kind that is written; a schema without a document would be one that nothing is checked by."""
    written = set()
    for file in (source_folder / "bayplan").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        for found in DOCUMENT.findall(text):
            name = found.rpartition(".")[2]
            where = text if "." not in found else (file.parent / f"{found.partition('.')[0]}.py").read_text()
            constant = re.search(rf'\b{name}\b.*? = "(\w+)"', where)
            written.add(found.strip('"') if found.startswith('"') else constant[1])
    assert written == set(document_schemas.by_kind())
