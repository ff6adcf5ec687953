"""Every scenario holds for the engine and for the reference implementation."""

import pytest

import scenarios
from asking import engine_answer
from reference import pods as reference_implementation
from scenarios import InvalidScenarioError

ENGINES = {"reference": reference_implementation.answer, "engine": engine_answer}
CASES = scenarios.all_cases()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=[case.question["name"] for case in CASES])
def test_scenario(case, engine):
    case.check(ENGINES[engine](case.question))


SCENE = {
    "about": "One pod, one node.",
    "nodes": {"a": {}},
    "pods": {"p": {"labels": {"app": "web"}}},
    "expect": {"p": {"node": "a"}},
}


def test_a_minimal_scenario_passes():
    (case,) = scenarios.cases("plain", SCENE)
    case.check(reference_implementation.answer(case.question))


@pytest.mark.parametrize(
    "change, complaint",
    [
        ({"nods": {}}, "unknown 'nods'"),
        ({"about": ""}, "'about' is missing"),
        ({"nodes": {"a": {"label": {}}}}, "node a: unknown 'label'"),
        ({"pods": {"p": {"lables": {}}}}, "pod p: unknown 'lables'"),
        ({"pods": {"p": {}, "q": {"nodeName": "b"}}}, "on node 'b', which does not exist"),
        ({"pods": {"p": {"namespace": "shop"}}}, "in namespace 'shop', which does not exist"),
        ({"pods": {"p": {"spec": {"nodeName": "a"}}}}, "say nodeName beside the spec"),
        ({"pods": {"p": {"terminating": True}}}, "pending, so it has no phase"),
        ({"pods": {"p": {}, "q": {}}}, "pending pods are"),
        ({"options": {"semantic": "design"}}, "options: unknown 'semantic'"),
        ({"expect": {"p": {"node": "b"}}}, "node 'b' does not exist"),
        ({"expect": {"p": {"node": "a", "nowhere": True}}}, "exactly one of"),
        ({"expect": {"p": {}}}, "exactly one of"),
        ({"expect": {"p": {"nowhere": True}}}, "a rejection for every node"),
        ({"expect": {"p": {"nowhere": True, "rejected": {"a": "gravity"}}}}, "no rule 'gravity'"),
        ({"expect": {"p": {"node": "a", "rejected": {"a": "taint"}}}}, "cannot be rejected and chosen"),
        ({"expect": {"p": {"node": "a", "message": "0/1"}}}, "has a message"),
    ],
)
def test_invalid_scenarios_are_rejected(change, complaint):
    with pytest.raises(InvalidScenarioError, match=complaint):
        scenarios.cases("invalid", {**SCENE, **change})


@pytest.mark.parametrize(
    "expected, complaint",
    [
        ({"node": "a", "rejected": {"b": "taint"}}, "expected rejections"),
        ({"node": "b"}, "expected \\['b'\\], got \\['a'\\]"),
        ({"node": "a", "prefers": ["b", "a"]}, "expected decreasing totals"),
    ],
)
def test_wrong_answers_are_reported(expected, complaint):
    answer = {"nodes": {"a": {"code": "Success", "total": 2}, "b": {"code": "Success", "total": 1}}, "best": ["a"]}
    with pytest.raises(AssertionError, match=complaint):
        scenarios.Case("claim", {}, expected).check(answer)


def test_a_duplicate_key_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr(scenarios, "FOLDER", tmp_path)
    path = tmp_path / "twice.yaml"
    path.write_text("about: one\nabout: two\n")
    with pytest.raises(InvalidScenarioError, match="'about' twice"):
        scenarios.load(path)
