"""
What each target offers and how much of it is taken: the resources, host ports, images and claims of nodes, and what
clusters report as left.

Knows nothing of which requests are allowed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.slots import grown
from bayplan.model import quantities
from bayplan.model.reasons import Mask
from bayplan.model.targets import ClusterFacts, NodeGrade, ReplicaDemand, Target
from bayplan.model.volumes import InlineDisk
from bayplan.model.workloads import HostPort, Requests, Workload, WorkloadKey

PODS = "pods"
BASIC_RESOURCES = ("cpu", "memory", "ephemeral-storage", PODS)  # have a row from the start
UNOFFERED = "\0unoffered"
UNOFFERED_ROW = len(BASIC_RESOURCES)  # of all resources that no target offers
POD_ROW = BASIC_RESOURCES.index(PODS)
NONZERO_RESOURCES = ("cpu", "memory")  # pods that do not request these get a default amount in scores
MAX_SUM = 2**61  # the largest requested amount in arrays: whatever pods request, sums stay within 64 bits
MAX_ARRAY_AMOUNT = 2**62  # amounts that clusters report are below it in arrays
MAX_ARRAY_GRADES = 32  # resource model grades of one cluster in arrays: each takes a row over all clusters
MAX_ARRAY_NODES = 2**28  # nodes of one grade in arrays, and pods on one node, so that the sum of pods fits 64 bits
ZERO = Fraction()


class Capacity:
    """
    One row per resource that any target offers, one column per slot, all of shape (n_resources, capacity).

    Resources that no target offers have a row in common, which stays 0: tenants request what names they like. What
    placed workloads request of these is in `_unoffered` until a target offers them.
    `nonzero_requested` is what allocation scores use: requests with the defaults for cpu and memory filled in
    (kube-scheduler: NonZeroRequested). `allocatable_at`, `requested_at` and `nonzero_requested_at` are the same memory
    by row and then slot, through which single integers are read and written several times faster.
    """

    def __init__(self, capacity: int) -> None:
        shape = (len(BASIC_RESOURCES) + 1, capacity)
        self.rows = {resource: row for row, resource in enumerate((*BASIC_RESOURCES, UNOFFERED))}
        self.allocatable: NDArray[np.int64] = np.zeros(shape, np.int64)
        self.requested: NDArray[np.int64] = np.zeros(shape, np.int64)
        self.nonzero_requested: NDArray[np.int64] = np.zeros(shape, np.int64)
        self._unoffered: dict[str, dict[int, int]] = {}  # resource → slot → sum
        self._exact: dict[tuple[str, int, int], int] = {}  # (table, row, slot) → the sum, where it is beyond MAX_SUM
        self._renew_views()

    def row(self, resource: str) -> int:
        """The row of a resource; it may be another one once a target offers the resource."""
        return self.rows.get(resource, UNOFFERED_ROW)

    def requested_of(self, resource: str, slot: int) -> int:
        """What the workloads on a target request of a resource, offered or not."""
        if resource in self.rows:
            return int(self.requested_at[self.rows[resource]][slot])
        return self._unoffered.get(resource, {}).get(slot, 0)

    def put(self, slot: int, target: Target) -> list[int]:
        """Enter what a target offers; returns the slots of workloads that request what nobody has offered so far."""
        self.allocatable[:, slot] = 0
        requesting: list[int] = []
        for resource, amount in target.allocatable:
            if resource not in self.rows:  # first, because a new resource replaces the arrays
                requesting += self._add_row(resource)
            self.allocatable_at[self.rows[resource]][slot] = max(amount, -MAX_SUM)
        return requesting

    def _add_row(self, resource: str) -> Iterable[int]:
        row = self.rows[resource] = len(self.rows)
        empty = np.zeros((1, self.allocatable.shape[1]), np.int64)
        self.allocatable = np.concatenate((self.allocatable, empty))
        self.requested = np.concatenate((self.requested, empty))
        self.nonzero_requested = np.concatenate((self.nonzero_requested, empty))
        self._renew_views()
        requested = self._unoffered.pop(resource, {})
        for slot, total in requested.items():
            self.requested_at[row][slot] = self._bounded("requested", row, slot, total, total)
        return requested

    def clear(self, slot: int) -> None:
        self.allocatable[:, slot] = 0

    def add(self, slot: int, requests: Requests, sign: int) -> None:
        """Count the requests of a workload that is added (+1) or removed (-1)."""
        rows = self.rows
        self.requested_at[POD_ROW][slot] += sign
        for resource, amount in requests.amounts:
            row = rows.get(resource)
            if row is None:
                self._add_unoffered(resource, slot, sign * amount)
                continue
            requested = self.requested_at[row]
            total = requested[slot] + sign * amount
            if not -MAX_SUM <= total <= MAX_SUM or self._exact:
                total = self._bounded("requested", row, slot, total, sign * amount)
            requested[slot] = total
        for resource, amount in requests.counted:
            row = rows.get(resource)
            if row is None:
                continue  # it is cpu and memory that have defaults
            requested = self.nonzero_requested_at[row]
            total = requested[slot] + sign * amount
            if not -MAX_SUM <= total <= MAX_SUM or self._exact:
                total = self._bounded("nonzero_requested", row, slot, total, sign * amount)
            requested[slot] = total

    def _add_unoffered(self, resource: str, slot: int, change: int) -> None:
        by_slot = self._unoffered.setdefault(resource, {})
        by_slot[slot] = by_slot.get(slot, 0) + change
        if not by_slot[slot]:
            del by_slot[slot]
        if not by_slot:
            del self._unoffered[resource]

    def _bounded(self, table: str, row: int, slot: int, total: int, change: int) -> int:
        """The sum to store where the exact one is, or was, beyond `MAX_SUM`."""
        before = self._exact.pop((table, row, slot), None)
        exact = total if before is None else before + change
        if not -MAX_SUM <= exact <= MAX_SUM:
            self._exact[table, row, slot] = exact
        return max(-MAX_SUM, min(exact, MAX_SUM))

    def grow(self, capacity: int) -> None:
        self.allocatable = grown(self.allocatable, capacity)
        self.requested = grown(self.requested, capacity)
        self.nonzero_requested = grown(self.nonzero_requested, capacity)
        self._renew_views()

    def _renew_views(self) -> None:
        self.allocatable_at = [row.data for row in self.allocatable]
        self.requested_at = [row.data for row in self.requested]
        self.nonzero_requested_at = [row.data for row in self.nonzero_requested]


class Ports(msgspec.Struct):
    """Host ports by (protocol, port): the addresses taken on each slot."""

    _taken: dict[tuple[str, int], dict[int, Counter[str]]] = {}

    def add(self, slot: int, ports: tuple[HostPort, ...], sign: int) -> None:
        for port in ports:
            by_slot = self._taken.setdefault((port.protocol, port.port), {})
            addresses = by_slot.setdefault(slot, Counter())
            addresses[port.ip] += sign
            if not addresses[port.ip]:
                del addresses[port.ip]
            if not addresses:
                del by_slot[slot]
            if not by_slot:
                del self._taken[port.protocol, port.port]

    def taken(self, protocol: str, port: int) -> dict[int, Counter[str]]:
        """Slot → addresses that have this port taken there."""
        return self._taken.get((protocol, port), {})


class HeldImage(msgspec.Struct):
    """The targets that hold an image, and its size on the first of them: the one size that kube-scheduler knows."""

    size: int
    slots: set[int]


class HeldImages(msgspec.Struct):
    """
    The images that targets hold, by name.

    An image keeps its size until no target holds it (kube-scheduler: imageStates in backend/cache/cache.go).
    `_undoable` are the sizes of images that no target holds since a change that may yet be undone.
    """

    by_name: dict[str, HeldImage] = {}
    _undoable: dict[str, int] = {}

    def put(self, slot: int, target: Target) -> None:
        for name, size in target.images:
            image = self.by_name.get(name)
            if image is None:
                image = self.by_name[name] = HeldImage(self._undoable.pop(name, size), set())
            image.slots.add(slot)

    def clear(self, slot: int, target: Target, *, undoable: bool) -> None:
        for name in dict.fromkeys([name for name, _ in target.images]):
            image = self.by_name[name]
            image.slots.discard(slot)
            if not image.slots:
                del self.by_name[name]
                if undoable:
                    self._undoable[name] = image.size

    def adopt_sizes(self, other: HeldImages) -> None:
        """Give images that are put from now on the sizes that others have, until these are forgotten."""
        self._undoable.update((name, image.size) for name, image in list(other.by_name.items()))

    def forget_undoable(self) -> None:
        self._undoable.clear()


class ClaimUsers(msgspec.Struct):
    """Claim (namespace/name), or disk that a pod names without a claim → the placed workloads that use it."""

    _users: dict[str, set[WorkloadKey]] = {}

    def add(self, workload: Workload) -> None:
        for used in _used_by(workload):
            self._users.setdefault(used, set()).add(workload.key)

    def remove(self, workload: Workload) -> None:
        for used in _used_by(workload):
            users = self._users[used]
            users.discard(workload.key)
            if not users:
                del self._users[used]

    def users(self, claim: str) -> set[WorkloadKey]:
        return self._users.get(claim, set())

    def users_of_disk(self, disk: InlineDisk) -> set[WorkloadKey]:
        """Those that name the same disk, whether that is a conflict or not."""
        return self._users.get(_disk_key(disk), set())


def _used_by(workload: Workload) -> set[str]:
    """The claims that the pod names itself, without those of its ephemeral volumes, and its disks."""
    claims = workload.needs.claims
    return {f"{workload.namespace}/{name}" for name in claims.named} | {_disk_key(disk) for disk in claims.disks}


def _disk_key(disk: InlineDisk) -> str:
    return f"\0{disk.source}/{disk.name}"  # which is no claim


class ResourceModelGrade(msgspec.Struct, frozen=True):
    """`count` nodes, each with room for `pods` pods and at least the amounts in `least`."""

    count: int
    pods: int
    least: dict[str, int]


class CapacityReport(msgspec.Struct, frozen=True):
    """
    The pods and the amount of every resource left in a cluster, never below 0; `grades` is None without a model.

    `estimates` are answers of the accurate estimator of the cluster, if it has one.
    """

    pods: int = 0
    free: dict[str, int] = {}
    grades: tuple[ResourceModelGrade, ...] | None = None
    estimates: dict[ReplicaDemand, int] = {}


def capacity_report_of(facts: ClusterFacts) -> CapacityReport:
    """What is left of a cluster, empty if it reports nothing."""
    summary = facts.summary
    if summary is None:
        return CapacityReport(estimates=dict(facts.estimates))
    parts = [dict(part) for part in (summary.allocatable, summary.allocated, summary.allocating)]
    # Karmada rounds each of the three numbers of pods by itself, other amounts once they are subtracted.
    pods = [quantities.rounded("pods", part.get("pods", ZERO)) for part in parts]
    allocatable, allocated, allocating = parts
    free = {
        name: max(0, _free_amount(name, amount, allocated.get(name, ZERO), allocating.get(name, ZERO)))
        for name, amount in allocatable.items()
    }
    grades = None if facts.grades is None else tuple(map(grade_of, facts.grades))
    return CapacityReport(max(0, pods[0] - pods[1] - pods[2]), free, grades, dict(facts.estimates))


def grade_of(grade: NodeGrade) -> ResourceModelGrade:
    return ResourceModelGrade(
        grade.count, grade.pods, {name: quantities.rounded(name, amount) for name, amount in grade.least}
    )


def _free_amount(resource: str, allocatable: Fraction, allocated: Fraction, allocating: Fraction) -> int:
    if allocatable.denominator == allocated.denominator == allocating.denominator == 1:  # the usual case, without gcd
        units = allocatable.numerator - allocated.numerator - allocating.numerator
        return units * 1000 if resource == "cpu" else units
    return quantities.rounded(resource, allocatable - allocated - allocating)


class ClusterCapacity:
    """
    What clusters report as left, in whole units: by slot, and in arrays of shape (capacity,) or (n_grades, capacity).

    With the arrays an estimate for all clusters is a few array operations. `apart` are the slots whose reports are too
    large for the arrays, which are not valid there. `generation` changes with every report.
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
        """The largest number of grades that any cluster has."""
        return len(self.grade_counts)

    def free(self, resource: str) -> NDArray[np.int64]:
        """What is left of the resource, 0 where a cluster does not offer it."""
        found = self._free.get(resource)
        return np.zeros_like(self.pods) if found is None else found

    def least(self, resource: str) -> NDArray[np.int64]:
        """The least amount of the resource on a node of each grade."""
        found = self._least.get(resource)
        return np.zeros_like(self.grade_pods) if found is None else found

    def put(self, slot: int, facts: ClusterFacts) -> None:
        self.generation += 1
        report = self.reports[slot] = capacity_report_of(facts)
        if not _fits_into_arrays(report):
            self.apart.add(slot)
            return
        self.pods[slot] = report.pods
        for resource, amount in report.free.items():
            self._row(self._free, resource, self.pods)[slot] = amount
        if report.grades:
            self._put_grades(slot, report.grades)
        self.graded[slot] = report.grades is not None

    def clear(self, slot: int) -> None:
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
            more = np.zeros((missing, len(self.pods)), np.int64)
            self.grade_counts = np.concatenate((self.grade_counts, more))
            self.grade_pods = np.concatenate((self.grade_pods, more))
            self._least = {resource: np.concatenate((rows, more)) for resource, rows in self._least.items()}
        for position, grade in enumerate(grades):
            self.grade_counts[position, slot] = grade.count
            self.grade_pods[position, slot] = grade.pods
            for resource, amount in grade.least.items():
                self._row(self._least, resource, self.grade_pods)[position, slot] = amount

    @staticmethod
    def _row(table: dict[str, NDArray[np.int64]], resource: str, like: NDArray[np.int64]) -> NDArray[np.int64]:
        row = table.get(resource)
        if row is None:
            row = table[resource] = np.zeros_like(like)
        return row


def _fits_into_arrays(report: CapacityReport) -> bool:
    if report.pods >= MAX_ARRAY_AMOUNT or any(amount >= MAX_ARRAY_AMOUNT for amount in report.free.values()):
        return False
    grades = report.grades or ()
    return len(grades) <= MAX_ARRAY_GRADES and all(
        0 <= grade.count < MAX_ARRAY_NODES
        and 0 <= grade.pods < MAX_ARRAY_NODES
        and all(0 <= amount < MAX_ARRAY_AMOUNT for amount in grade.least.values())
        for grade in grades
    )
