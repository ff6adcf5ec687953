"""One rule's score of districts, brought to its scale. Knows nothing of other rules."""

from __future__ import annotations

from collections import Counter as Tally

from bayplan.model.decisions import Mask, Scores, Slots
from bayplan.rules.rule import Rule

FEW = 16  # different raw scores up to which each is looked at when the scale moves


class Grade:
    """
    The scale hangs on the lowest and the highest raw score of the districts in the running.

    How many of them have which is counted from the first correction on: as long as the extremes stay, a district that
    changes is the only one to do so.
    """

    __slots__ = (
        "_before",
        "_first_running",
        "_highest",
        "_lowest",
        "_moved",
        "_n_by_value",
        "_places",
        "_raw",
        "_rule",
    )

    def __init__(self, rule: Rule, raw: Scores, places: Slots) -> None:
        """`places` are where `raw` has the scores of the districts."""
        self._rule = rule
        self._raw = raw
        self._places = places
        self._lowest = self._highest = 0
        self._moved = False

    def look(self, running: Mask) -> Scores:
        """Take over all raw scores as they are; returns what the districts get, weighted."""
        self._before = self._raw.take(self._places)
        self._first_running: Mask | None = running
        self._n_by_value: dict[int, int] = {}
        values = self._before[running]
        if len(values):
            self._lowest, self._highest = int(values.min()), int(values.max())
        weighted: Scores = self._rule.scaled(self._before, self._lowest, self._highest) * self._rule.weight
        return weighted

    def move(self, district: int, *, was: bool, now: bool) -> None:
        """Take over one district's raw score; it `was` or was not in the running, and is or is not `now`."""
        tally = self._n_by_value
        if self._first_running is not None:
            tally.update(Tally(self._before[self._first_running].tolist()))
            self._first_running = None
        before, raw = int(self._before[district]), int(self._raw[self._places[district]])
        if was:
            tally[before] -= 1
            if not tally[before]:
                del tally[before]
                self._moved |= before in (self._lowest, self._highest)
        if now:
            tally[raw] = tally.get(raw, 0) + 1
            self._moved |= not self._lowest <= raw <= self._highest
        self._before[district] = raw

    def rescale(self) -> bool:
        """Look for the extremes, if they may have moved; true if that moves districts beside those that moved."""
        if not self._moved or not self._n_by_value:
            return False
        self._moved = False
        lowest, highest = self._lowest, self._highest
        self._lowest, self._highest = min(self._n_by_value), max(self._n_by_value)
        if len(self._n_by_value) > FEW:
            return (lowest, highest) != (self._lowest, self._highest)
        # What lies beyond the old scale has only just come there.
        stayed = [value for value in self._n_by_value if lowest <= value <= highest]
        scaled = self._rule.scaled
        return any(scaled(v, lowest, highest) != scaled(v, self._lowest, self._highest) for v in stayed)

    def weighted(self, district: int) -> int:
        """What one district gets."""
        scaled: int = self._rule.scaled(int(self._before[district]), self._lowest, self._highest)
        return scaled * self._rule.weight
