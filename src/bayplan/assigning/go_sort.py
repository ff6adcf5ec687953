"""
The order that Go's `sort.Sort` gives: largest amounts first, and equal amounts where its algorithm leaves them.

karmada-scheduler compares amounts alone, so the order of equal ones follows from every swap of the algorithm, a
pattern-defeating quicksort (Go 1.19 and later: src/sort/zsortinterface.go). Up to 12 items it is an insertion sort,
which is stable. It depends on nothing but the amounts: where it shuffles, the seed is the number of items.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

MAX_INSERTION_SORT = 12
_MIN_NINTHER = 50  # items, from which on the pivot is a median of medians
_MAX_PIVOT_SWAPS = 12  # of a median of medians: every comparison found the larger one first
_MAX_REPAIRS = 5  # of neighbours in the wrong order, in a list that looks sorted
_MIN_SHIFTED = 50  # items, from which on such neighbours are repaired


class Pattern(Enum):
    """What the items that a pivot is chosen from look like."""

    UNKNOWN = 0
    ASCENDING = 1
    DESCENDING = 2


def descending_order(amounts: Sequence[int]) -> list[int]:
    """The positions of the amounts in the order of `sort.Sort` with `a[i] > a[j]` as `Less`."""
    order = sorted(range(len(amounts)), key=lambda place: -amounts[place])
    if len(amounts) <= MAX_INSERTION_SORT or len(set(amounts)) == len(amounts):
        return order
    sorting = PatternDefeatingSort(amounts)
    sorting.sort(0, len(amounts), len(amounts).bit_length())
    return sorting.places


class PatternDefeatingSort:
    """
    A list that is being sorted. Ranges are from `start` to before `stop`.

    `keys` are the negated amounts, so that what comes first is less; `places` are the positions they began at.
    """

    def __init__(self, amounts: Sequence[int]) -> None:
        self.keys = [-amount for amount in amounts]
        self.places = list(range(len(amounts)))

    def sort(self, start: int, stop: int, bad_pivots_left: int) -> None:
        """Sort a range; after too many pivots that split it badly, as a heap."""
        balanced = partitioned = True
        while stop - start > MAX_INSERTION_SORT:
            if not bad_pivots_left:
                self._heap_sort(start, stop)
                return
            if not balanced:
                self._break_patterns(start, stop)
                bad_pivots_left -= 1
            pivot, pattern = self._choose_pivot(start, stop)
            if pattern is Pattern.DESCENDING:
                self._reverse(start, stop)
                pivot, pattern = stop - 1 - (pivot - start), Pattern.ASCENDING
            if balanced and partitioned and pattern is Pattern.ASCENDING and self._repair(start, stop):
                return
            if start > 0 and not self.keys[start - 1] < self.keys[pivot]:
                start = self._partition_equal(start, stop, pivot)
                continue
            least_balanced = (stop - start) // 8
            middle, partitioned = self._partition(start, stop, pivot)
            balanced = min(middle - start, stop - middle) >= least_balanced
            if middle - start < stop - middle:
                self.sort(start, middle, bad_pivots_left)
                start = middle + 1
            else:
                self.sort(middle + 1, stop, bad_pivots_left)
                stop = middle
        self._insertion_sort(start, stop)

    def _swap(self, i: int, j: int) -> None:
        keys, places = self.keys, self.places
        keys[i], keys[j] = keys[j], keys[i]
        places[i], places[j] = places[j], places[i]

    def _reverse(self, start: int, stop: int) -> None:
        for offset in range((stop - start) // 2):
            self._swap(start + offset, stop - 1 - offset)

    def _insertion_sort(self, start: int, stop: int) -> None:
        for i in range(start + 1, stop):
            self._sink(i, start)

    def _sink(self, place: int, first: int) -> None:
        """Move one item towards `first` while it is less than the one before it."""
        keys = self.keys
        while place > first and keys[place] < keys[place - 1]:
            self._swap(place, place - 1)
            place -= 1

    # Pivots

    def _choose_pivot(self, start: int, stop: int) -> tuple[int, Pattern]:
        """The median of three items at the quarters of the range, in long ranges of three medians of three."""
        quarter = (stop - start) // 4
        swaps = 0
        tried = [start + quarter, start + 2 * quarter, start + 3 * quarter]
        if stop - start >= _MIN_NINTHER:
            for i, place in enumerate(tried):
                tried[i], more = self._median(place - 1, place, place + 1)
                swaps += more
        pivot, more = self._median(*tried)
        swaps += more
        patterns = {0: Pattern.ASCENDING, _MAX_PIVOT_SWAPS: Pattern.DESCENDING}
        return pivot, patterns.get(swaps, Pattern.UNKNOWN)

    def _median(self, a: int, b: int, c: int) -> tuple[int, int]:
        """The median of three items, and how many comparisons found the later one less."""
        keys, swaps = self.keys, 0
        if keys[b] < keys[a]:
            a, b, swaps = b, a, swaps + 1
        if keys[c] < keys[b]:
            b, swaps = c, swaps + 1
        if keys[b] < keys[a]:
            b, swaps = a, swaps + 1
        return b, swaps

    def _break_patterns(self, start: int, stop: int) -> None:
        """Swap three items in the middle with others, chosen by a xorshift generator whose seed is the length."""
        length = stop - start
        random, mask = length, (1 << length.bit_length()) - 1
        middle = start + length // 4 * 2
        for place in (middle - 1, middle, middle + 1):
            random ^= random << 13 & 0xFFFFFFFFFFFFFFFF
            random ^= random >> 7
            random ^= random << 17 & 0xFFFFFFFFFFFFFFFF
            other = random & mask
            self._swap(place, start + (other - length if other >= length else other))

    # Partitions

    def _partition(self, start: int, stop: int, pivot: int) -> tuple[int, bool]:
        """Items less than the pivot before it, the others after it: where it is, and whether they were so already."""
        keys = self.keys
        self._swap(start, pivot)
        key = keys[start]
        low, high, already = start + 1, stop - 1, True
        while True:
            while low <= high and keys[low] < key:
                low += 1
            while low <= high and not keys[high] < key:
                high -= 1
            if low > high:
                self._swap(high, start)
                return high, already
            self._swap(low, high)
            low, high, already = low + 1, high - 1, False

    def _partition_equal(self, start: int, stop: int, pivot: int) -> int:
        """Items equal to the pivot, which is the least of all, before the others: where those begin."""
        keys = self.keys
        self._swap(start, pivot)
        key = keys[start]
        low, high = start + 1, stop - 1
        while True:
            while low <= high and not key < keys[low]:
                low += 1
            while low <= high and key < keys[high]:
                high -= 1
            if low > high:
                return low
            self._swap(low, high)
            low, high = low + 1, high - 1

    # Ranges that look sorted, and those that are split badly

    def _repair(self, start: int, stop: int) -> bool:
        """Whether the range is sorted after moving a few items."""
        keys, i = self.keys, start + 1
        for _ in range(_MAX_REPAIRS):
            while i < stop and not keys[i] < keys[i - 1]:
                i += 1
            if i == stop:
                return True
            if stop - start < _MIN_SHIFTED:
                return False
            self._swap(i, i - 1)
            if i - start >= 2:
                self._sink(i - 1, 0)
            for place in range(i + 1, stop):
                if not keys[place] < keys[place - 1]:
                    break
                self._swap(place, place - 1)
        return False

    def _heap_sort(self, start: int, stop: int) -> None:
        length = stop - start
        for root in range((length - 1) // 2, -1, -1):
            self._sift_down(root, length, start)
        for last in range(length - 1, -1, -1):
            self._swap(start, start + last)
            self._sift_down(0, last, start)

    def _sift_down(self, root: int, length: int, start: int) -> None:
        keys = self.keys
        while (child := 2 * root + 1) < length:
            if child + 1 < length and keys[start + child] < keys[start + child + 1]:
                child += 1
            if not keys[start + root] < keys[start + child]:
                return
            self._swap(start + root, start + child)
            root = child
