"""Resources that no target offers take no rows, and are counted once a target offers them."""

from bayplan.indexing.capacity import UNOFFERED_ROW
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.targets import Target
from bayplan.model.workloads import Needs, Requests, Workload

GPU = "example.com/gpu"


def workload(name, **amounts):
    requests = Requests(tuple((f"example.com/{key}", amount) for key, amount in amounts.items()))
    return Workload(namespace="t", name=name, labels={}, needs=Needs(requests=requests))


def test_rows_are_those_of_resources_that_targets_offer():
    index = PlacementIndex()
    index.add_target(Target(name="n0", labels={}, allocatable=(("cpu", 1000), ("pods", 10))))
    n_rows = len(index.capacity.rows)
    for i in range(100):
        index.add(workload(f"p{i}", **{f"invented-{i}": 1}), "n0")
    assert len(index.capacity.rows) == n_rows
    assert index.capacity.row("example.com/invented-1") == UNOFFERED_ROW
    for i in range(100):
        index.remove(f"t/p{i}")
    assert not index.capacity._unoffered


def test_what_placed_workloads_request_counts_when_a_target_first_offers_it():
    index = PlacementIndex()
    index.add_target(Target(name="n0", labels={}))
    table = index.pod_table
    index.add(workload("a", gpu=2), "n0")
    index.add(workload("b", gpu=3), "n0")
    index.remove("t/b")
    index.update_target(Target(name="n0", labels={}, allocatable=((GPU, 8),)))
    row, slot = index.capacity.row(GPU), index.slots.by_name["n0"]
    assert row != UNOFFERED_ROW
    assert (index.capacity.allocatable[row, slot], index.capacity.requested[row, slot]) == (8, 2)
    assert table.amounts[row, index.records["t/a"].row] == 2
    index.remove("t/a")
    assert index.capacity.requested[row, slot] == 0
