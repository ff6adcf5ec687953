"""How many workloads of some sort each domain of one topology key holds. Knows nothing of why they are counted."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.slots import At
from bayplan.indexing.value_columns import ABSENT, ValueColumn
from bayplan.model.reasons import Mask, Slots

# A counter gets a dense mirror once one domain in this many is occupied; below that a sparse one is cheaper to keep.
DENSE_FROM = 16
FEW = 16  # targets up to which one after another is quicker than arrays


class Counter:
    """
    Distinct workloads per domain, and `anywhere` (those on targets without the label too).

    The truth is sparse; a dense mirror exists only while the counter is well filled.
    """

    __slots__ = ("_dense", "anywhere", "by_domain", "column")

    def __init__(self, column: ValueColumn) -> None:
        self.column = column
        self.by_domain: dict[int, int] = {}
        self.anywhere = 0
        self._dense: NDArray[np.int64] | None = None

    def add(self, slots: tuple[int, ...], change: int) -> None:
        """One workload (or `change` of them) came to, or left, all of these targets at once."""
        self.anywhere += change
        if len(slots) == 1:
            domain = self.column.at[slots[0]]
            if domain and slots[0] not in self.column.further:
                self._bump(domain, change)
                return
        for domain in {domain for slot in slots for domain in self.column.domains(slot)}:
            self._bump(domain, change)

    def add_all(self, members: Mapping[int, Collection[object]], sign: int) -> None:
        """Many workloads came to, or left, one target each: `members` are those of every target."""
        column, n = self.column, len(members)
        if n < FEW or column.further:
            for slot, here in members.items():
                self.add((slot,), sign * len(here))
            return
        numbers = np.fromiter(map(len, members.values()), np.int64, n)
        domains = column.of_slot.take(np.fromiter(members, np.intp, n))
        self.anywhere += sign * int(numbers.sum())
        by_domain = np.bincount(domains, weights=numbers, minlength=1).astype(np.int64)
        by_domain[ABSENT] = 0
        changed = np.flatnonzero(by_domain)
        for domain, number in zip(changed.tolist(), by_domain[changed].tolist(), strict=True):
            self._bump(domain, sign * number)

    def _bump(self, domain: int, change: int) -> None:
        count = self.by_domain.get(domain, 0) + change
        if count:
            self.by_domain[domain] = count
        else:
            del self.by_domain[domain]
        if self._dense is not None and domain < len(self._dense):
            self._dense[domain] = count

    def array(self) -> NDArray[np.int64]:
        """The counts by domain, shape (n_domains,); read it before the next change."""
        n_domains = self.column.n_domains
        if self._dense is not None and len(self._dense) == n_domains:
            return self._dense
        counts = np.zeros(n_domains, np.int64)
        n = len(self.by_domain)
        if n:
            counts[np.fromiter(self.by_domain, np.intp, n)] = np.fromiter(self.by_domain.values(), np.int64, n)
        self._dense = counts if n * DENSE_FROM > n_domains else None
        return counts


# RF merged from indexing.reach: How many of some sort of workload stand near each target: in its domain of one key,
# or in its domain of any of several. Knows nothing of why they are counted.


class Reach:
    """
    A counter seen from targets through topology columns.

    With one column, the counter counts by that column's domains. With several (the seed's empty topology key), it
    counts by target, and "near" is the union of the target's domains, in which each workload counts once.
    """

    __slots__ = ("columns", "counter")

    def __init__(self, counter: Counter, columns: tuple[ValueColumn, ...]) -> None:
        self.counter = counter
        self.columns = columns

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(column.key for column in self.columns)

    @property
    def occupied(self) -> bool:
        """Whether any domain holds one."""
        return bool(self.counter.by_domain)

    def counts(self, at: At, only: Mask | None = None) -> NDArray[np.int64]:
        """How many are near each target, shape (n,); `only` counts those on some targets, shape (capacity,)."""
        if len(self.columns) == 1:
            counts = self.columns[0].gather(self.counter.array(), at)
            # Targets of one domain see the same, so what holds here holds where the counted ones stand.
            return counts if only is None else np.where(only[at], counts, 0)
        near = np.zeros(len(self.columns[0].of_slot), np.int64)
        targets = self.counter.column
        for domain, count in self.counter.by_domain.items():
            slot = int(targets.slots_in(domain)[0])
            if only is None or only[slot]:
                near[self.around(slot)] += count
        return near[at]

    def count_at(self, slot: int) -> int:
        """How many are near one target."""
        if len(self.columns) > 1:
            return int(self.counts(np.array([slot]))[0])
        column, by_domain = self.columns[0], self.counter.by_domain
        if slot in column.further:
            return max(by_domain.get(domain, 0) for domain in column.domains(slot))
        return by_domain.get(column.at[slot], 0)

    def is_present(self, slot: int) -> bool:
        """Whether one target has the topology."""
        return any(column.at[slot] for column in self.columns)

    def present(self, at: At) -> Mask:
        """Which targets have the topology at all: any of its keys."""
        present = self.columns[0].present(at)
        for column in self.columns[1:]:
            present = present | column.present(at)
        return present

    def around(self, slot: int) -> Slots:
        """The targets near one: those that share one of its domains."""
        pieces = [column.slots_in(domain) for column in self.columns for domain in column.domains(slot)]
        if len(pieces) == 1:
            return pieces[0]
        return np.unique(np.concatenate(pieces)) if pieces else np.zeros(0, np.intp)
