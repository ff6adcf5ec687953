"""
How many taints of each target a workload does not tolerate, found from its tolerations.

A toleration is looked up among the distinct taints, so the cost is that of the taints that are tolerated and not of all
that exist. Knows nothing of what untolerated taints mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.slots import ValueColumn
from bayplan.model.labels import Taint, Toleration


class TaintTable:
    """The distinct taints of all targets, with the domains of the column of taints that have them."""

    def __init__(self, column: ValueColumn) -> None:
        self._column = column
        self._version = -1

    def untolerated(self, tolerations: Iterable[Toleration], effects: tuple[str, ...]) -> NDArray[np.int64]:
        """The number of untolerated taints with one of these effects, by domain of the column."""
        if self._version != self._column.version:
            self._read()
        number = np.zeros(self._column.n_domains, np.int64)
        for effect in effects:
            if effect in self._n_by_effect:
                number += self._n_by_effect[effect]
        tolerated = {taint for one in tolerations for taint in self._candidates(one) if one.tolerates(taint)}
        for taint in tolerated:
            if taint.effect in effects:
                np.subtract.at(number, self._domains[taint], 1)
        return number

    def _candidates(self, toleration: Toleration) -> Iterator[Taint]:
        """The taints that a toleration may match."""
        if not toleration.key:
            yield from self._domains
        elif toleration.operator in ("", "Equal"):
            yield from self._by_value.get((toleration.key, toleration.value), ())
        else:
            yield from self._by_key.get(toleration.key, ())

    def _read(self) -> None:
        self._version = self._column.version
        self._n_by_effect: dict[str, NDArray[np.int64]] = {}
        self._domains: dict[Taint, list[int]] = {}
        self._by_key: dict[str, list[Taint]] = {}
        self._by_value: dict[tuple[str, str], list[Taint]] = {}
        for value, domain in self._column.by_value.items():
            assert isinstance(value, tuple)
            for taint in value[1]:
                if taint not in self._domains:
                    self._domains[taint] = []
                    self._by_key.setdefault(taint.key, []).append(taint)
                    self._by_value.setdefault((taint.key, taint.value), []).append(taint)
                self._domains[taint].append(domain)
                if taint.effect not in self._n_by_effect:
                    self._n_by_effect[taint.effect] = np.zeros(self._column.n_domains, np.int64)
                self._n_by_effect[taint.effect][domain] += 1
