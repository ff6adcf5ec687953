"""Every scenario of preemption holds, whoever answers."""

import pytest

import preemption_scenarios
from asking import preemption_engine_answer
from preemption_scenarios import BadSceneError
from reference import preemption as slow_twin

ENGINES = {"slow twin": slow_twin.answer, "engine": preemption_engine_answer}
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


def test_the_plainest_scene_works():
    (case,) = preemption_scenarios.cases("plain", SCENE)
    case.check(slow_twin.answer(case.question))


@pytest.mark.parametrize(
    "change, complaint",
    [
        ({"abuot": "x"}, "unknown 'abuot'"),
        ({"about": ""}, "'about' is missing"),
        ({"budgets": {"b": {"selecter": {}}}}, "budget b: unknown 'selecter'"),
        ({"pods": {"low": {"nodeName": "a"}, "high": {"started": "2026-01-01T00:00:00Z"}}}, "for pods that run"),
        ({"pods": {"low": {"nodeName": "a", "nominated": "a"}, "high": {}}}, "for pods that wait"),
        ({"expect": {"low": {"frees": "a", "victims": ["low"]}}}, "no such pod waits"),
        ({"expect": {"high": {"frees": "a"}}}, "which node it frees"),
        ({"expect": {"high": {"frees": "a", "victims": ["low"], "message": "m"}}}, "which node it frees"),
        ({"expect": {"high": {"frees": "a", "victims": ["lowest"]}}}, "'lowest' is not there"),
    ],
)
def test_senseless_scenes_are_refused(change, complaint):
    with pytest.raises(BadSceneError, match=complaint):
        preemption_scenarios.cases("senseless", {**SCENE, **change})


def test_wrong_answers_are_noticed():
    (case,) = preemption_scenarios.cases("plain", SCENE)
    answer = {"nominated": "a", "victims": [], "message": ""}
    with pytest.raises(AssertionError, match="plain"):
        case.check(answer)
