"""
Placed pods as columns of priority, start time and requests, so that preemption compares thousands of them at once.

Only workloads on one target are in it: pods, not bindings. Kept up to date from the first use on. Knows nothing of
which pods are evicted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.capacity import PODS, Capacity
from bayplan.indexing.classes import LabelSet, PlacedWorkload
from bayplan.indexing.slots import grown, rank_of
from bayplan.model import timestamps
from bayplan.model.kubernetes_versions import DEFAULT_VERSION, V1_37, KubernetesVersion
from bayplan.model.reasons import Mask
from bayplan.model.workloads import WorkloadKey

FREE_ROW = -1  # the slot of a row that is free
TIED_CONTROLLERS = ("DaemonSet", "Node")  # of daemons and mirror pods
NOT_STARTED = np.iinfo(np.int64).max  # later than any start time

Rows = NDArray[np.intp]


class PodTable:
    """
    All arrays have one entry per row. `started` is in nanoseconds; `rank` is a hash of seed and name, for ties.
    `tied_to_node` marks daemons and mirror pods, which run as long as their node does.

    `amounts` has shape (n_resources, n_rows), its resources in the order of the index's capacity. `class_id` is the id
    of the workload's class; rows with the same `labelling` have the same namespace and labels: see `labellings`.
    """

    def __init__(self, seed: str, version: KubernetesVersion = DEFAULT_VERSION) -> None:
        self.version = version  # of Kubernetes, whose scheduler says what a resized pod takes
        # The order in which pods that have not started came: until 1.36, kube-scheduler takes the start of such a pod
        # to be now, whenever it compares it; since 1.37, the moment at which it first looks at it.
        self._arrivals: dict[WorkloadKey, int] = {}
        self._n_arrived = 0
        self._undoable: set[WorkloadKey] = set()  # removed since a change that may yet be undone
        self.records: list[PlacedWorkload | None] = []
        self.slot: NDArray[np.int32] = np.zeros(0, np.int32)
        self.priority: NDArray[np.int64] = np.zeros(0, np.int64)
        self.started: NDArray[np.int64] = np.zeros(0, np.int64)
        self.rank: NDArray[np.int64] = np.zeros(0, np.int64)
        self.has_ports: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self.tied_to_node: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self.amounts: NDArray[np.int64] = np.zeros((0, 0), np.int64)
        self.class_id: NDArray[np.int64] = np.zeros(0, np.int64)
        self.labelling: NDArray[np.int32] = np.zeros(0, np.int32)
        self.labellings = PodLabellings()
        self._seed = seed
        self._free: list[int] = []
        self._sorted: Rows = np.zeros(0, np.intp)
        self._unsorted: set[int] = set()  # slots whose pods have changed since

    def __len__(self) -> int:
        """How many rows there are, free ones included."""
        return len(self.records)

    def at(self, row: int) -> PlacedWorkload:
        record = self.records[row]
        assert record is not None, f"row {row} is free"
        return record

    def on(self, where: Mask) -> Mask:
        """Which rows are of workloads on these targets."""
        there: Mask = where[self.slot] & (self.slot != FREE_ROW)
        return there

    def in_order(self) -> Rows:
        """All rows in use, target by target, on each the most important first: by priority, start time and rank."""
        if self._unsorted:
            slots = np.fromiter(self._unsorted, np.intp, len(self._unsorted))
            changed = np.zeros(max(int(slots.max()), int(self.slot.max())) + 1, np.bool_)
            changed[slots] = True
            kept = self._sorted[~self.on(changed)[self._sorted] & (self.slot[self._sorted] != FREE_ROW)]
            added = np.flatnonzero(self.on(changed))
            added = added[self.importance_order(self.slot[added], added)]
            self._sorted = np.insert(kept, np.searchsorted(self.slot[kept], self.slot[added]), added)
            self._unsorted.clear()
        return self._sorted

    def importance_order(self, groups: NDArray[np.integer[Any]], rows: Rows) -> NDArray[np.intp]:
        """The order that puts rows group by group, in each the most important first."""
        return np.lexsort((self.rank[rows], self.started[rows], -self.priority[rows], groups))

    def add(self, record: PlacedWorkload, capacity: Capacity) -> None:
        if len(record.slots) != 1:
            return
        if not self._free:
            self._grow()
        assert record.label_set is not None, "counted by the peer index before"
        assert record.member_of is not None
        workload, row = record.workload, self._free.pop()
        record.row = row
        self.records[row] = record
        self.slot[row] = record.slots[0]
        self.priority[row] = workload.priority
        self.rank[row] = rank_of(self._seed, workload.key) if workload.started else self._arrival_rank(workload.key)
        self.has_ports[row] = bool(workload.needs.host_ports)
        self.labelling[row] = self.labellings.acquire(workload.namespace, record.label_set)
        self.class_id[row] = record.member_of.id
        self._set_amounts(row, workload.needs.requests.on_node(self.version).amounts, capacity)
        self.amend(record)

    def amend(self, record: PlacedWorkload) -> None:
        """Update a workload of which nothing but the start time and the controller has changed."""
        if record.row >= 0:
            controller = record.workload.controller
            self.tied_to_node[record.row] = controller is not None and controller.kind in TIED_CONTROLLERS
            self._unsorted.add(record.slots[0])
            started = record.workload.started
            self.started[record.row] = timestamps.nanoseconds(started) if started else NOT_STARTED
            key = record.workload.key
            self.rank[record.row] = rank_of(self._seed, key) if started else self._arrival_rank(key)

    def _arrival_rank(self, key: WorkloadKey) -> int:
        """The rank of a pod that has not started among others of its priority on its node."""
        self._undoable.discard(key)
        if key not in self._arrivals:
            self._n_arrived += 1
            self._arrivals[key] = self._n_arrived
        return self._arrivals[key] if self.version >= V1_37 else -self._arrivals[key]

    def forget_undoable(self) -> None:
        for key in self._undoable:
            del self._arrivals[key]
        self._undoable.clear()

    def renew_amounts(self, record: PlacedWorkload, capacity: Capacity) -> None:
        """Note what a workload requests of resources that no target has offered so far."""
        if record.row >= 0:
            amounts = record.workload.needs.requests.on_node(self.version).amounts
            self._set_amounts(record.row, amounts, capacity)

    def reclassify(self, rows: list[int], class_id: int) -> None:
        """Note that these workloads are in another class; those without a row are -1."""
        moved = np.array(rows, np.intp)
        self.class_id[moved[moved >= 0]] = class_id

    def remove(self, record: PlacedWorkload, *, undoable: bool) -> None:
        if record.key in self._arrivals:
            self._undoable.add(record.key)
            if not undoable:
                self.forget_undoable()
        row, record.row = record.row, FREE_ROW
        if row >= 0:
            self._unsorted.add(int(self.slot[row]))
            self.records[row] = None
            self.slot[row] = FREE_ROW
            self.labellings.release(int(self.labelling[row]))
            self._free.append(row)

    def _set_amounts(self, row: int, amounts: tuple[tuple[str, int], ...], capacity: Capacity) -> None:
        rows = capacity.rows
        requested = [(rows[PODS], 1), *((rows[resource], amount) for resource, amount in amounts if resource in rows)]
        if len(self.amounts) < len(capacity.rows):
            more = np.zeros((len(capacity.rows) - len(self.amounts), len(self)), np.int64)
            self.amounts = np.concatenate((self.amounts, more))
        self.amounts[:, row] = 0
        for resource, amount in requested:
            self.amounts[resource, row] = amount

    def _grow(self) -> None:
        n = len(self)
        size = n + max(64, n >> 2)
        self._free = list(range(size - 1, n - 1, -1))
        self.records.extend([None] * (size - n))
        self.slot = grown(self.slot, size)
        self.slot[n:] = FREE_ROW
        self.priority = grown(self.priority, size)
        self.started = grown(self.started, size)
        self.rank = grown(self.rank, size)
        self.has_ports = grown(self.has_ports, size)
        self.tied_to_node = grown(self.tied_to_node, size)
        self.class_id = grown(self.class_id, size)
        self.labelling = grown(self.labelling, size)
        self.amounts = grown(self.amounts, size)


class PodLabellings:
    """Namespace and labels, each combination once while a pod has it. Numbers are reused."""

    def __init__(self) -> None:
        self.by_id: list[tuple[str, LabelSet] | None] = []
        self._ids: dict[tuple[str, LabelSet], int] = {}
        self._uses: list[int] = []
        self._free: list[int] = []

    def acquire(self, namespace: str, labels: LabelSet) -> int:
        key = (namespace, labels)
        found = self._ids.get(key)
        if found is None:
            if not self._free:
                self._free.append(len(self.by_id))
                self.by_id.append(None)
                self._uses.append(0)
            found = self._ids[key] = self._free.pop()
            self.by_id[found] = key
        self._uses[found] += 1
        return found

    def release(self, labelling: int) -> None:
        self._uses[labelling] -= 1
        key = self.by_id[labelling]
        if not self._uses[labelling] and key is not None:
            del self._ids[key]
            self.by_id[labelling] = None
            self._free.append(labelling)
