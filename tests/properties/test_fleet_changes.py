"""After any changes the index of a fleet answers like one built from scratch, and undo restores the state before."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.model.semantics import DESIGN, UPSTREAM
from properties.changing_fleet import ChangingFleet

SEEDS = st.integers(0, 2**32)
BOTH = pytest.mark.parametrize("semantics", [UPSTREAM, DESIGN], ids=["upstream", "design"])


@BOTH
@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_index_after_changes_answers_like_a_fresh_one(semantics, seed):
    fleet = ChangingFleet(seed, semantics)
    for _ in range(30):
        fleet.step()
        if fleet.chance.random() < 0.4:  # not after every change, so that caches have several to replay
            assert fleet.answers() == fleet.fresh_answers()
    assert fleet.answers() == fleet.fresh_answers()


@BOTH
@settings(max_examples=30, deadline=None)
@given(seed=SEEDS)
def test_undo_restores_the_index(semantics, seed):
    fleet = ChangingFleet(seed, semantics)
    for _ in range(12):
        fleet.step()
    before, written, placed = fleet.answers(), copy.deepcopy(fleet.written), dict(fleet.placed)
    mark = fleet.index.mark()
    for _ in range(12):
        fleet.step()
        if fleet.chance.random() < 0.3:
            fleet.answers()
    fleet.index.undo_to(mark)
    fleet.written, fleet.placed = written, placed
    assert fleet.answers() == before == fleet.fresh_answers()
    for _ in range(6):  # further changes after the undo
        fleet.step()
    assert fleet.answers() == fleet.fresh_answers()
