"""
Targets ordered by what rules say that judge each of them by itself. Knows nothing of rules that judge many alike.

A key is the target's total over these rules, and below it, in the last bits, its place in the order of ranks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayplan.filtering import Judged
from bayplan.indexing.districts import Districts
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.decisions import Codes, Scores

NOWHERE = int(np.iinfo(np.int64).min)  # the key of a target that is not feasible
TIE_BITS = 24  # room for the order of equals below the total


class Keys:
    """`best` is the best key of each district, and so is `best_at`, by which single ones are read faster."""

    def __init__(self, judged: Sequence[Judged], districts: Districts, index: PlacementIndex) -> None:
        self._districts = districts
        self._order: Scores = index.slots.order
        self._order_at = self._order.data
        self._fixed = index.slots.alive.copy()
        codes: list[Codes] = []
        self._scores: list[tuple[Scores, int]] = []
        for one in judged:
            evaluation, rule = one.evaluation, one.rule
            if evaluation.codes_by_place is not None and rule.filters:
                if rule.follows_workloads:
                    codes.append(evaluation.codes_by_place)
                else:
                    self._fixed &= evaluation.codes_by_place == 0
            if evaluation.raw_by_place is not None and rule.weight:
                self._scores.append((evaluation.raw_by_place, rule.weight))
        self._codes = codes
        self._fixed_at = self._fixed.data
        self._codes_at = [one.data for one in codes]
        self._scores_at = [(raw.data, weight) for raw, weight in self._scores]
        self.look()

    def look(self) -> None:
        """All keys anew."""
        keyed: Scores = np.zeros(len(self._fixed), np.int64)
        for raw, weight in self._scores:
            keyed += raw if weight == 1 else raw * weight
        keyed <<= TIE_BITS
        keyed -= self._order
        feasible = self._fixed
        for codes in self._codes:
            feasible = feasible & (codes == 0)
        np.copyto(keyed, NOWHERE, where=~feasible)
        self._keyed = self._districts.seated(keyed)
        self._keyed_at = self._keyed.data
        self.best: Scores = self._districts.highest_of_each(self._keyed)
        self.best_at = self.best.data

    def move(self, slot: int) -> int:
        """One key anew; returns the district of the target."""
        district, seat = self._districts.at(slot)
        before, now, best = self._keyed_at[seat], self._key_of(slot), self.best_at[district]
        self._keyed_at[seat] = now
        if now >= best:
            self.best_at[district] = now
        elif before == best:
            self.best_at[district] = self._districts.highest(self._keyed, district)
        return district

    def best_slot(self, district: int) -> int:
        """The target with the best key."""
        return self._districts.slot_of_highest(self._keyed, district)

    def total(self, key: int, slot: int) -> int:
        """The total that a key of a target stands for, grades added to it or not."""
        return (key + self._order_at[slot]) >> TIE_BITS

    def _key_of(self, slot: int) -> int:
        if not self._fixed_at[slot]:
            return NOWHERE
        for codes in self._codes_at:
            if codes[slot]:
                return NOWHERE
        total = 0
        for raw, weight in self._scores_at:
            total += raw[slot] * weight
        return (total << TIE_BITS) - self._order_at[slot]
