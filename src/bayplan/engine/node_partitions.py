"""
Targets grouped into partitions: targets of one partition are equal in every attribute that was given.

Targets have positions, partition after partition, so that the targets of a partition are a slice. Knows nothing of
rules.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.model.reasons import Scores, Slots


class NodePartitions:
    """`first[p]` is the first position of partition p, `first[p + 1]` the one after its last. No partition is empty."""

    __slots__ = ("_of_slot", "_position_of", "_slot_at", "each", "first", "n")

    def __init__(self, attributes: Sequence[NDArray[np.int64]], capacity: int, *, each: bool = False) -> None:
        """Each of `attributes` has one number per slot; `each` makes every slot a partition of its own."""
        self.each = each
        self._of_slot: NDArray[np.intp] | None = None
        self._slot_at: Slots | None = None  # None: positions are slots
        self._position_of: Slots | None = None
        if each:
            self.first: Slots = np.arange(capacity + 1)
        else:
            ids = _combination_ids(attributes, capacity)
            sizes = np.bincount(ids)
            self.first = np.concatenate((np.zeros(1, np.intp), np.cumsum(sizes)))
            if len(sizes) > 1:
                self._of_slot = ids
                self._slot_at = ids.astype(np.min_scalar_type(len(sizes))).argsort(kind="stable")
                self._position_of = np.empty(capacity, np.intp)
                self._position_of[self._slot_at] = np.arange(capacity)
        self.n = len(self.first) - 1

    def at(self, slot: int) -> tuple[int, int]:
        """The partition and the position of a target."""
        if self.each:
            return slot, slot
        if self._of_slot is None or self._position_of is None:
            return 0, slot
        return int(self._of_slot[slot]), int(self._position_of[slot])

    def in_position_order(self, by_slot: Scores) -> Scores:
        return by_slot if self._slot_at is None else by_slot.take(self._slot_at)

    def representatives(self) -> Slots:
        """One slot of each partition."""
        positions = self.first[:-1]
        return positions if self._slot_at is None else self._slot_at[positions]

    def highest(self, by_position: Scores, partition: int) -> int:
        """The highest value in a partition."""
        return int(by_position[self.first[partition] : self.first[partition + 1]].max())

    def highest_of_each(self, by_position: Scores) -> Scores:
        return by_position if self.each else np.maximum.reduceat(by_position, self.first[:-1])

    def slot_of_highest(self, by_position: Scores, partition: int) -> int:
        if self.each:
            return partition
        start = int(self.first[partition])
        position = start + int(by_position[start : self.first[partition + 1]].argmax())
        return position if self._slot_at is None else int(self._slot_at[position])


def _combination_ids(attributes: Sequence[NDArray[np.int64]], capacity: int) -> NDArray[np.intp]:
    """For each slot the number of its combination of attributes, counted from 0 without gaps."""
    ids: NDArray[np.intp] = np.zeros(capacity, np.intp)
    for values in attributes:
        lowest, highest = int(values.min()), int(values.max())
        # Values too far apart for a table of everything between them are numbered by sorting.
        is_narrow = highest - lowest < 4 * capacity
        numbers = values - lowest if is_narrow else np.unique(values, return_inverse=True)[1]
        if lowest != highest:
            ids = _without_gaps(ids * (int(numbers.max()) + 1) + numbers)
    return ids


def _without_gaps(ids: NDArray[np.intp]) -> NDArray[np.intp]:
    if int(ids.max()) > 16 * len(ids):
        return np.unique(ids, return_inverse=True)[1].astype(np.intp)
    taken = np.bincount(ids) > 0
    numbers: NDArray[np.intp] = taken.cumsum() - 1
    return numbers.take(ids)
