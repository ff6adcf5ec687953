"""Every fleet scenario holds for the engine and for the reference implementation."""

import copy

import msgspec
import pytest

import fleet_scenarios
import scenarios
from asking import fleet_engine_answer
from bayplan.controllers import binding_triggers
from bayplan.wire.fleets import ResourceBinding
from reference import fleet as reference_implementation
from scenarios import InvalidScenarioError

ENGINES = {"reference": reference_implementation.answer, "engine": fleet_engine_answer}
CASES, TRIGGERS = fleet_scenarios.all_cases_and_triggers()

# Claims that do not hold for the engine yet, and why. An entry that is no longer needed fails, so the list stays exact.
KNOWN_ENGINE_FAILURES = {}
# Claims about workloads that are not scheduled again, likewise.
KNOWN_TRIGGER_FAILURES = {}


def asked():
    for case in CASES:
        for engine in ENGINES:
            reason = KNOWN_ENGINE_FAILURES.get(case.claim) if engine == "engine" else None
            marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
            yield pytest.param(case, engine, id=f"{case.question['name']}-{engine}", marks=marks)


@pytest.mark.parametrize("case, engine", list(asked()))
def test_scenario(case, engine):
    case.check(ENGINES[engine](case.question))


def trigger_parameters():
    for trigger in TRIGGERS:
        reason = None if trigger.due else KNOWN_TRIGGER_FAILURES.get(trigger.claim)
        marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
        yield pytest.param(trigger, id=trigger.name, marks=marks)


@pytest.mark.parametrize("trigger", list(trigger_parameters()))
def test_a_change_triggers_scheduling_as_in_karmada(trigger):
    written = msgspec.convert(trigger.binding, ResourceBinding)
    assert binding_triggers.needs_scheduling(written, trigger.leaving) is trigger.due


def test_known_failures_name_a_scenario():
    assert {*KNOWN_ENGINE_FAILURES, *KNOWN_TRIGGER_FAILURES} <= {case.claim for case in CASES}


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


def test_a_minimal_scenario_passes():
    (case,), _ = fleet_scenarios.cases_of("plain", SCENE)
    case.check(reference_implementation.answer(case.question))


@pytest.mark.parametrize(
    "change, complaint",
    [
        ({"cluster": {}}, "unknown 'cluster'"),
        ({"about": ""}, "'about' is missing"),
        ({"expect": {}}, "nothing is expected"),
        ({"options": {"semantic": "design"}}, "options: unknown 'semantic'"),
        ({"clusters": {"a": {"zone": "z"}}}, "cluster a: unknown 'zone'"),
        ({"clusters": {"a": {"free": {"pods": 1}, "allocatable": {"pods": 1}}}}, "free or allocatable"),
        ({"clusters": {"a": {"free": {"gpu": 1}}}}, "no resource 'gpu'"),
        ({"clusters": {"a": {"apis": ["Pods"]}}}, "no kind 'Pods'"),
        ({"workloads": {"shop": {"kind": "Deploy"}}}, "no kind 'Deploy'"),
        ({"workloads": {"shop": {"on": {}}}}, "workload shop: unknown 'on'"),
        ({"workloads": {"shop": {"runs": {"b": 1}}}}, "on cluster 'b', which does not exist"),
        ({"workloads": {"shop": {"evicting": ["b"]}}}, "on cluster 'b', which does not exist"),
        ({"workloads": {"shop": {"runs": {"a": 1}, "evicting": ["a"]}}}, "runs on a and is evicted from it"),
        ({"workloads": {"shop": {"fresh": True}}}, "cannot be fresh"),
        ({"workloads": {"shop": {"runs": ["a"]}}}, "give the replicas on each cluster"),
        ({"workloads": {"shop": {"kind": "ConfigMap", "replicas": 3}}}, "a ConfigMap has no replicas"),
        ({"workloads": {"shop": {"groups": {"affinity": "x"}}}}, "groups of workload shop: unknown 'affinity'"),
        ({"workloads": {"shop": {}, "other": {}}, "expect": {"shop": {"clusters": {"a": 1}}}}, "of \\['other'\\]"),
        ({"variants": {"v": {"other": {}}}}, "workload 'other' does not exist"),
        ({"expect": {"other": {"clusters": {"a": 3}}}}, "workload 'other' does not exist"),
        ({"expect": {"shop": {}}}, "say clusters or nowhere"),
        ({"expect": {"shop": {"clusters": {"a": 3}, "nowhere": "NoClusterFit"}}}, "say clusters or nowhere"),
        ({"expect": {"shop": {"clusters": {"b": 3}}}}, "cluster 'b' does not exist"),
        ({"expect": {"shop": {"clusters": {"a": 2}}}}, "3 replicas are to be placed"),
        ({"expect": {"shop": {"clusters": ["a"]}}}, "how many replicas each cluster gets"),
        ({"expect": {"shop": {"clusters": {"a": 3}, "group": "second"}}}, "no group 'second'"),
        ({"expect": {"shop": {"nowhere": "Full"}}}, "nowhere is one of"),
        ({"expect": {"shop": {"nowhere": "NoClusterFit"}}}, "a rejection for every cluster"),
        ({"expect": {"shop": {"nowhere": "Unschedulable", "group": "first"}}}, "observes no group"),
        ({"expect": {"shop": {"clusters": {"a": 3}, "rejected": {"a": "cluster-taint"}}}}, "rejected and chosen"),
        ({"expect": {"shop": {"nowhere": "NoClusterFit", "rejected": {"a": "gravity"}}}}, "no rule 'gravity'"),
        ({"expect": {"shop": {"clusters": {"a": 3}, "peers": {"a": ["x"]}}}}, "so it has no conflicting peers"),
    ],
)
def test_invalid_scenarios_are_rejected(change, complaint):
    with pytest.raises(InvalidScenarioError, match=complaint):
        fleet_scenarios.cases_of("invalid", {**SCENE, **change})


@pytest.mark.parametrize(
    "step, complaint",
    [
        ({"replica": {}}, "step 1: unknown 'replica'"),
        ({"replicas": {"shop": 4}}, "step 1: nothing is expected"),
        ({"replicas": {"shop": 4}, "unmoved": ["shop"]}, "does not stay unmoved: its replicas do not add up"),
        ({"fails": ["a"], "unmoved": ["shop"]}, "does not stay unmoved: it is evicted"),
        ({"rebalance": ["shop"], "unmoved": ["shop"]}, "does not stay unmoved: a rebalance was requested"),
        ({"clusters": {"a": {"deleting": True}}, "unmoved": ["shop"]}, "its cluster is being deleted"),
        ({"replicas": {"shop": 4}, "expect": {"other": {"clusters": {"a": 1}}}}, "an expectation for shop is missing"),
        ({"unmoved": ["shop"], "expect": {"shop": STAYS}}, "expected to move and not to"),
        ({"recovers": ["a"], "unmoved": ["shop"]}, "it has not failed"),
        ({"fails": ["b"], "unmoved": ["shop"]}, "cluster 'b' does not exist"),
        ({"delete": ["b"], "unmoved": ["shop"]}, "workload 'b' does not exist"),
        ({"unmoved": ["b"]}, "workload 'b' does not exist"),
    ],
)
def test_invalid_steps_are_rejected(step, complaint):
    scene = {**SCENE, "workloads": {"shop": OLD, "other": {"runs": {"a": 1}}}, "expect": None, "steps": [step]}
    with pytest.raises(InvalidScenarioError, match=complaint):
        fleet_scenarios.cases_of("invalid", scene)


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
def test_wrong_answers_are_reported(change, complaint):
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
    cases, _ = fleet_scenarios.cases_of("timeline", scene)
    bindings = [case.question["binding"] for case in cases]
    assert [binding["spec"]["clusters"] for binding in bindings] == [[], [{"name": "a", "replicas": 3}], [], []]
    assert [binding["status"].get("schedulerObservingAffinityName") for binding in bindings] == [None, *["first"] * 3]
    assert [len(binding["spec"]["gracefulEvictionTasks"]) for binding in bindings] == [0, 0, 1, 1]
    assert scene == {**SCENE, "steps": steps}


def test_clusters_report_what_runs_on_them():
    steps = [{"replicas": {"shop": 4}, "expect": {"shop": {"clusters": {"a": 4}, "group": "first"}}}]
    scene = {**SCENE, "steps": steps, "clusters": {"a": {"free": {"pods": 5}}}}
    scene["workloads"] = {**SCENE["workloads"], "other": {"runs": {"a": 2}, "requests": {"cpu": "250m"}}}
    cases, _ = fleet_scenarios.cases_of("timeline", scene)
    summaries = [case.question["clusters"][0]["status"]["resourceSummary"] for case in cases]
    assert [summary["allocatable"]["pods"] for summary in summaries] == ["7", "7"]
    assert [summary["allocated"]["pods"] for summary in summaries] == ["2", "5"]
    assert [summary["allocated"]["cpu"] for summary in summaries] == ["500m", "500m"]


def test_the_error_names_the_file_of_an_invalid_scenario(tmp_path, monkeypatch):
    monkeypatch.setattr(scenarios, "FOLDER", tmp_path)
    path = tmp_path / "wrong.yaml"
    path.write_text("about: one\n")
    with pytest.raises(InvalidScenarioError, match=r"wrong\.yaml: 'clusters' is missing"):
        fleet_scenarios.load(path)
