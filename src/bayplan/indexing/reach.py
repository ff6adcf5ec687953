"""
How many of some sort of workload stand near each target: in its domain of one key, or in its domain of any of several.

Knows nothing of why they are counted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.counters import Counter
from bayplan.indexing.slots import At
from bayplan.indexing.value_columns import ValueColumn
from bayplan.model.decisions import Mask, Slots


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
