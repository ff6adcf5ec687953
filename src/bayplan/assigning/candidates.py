"""
The feasible clusters in the order of preference, and why an attempt to assign a workload to them failed.

Candidates are arrays: most decisions read a few of a thousand, so single ones are created on access. Knows nothing of
spread constraints or of how replicas are divided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.slots import TargetSlots
from bayplan.model.reasons import Mask, Scores, Slots
from bayplan.model.workloads import WorkloadKey

NAME_BITS = 20  # of a sort key, for the order of names below the available replicas
SCORE_BITS = 20  # of a sort key, for the score below the tier


class ClusterCandidate(msgspec.Struct, frozen=True, gc=False):
    """`allocatable` is how many more replicas fit; `available` adds those that the workload has there already."""

    slot: int
    name: str
    region: str
    tier: int
    score: int
    allocatable: int
    available: int


class CandidateRows(msgspec.Struct, frozen=True, gc=False):
    """Candidates as arrays with one entry per candidate."""

    slots: Slots
    tiers: NDArray[np.int64]
    scores: Scores
    allocatable: NDArray[np.int64]
    available: NDArray[np.int64]

    def at(self, which: Mask | NDArray[np.intp] | slice) -> CandidateRows:
        """Some of them, or all in another order."""
        allocatable = self.allocatable[which]
        available = allocatable if self.available is self.allocatable else self.available[which]
        return CandidateRows(self.slots[which], self.tiers[which], self.scores[which], allocatable, available)


class Candidates(Sequence[ClusterCandidate]):
    """Candidates in the order of their rows. Immutable, so derived orders are cached."""

    def __init__(self, targets: TargetSlots, rows: CandidateRows) -> None:
        self._targets = targets
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows.slots)

    @overload
    def __getitem__(self, place: int) -> ClusterCandidate: ...
    @overload
    def __getitem__(self, place: slice) -> list[ClusterCandidate]: ...
    def __getitem__(self, place: int | slice) -> ClusterCandidate | list[ClusterCandidate]:
        if isinstance(place, slice):
            return [self._at(i) for i in range(*place.indices(len(self)))]
        return self._at(range(len(self))[place])

    def __iter__(self) -> Iterator[ClusterCandidate]:
        return (self._at(i) for i in range(len(self)))

    def only(self, which: Mask | NDArray[np.intp] | slice) -> Candidates:
        """Some of the candidates, or all in another order."""
        return Candidates(self._targets, self.rows.at(which))

    def with_allocatable(self, allocatable: NDArray[np.int64]) -> Candidates:
        """The same candidates with other allocatable replicas."""
        return Candidates(self._targets, msgspec.structs.replace(self.rows, allocatable=allocatable))

    def place_of(self, name: str) -> int | None:
        """The position of a cluster among the candidates."""
        found = np.flatnonzero(self.rows.slots == self._targets.by_name.get(name, -1))
        return int(found[0]) if len(found) else None

    @cached_property
    def by_tier(self) -> list[Candidates]:
        """The candidates of each tier, in order of tiers."""
        tiers = self.rows.tiers
        if bool((tiers[1:] < tiers[:-1]).any()):
            return self.only(np.argsort(tiers, kind="stable")).by_tier
        starts = [0, *(np.flatnonzero(tiers[1:] != tiers[:-1]) + 1).tolist(), len(tiers)]
        if len(starts) <= 2:
            return [self]
        return [self.only(slice(start, stop)) for start, stop in pairwise(starts)]

    @cached_property
    def by_allocatable(self) -> Candidates:
        """The same candidates, most allocatable replicas first; equal ones stay in order."""
        amounts = self.rows.allocatable
        return self if bool((amounts[1:] <= amounts[:-1]).all()) else self.only(np.argsort(-amounts, kind="stable"))

    @cached_property
    def cumulative_allocatable(self) -> NDArray[np.int64]:
        """The allocatable replicas of each candidate and those before it together."""
        return self.rows.allocatable.cumsum()

    @property
    def names(self) -> list[str]:
        targets = self._targets
        return [targets.at(slot).name for slot in self.rows.slots.tolist()]

    @property
    def amounts(self) -> list[tuple[str, int]]:
        """(name, allocatable replicas) of each candidate."""
        return list(zip(self.names, self.rows.allocatable.tolist(), strict=True))

    @property
    def name_order(self) -> NDArray[np.int64]:
        """The position of each candidate's name among all names."""
        return self._targets.name_order[self.rows.slots]

    def _at(self, i: int) -> ClusterCandidate:
        rows = self.rows
        slot = int(rows.slots[i])
        target = self._targets.at(slot)
        return ClusterCandidate(
            slot,
            target.name,
            target.cluster.region if target.cluster else "",
            int(rows.tiers[i]),
            int(rows.scores[i]),
            int(rows.allocatable[i]),
            int(rows.available[i]),
        )


def ordered_candidates(targets: TargetSlots, rows: CandidateRows) -> Candidates:
    """Candidates from rows in any order: earlier tier, higher score, more available replicas, name."""
    # Two combined keys instead of four, because sorting by each of the four in turn takes far longer.
    fine = targets.name_order[rows.slots] - (rows.available << NAME_BITS)
    coarse = (rows.tiers << SCORE_BITS) - rows.scores
    order = fine.argsort(kind="stable")
    return Candidates(targets, rows.at(order[coarse[order].argsort(kind="stable")]))


# Failures: answers, not errors, but raised because they end the attempt


class Unassignable(Exception):  # noqa: N818 (an answer, not an error)
    """The workload cannot be assigned; `reason` is the class that Karmada's condition would carry."""

    reason = "SchedulerError"

    def during(self, step: str) -> Unassignable:
        """The same failure, with the step that it occurred in."""
        return type(self)(f"{step}: {self}")


class NoClusterFit(Unassignable):
    reason = "NoClusterFit"


class Unschedulable(Unassignable):
    reason = "Unschedulable"


class LabelsNotKnown(Unassignable):
    """The answer depends on labels that the input does not have: those of the workloads `whose`."""

    reason = "LabelsNotKnown"

    def __init__(self, message: str, whose: tuple[WorkloadKey, ...] = ()) -> None:
        super().__init__(message)
        self.whose = whose
