"""Every preemption scenario holds for the engine and for the reference implementation."""

import pytest

import preemption_scenarios
from asking import preemption_engine_answer
from preemption_scenarios import InvalidScenarioError
from reference import preemption as reference_implementation

ENGINES = {"reference": reference_implementation.answer, "engine": preemption_engine_answer}
CASES = preemption_scenarios.all_cases()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=[case.question["name"] for case in CASES])
def test_scenario(case, engine):
    case.check(ENGINES[engine](case.question))


SCENE = {
    "about": "One node, one pod on it, one that is more important.",
    "nodes": {"a": {"allocatable": {"pods": "1"}}},
    "pods": {"low": {"nodeName": "a"}, "high": {"priority": 1}},
    "expect": {"high": {"frees": "a", "victims": ["low"]}},
}


def test_a_minimal_scenario_passes():
    (case,) = preemption_scenarios.cases("plain", SCENE)
    case.check(reference_implementation.answer(case.question))


@pytest.mark.parametrize(
    "change, complaint",
    [
        ({"abuot": "x"}, "unknown 'abuot'"),
        ({"about": ""}, "'about' is missing"),
        ({"budgets": {"b": {"selecter": {}}}}, "budget b: unknown 'selecter'"),
        ({"pods": {"low": {"nodeName": "a"}, "high": {"started": "2026-01-01T00:00:00Z"}}}, "for running pods"),
        ({"pods": {"low": {"nodeName": "a", "nominated": "a"}, "high": {}}}, "for pending pods"),
        ({"expect": {"low": {"frees": "a", "victims": ["low"]}}}, "no such pod is pending"),
        ({"expect": {"high": {"frees": "a"}}}, "the node to free"),
        ({"expect": {"high": {"frees": "a", "victims": ["low"], "message": "m"}}}, "the node to free"),
        ({"expect": {"high": {"frees": "a", "victims": ["lowest"]}}}, "'lowest' does not exist"),
    ],
)
def test_invalid_scenarios_are_rejected(change, complaint):
    with pytest.raises(InvalidScenarioError, match=complaint):
        preemption_scenarios.cases("invalid", {**SCENE, **change})


def test_wrong_answers_are_reported():
    (case,) = preemption_scenarios.cases("plain", SCENE)
    answer = {"nominated": "a", "victims": [], "message": ""}
    with pytest.raises(AssertionError, match="plain"):
        case.check(answer)
