"""
Targets sorted into districts: those that share one are the same in every respect that was asked about.

Targets have seats, district after district, so that the targets of a district are a slice. Knows nothing of rules.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.model.reasons import Scores, Slots


class NodePartitions:
    """`first[d]` is the first seat of district d and `first[d + 1]` the one after its last. No district is empty."""

    __slots__ = ("_of_slot", "_seat_of", "_slot_at", "each", "first", "n")

    def __init__(self, respects: Sequence[NDArray[np.int64]], capacity: int, *, each: bool = False) -> None:
        """Each of `respects` has one number per slot; `each` makes every slot a district of its own."""
        self.each = each
        self._of_slot: NDArray[np.intp] | None = None
        self._slot_at: Slots | None = None  # None: seats are slots
        self._seat_of: Slots | None = None
        if each:
            self.first: Slots = np.arange(capacity + 1)
        else:
            ids = _numbered(respects, capacity)
            sizes = np.bincount(ids)
            self.first = np.concatenate((np.zeros(1, np.intp), np.cumsum(sizes)))
            if len(sizes) > 1:
                self._of_slot = ids
                self._slot_at = ids.astype(np.min_scalar_type(len(sizes))).argsort(kind="stable")
                self._seat_of = np.empty(capacity, np.intp)
                self._seat_of[self._slot_at] = np.arange(capacity)
        self.n = len(self.first) - 1

    def at(self, slot: int) -> tuple[int, int]:
        """The district and the seat of a target."""
        if self.each:
            return slot, slot
        if self._of_slot is None or self._seat_of is None:
            return 0, slot
        return int(self._of_slot[slot]), int(self._seat_of[slot])

    def seated(self, by_slot: Scores) -> Scores:
        """Values by slot put in the order of seats."""
        return by_slot if self._slot_at is None else by_slot.take(self._slot_at)

    def representatives(self) -> Slots:
        """One slot of each district."""
        seats = self.first[:-1]
        return seats if self._slot_at is None else self._slot_at[seats]

    def highest(self, seated: Scores, partition: int) -> int:
        """The highest value in a district."""
        return int(seated[self.first[partition] : self.first[partition + 1]].max())

    def highest_of_each(self, seated: Scores) -> Scores:
        return seated if self.each else np.maximum.reduceat(seated, self.first[:-1])

    def slot_of_highest(self, seated: Scores, partition: int) -> int:
        if self.each:
            return partition
        start = int(self.first[partition])
        seat = start + int(seated[start : self.first[partition + 1]].argmax())
        return seat if self._slot_at is None else int(self._slot_at[seat])


def _numbered(respects: Sequence[NDArray[np.int64]], capacity: int) -> NDArray[np.intp]:
    """For each slot the number of its combination, counted from 0 without gaps."""
    ids: NDArray[np.intp] = np.zeros(capacity, np.intp)
    for values in respects:
        lowest, highest = int(values.min()), int(values.max())
        # Where they are too far apart to leave room for all between them, they are numbered by sorting.
        near = highest - lowest < 4 * capacity
        numbers = values - lowest if near else np.unique(values, return_inverse=True)[1]
        if lowest != highest:
            ids = _without_gaps(ids * (int(numbers.max()) + 1) + numbers)
    return ids


def _without_gaps(ids: NDArray[np.intp]) -> NDArray[np.intp]:
    if int(ids.max()) > 16 * len(ids):
        return np.unique(ids, return_inverse=True)[1].astype(np.intp)
    taken = np.bincount(ids) > 0
    numbers: NDArray[np.intp] = taken.cumsum() - 1
    return numbers.take(ids)
