"""Every recorded decision of the real components is ours too."""

import gzip
import json
from pathlib import Path

import pytest

from asking import comparable, comparable_fleet, engine_answer, fleet_engine_answer

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


PODS, FLEET = by_profile("pods"), by_profile("fleet")


def question_of(case):
    return {key: value for key, value in case.items() if key != "expect"}


@pytest.mark.parametrize("groups", [PODS, FLEET], ids=["pods", "fleet"])
def test_all_recordings_are_there(groups):
    assert sum(len(cases) for cases in groups.values()) == 2000


@pytest.mark.parametrize("stressed", sorted(PODS))
def test_pods_go_where_kube_scheduler_puts_them(stressed):
    for case in PODS[stressed]:
        assert comparable(engine_answer(question_of(case))) == comparable(case["expect"]), case["name"]


@pytest.mark.parametrize("stressed", sorted(FLEET))
def test_workloads_go_where_karmada_scheduler_puts_them(stressed):
    for case in FLEET[stressed]:
        answer = fleet_engine_answer(question_of(case))
        assert comparable_fleet(answer) == comparable_fleet(case["expect"]), case["name"]
        assert certain(answer["errors"]) == certain(case["expect"].get("errors")), case["name"]


def certain(errors):
    """Karmada gives one random reason per cluster; that a group failed there, and every other text, is certain."""
    return [error.split(" clusters are available: ")[0] for error in errors or []]
