"""
Which node to keep free for a pod that nothing but resources keeps pending. Nothing is evicted for it.

A tenant requests what it likes, so a node is reserved only if it would hold the pod as soon as the pods of lower or
equal priority have left. Knows nothing of time, nor of how many nodes are reserved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.engine import filtering
from bayplan.engine.engine import Engine
from bayplan.explaining import shortages
from bayplan.explaining.shortages import Amounts
from bayplan.indexing.capacity import MAX_SUM
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.pod_table import FREE_ROW
from bayplan.model.reasons import Mask
from bayplan.model.workloads import Workload


class ReservableNodes(msgspec.Struct, frozen=True):
    """
    The nodes that could be reserved for a pod, shape (capacity,), and which of them lacks the least, and what.

    `fits`: a node is feasible for the pod already. `is_short`: none is, and on some node it lacks nothing but
    resources.
    """

    nodes: Mask
    fits: bool = False
    is_short: bool = False
    nearest: str = ""
    missing: Amounts = ()


def find(workload: Workload, engine: Engine, taken: Iterable[str]) -> ReservableNodes:
    """The nodes where all other rules admit the pod and whose resources it could have; none of those `taken`."""
    index, verdicts = engine.index, filtering.run(workload, engine)
    nodes = shortages.admitted_but_for_resources(verdicts, index)
    fits, is_admitted = bool(verdicts.feasible.any()), bool(nodes.any())
    if fits or not is_admitted:
        return ReservableNodes(np.zeros_like(nodes), fits=fits)
    requests = shortages.counted_requests(workload, verdicts)
    nodes &= could_hold(workload, requests, index)
    nodes[[index.slots.by_name[node] for node in taken if node in index.slots.by_name]] = False
    found = shortages.smallest_shortage(nodes, requests, index)
    return ReservableNodes(nodes, is_short=True, nearest=found.nearest, missing=found.missing)


def could_hold(workload: Workload, requests: Mapping[str, int], index: PlacementIndex) -> Mask:
    """
    The nodes that would hold the pod if all pods of lower or equal priority left.

    Daemons and mirror pods stay, whatever their priority.
    """
    table, capacity = index.pod_table, index.capacity
    stays = np.flatnonzero((table.slot != FREE_ROW) & (table.tied_to_node | (table.priority > workload.priority)))
    found = index.slots.alive.copy()
    for resource, amount in requests.items():
        row = capacity.row(resource)
        kept = _sums(table.slot[stays], table.amounts[row, stays], len(found)) if row < len(table.amounts) else 0
        found &= capacity.allocatable[row] - kept >= amount
    return found


def _sums(slots: NDArray[np.int32], amounts: NDArray[np.int64], n_slots: int) -> NDArray[np.int64]:
    """The amounts of each slot added up, at most `MAX_SUM`: tenants choose them, and 64 bits overflow."""
    exact = np.zeros(n_slots, np.int64)
    np.add.at(exact, slots, amounts)
    return np.where(np.bincount(slots, amounts, minlength=n_slots) < MAX_SUM, exact, MAX_SUM)
