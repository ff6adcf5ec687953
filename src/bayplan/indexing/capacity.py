"""What each target offers and what is taken of it. Knows nothing of which requests are allowed."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.slots import grown
from bayplan.model.targets import Target
from bayplan.model.workloads import HostPort, Requests, Workload, WorkloadKey

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


# RF merged from indexing.occupancy: What else is taken or present on targets, sparsely: host ports, images, claims in
# use.


class Ports:
    """Host ports by (protocol, port): the addresses taken on each slot."""

    def __init__(self) -> None:
        self._taken: defaultdict[tuple[str, int], dict[int, Counter[str]]] = defaultdict(dict)

    def add(self, slot: int, ports: tuple[HostPort, ...], sign: int) -> None:
        for port in ports:
            where = self._taken[port.protocol, port.port]
            addresses = where.setdefault(slot, Counter())
            addresses[port.ip] += sign
            if not addresses[port.ip]:
                del addresses[port.ip]
            if not addresses:
                del where[slot]
            if not where:
                del self._taken[port.protocol, port.port]

    def taken(self, protocol: str, port: int) -> dict[int, Counter[str]]:
        """Slot → addresses that hold this port there."""
        return self._taken.get((protocol, port), {})


class ImageSizes:
    """Image name → slot → size in bytes there."""

    def __init__(self) -> None:
        self._sizes: defaultdict[str, dict[int, int]] = defaultdict(dict)

    def put(self, slot: int, target: Target) -> None:
        for name, size in target.images:
            self._sizes[name].setdefault(slot, size)

    def take(self, slot: int, target: Target) -> None:
        for name, _ in target.images:
            self._sizes[name].pop(slot, None)
            if not self._sizes[name]:
                del self._sizes[name]

    def sizes(self, name: str) -> dict[int, int]:
        return self._sizes.get(name, {})


class ClaimUsers:
    """Claim (namespace/name) → the placed workloads that use it."""

    def __init__(self) -> None:
        self._users: defaultdict[str, set[WorkloadKey]] = defaultdict(set)

    def add(self, workload: Workload) -> None:
        for name in workload.needs.claims.names:
            self._users[f"{workload.namespace}/{name}"].add(workload.key)

    def remove(self, workload: Workload) -> None:
        for name in dict.fromkeys(workload.needs.claims.names):
            users = self._users[f"{workload.namespace}/{name}"]
            users.discard(workload.key)
            if not users:
                del self._users[f"{workload.namespace}/{name}"]

    def users(self, claim: str) -> set[WorkloadKey]:
        return self._users.get(claim, set())
