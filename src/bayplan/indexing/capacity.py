"""What each target offers and what is taken of it. Knows nothing of which requests are allowed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.slots import grown
from bayplan.model.targets import Target
from bayplan.model.workloads import Requests

PODS = "pods"
MOST = 2**61  # that is ever said to be taken: whatever people write into pods, sums must stay within 64 bits
COUNTED = ("cpu", "memory")  # the resources that weigh something in scores even when nobody asked for them


class Capacity:
    """
    One row per resource, one column per slot, all of shape (n_resources, capacity).

    `counted` holds what allocation scores see: for cpu and memory, requests with defaults filled in. The same numbers
    are in `offered_at`, `requested_at` and `counted_at`, by row and then slot: single integers are read and written
    several times faster through these.
    """

    def __init__(self, capacity: int) -> None:
        self.rows: dict[str, int] = {}
        self.allocatable: NDArray[np.int64] = np.zeros((0, capacity), np.int64)
        self.requested: NDArray[np.int64] = np.zeros((0, capacity), np.int64)
        self.counted: NDArray[np.int64] = np.zeros((0, capacity), np.int64)
        self._beyond: dict[tuple[str, int, int], int] = {}  # (table, row, slot) → the true sum, where it is over MOST
        self._look_into()
        for resource in ("cpu", "memory", "ephemeral-storage", PODS):
            self.row(resource)

    def row(self, resource: str) -> int:
        known = self.rows.get(resource)
        if known is not None:
            return known
        row = self.rows[resource] = len(self.rows)
        empty = np.zeros((1, self.allocatable.shape[1]), np.int64)
        self.allocatable = np.concatenate((self.allocatable, empty))
        self.requested = np.concatenate((self.requested, empty))
        self.counted = np.concatenate((self.counted, empty))
        self._look_into()
        return row

    def put(self, slot: int, target: Target) -> None:
        self.allocatable[:, slot] = 0
        for resource, amount in target.allocatable:
            # Looked up first: a new resource replaces the arrays.
            row = self.row(resource)
            self.offered_at[row][slot] = amount

    def take(self, slot: int) -> None:
        self.allocatable[:, slot] = 0

    def add(self, slot: int, requests: Requests, sign: int) -> None:
        """A workload came (+1) or left (-1)."""
        rows = self.rows
        self.requested_at[rows[PODS]][slot] += sign
        for resource, amount in requests.amounts:
            row = rows[resource] if resource in rows else self.row(resource)
            total = self.requested_at[row][slot] + sign * amount
            if total > MOST or self._beyond:
                total = self._bounded("requested", row, slot, total, sign * amount)
            self.requested_at[row][slot] = total
        for resource, amount in requests.counted:
            row = rows[resource] if resource in rows else self.row(resource)
            total = self.counted_at[row][slot] + sign * amount
            if total > MOST or self._beyond:
                total = self._bounded("counted", row, slot, total, sign * amount)
            self.counted_at[row][slot] = total

    def _bounded(self, table: str, row: int, slot: int, total: int, change: int) -> int:
        """What to write for a sum that may be, or may have been, beyond all bounds."""
        before = self._beyond.pop((table, row, slot), None)
        exact = total if before is None else before + change
        if exact > MOST:
            self._beyond[table, row, slot] = exact
        return min(exact, MOST)

    def grow(self, capacity: int) -> None:
        self.allocatable = grown(self.allocatable, capacity)
        self.requested = grown(self.requested, capacity)
        self.counted = grown(self.counted, capacity)
        self._look_into()

    def _look_into(self) -> None:
        self.offered_at = [row.data for row in self.allocatable]
        self.requested_at = [row.data for row in self.requested]
        self.counted_at = [row.data for row in self.counted]
