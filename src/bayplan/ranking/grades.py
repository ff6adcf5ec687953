"""One rule's score of districts, brought to its scale. Knows nothing of other rules."""

from __future__ import annotations

from collections import Counter as Tally

import numpy as np

from bayplan.model.decisions import Mask, Scores, Slots
from bayplan.rules.rule import Rule

FEW = 16  # different raw scores up to which each is looked at when the scale moves


class Grade:
    """
    The scale hangs on the lowest and the highest raw score of the districts in the running.

    How many of them have which is counted from the first correction on: as long as the extremes stay, a district that
    changes is the only one to do so.
    """

    def __init__(self, rule: Rule, raw: Scores, places: Slots) -> None:
        """`places` are where `raw` has the scores of the districts."""
        self._rule = rule
        self._raw = raw
        self._raw_at = raw.data
        self._places = places
        self._places_at = places.data
        self._lowest = self._highest = 0
        self._moved = False

    def look(self, running: Mask) -> Scores:
        """Take over all raw scores as they are; returns what the districts get, weighted."""
        self._before = self._raw.take(self._places)
        self._before_at = self._before.data
        self._first_running: Mask | None = running
        self._n_by_value: dict[int, int] = {}
        values = self._before[running]
        self._moved = not len(values)  # with nobody in the running there is no scale: it comes with the next one
        if len(values):
            self._lowest, self._highest = int(values.min()), int(values.max())
        return self._weighted(self._before)

    def _weighted(self, raw: Scores) -> Scores:
        """What raw scores are worth; those beyond the scale belong to nobody in the running, and mean nothing."""
        lowest, highest = self._lowest, self._highest
        weighted: Scores
        if highest - lowest > len(raw):
            weighted = self._rule.scaled(raw, lowest, highest) * self._rule.weight
            return weighted
        # There are not so many: looked up in a table, as arithmetic is dearer.
        weighted = self._rule.scaled(np.arange(lowest, highest + 1), lowest, highest) * self._rule.weight
        return weighted.take(raw - lowest, mode="clip")

    def move(self, district: int, *, was: bool, now: bool) -> None:
        """Take over one district's raw score; it `was` or was not in the running, and is or is not `now`."""
        tally = self._n_by_value
        if self._first_running is not None:
            tally.update(Tally(self._before[self._first_running].tolist()))
            self._first_running = None
        before, raw = self._before_at[district], self._raw_at[self._places_at[district]]
        if was:
            tally[before] -= 1
            if not tally[before]:
                del tally[before]
                self._moved |= before in (self._lowest, self._highest)
        if now:
            tally[raw] = tally.get(raw, 0) + 1
            self._moved |= not self._lowest <= raw <= self._highest
        self._before_at[district] = raw

    def rescale(self) -> list[tuple[int, int]] | None:
        """
        Look for the extremes, if they may have moved.

        Returns the raw scores that are worth more or less on the new scale, and how much; None if these are many.
        """
        if not self._moved or not self._n_by_value:
            return []
        self._moved = False
        lowest, highest = self._lowest, self._highest
        self._lowest, self._highest = min(self._n_by_value), max(self._n_by_value)
        if len(self._n_by_value) > FEW:
            return None if (lowest, highest) != (self._lowest, self._highest) else []
        scaled, weight, shifts = self._rule.scaled, self._rule.weight, []
        for value in self._n_by_value:
            # What lies beyond the old scale has only just come there.
            if lowest <= value <= highest:
                shift = scaled(value, self._lowest, self._highest) - scaled(value, lowest, highest)
                if shift:
                    shifts.append((value, shift * weight))
        return shifts

    def having(self, raw: int) -> Mask:
        """The districts of this raw score."""
        having: Mask = self._before == raw
        return having

    def weighted(self, district: int) -> int:
        """What one district gets."""
        scaled: int = self._rule.scaled(self._before_at[district], self._lowest, self._highest)
        return scaled * self._rule.weight
