"""
The ranking of all targets for one kind of workload, corrected where changes touched it.

A kind is a set of evaluations: workloads that are equal in every rule's part. Totals depend on the lowest and highest
raw score among the feasible targets; as long as those stay, a placement changes the totals of the targets it touched
and no others. The result is the same as `filtering.run` and `scoring.run` give, which the tests compare.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan import filtering, scoring
from bayplan.filtering import Judged, Verdicts
from bayplan.indexing.evaluations import Evaluation
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.decisions import Mask
from bayplan.rules.rule import Scaling

KEPT = 512  # rankings kept for each index; the least recently used go first
MANY = 64  # touched targets from which on a fresh look is cheaper
NOWHERE = np.iinfo(np.int64).min
TIE_BITS = 24  # room for the order of equals below the total


class _Scored:
    """One rule's share of the totals: its weight, and the extremes that its scale hangs on."""

    __slots__ = ("evaluation", "highest", "judged", "lowest", "n_highest", "n_lowest", "scales", "weight")

    def __init__(self, judged: Judged, feasible: Mask) -> None:
        self.judged = judged
        self.evaluation = judged.evaluation
        self.weight = judged.rule.weight
        self.scales = judged.rule.scaling is Scaling.BY_EXTREMES
        self.lowest = self.highest = self.n_lowest = self.n_highest = 0
        if self.scales:
            self.measure(feasible)

    def measure(self, feasible: Mask) -> bool:
        """Look for the extremes; true if they are not what they were."""
        raw = self.evaluation.raw
        assert raw is not None
        values = raw[feasible]
        before = (self.lowest, self.highest)
        if len(values):
            self.lowest, self.highest = int(values.min()), int(values.max())
            self.n_lowest = int(np.count_nonzero(values == self.lowest))
            self.n_highest = int(np.count_nonzero(values == self.highest))
        return before != (self.lowest, self.highest)

    def leave(self, value: int) -> None:
        """A feasible target with this raw score is no longer so."""
        self.n_lowest -= value == self.lowest
        self.n_highest -= value == self.highest

    def enter(self, value: int) -> bool:
        """A target with this raw score is feasible now; true if it lies beyond the extremes."""
        self.n_lowest += value == self.lowest
        self.n_highest += value == self.highest
        return not self.lowest <= value <= self.highest

    def at(self, slot: int) -> int:
        raw = int(self.evaluation.raw[slot])  # type: ignore[index]
        scaled = self.judged.rule.scaled(raw, self.lowest, self.highest) if self.scales else raw
        return self.weight * int(scaled)


class KindRanking:
    """`keyed` orders the targets: by total, then by rank, `NOWHERE` for those that are not feasible."""

    def __init__(self, verdicts: Verdicts, index: PlacementIndex) -> None:
        self.judged = verdicts.judged
        self.evaluations = [one.evaluation for one in verdicts.judged]
        self.filters = [e for one, e in zip(verdicts.judged, self.evaluations, strict=True) if one.rule.filters]
        self.rebuild(verdicts.feasible, index)

    def rebuild(self, feasible: Mask, index: PlacementIndex) -> None:
        """Everything anew from the evaluations as they are."""
        self.seen = [evaluation.version for evaluation in self.evaluations]
        self.targets_generation = index.targets_generation
        self.feasible = feasible.copy()
        self.order = index.slots.order
        scored = [one for one in self.judged if one.evaluation.raw is not None and one.rule.weight]
        self.scored = [_Scored(one, feasible) for one in scored]
        # What each scored rule last gave: raw scores are corrected in place, so the old ones are kept here.
        self.raws = [one.evaluation.raw.copy() for one in self.scored if one.evaluation.raw is not None]
        self._total(index)

    def _total(self, index: PlacementIndex) -> None:
        self.keyed = np.full(index.slots.capacity, NOWHERE, np.int64)
        if self.feasible.any():
            totals = scoring.run(Verdicts(self.judged, self.feasible), index).totals
            self.keyed[self.feasible] = ((totals << TIE_BITS) - self.order)[self.feasible]

    def catch_up(self, index: PlacementIndex) -> None:
        """Correct what changed since the last look."""
        touched: set[int] = set()
        for evaluation, version in zip(self.evaluations, self.seen, strict=True):
            if evaluation.version != version:
                slots = evaluation.since(version)
                if slots is None:
                    self.rebuild(self._feasible(index), index)
                    return
                touched |= slots
        if self.targets_generation != index.targets_generation or len(touched) > MANY:
            self.rebuild(self._feasible(index), index)
        elif touched:
            self._correct(touched, index)

    def best(self) -> tuple[int, int]:
        """The slot of the best target and its total; (-1, 0) if none is feasible."""
        slot = int(self.keyed.argmax())
        keyed = int(self.keyed[slot])
        return (-1, 0) if keyed == NOWHERE else (slot, (keyed + int(self.order[slot])) >> TIE_BITS)

    def _feasible(self, index: PlacementIndex) -> Mask:
        feasible = index.slots.alive.copy()
        for evaluation in self.filters:
            if evaluation.codes is not None:
                feasible &= evaluation.codes == 0
        return feasible

    def _correct(self, touched: set[int], index: PlacementIndex) -> None:
        self.seen = [evaluation.version for evaluation in self.evaluations]
        beyond = False
        for slot in touched:
            was, now = bool(self.feasible[slot]), self._fits(slot, index)
            self.feasible[slot] = now
            for one, before in zip(self.scored, self.raws, strict=True):
                beyond |= _moved(one, before, slot, was=was, now=now)
        if beyond or any(one.scales and not (one.n_lowest and one.n_highest) for one in self.scored):
            changed = [one.measure(self.feasible) for one in self.scored if one.scales]
            if any(changed):
                self._total(index)
                return
        for slot in touched:
            total = sum(one.at(slot) for one in self.scored)
            self.keyed[slot] = (total << TIE_BITS) - int(self.order[slot]) if self.feasible[slot] else NOWHERE

    def _fits(self, slot: int, index: PlacementIndex) -> bool:
        if not index.slots.alive[slot]:
            return False
        return all(evaluation.codes is None or not evaluation.codes[slot] for evaluation in self.filters)


def _moved(one: _Scored, before: NDArray[np.int64], slot: int, *, was: bool, now: bool) -> bool:
    """Let a target's raw score leave and enter the extremes; true if it now lies beyond them."""
    raw = int(one.evaluation.raw[slot])  # type: ignore[index]
    beyond = False
    if one.scales:
        if was:
            one.leave(int(before[slot]))
        if now:
            beyond = one.enter(raw)
    before[slot] = raw
    return beyond


def of_kind(judged: Sequence[Judged], index: PlacementIndex) -> KindRanking | None:
    """The ranking for these evaluations, up to date; None where only a fresh look will do."""
    if any(one.rule.scaling is Scaling.BY_ALL and one.evaluation.raw is not None for one in judged):
        return None
    kept: OrderedDict[tuple[int, ...], KindRanking] = index.rankings
    key = tuple([id(one.evaluation) for one in judged])
    found = kept.get(key)
    if found is None or not _same(found.evaluations, judged):
        found = kept[key] = KindRanking(filtering.verdicts_of(judged, index), index)
        while len(kept) > KEPT:
            kept.popitem(last=False)
        return found
    kept.move_to_end(key)
    found.catch_up(index)
    return found


def _same(evaluations: list[Evaluation], judged: Sequence[Judged]) -> bool:
    """Whether ids still mean the same objects: an evaluation that was dropped may have left its id to another."""
    return all(kept is one.evaluation for kept, one in zip(evaluations, judged, strict=True))
