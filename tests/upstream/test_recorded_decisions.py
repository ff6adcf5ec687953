"""Every recorded decision of the real components is ours too."""

import gzip
import json
from pathlib import Path

import pytest

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
    """The recorded cases by what they stress, which is the first part of their name."""
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
def test_all_recordings_are_there(groups, n):
    assert sum(len(cases) for cases in groups.values()) == n


@pytest.mark.parametrize("stressed", sorted(PODS))
def test_pods_go_where_kube_scheduler_puts_them(stressed):
    for case in PODS[stressed]:
        assert comparable(engine_answer(question_of(case))) == comparable(case["expect"]), case["name"]


@pytest.mark.parametrize("stressed", sorted(PREEMPTION))
def test_room_is_made_where_kube_scheduler_makes_it(stressed):
    for case in PREEMPTION[stressed]:
        answer = preemption_engine_answer(question_of(case))
        assert comparable_preemption(answer) == comparable_preemption(case["expect"]), case["name"]


@pytest.mark.parametrize("stressed", sorted(FLEET))
def test_workloads_go_where_karmada_scheduler_puts_them(stressed):
    for case in FLEET[stressed]:
        answer = fleet_engine_answer(question_of(case))
        assert comparable_fleet(answer) == comparable_fleet(case["expect"]), case["name"]
        assert certain(answer["errors"]) == certain(case["expect"].get("errors")), case["name"]


def certain(errors):
    """Karmada gives one random reason per cluster; that a group failed there, and every other text, is certain."""
    return [error.split(" clusters are available: ")[0] for error in errors or []]
