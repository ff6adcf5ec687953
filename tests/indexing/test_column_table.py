"""Keys that no target has cost neither arrays nor scans, whatever tenants write; others are kept up to date."""

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.indexing import column_table, slots
from bayplan.indexing.journal import MIN_KEPT_CHANGES
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ALL, values_of
from bayplan.model.labels import equals
from bayplan.model.targets import Target
from bayplan.model.terms import AffinityTerms, PodTerm
from bayplan.model.workloads import Needs, Workload


def index_of(n=3, **labels):
    index = PlacementIndex()
    for i in range(n):
        index.add_target(Target(name=f"n{i}", labels=dict(labels)))
    return index


@pytest.fixture
def reads(monkeypatch):
    """How often the value of a target was read."""
    seen = []

    def counted(key, target):
        seen.append(key)
        return values_of(key, target)

    monkeypatch.setattr(slots, "values_of", counted)
    monkeypatch.setattr(column_table, "values_of", counted)
    return seen


def test_a_column_of_a_key_that_no_target_has_reads_no_target(reads):
    index = index_of(zone="a")
    reads.clear()
    columns = [index.column(f"unused-{i}") for i in range(100)]
    assert not reads
    assert len({id(column.of_slot) for column in columns}) == 1, "they share one array"
    assert not columns[0].present(ALL).any()


def test_a_change_of_a_target_reads_its_own_keys_alone(reads):
    index = index_of(zone="a")
    kept = [index.column(f"unused-{i}") for i in range(100)]
    index.column("zone")
    reads.clear()
    index.update_target(Target(name="n0", labels={"zone": "b"}))
    assert set(reads) <= {"zone", *slots.KEYS_OF_ALL_TARGETS}
    assert len(kept) == 100


def test_a_column_gets_values_when_a_target_has_its_key_and_is_empty_again_without():
    index = index_of(zone="a")
    rack = index.column("rack")
    index.update_target(Target(name="n1", labels={"zone": "a", "rack": "r1"}))
    assert index.column("rack") is rack
    assert rack.values[rack.at[index.slots.by_name["n1"]]] == "r1"
    index.update_target(Target(name="n1", labels={"zone": "a"}))
    assert index.column("rack") is rack
    assert not rack.present(ALL).any()
    for i in range(40):  # more than there are slots
        index.add_target(Target(name=f"more-{i}", labels={"rack": "r2"} if i == 30 else {}))
    assert np.flatnonzero(rack.present(ALL)).tolist() == [index.slots.by_name["more-30"]]


def test_columns_of_unused_keys_are_given_back_with_their_last_use():
    index = index_of(zone="a")
    before = len(index._columns)
    terms = tuple(PodTerm(equals({"app": "x"}), f"unused-{i}") for i in range(50))
    needs = Needs(affinity=AffinityTerms(anti_required=terms))
    index.add(Workload(namespace="t", name="hostile", labels={"app": "x"}, needs=needs), "n0")
    assert len(index._columns) == before + 50
    index.remove("t/hostile")
    for _ in range(2 * MIN_KEPT_CHANGES):  # until no reader of the journal asks for the pod any more
        index.set_namespace("t", {"a": "b"})
        index.set_namespace("t", None)
    gc.collect()
    assert len(index._columns) == before


KEYS = ("a", "b", "c")
LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from("xyz"))
CHANGES = st.lists(st.tuples(st.sampled_from(["put", "drop", "ask"]), st.sampled_from("1234"), LABELS), max_size=25)


@settings(max_examples=150, deadline=None)
@given(CHANGES)
def test_columns_hold_the_labels_of_the_targets_whenever_they_are_first_asked_for(changes):
    index, held = PlacementIndex(), {}
    for what, name, labels in changes:
        known = name in index.slots.by_name
        if what == "ask":
            held.update({key: index.column(key) for key in labels})
        elif what == "drop":
            if known:
                index.remove_target(name)
        elif known:
            index.update_target(Target(name=name, labels=labels))
        else:
            index.add_target(Target(name=name, labels=labels))
    for key, column in held.items():
        assert index.column(key) is column
        shown = {name: column.values[column.at[slot]] for name, slot in index.slots.by_name.items()}
        assert shown == {name: index.slots.at(slot).labels.get(key) for name, slot in index.slots.by_name.items()}
