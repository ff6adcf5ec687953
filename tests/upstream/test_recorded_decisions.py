"""The engine makes every recorded decision of the real schedulers."""

import gzip
import json
from pathlib import Path

import pytest

from agreeing.bayplan_answers import answer
from agreeing.comparing import difference
from asking import (
    comparable,
    comparable_fleet,
    comparable_preemption,
    engine_answer,
    fleet_engine_answer,
    preemption_engine_answer,
)

HERE = Path(__file__).parent


def recorded(kind):
    with gzip.open(HERE / f"{kind}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def by_profile(kind):
    """The recorded cases by feature, which is the first part of their name."""
    groups = {}
    for case in recorded(kind):
        groups.setdefault(case["name"].rsplit("-", 2)[0], []).append(case)
    return groups


PODS, FLEET, PREEMPTION = by_profile("pods"), by_profile("fleet"), by_profile("preemption")


def question_of(case):
    return {key: value for key, value in case.items() if key != "expect"}


@pytest.mark.parametrize(
    "groups, n", [(PODS, 2000), (FLEET, 2000), (PREEMPTION, 851)], ids=["pods", "fleet", "preemption"]
)
def test_all_recordings_exist(groups, n):
    assert sum(len(cases) for cases in groups.values()) == n


@pytest.mark.parametrize("feature", sorted(PODS))
def test_pods_are_placed_as_by_kube_scheduler(feature):
    for case in PODS[feature]:
        assert comparable(engine_answer(question_of(case))) == comparable(case["expect"]), case["name"]


# What no API server admits is not decided as kube-scheduler decides it: see docs/differences.md.
REFUSED = ("invalid-selector", "empty-topology-key", "preferred-bad-selector-existing")
DIFFERENCES = {case["name"]: case for case in recorded("differences") if case["name"] not in REFUSED}


@pytest.mark.parametrize("name", sorted(DIFFERENCES))
@pytest.mark.parametrize("version, recording", [("1.37", "expect"), ("1.36", "expect-1.36")])
def test_minimal_questions_are_answered_as_by_each_version(name, version, recording):
    """A question without a second answer is about 1.36, the version that counts unless one is given."""
    case = DIFFERENCES[name]
    if "expect-1.36" not in case:
        version, recording = "1.36", "expect"
    options = {**case.get("options", {}), "kubernetesVersion": version}
    question = {key: value for key, value in case.items() if not key.startswith("expect")} | {"options": options}
    if "victims" in case[recording]:
        assert comparable_preemption(preemption_engine_answer(question)) == comparable_preemption(case[recording])
    else:
        assert comparable(engine_answer(question)) == comparable(case[recording])


FOUND = [json.loads(line) for line in (HERE / "found.jsonl").read_text(encoding="utf-8").splitlines()]
ANSWERED = [(case, key) for case in FOUND for key in case if key.startswith("expect-")]


@pytest.mark.parametrize("case, recording", ANSWERED, ids=[f"{case['name']}-{key}" for case, key in ANSWERED])
def test_questions_that_once_differed_are_answered_as_by_each_version(case, recording):
    options = {**case.get("options", {}), "kubernetesVersion": recording.removeprefix("expect-")}
    question = {key: value for key, value in case.items() if not key.startswith("expect")} | {"options": options}
    kind = "preemption" if "victims" in case[recording] else "pods"
    assert difference(kind, case[recording], answer(kind, question)) == ""


@pytest.mark.parametrize("feature", sorted(PREEMPTION))
def test_victims_are_those_of_kube_scheduler(feature):
    for case in PREEMPTION[feature]:
        answer = preemption_engine_answer(question_of(case))
        assert comparable_preemption(answer) == comparable_preemption(case["expect"]), case["name"]


@pytest.mark.parametrize("feature", sorted(FLEET))
def test_workloads_are_scheduled_as_by_karmada_scheduler(feature):
    for case in FLEET[feature]:
        answer = fleet_engine_answer(question_of(case))
        assert comparable_fleet(answer) == comparable_fleet(case["expect"]), case["name"]
        assert certain(answer["errors"]) == certain(case["expect"].get("errors")), case["name"]


def certain(errors):
    """The errors without Karmada's reasons per cluster, of which it picks a random one."""
    return [error.split(" clusters are available: ")[0] for error in errors or []]
