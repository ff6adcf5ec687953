"""Proposed fixes work: after they are applied, the pod fits on exactly the nodes that the fix lists."""

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
from bayplan.engine.engine import Engine
from bayplan.explaining import explanation, fixes
from bayplan.reading import questions
from bayplan.rules import profiles
from reference import strategies

RECORDINGS = Path(__file__).parents[1] / "upstream" / "pods.jsonl.gz"
with gzip.open(RECORDINGS, "rt") as lines:
    UNSCHEDULABLE = [case for case in map(json.loads, lines) if not case["expect"]["best"]]


def situation(question):
    question = {key: value for key, value in question.items() if key != "expect"}
    made = questions.pod_situation_of(msgspec.convert(question, questions.PodQuestion))
    return made.workload, Engine(made.index, profiles.pod_rules(made.profile))


def check_fixes(question):
    """Apply each proposal to an index of its own; returns the number of proposals."""
    workload, engine = situation(question)
    proposals = fixes.find_proposals(workload, engine)
    for proposal in proposals:
        fresh_workload, fresh = situation(question)
        changed = fixes.apply_remedies(proposal.remedies, fresh_workload, fresh.index)
        feasible = filtering.run(changed, fresh).feasible
        names = sorted(fresh.index.slots.at(int(slot)).name for slot in np.flatnonzero(feasible))
        assert names == proposal.fix.fits_on
        assert names, proposal.fix.change
    return len(proposals)


@pytest.mark.parametrize("offset", range(10))
def test_fixes_for_recorded_unschedulable_pods_work(offset):
    assert sum(check_fixes(case) for case in UNSCHEDULABLE[offset::10]) > 0


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_fixes_for_random_unschedulable_pods_work(seed):
    question = strategies.seeded(seed)
    workload, engine = situation(question)
    if not schedule_pod.schedule(workload, engine).placed:
        check_fixes(question)


@pytest.mark.parametrize("offset", range(10))
def test_explaining_changes_nothing_and_covers_every_rejected_node(offset):
    for case in UNSCHEDULABLE[offset::10]:
        workload, engine = situation(case)
        explained = explanation.explain(workload, engine)
        assert explained.message == case["expect"]["message"]
        assert all(verdict.failures for verdict in explained.targets if not verdict.fits), case["name"]
        again = explanation.explain(workload, engine)
        assert again == explained
