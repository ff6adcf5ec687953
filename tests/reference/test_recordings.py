"""The reference implementation gives every recorded answer of kube-scheduler; only then can it check the engine."""

import gzip
import json
from collections import defaultdict
from pathlib import Path

import pytest

from reference import pods, preemption

RECORDINGS = Path(__file__).parents[1] / "upstream"


def by_profile(kind):
    """The recorded questions by their subject, which is the first part of their name."""
    groups = defaultdict(list)
    with gzip.open(RECORDINGS / f"{kind}.jsonl.gz", "rt") as lines:
        for line in lines:
            question = json.loads(line)
            groups[question["name"].rsplit("-", 2)[0]].append(question)
    return groups


GROUPS, PREEMPTION = by_profile("pods"), by_profile("preemption")


def comparable(answer):
    """What must be equal: a missing score is none, and reasons have no order."""
    nodes = {
        name: (
            verdict["code"],
            verdict.get("plugin") or "",
            sorted(verdict.get("reasons") or []),
            verdict.get("total"),
            {plugin: score for plugin, score in (verdict.get("scores") or {}).items() if score},
        )
        for name, verdict in answer["nodes"].items()
    }
    return {"nodes": nodes, "best": sorted(answer.get("best") or []), "message": answer.get("message") or ""}


def test_all_recordings_are_there():
    assert sum(len(questions) for questions in GROUPS.values()) == 2000


@pytest.mark.parametrize("profile", sorted(GROUPS))
def test_the_reference_implementation_decides_as_recorded(profile):
    for question in GROUPS[profile]:
        asked = {key: value for key, value in question.items() if key != "expect"}
        assert comparable(pods.answer(asked)) == comparable(question["expect"]), question["name"]


@pytest.mark.parametrize("profile", sorted(PREEMPTION))
def test_the_reference_implementation_preempts_as_recorded(profile):
    for question in PREEMPTION[profile]:
        asked = {key: value for key, value in question.items() if key != "expect"}
        answer, expected = preemption.answer(asked), question["expect"]
        assert answer["nominated"] == (expected.get("nominated") or ""), question["name"]
        assert answer["victims"] == sorted(expected.get("victims") or []), question["name"]
        assert answer["message"] == (expected.get("message") or ""), question["name"]
