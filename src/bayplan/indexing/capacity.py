"""What each target offers and what is taken of it. Knows nothing of which requests are allowed."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.slots import grown
from bayplan.model import quantities
from bayplan.model.clusters import ClusterFacts, NodeGrade
from bayplan.model.reasons import Mask
from bayplan.model.targets import Target
from bayplan.model.workloads import HostPort, Requests, Workload, WorkloadKey

PODS = "pods"
MAX_SUM = 2**61  # that is ever said to be taken: whatever people write into pods, sums must stay within 64 bits
NONZERO_RESOURCES = ("cpu", "memory")  # the resources that weigh something in scores even when nobody asked for them


class Capacity:
    """
    One row per resource, one column per slot, all of shape (n_resources, capacity).

    `counted` holds what allocation scores see: for cpu and memory, requests with defaults filled in. The same numbers
    are in `allocatable_at`, `requested_at` and `nonzero_requested_at`, by row and then slot: single integers are read and written
    several times faster through these.
    """

    def __init__(self, capacity: int) -> None:
        self.rows: dict[str, int] = {}
        self.allocatable: NDArray[np.int64] = np.zeros((0, capacity), np.int64)
        self.requested: NDArray[np.int64] = np.zeros((0, capacity), np.int64)
        self.nonzero_requested: NDArray[np.int64] = np.zeros((0, capacity), np.int64)
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
        self.nonzero_requested = np.concatenate((self.nonzero_requested, empty))
        self._look_into()
        return row

    def put(self, slot: int, target: Target) -> None:
        self.allocatable[:, slot] = 0
        for resource, amount in target.allocatable:
            # Looked up first: a new resource replaces the arrays.
            row = self.row(resource)
            self.allocatable_at[row][slot] = amount

    def take(self, slot: int) -> None:
        self.allocatable[:, slot] = 0

    def add(self, slot: int, requests: Requests, sign: int) -> None:
        """A workload came (+1) or left (-1)."""
        rows = self.rows
        self.requested_at[rows[PODS]][slot] += sign
        for resource, amount in requests.amounts:
            row = rows[resource] if resource in rows else self.row(resource)
            total = self.requested_at[row][slot] + sign * amount
            if total > MAX_SUM or self._beyond:
                total = self._bounded("requested", row, slot, total, sign * amount)
            self.requested_at[row][slot] = total
        for resource, amount in requests.counted:
            row = rows[resource] if resource in rows else self.row(resource)
            total = self.nonzero_requested_at[row][slot] + sign * amount
            if total > MAX_SUM or self._beyond:
                total = self._bounded("counted", row, slot, total, sign * amount)
            self.nonzero_requested_at[row][slot] = total

    def _bounded(self, table: str, row: int, slot: int, total: int, change: int) -> int:
        """What to write for a sum that may be, or may have been, beyond all bounds."""
        before = self._beyond.pop((table, row, slot), None)
        exact = total if before is None else before + change
        if exact > MAX_SUM:
            self._beyond[table, row, slot] = exact
        return min(exact, MAX_SUM)

    def grow(self, capacity: int) -> None:
        self.allocatable = grown(self.allocatable, capacity)
        self.requested = grown(self.requested, capacity)
        self.nonzero_requested = grown(self.nonzero_requested, capacity)
        self._look_into()

    def _look_into(self) -> None:
        self.allocatable_at = [row.data for row in self.allocatable]
        self.requested_at = [row.data for row in self.requested]
        self.nonzero_requested_at = [row.data for row in self.nonzero_requested]


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


# RF merged from indexing.capacity: What clusters have left by their own reports, in whole units. Knows
# nothing of what anybody asks for. Each report is kept as exact integers and, wherever it fits, in arrays with an
# entry per slot: an estimate for all clusters is then a few array operations, whatever a workload asks for.

MAX_ARRAY_AMOUNT = 2**62  # amounts in arrays stay below it
MAX_ARRAY_GRADES = 32  # of one cluster in arrays: each takes a row over all clusters
MAX_ARRAY_NODES = (
    2**28
)  # of one grade in arrays, and pods on one node, so that the pods of all grades stay below 64 bits
ZERO = Fraction()


class ResourceModelGrade(msgspec.Struct, frozen=True):
    """So many nodes with room for so many pods and at least so much of each resource."""

    count: int
    pods: int
    least: dict[str, int]


class CapacityReport(msgspec.Struct, frozen=True):
    """What is left of pods and of every resource offered, never below 0; `grades` is None where no model is used."""

    pods: int = 0
    free: dict[str, int] = {}
    grades: tuple[ResourceModelGrade, ...] | None = None


NO_CAPACITY = CapacityReport()  # of a cluster that reports nothing


def capacity_report_of(facts: ClusterFacts) -> CapacityReport:
    summary = facts.summary
    if summary is None:
        return NO_CAPACITY
    parts = [dict(part) for part in (summary.allocatable, summary.allocated, summary.allocating)]
    # Karmada rounds each of the three numbers of pods by itself, other amounts once they are subtracted.
    pods = [quantities.rounded("pods", part.get("pods", ZERO)) for part in parts]
    offered, used, assumed = parts
    free = {
        name: max(0, _left(name, amount, used.get(name, ZERO), assumed.get(name, ZERO)))
        for name, amount in offered.items()
    }
    grades = None if facts.grades is None else tuple(map(grade_of, facts.grades))
    return CapacityReport(max(0, pods[0] - pods[1] - pods[2]), free, grades)


def grade_of(grade: NodeGrade) -> ResourceModelGrade:
    return ResourceModelGrade(
        grade.count, grade.pods, {name: quantities.rounded(name, amount) for name, amount in grade.least}
    )


def _left(resource: str, offered: Fraction, used: Fraction, assumed: Fraction) -> int:
    if offered.denominator == used.denominator == assumed.denominator == 1:  # as most are: no fractions, no gcd
        units = offered.numerator - used.numerator - assumed.numerator
        return units * 1000 if resource == "cpu" else units
    return quantities.rounded(resource, offered - used - assumed)


class ClusterCapacity:
    """
    The reports by slot, and in arrays of shape (capacity,), those of grades (n_grades, capacity).

    `apart` are the slots whose reports are too large for arrays; there the arrays say nothing. `generation` moves with
    every change.
    """

    def __init__(self, capacity: int) -> None:
        self.generation = 0
        self.reports: dict[int, CapacityReport] = {}
        self.apart: set[int] = set()
        self.pods: NDArray[np.int64] = np.zeros(capacity, np.int64)
        self.graded: Mask = np.zeros(capacity, np.bool_)
        self.grade_counts: NDArray[np.int64] = np.zeros((0, capacity), np.int64)
        self.grade_pods: NDArray[np.int64] = np.zeros((0, capacity), np.int64)
        self._free: dict[str, NDArray[np.int64]] = {}
        self._least: dict[str, NDArray[np.int64]] = {}

    @property
    def n_grades(self) -> int:
        """The most that any cluster has."""
        return len(self.grade_counts)

    def free(self, resource: str) -> NDArray[np.int64]:
        """What is left of the resource, 0 where it is not offered."""
        found = self._free.get(resource)
        return np.zeros_like(self.pods) if found is None else found

    def least(self, resource: str) -> NDArray[np.int64]:
        """What a node of each grade has of the resource."""
        found = self._least.get(resource)
        return np.zeros_like(self.grade_pods) if found is None else found

    def put(self, slot: int, target: Target) -> None:
        if target.cluster is None:
            return
        self.generation += 1
        report = self.reports[slot] = capacity_report_of(target.cluster)
        if not _fits_into_arrays(report):
            self.apart.add(slot)
            return
        self.pods[slot] = report.pods
        for resource, amount in report.free.items():
            self._row(self._free, resource, self.pods)[slot] = amount
        if report.grades:
            self._put_grades(slot, report.grades)
        self.graded[slot] = report.grades is not None

    def take(self, slot: int) -> None:
        if self.reports.pop(slot, None) is None:
            return
        self.generation += 1
        self.apart.discard(slot)
        self.graded[slot] = False
        for row in (self.pods, *self._free.values()):
            row[slot] = 0
        for rows in (self.grade_counts, self.grade_pods, *self._least.values()):
            rows[:, slot] = 0

    def grow(self, capacity: int) -> None:
        self.pods, self.graded = grown(self.pods, capacity), grown(self.graded, capacity)
        self.grade_counts, self.grade_pods = grown(self.grade_counts, capacity), grown(self.grade_pods, capacity)
        self._free = {resource: grown(row, capacity) for resource, row in self._free.items()}
        self._least = {resource: grown(rows, capacity) for resource, rows in self._least.items()}

    def _put_grades(self, slot: int, grades: tuple[ResourceModelGrade, ...]) -> None:
        missing = len(grades) - self.n_grades
        if missing > 0:
            self.grade_counts, self.grade_pods = _deeper(self.grade_counts, missing), _deeper(self.grade_pods, missing)
            self._least = {resource: _deeper(rows, missing) for resource, rows in self._least.items()}
        for place, grade in enumerate(grades):
            self.grade_counts[place, slot] = grade.count
            self.grade_pods[place, slot] = grade.pods
            for resource, amount in grade.least.items():
                self._row(self._least, resource, self.grade_pods)[place, slot] = amount

    @staticmethod
    def _row(table: dict[str, NDArray[np.int64]], resource: str, like: NDArray[np.int64]) -> NDArray[np.int64]:
        row = table.get(resource)
        if row is None:
            row = table[resource] = np.zeros_like(like)
        return row


def _deeper(rows: NDArray[np.int64], more: int) -> NDArray[np.int64]:
    return np.concatenate((rows, np.zeros((more, rows.shape[1]), np.int64)))


def _fits_into_arrays(report: CapacityReport) -> bool:
    if report.pods >= MAX_ARRAY_AMOUNT or any(amount >= MAX_ARRAY_AMOUNT for amount in report.free.values()):
        return False
    grades = report.grades or ()
    return len(grades) <= MAX_ARRAY_GRADES and all(map(_is_ordinary, grades))


def _is_ordinary(grade: ResourceModelGrade) -> bool:
    counts_fit = 0 <= grade.count < MAX_ARRAY_NODES and 0 <= grade.pods < MAX_ARRAY_NODES
    return counts_fit and all(0 <= amount < MAX_ARRAY_AMOUNT for amount in grade.least.values())
