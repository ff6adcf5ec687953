"""The pod table has the same values for every pod as its record, whatever changed before and after its first use."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.pod_table import FREE_ROW, NOT_STARTED
from bayplan.indexing.slots import rank_of
from bayplan.model import timestamps
from bayplan.model.kubernetes_versions import V1_36
from bayplan.model.labels import equals
from bayplan.model.semantics import UPSTREAM
from bayplan.model.targets import Target
from bayplan.model.terms import PeerTerm, TermPart
from bayplan.model.workloads import Needs, Requests, Workload
from properties.changing import ChangingCluster


def shown(index, pod_table):
    """Everything in the pod table, by workload."""
    found = {}
    for row, record in enumerate(pod_table.records):
        if record is not None:
            amounts = {
                name: int(pod_table.amounts[i, row])
                for name, i in index.capacity.rows.items()
                if i < len(pod_table.amounts)
            }
            namespace, labels = pod_table.labellings.by_id[pod_table.labelling[row]]
            found[record.workload.key] = (
                int(pod_table.slot[row]),
                int(pod_table.priority[row]),
                int(pod_table.started[row]),
                int(pod_table.rank[row]) if record.workload.started else None,
                bool(pod_table.has_ports[row]),
                {name: amount for name, amount in amounts.items() if amount},
                int(pod_table.class_id[row]),
                (namespace, labels.labels),
            )
    return found


def expected(index):
    """The same from the records."""
    found = {}
    for key, record in index.records.items():
        workload = record.workload
        if len(record.slots) == 1:
            found[key] = (
                record.slots[0],
                workload.priority,
                timestamps.nanoseconds(workload.started) if workload.started else NOT_STARTED,
                rank_of(index.slots.seed, key) if workload.started else None,
                bool(workload.needs.host_ports),
                {"pods": 1, **offered_amounts(index, workload)},
                record.member_of.id,
                (workload.namespace, workload.labels),
            )
    return found


def offered_amounts(index, workload):
    """What the workload requests of resources that some target has offered: the others have no row."""
    amounts = workload.needs.requests.on_node(V1_36).amounts
    return {name: amount for name, amount in amounts if amount and name in index.capacity.rows}


def in_order(index):
    known, rank = expected(index), index.pod_table.rank
    return sorted(known, key=lambda key: (known[key][0], -known[key][1], known[key][2], rank[index.records[key].row]))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), used_after=st.integers(0, 20))
def test_the_pod_table_follows_every_change(seed, used_after):
    cluster = ChangingCluster(seed, UPSTREAM)
    for step in range(30):
        cluster.step()
        if step >= used_after and step % 3 == 0:
            cluster.answers()  # uses and releases terms, which splits classes
            pod_table = cluster.index.pod_table
            assert shown(cluster.index, pod_table) == expected(cluster.index)
            keys = [pod_table.at(row).workload.key for row in pod_table.in_order().tolist()]
            assert keys == in_order(cluster.index)
    mark = cluster.index.mark()
    before = expected(cluster.index)
    for _ in range(8):
        cluster.step()
    cluster.index.undo_to(mark)
    assert {key: row[:6] for key, row in shown(cluster.index, cluster.index.pod_table).items()} == {
        key: row[:6] for key, row in before.items()
    }


def pod(name, **how):
    return Workload(namespace="d", name=name, labels=how.pop("labels", {}), needs=how.pop("needs", Needs()), **how)


@pytest.fixture
def index():
    index = PlacementIndex()
    index.add_target(Target(name="a", labels={}))
    return index


def test_a_started_pod_comes_before_pods_that_have_not_started(index):
    index.add(pod("late"), "a")
    index.add(pod("early"), "a")
    index.pod_table.in_order()
    index.amend(msgspec.structs.replace(index.records["d/early"].workload, started="2026-01-01T00:00:00Z"))
    assert [index.pod_table.at(row).workload.name for row in index.pod_table.in_order()] == ["early", "late"]


def test_rows_have_the_class_ids_after_a_split(index):
    for name in ("x", "y"):
        index.add(pod(name, labels={"app": name}), "a")
    pod_table = index.pod_table
    assert len({pod_table.class_id[index.records[f"d/{name}"].row] for name in "xy"}) == 1
    index.peer_index.hold(PeerTerm((TermPart(equals({"app": "x"}), ("d",)),)))
    assert [pod_table.class_id[index.records[f"d/{name}"].row] for name in "xy"] == [
        index.records[f"d/{name}"].member_of.id for name in "xy"
    ]
    assert len({pod_table.class_id[index.records[f"d/{name}"].row] for name in "xy"}) == 2


def test_rows_and_labellings_are_reused(index):
    pod_table = index.pod_table
    for i in range(500):
        index.add(pod(f"p{i}", labels={"unique": str(i)}), "a")
        index.remove(f"d/p{i}")
    assert len(pod_table) <= 64
    assert len(pod_table.labellings.by_id) == 1
    assert (pod_table.slot == FREE_ROW).all()
    assert pod_table.in_order().tolist() == []


def test_a_resource_that_is_first_offered_later_gets_a_row(index):
    index.add(pod("plain"), "a")
    pod_table = index.pod_table
    index.add(pod("gpu", needs=Needs(requests=Requests((("example.com/gpu", 2),)))), "a")
    index.add_target(Target(name="with-gpu", labels={}, allocatable=(("example.com/gpu", 4),)))
    row, resource = index.records["d/gpu"].row, index.capacity.rows["example.com/gpu"]
    assert pod_table.amounts[resource, row] == 2
    assert pod_table.amounts[resource, index.records["d/plain"].row] == 0


def test_a_workload_on_several_targets_has_no_row(index):
    index.add_target(Target(name="b", labels={}))
    index.add(pod("binding"), "a", "b")
    assert index.records["d/binding"].row == FREE_ROW
    assert index.pod_table.in_order().tolist() == []
