"""Every fleet scenario holds, whoever answers."""

import copy

import msgspec
import pytest

import fleet_scenarios
import scenarios
from asking import fleet_engine_answer
from bayplan.controllers import binding_triggers
from bayplan.wire.fleets import ResourceBinding
from reference import fleet as slow_twin
from scenarios import BadSceneError

ENGINES = {"slow twin": slow_twin.answer, "engine": fleet_engine_answer}
CASES, CALLS = fleet_scenarios.everything()

# Claims that the engine does not meet yet, and why. An entry that is no longer needed fails, so this list stays exact.
GHOST = "a peer whose copy drains is named with the mark that the index gives it"
ENGINE_MISSING = {}
# Claims about who is not scheduled again that do not hold yet, and why; just as exact.
CALLS_MISSING = {}


def asked():
    for case in CASES:
        for engine in ENGINES:
            reason = ENGINE_MISSING.get(case.claim) if engine == "engine" else None
            marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
            yield pytest.param(case, engine, id=f"{case.question['name']}-{engine}", marks=marks)


@pytest.mark.parametrize("case, engine", list(asked()))
def test_scenario(case, engine):
    case.check(ENGINES[engine](case.question))


def called():
    for call in CALLS:
        reason = None if call.due else CALLS_MISSING.get(call.claim)
        marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
        yield pytest.param(call, id=call.name, marks=marks)


@pytest.mark.parametrize("call", list(called()))
def test_changes_call_for_a_decision_or_do_not(call):
    written = msgspec.convert(call.binding, ResourceBinding)
    assert binding_triggers.needs_scheduling(written, call.leaving) is call.due


def test_what_is_missing_is_the_name_of_a_scenario():
    assert {*ENGINE_MISSING, *CALLS_MISSING} <= {case.claim for case in CASES}


DIVIDED = {"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}}
GROUPS = {"clusterAffinities": [{"affinityName": "first", "clusterNames": ["a"]}]}
SCENE = {
    "about": "One workload, one cluster.",
    "clusters": {"a": {"allocatable": {"pods": 5}}},
    "workloads": {"shop": {"replicas": 3, "placement": {**GROUPS, **DIVIDED}}},
    "expect": {"shop": {"clusters": {"a": 3}, "group": "first"}},
}
OLD = {"replicas": 3, "runs": {"a": 3}, "placement": {**GROUPS, **DIVIDED}}
STAYS = {"clusters": {"a": 3}, "group": "first"}


def test_the_plainest_scene_works():
    (case,), _ = fleet_scenarios.told("plain", SCENE)
    case.check(slow_twin.answer(case.question))


@pytest.mark.parametrize(
    "change, complaint",
    [
        ({"cluster": {}}, "unknown 'cluster'"),
        ({"about": ""}, "'about' is missing"),
        ({"expect": {}}, "nothing is expected"),
        ({"options": {"semantic": "design"}}, "options: unknown 'semantic'"),
        ({"clusters": {"a": {"zone": "z"}}}, "cluster a: unknown 'zone'"),
        ({"clusters": {"a": {"free": {"pods": 1}, "allocatable": {"pods": 1}}}}, "free or what is allocatable"),
        ({"clusters": {"a": {"free": {"gpu": 1}}}}, "no resource 'gpu'"),
        ({"clusters": {"a": {"apis": ["Pods"]}}}, "no kind 'Pods'"),
        ({"workloads": {"shop": {"kind": "Deploy"}}}, "no kind 'Deploy'"),
        ({"workloads": {"shop": {"on": {}}}}, "workload shop: unknown 'on'"),
        ({"workloads": {"shop": {"runs": {"b": 1}}}}, "on cluster 'b', which is not there"),
        ({"workloads": {"shop": {"evicting": ["b"]}}}, "on cluster 'b', which is not there"),
        ({"workloads": {"shop": {"runs": {"a": 1}, "evicting": ["a"]}}}, "runs on a and is evicted from it"),
        ({"workloads": {"shop": {"fresh": True}}}, "cannot be fresh"),
        ({"workloads": {"shop": {"runs": ["a"]}}}, "how many replicas run"),
        ({"workloads": {"shop": {"kind": "ConfigMap", "replicas": 3}}}, "a ConfigMap has no replicas"),
        ({"workloads": {"shop": {"groups": {"affinity": "x"}}}}, "groups of workload shop: unknown 'affinity'"),
        ({"workloads": {"shop": {}, "other": {}}, "expect": {"shop": {"clusters": {"a": 1}}}}, "of \\['other'\\]"),
        ({"variants": {"v": {"other": {}}}}, "workload 'other' is not there"),
        ({"expect": {"other": {"clusters": {"a": 3}}}}, "workload 'other' is not there"),
        ({"expect": {"shop": {}}}, "say clusters or nowhere"),
        ({"expect": {"shop": {"clusters": {"a": 3}, "nowhere": "NoClusterFit"}}}, "say clusters or nowhere"),
        ({"expect": {"shop": {"clusters": {"b": 3}}}}, "cluster 'b' is not there"),
        ({"expect": {"shop": {"clusters": {"a": 2}}}}, "3 replicas are to be placed"),
        ({"expect": {"shop": {"clusters": ["a"]}}}, "how many replicas each cluster gets"),
        ({"expect": {"shop": {"clusters": {"a": 3}, "group": "second"}}}, "no group 'second'"),
        ({"expect": {"shop": {"nowhere": "Full"}}}, "nowhere is one of"),
        ({"expect": {"shop": {"nowhere": "NoClusterFit"}}}, "a rejection for every cluster"),
        ({"expect": {"shop": {"nowhere": "Unschedulable", "group": "first"}}}, "observes no group"),
        ({"expect": {"shop": {"clusters": {"a": 3}, "rejected": {"a": "cluster-taint"}}}}, "rejected and chosen"),
        ({"expect": {"shop": {"nowhere": "NoClusterFit", "rejected": {"a": "gravity"}}}}, "no rule 'gravity'"),
        ({"expect": {"shop": {"clusters": {"a": 3}, "peers": {"a": ["x"]}}}}, "so no peer is in the way"),
    ],
)
def test_senseless_scenes_are_refused(change, complaint):
    with pytest.raises(BadSceneError, match=complaint):
        fleet_scenarios.told("senseless", {**SCENE, **change})


@pytest.mark.parametrize(
    "step, complaint",
    [
        ({"replica": {}}, "step 1: unknown 'replica'"),
        ({"replicas": {"shop": 4}}, "step 1: nothing is expected"),
        ({"replicas": {"shop": 4}, "unmoved": ["shop"]}, "does not stay unmoved: its replicas do not add up"),
        ({"fails": ["a"], "unmoved": ["shop"]}, "does not stay unmoved: it is evicted"),
        ({"rebalance": ["shop"], "unmoved": ["shop"]}, "does not stay unmoved: a rebalance was asked for"),
        ({"clusters": {"a": {"deleting": True}}, "unmoved": ["shop"]}, "its cluster is being deleted"),
        ({"replicas": {"shop": 4}, "expect": {"other": {"clusters": {"a": 1}}}}, "where does shop go"),
        ({"unmoved": ["shop"], "expect": {"shop": STAYS}}, "expected to move and not to"),
        ({"recovers": ["a"], "unmoved": ["shop"]}, "nothing is wrong with it"),
        ({"fails": ["b"], "unmoved": ["shop"]}, "cluster 'b' is not there"),
        ({"delete": ["b"], "unmoved": ["shop"]}, "workload 'b' is not there"),
        ({"unmoved": ["b"]}, "workload 'b' is not there"),
    ],
)
def test_senseless_steps_are_refused(step, complaint):
    scene = {**SCENE, "workloads": {"shop": OLD, "other": {"runs": {"a": 1}}}, "expect": None, "steps": [step]}
    with pytest.raises(BadSceneError, match=complaint):
        fleet_scenarios.told("senseless", scene)


ANSWER = {
    "clusters": [{"name": "a", "replicas": 3}],
    "observedAffinityName": "first",
    "reason": "",
    "errors": [],
    "verdicts": {"a": {"fits": True, "failures": []}},
}


@pytest.mark.parametrize(
    "change, complaint",
    [
        ({"clusters": []}, "expected {'a': 3}, got no cluster"),
        ({"reason": "Unschedulable"}, "expected the reason ''"),
        ({"observedAffinityName": "second"}, "expected the group 'first'"),
        ({"verdicts": {"a": {"fits": False, "failures": [{"rule": "ClusterAffinity"}]}}}, "expected rejections {}"),
        ({"errors": ["no"]}, "expected the errors"),
    ],
)
def test_wrong_answers_are_noticed(change, complaint):
    case = fleet_scenarios.Case("claim", {}, {**STAYS, "errors": []})
    case.check(ANSWER)
    with pytest.raises(AssertionError, match=complaint):
        case.check({**ANSWER, **change})


def test_each_step_starts_from_what_the_one_before_expects():
    steps = [
        {"replicas": {"shop": 4}, "expect": {"shop": {"clusters": {"a": 4}, "group": "first"}}},
        {"fails": ["a"], "expect": {"shop": {"nowhere": "NoClusterFit", "rejected": {"a": "cluster-taint"}}}},
        {"recovers": ["a"], "expect": {"shop": {"clusters": {"a": 4}, "group": "first"}}},
    ]
    scene = copy.deepcopy({**SCENE, "steps": steps})
    cases, _ = fleet_scenarios.told("story", scene)
    bindings = [case.question["binding"] for case in cases]
    assert [binding["spec"]["clusters"] for binding in bindings] == [[], [{"name": "a", "replicas": 3}], [], []]
    assert [binding["status"].get("schedulerObservingAffinityName") for binding in bindings] == [None, *["first"] * 3]
    assert [len(binding["spec"]["gracefulEvictionTasks"]) for binding in bindings] == [0, 0, 1, 1]
    assert scene == {**SCENE, "steps": steps}


def test_clusters_report_what_runs_on_them():
    steps = [{"replicas": {"shop": 4}, "expect": {"shop": {"clusters": {"a": 4}, "group": "first"}}}]
    scene = {**SCENE, "steps": steps, "clusters": {"a": {"free": {"pods": 5}}}}
    scene["workloads"] = {**SCENE["workloads"], "other": {"runs": {"a": 2}, "requests": {"cpu": "250m"}}}
    cases, _ = fleet_scenarios.told("story", scene)
    summaries = [case.question["clusters"][0]["status"]["resourceSummary"] for case in cases]
    assert [summary["allocatable"]["pods"] for summary in summaries] == ["7", "7"]
    assert [summary["allocated"]["pods"] for summary in summaries] == ["2", "5"]
    assert [summary["allocated"]["cpu"] for summary in summaries] == ["500m", "500m"]


def test_the_file_is_named_where_a_scene_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(scenarios, "FOLDER", tmp_path)
    path = tmp_path / "wrong.yaml"
    path.write_text("about: one\n")
    with pytest.raises(BadSceneError, match=r"wrong\.yaml: 'clusters' is missing"):
        fleet_scenarios.load(path)
