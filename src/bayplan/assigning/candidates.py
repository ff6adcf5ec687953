"""
The feasible clusters in the order in which they are preferred. Knows nothing of constraints or division.

Kept as arrays: most decisions look at a few of a thousand candidates, so single ones are made when asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.assigning import estimating
from bayplan.filtering import Verdicts
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import At
from bayplan.model.decisions import Scores, Slots
from bayplan.model.placements import ClusterAffinity
from bayplan.model.workloads import Workload
from bayplan.rules.cluster_affinity import tier_by_target
from bayplan.rules.rule import Rule

ALREADY_THERE = 100
NAME_BITS = 20  # room for the order of names below an amount


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """`allocatable` is the room beside everything; `available` includes what the workload has there already."""

    slot: int
    name: str
    region: str
    tier: int
    score: int
    allocatable: int
    available: int


class Candidates(Sequence[Candidate]):
    """Candidates in order: earlier tier, higher score, more room, name. All arrays have one entry per candidate."""

    def __init__(
        self, index: PlacementIndex, slots: Slots, tiers: NDArray[np.int64], scores: Scores, room: _Room
    ) -> None:
        self._index = index
        self._ordered = False
        self.slots = slots
        self.tiers = tiers
        self.scores = scores
        self.allocatable = room.allocatable
        self.available = room.available

    def __len__(self) -> int:
        return len(self.slots)

    @overload
    def __getitem__(self, place: int) -> Candidate: ...
    @overload
    def __getitem__(self, place: slice) -> list[Candidate]: ...
    def __getitem__(self, place: int | slice) -> Candidate | list[Candidate]:
        if isinstance(place, slice):
            if place == slice(None, 1) and not self._ordered and len(self):
                return [self._made(self._first())]
            self.in_order()
            return [self._made(i) for i in range(*place.indices(len(self)))]
        self.in_order()
        return self._made(range(len(self))[place])

    def __iter__(self) -> Iterator[Candidate]:
        self.in_order()
        return (self._made(i) for i in range(len(self)))

    def in_order(self) -> Candidates:
        """The same, its arrays sorted."""
        if not self._ordered:
            order = self._order()
            self.slots, self.tiers, self.scores = self.slots[order], self.tiers[order], self.scores[order]
            self.allocatable, self.available = self.allocatable[order], self.available[order]
            self._ordered = True
        return self

    def by_tier(self) -> Iterator[Candidates]:
        """The candidates of each tier, in order of tiers."""
        self.in_order()
        for tier in np.unique(self.tiers).tolist():
            here = self.tiers == tier
            room = _Room(self.allocatable[here], self.available[here])
            only = Candidates(self._index, self.slots[here], self.tiers[here], self.scores[here], room)
            only._ordered = True
            yield only

    @property
    def name_order(self) -> NDArray[np.int64]:
        """The place of each candidate's name among all names."""
        return self._index.slots.name_order[self.slots]

    def name(self, i: int) -> str:
        return self._index.slots.at(int(self.slots[i])).name

    def _keys(self) -> NDArray[np.int64]:
        """Smaller for what is preferred, if only room and name matter."""
        return self.name_order - (self.available << NAME_BITS)

    def _first(self) -> int:
        if self._only_room_matters():
            return int(self._keys().argmin())
        return int(self._order()[0])

    def _order(self) -> NDArray[np.intp]:
        if self._only_room_matters():
            return self._keys().argsort()
        return np.lexsort((self.name_order, -self.available, -self.scores, self.tiers))

    def _only_room_matters(self) -> bool:
        return not self.scores.any() and bool((self.tiers == self.tiers[:1]).all())

    def _made(self, i: int) -> Candidate:
        target = self._index.slots.at(int(self.slots[i]))
        return Candidate(
            int(self.slots[i]),
            target.name,
            target.cluster.region if target.cluster else "",
            int(self.tiers[i]),
            int(self.scores[i]),
            int(self.allocatable[i]),
            int(self.available[i]),
        )


class _Room(msgspec.Struct, frozen=True):
    allocatable: NDArray[np.int64]
    available: NDArray[np.int64]


class _Tiers(Rule):
    """The tier of each cluster, shaped as a rule that only scores, because the evaluation cache keeps those true."""

    name = "Tiers"
    id = "tiers"
    follows_workloads = False

    def score(self, plan: tuple[ClusterAffinity, ...], index: PlacementIndex, at: At) -> Scores:
        return tier_by_target(plan, index)[at]


TIERS = _Tiers()


def ranked(workload: Workload, verdicts: Verdicts, index: PlacementIndex) -> Candidates:
    """The feasible clusters as candidates for the workload."""
    binding = workload.binding
    assert binding is not None
    slots = np.flatnonzero(verdicts.feasible)
    tiers = index.evaluations.get(TIERS, binding.group.tiers, index).raw
    assert tiers is not None
    allocatable = estimating.allocatable(workload, index)[slots]
    wishes = _wishes(verdicts)
    scores = np.zeros(len(slots), np.int64) if wishes is None else wishes[slots]
    available = allocatable
    if binding.previous:
        available, scores = allocatable.copy(), scores.copy()
        for name, replicas in binding.assigned.items():
            here = slots == index.slots.by_name.get(name, -1)
            available[here] += replicas
            scores[here] += ALREADY_THERE
    return Candidates(index, slots, tiers[slots], scores, _Room(allocatable, available))


def _wishes(verdicts: Verdicts) -> Scores | None:
    """What rules give each cluster, added up; None if none gives anything."""
    given = [one.evaluation.raw for one in verdicts.judged if one.evaluation.raw is not None]
    return sum(given[1:], start=given[0]) if given else None
