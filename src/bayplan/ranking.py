"""
The ranking of all targets for one kind of workload, corrected where changes touched it.

A kind is a set of evaluations: workloads that are equal in every rule's part. Totals depend on the lowest and highest
raw score among the feasible targets; as long as those stay, a placement changes the totals of the targets it touched
and no others. The result is the same as `filtering.run` and `scoring.run` give, which the tests compare.
"""

from __future__ import annotations

import numpy as np

from bayplan.filtering import Judged, Kind
from bayplan.indexing.evaluations import Evaluation
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.decisions import Mask, Scores
from bayplan.rules.rule import Scaling

MANY = 64  # touched targets from which on a fresh look is cheaper
NOWHERE = np.iinfo(np.int64).min
TIE_BITS = 24  # room for the order of equals below the total


class _Scored:
    """One rule's share of the totals, and the extremes that its scale hangs on."""

    __slots__ = ("_before", "evaluation", "highest", "lowest", "n_highest", "n_lowest", "rule", "scales", "weighted")

    def __init__(self, judged: Judged, feasible: Mask) -> None:
        self.rule = judged.rule
        self.evaluation = judged.evaluation
        self.scales = judged.rule.scaling is Scaling.BY_EXTREMES
        self.lowest = self.highest = self.n_lowest = self.n_highest = 0
        self.look_again(feasible)

    @property
    def raw(self) -> Scores:
        raw = self.evaluation.raw
        assert raw is not None
        return raw

    def look_again(self, feasible: Mask) -> None:
        """Take over all raw scores as they are."""
        # Raw scores are corrected in place, so those that the extremes were found among are kept here.
        self._before = self.raw.copy() if self.scales else self.raw
        self.measure(feasible)
        self.weigh()

    def measure(self, feasible: Mask) -> bool:
        """Look for the extremes; true if they are not what they were."""
        before = (self.lowest, self.highest)
        values = self.raw[feasible] if self.scales else self.raw[:0]
        if len(values):
            self.lowest, self.highest = int(values.min()), int(values.max())
            self.n_lowest = int(np.count_nonzero(values == self.lowest))
            self.n_highest = int(np.count_nonzero(values == self.highest))
        return before != (self.lowest, self.highest)

    def weigh(self) -> None:
        scaled = self.rule.scaled(self.raw, self.lowest, self.highest) if self.scales else self.raw
        self.weighted: Scores = scaled * self.rule.weight

    def move(self, slot: int, *, was: bool, now: bool) -> bool:
        """Let one target's raw score leave and enter the extremes; true if they may be others now."""
        if not self.scales:
            return False
        raw, beyond = int(self.raw[slot]), False
        if was:
            before = int(self._before[slot])
            self.n_lowest -= before == self.lowest
            self.n_highest -= before == self.highest
        if now:
            self.n_lowest += raw == self.lowest
            self.n_highest += raw == self.highest
            beyond = not self.lowest <= raw <= self.highest
        self._before[slot] = raw
        return beyond or not (self.n_lowest and self.n_highest)

    def weigh_one(self, slot: int) -> int:
        raw = int(self.raw[slot])
        scaled = int(self.rule.scaled(raw, self.lowest, self.highest)) if self.scales else raw
        weighted = scaled * self.rule.weight
        self.weighted[slot] = weighted
        return weighted


class KindRanking:
    """`keyed` orders the targets: by total, then by rank, `NOWHERE` for those that are not feasible."""

    def __init__(self, kind: Kind, index: PlacementIndex) -> None:
        self.judged = kind.judged
        self.evaluations = [one.evaluation for one in kind.judged]
        self.filters = [one.evaluation for one in kind.judged if one.rule.filters]
        self._begin(index)

    def _begin(self, index: PlacementIndex) -> None:
        """Everything from the evaluations as they are."""
        self.feasible = self._feasible(index)
        self.order = index.slots.order
        self.seen = [evaluation.version for evaluation in self.evaluations]
        self.speaking = [evaluation.raw is not None for evaluation in self.evaluations]
        scored = [one for one in self.judged if one.evaluation.raw is not None and one.rule.weight]
        self.scored = [_Scored(one, self.feasible) for one in scored]
        self._total()

    def catch_up(self, index: PlacementIndex) -> None:
        """Correct what changed since the last look."""
        anew, touched = [], set[int]()
        for evaluation, version in zip(self.evaluations, self.seen, strict=True):
            if evaluation.version != version:
                slots = evaluation.since(version)
                if slots is None:
                    anew.append(evaluation)
                else:
                    touched |= slots
        if not anew and not touched:
            return
        if anew and self.speaking != [evaluation.raw is not None for evaluation in self.evaluations]:
            self._begin(index)  # a rule has begun to score, or ceased to
            return
        self.seen = [evaluation.version for evaluation in self.evaluations]
        if anew or len(touched) > MANY:
            self._look_again(anew, touched, index)
        else:
            self._correct(touched, index)

    def best(self) -> tuple[int, int]:
        """The slot of the best target and its total; (-1, 0) if none is feasible."""
        slot = int(self.keyed.argmax())
        keyed = int(self.keyed[slot])
        return (-1, 0) if keyed == NOWHERE else (slot, (keyed + int(self.order[slot])) >> TIE_BITS)

    def _look_again(self, anew: list[Evaluation], touched: set[int], index: PlacementIndex) -> None:
        """Many targets changed for some rules: all of their scores are read again, those of others where touched."""
        feasible = self._feasible(index)
        moved = not np.array_equal(feasible, self.feasible)
        many = len(touched) > MANY
        for one in self.scored:
            if many or one.evaluation in anew:
                one.look_again(feasible)
                continue
            for slot in touched:
                one.move(slot, was=bool(self.feasible[slot]), now=bool(feasible[slot]))
            if one.scales and (moved or touched) and one.measure(feasible):
                one.weigh()
            else:
                for slot in touched:
                    one.weigh_one(slot)
        self.feasible = feasible
        self._total()

    def _correct(self, touched: set[int], index: PlacementIndex) -> None:
        """Few targets changed: unless that moves the extremes, nothing else does."""
        shifted = set[int]()
        for slot in touched:
            was, now = bool(self.feasible[slot]), self._fits(slot, index)
            self.feasible[slot] = now
            shifted.update([i for i, one in enumerate(self.scored) if one.move(slot, was=was, now=now)])
        shifted = {i for i in shifted if self.scored[i].measure(self.feasible)}
        for i in shifted:
            self.scored[i].weigh()
        for slot in touched:
            total = sum([one.weigh_one(slot) for one in self.scored])
            self.keyed[slot] = (total << TIE_BITS) - int(self.order[slot]) if self.feasible[slot] else NOWHERE
        if shifted:
            self._total()

    def _total(self) -> None:
        totals = np.zeros(len(self.feasible), np.int64)
        for one in self.scored:
            totals += one.weighted
        totals <<= TIE_BITS
        totals -= self.order
        totals[~self.feasible] = NOWHERE
        self.keyed = totals

    def _feasible(self, index: PlacementIndex) -> Mask:
        feasible = index.slots.alive.copy()
        for evaluation in self.filters:
            if evaluation.codes is not None:
                feasible &= evaluation.codes == 0
        return feasible

    def _fits(self, slot: int, index: PlacementIndex) -> bool:
        if not index.slots.alive[slot]:
            return False
        return not any(evaluation.codes is not None and evaluation.codes[slot] for evaluation in self.filters)


def of_kind(kind: Kind, index: PlacementIndex) -> KindRanking | None:
    """The ranking of a kind, up to date; None where only a fresh look will do."""
    ranking: KindRanking | None = kind.ranking
    if ranking is not None:
        ranking.catch_up(index)
    elif not any(one.rule.scaling is Scaling.BY_ALL and one.evaluation.raw is not None for one in kind.judged):
        ranking = kind.ranking = KindRanking(kind, index)
    return ranking
