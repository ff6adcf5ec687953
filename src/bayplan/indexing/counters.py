"""How many workloads of some sort each domain of one topology key holds. Knows nothing of why they are counted."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.value_columns import ABSENT, ValueColumn

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
