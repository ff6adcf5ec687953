"""
The selectors of the Services of one namespace, found by the labels of a pod.

A tenant may create thousands of Services and change the labels of its pods as often as it likes, so a pod is not
compared with each of them. Knows neither the names of Services nor what their selectors are used for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

Pair = tuple[str, str]  # a label: key and value


class ServiceSelectors:
    """A multiset of selectors. Each is stored at one of its labels, which few others are stored at."""

    def __init__(self) -> None:
        self._counts: Counter[frozenset[Pair]] = Counter()
        self._stored_at: dict[Pair, set[frozenset[Pair]]] = {}
        self._pair_of: dict[frozenset[Pair], Pair] = {}

    def __bool__(self) -> bool:
        return bool(self._counts)

    def add(self, selector: Mapping[str, str]) -> None:
        """Add a selector that is not empty."""
        pairs = frozenset(selector.items())
        self._counts[pairs] += 1
        if self._counts[pairs] == 1:
            pair = min(pairs, key=lambda one: (len(self._stored_at.get(one, ())), one))
            self._pair_of[pairs] = pair
            self._stored_at.setdefault(pair, set()).add(pairs)

    def remove(self, selector: Mapping[str, str]) -> None:
        """Remove a selector once."""
        pairs = frozenset(selector.items())
        self._counts[pairs] -= 1
        if self._counts[pairs]:
            return
        del self._counts[pairs]
        pair = self._pair_of.pop(pairs)
        self._stored_at[pair].discard(pairs)
        if not self._stored_at[pair]:
            del self._stored_at[pair]

    def merged(self, labels: Mapping[str, str]) -> dict[str, str]:
        """The labels that the selectors which match these labels require together."""
        own = labels.items()
        found: set[Pair] = set()
        for pair in own:
            for pairs in self._stored_at.get(pair, ()):
                if pairs <= own:
                    found |= pairs
        return dict(found)
