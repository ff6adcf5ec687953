"""
What clusters have left by their own reports, in whole units. Knows nothing of what anybody asks for.

Each report is kept as exact integers and, wherever it fits, in arrays with an entry per slot: an estimate for all
clusters is then a few array operations, whatever a workload asks for.
"""

from __future__ import annotations

from fractions import Fraction

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.slots import grown
from bayplan.model import quantities
from bayplan.model.clusters import ClusterFacts, NodeGrade
from bayplan.model.reasons import Mask
from bayplan.model.targets import Target

LARGEST = 2**62  # amounts in arrays stay below it
MOST_GRADES = 32  # of one cluster in arrays: each takes a row over all clusters
MOST_NODES = 2**28  # of one grade in arrays, and pods on one node, so that the pods of all grades stay below 64 bits
NONE = Fraction()


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


NOTHING = CapacityReport()  # of a cluster that reports nothing


def report_of(facts: ClusterFacts) -> CapacityReport:
    summary = facts.summary
    if summary is None:
        return NOTHING
    parts = [dict(part) for part in (summary.allocatable, summary.allocated, summary.allocating)]
    # Karmada rounds each of the three numbers of pods by itself, other amounts once they are subtracted.
    pods = [quantities.rounded("pods", part.get("pods", NONE)) for part in parts]
    offered, used, assumed = parts
    free = {
        name: max(0, _left(name, amount, used.get(name, NONE), assumed.get(name, NONE)))
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
        report = self.reports[slot] = report_of(target.cluster)
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
    if report.pods >= LARGEST or any(amount >= LARGEST for amount in report.free.values()):
        return False
    grades = report.grades or ()
    return len(grades) <= MOST_GRADES and all(map(_is_ordinary, grades))


def _is_ordinary(grade: ResourceModelGrade) -> bool:
    counts_fit = 0 <= grade.count < MOST_NODES and 0 <= grade.pods < MOST_NODES
    return counts_fit and all(0 <= amount < LARGEST for amount in grade.least.values())
