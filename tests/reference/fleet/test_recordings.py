"""The reference implementation gives every recorded answer of karmada-scheduler; only then can it check the engine."""

import gzip
import json
from collections import defaultdict
from pathlib import Path

import pytest

from reference import fleet

RECORDINGS = Path(__file__).parents[2] / "upstream" / "fleet.jsonl.gz"


def by_profile():
    """The recorded questions by their subject, which is the first part of their name."""
    groups = defaultdict(list)
    with gzip.open(RECORDINGS, "rt") as lines:
        for line in lines:
            question = json.loads(line)
            groups[question["name"].rsplit("-", 2)[0]].append(question)
    return groups


GROUPS = by_profile()


def comparable(answer):
    """What must be equal: clusters have no order, and resources without replicas have none."""
    clusters = {target["name"]: target.get("replicas") or 0 for target in answer.get("clusters") or []}
    return clusters, answer.get("observedAffinityName") or "", answer.get("reason") or ""


def without_filter_reasons(errors):
    """Upstream gives one random reason per cluster; that a term failed there, and every other text, is certain."""
    return [error.split(" clusters are available: ")[0] for error in errors or []]


def test_all_recordings_are_there():
    assert sum(len(questions) for questions in GROUPS.values()) == 2000


@pytest.mark.parametrize("profile", sorted(GROUPS))
def test_the_reference_implementation_decides_as_recorded(profile):
    for question in GROUPS[profile]:
        asked = {key: value for key, value in question.items() if key != "expect"}
        answer = fleet.answer(asked)
        assert comparable(answer) == comparable(question["expect"]), question["name"]
        recorded = without_filter_reasons(question["expect"].get("errors"))
        assert without_filter_reasons(answer["errors"]) == recorded, question["name"]
