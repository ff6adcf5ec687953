"""
Targets grouped into partitions and ordered within them.

Targets of one partition are equal in every attribute that was given. They have positions, partition after partition, so
that the targets of a partition are a slice. Knows no rule by name.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.engine.evaluations import RuleResult
from bayplan.model.reasons import Codes, Mask, Scores, Slots
from bayplan.rules.rule import Scaling

INFEASIBLE = int(np.iinfo(np.int64).min)  # the key of a target that is not feasible
TIE_BITS = 24  # the low bits of a key, which hold the target's position in the order of ranks


class NodePartitions:
    """`first[p]` is the first position of partition p, `first[p + 1]` the one after its last. No partition is empty."""

    __slots__ = ("_first_at", "_of_slot_at", "_position_at", "_slot_at", "each", "first", "n")

    def __init__(self, attributes: Sequence[NDArray[np.int64]], capacity: int, *, each: bool = False) -> None:
        """Each of `attributes` has one number per slot; `each` makes every slot a partition of its own."""
        self.each = each
        self._slot_at: Slots | None = None  # None: positions are slots
        self._of_slot_at: memoryview[int] | None = None
        self._position_at: memoryview[int] | None = None
        if each:
            self.first: Slots = np.arange(capacity + 1)
        else:
            ids = _combination_ids(attributes, capacity)
            sizes = np.bincount(ids)
            self.first = np.concatenate((np.zeros(1, np.intp), np.cumsum(sizes)))
            if len(sizes) > 1:
                self._slot_at = ids.astype(np.min_scalar_type(len(sizes))).argsort(kind="stable")
                positions: Slots = np.empty(capacity, np.intp)
                positions[self._slot_at] = np.arange(capacity)
                self._of_slot_at, self._position_at = ids.data, positions.data
        self._first_at = self.first.data
        self.n = len(self.first) - 1

    def at(self, slot: int) -> tuple[int, int]:
        """The partition and the position of a target."""
        if self.each:
            return slot, slot
        if self._of_slot_at is None or self._position_at is None:
            return 0, slot
        return self._of_slot_at[slot], self._position_at[slot]

    def slot_at(self, position: int) -> int:
        return position if self._slot_at is None else int(self._slot_at[position])

    def in_position_order(self, by_slot: Scores) -> Scores:
        return by_slot if self._slot_at is None else by_slot.take(self._slot_at)

    def representatives(self) -> Slots:
        """One slot of each partition."""
        positions = self.first[:-1]
        return positions if self._slot_at is None else self._slot_at[positions]

    def highest_of_each(self, by_position: Scores) -> Scores:
        return by_position if self.each else np.maximum.reduceat(by_position, self.first[:-1])

    def position_of_highest(self, by_position: Scores, partition: int) -> int:
        if self.n == 1:
            return int(by_position.argmax())
        start = self._first_at[partition]
        return start + int(by_position[start : self._first_at[partition + 1]].argmax())

    def slot_with(self, by_position: Scores, partition: int, value: int) -> int:
        """The first slot of a partition that has this value."""
        start = self._first_at[partition]
        return self.slot_at(start + int((by_position[start : self._first_at[partition + 1]] == value).argmax()))


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


class NodeKeys:
    """
    The targets in the order of their keys, partition by partition.

    A key is the target's total over the rules that evaluate each target by itself and do not scale their scores, and in
    the low bits its position in the order of ranks. `best` has the best key of each partition, or a higher one until
    `settle` is called: most partitions change several times before anyone asks which of their targets is the best.
    `best_at` is the same memory, through which single integers are read faster.
    """

    def __init__(self, order_keys: Scores, results: Sequence[RuleResult], partitions: NodePartitions) -> None:
        """`order_keys` are the keys by slot that the template gives; `results` are those of further rules."""
        self._partitions = partitions
        self._order_keys = order_keys
        self._order_key_at = order_keys.data
        self._codes: list[Codes] = []
        self._scores: list[tuple[Scores, int]] = []
        for one in results:
            evaluation, rule = one.evaluation, one.rule
            if evaluation.codes_by_place is not None and rule.filters:
                self._codes.append(evaluation.codes_by_place)
            if evaluation.raw_by_place is not None and rule.weight and rule.scaling is Scaling.NONE:
                self._scores.append((evaluation.raw_by_place, rule.weight << TIE_BITS))
        self._codes_at = [codes.data for codes in self._codes]
        self._scores_at = [(raw.data, weight) for raw, weight in self._scores]
        self.rebuild()

    def rebuild(self) -> None:
        """Read all keys of the template and all results again."""
        keys: Scores = self._order_keys.copy()
        feasible: Mask = keys != INFEASIBLE
        for raw, weight in self._scores:
            keys += raw * weight
        for codes in self._codes:
            feasible &= codes == 0
        np.copyto(keys, INFEASIBLE, where=~feasible)
        self._keys = self._partitions.in_position_order(keys)
        self._key_at = self._keys.data
        self.best: Scores = self._partitions.highest_of_each(self._keys)
        self.best_at = self.best.data
        self._best_position: dict[int, int] = {}  # of partitions, as far as it is known
        self.too_high: set[int] = set()  # partitions whose best target has lost its key

    def correct(self, slot: int) -> int:
        """Compute the key of one target again; returns its partition."""
        partition, position = self._partitions.at(slot)
        now = self._order_key_at[slot]
        if now != INFEASIBLE:
            for raw, weight in self._scores_at:
                now += raw[slot] * weight
            for codes in self._codes_at:
                if codes[slot]:
                    now = INFEASIBLE
        key_at = self._key_at
        before, key_at[position] = key_at[position], now
        if self._partitions.each:  # then the best keys are the keys
            return partition
        best = self.best_at[partition]
        if now >= best:
            self.best_at[partition] = now
            self._best_position[partition] = position
            self.too_high.discard(partition)
        elif before == best:
            self.too_high.add(partition)
        if now == INFEASIBLE:
            self.settle(partition)  # that no target of a partition is feasible must be known
        return partition

    def settle(self, partition: int) -> int:
        """Find the best key of a partition unless it is known; returns by how much the one so far was too high."""
        if partition not in self.too_high:
            return 0
        self.too_high.remove(partition)
        position = self._best_position[partition] = self._partitions.position_of_highest(self._keys, partition)
        before, now = self.best_at[partition], self._key_at[position]
        self.best_at[partition] = now
        return before - now

    def best_slot(self, partition: int) -> int:
        """The slot of the target with the best key of a settled partition."""
        if self._partitions.each:
            return partition
        position = self._best_position.get(partition)
        if position is None:
            position = self._partitions.position_of_highest(self._keys, partition)
            self._best_position[partition] = position
        return self._partitions.slot_at(position)

    def at(self, slot: int) -> tuple[int, int]:
        """The partition of a target, and its key."""
        partition, position = self._partitions.at(slot)
        return partition, self._key_at[position]

    def best_except(self, partition: int, excluded: Sequence[int]) -> int:
        """The best key of a partition without some of its targets."""
        self.settle(partition)
        best = self.best_at[partition]
        if best == INFEASIBLE or best not in [self.at(slot)[1] for slot in excluded]:
            return best
        first, end = self._partitions.first[partition], self._partitions.first[partition + 1]
        keys = self._keys[first:end].copy()
        keys[[self._partitions.at(slot)[1] - first for slot in excluded]] = INFEASIBLE
        return int(keys.max())

    def slot_with(self, partition: int, key: int) -> int:
        """The slot of the target of a partition that has this key: no two feasible targets have the same."""
        return self._partitions.slot_with(self._keys, partition, key)
