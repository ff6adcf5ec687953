"""What an explanation proposes works: applied and asked again, the pod fits where it was said to fit."""

import gzip
import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan import schedule_pod
from bayplan.engine import filtering
from bayplan.explaining import explanation, fixes
from bayplan.reading import questions
from bayplan.rules import profiles
from reference import strategies

RECORDINGS = Path(__file__).parents[1] / "upstream" / "pods.jsonl.gz"
with gzip.open(RECORDINGS, "rt") as lines:
    REFUSED = [case for case in map(json.loads, lines) if not case["expect"]["best"]]


def situation(question):
    question = {key: value for key, value in question.items() if key != "expect"}
    made = questions.situation_of(msgspec.convert(question, questions.PodQuestion))
    return made.workload, made.index, profiles.pod_rules(made.profile)


def check_fixes(question):
    """Apply each proposal for good on an index of its own; returns how many there were."""
    workload, index, rules = situation(question)
    proposals = fixes.find_proposals(workload, index, rules)
    for proposal in proposals:
        fresh_workload, fresh, rules = situation(question)
        changed = fixes.apply_remedies(proposal.remedies, fresh_workload, fresh)
        feasible = filtering.run(rules, changed, fresh).feasible
        names = sorted(fresh.slots.at(int(slot)).name for slot in np.flatnonzero(feasible))
        assert names == proposal.fix.fits_on
        assert names, proposal.fix.change
    return len(proposals)


@pytest.mark.parametrize("offset", range(10))
def test_fixes_for_recorded_refusals_work(offset):
    assert sum(check_fixes(case) for case in REFUSED[offset::10]) > 0


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_fixes_for_random_refusals_work(seed):
    question = strategies.seeded(seed)
    workload, index, rules = situation(question)
    if not schedule_pod.schedule(workload, index, rules).placed:
        check_fixes(question)


@pytest.mark.parametrize("offset", range(10))
def test_explaining_changes_nothing_and_covers_every_refused_node(offset):
    for case in REFUSED[offset::10]:
        workload, index, rules = situation(case)
        explained = explanation.explain(workload, index, rules)
        assert explained.message == case["expect"]["message"]
        assert all(verdict.failures for verdict in explained.targets if not verdict.fits), case["name"]
        again = explanation.explain(workload, index, rules)
        assert again == explained
