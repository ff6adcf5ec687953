"""After any changes an index answers like one built from scratch, and undo restores the state before."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.model.semantics import DESIGN, UPSTREAM
from properties.changing import ChangingCluster

SEEDS = st.integers(0, 2**32)
BOTH = pytest.mark.parametrize("semantics", [UPSTREAM, DESIGN], ids=["upstream", "design"])


@BOTH
@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_index_after_changes_answers_like_a_fresh_one(semantics, seed):
    cluster = ChangingCluster(seed, semantics)
    for _ in range(30):
        cluster.step()
        if cluster.chance.random() < 0.4:  # not after every change, so that caches have several to replay
            assert cluster.answers() == cluster.fresh_answers()
    assert cluster.answers() == cluster.fresh_answers()


@BOTH
@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_undo_restores_the_index(semantics, seed):
    cluster = ChangingCluster(seed, semantics)
    for _ in range(12):
        cluster.step()
    before, targets, placed = cluster.answers(), dict(cluster.targets), dict(cluster.placed)
    namespaces, mark = dict(cluster.namespaces), cluster.index.mark()
    for _ in range(12):
        cluster.step()
        if cluster.chance.random() < 0.3:
            cluster.answers()
    cluster.index.undo_to(mark)
    cluster.targets, cluster.placed, cluster.namespaces = targets, placed, namespaces
    assert cluster.answers() == before == cluster.fresh_answers()
    for _ in range(6):  # further changes after the undo
        cluster.step()
    assert cluster.answers() == cluster.fresh_answers()


@BOTH
@settings(max_examples=30, deadline=None)
@given(seed=SEEDS)
def test_an_index_without_a_workload_answers_as_if_it_was_never_placed(semantics, seed):
    cluster = ChangingCluster(seed, semantics)
    for _ in range(20):
        cluster.step()
    cluster.answers()
    for key in list(cluster.placed)[:3]:
        kept = cluster.placed.pop(key)
        with cluster.index.without(key):
            assert cluster.answers() == cluster.fresh_answers()
        cluster.placed[key] = kept
    assert cluster.answers() == cluster.fresh_answers()


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS)
def test_emptied_index_keeps_no_terms_and_no_classes(seed):
    cluster = ChangingCluster(seed, UPSTREAM)
    for _ in range(25):
        cluster.step()
        cluster.answers()
    for key in list(cluster.placed):
        cluster.index.remove(key)
    cluster.engine.release()
    peer_index = cluster.index.peer_index
    assert len(peer_index.classes) == 0
    assert len(peer_index.terms) == 0
    assert not peer_index.terms.mentioned
