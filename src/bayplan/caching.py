"""
Bounded caches: what may be computed again is kept only while it is among the most recently used.

Everything that tenants can invent (labels, terms, quantities, signatures) ends up in keys, so no cache grows without a
limit. `BoundedCache` belongs to an object and dies with it; `memoised` is for pure functions of values.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import ParamSpec, TypeVar

Key = TypeVar("Key", bound=Hashable)
Entry = TypeVar("Entry")
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class BoundedCache(dict[Key, Entry]):
    """
    A dictionary with a limit: the least recently used entries are dropped first, an eighth of them at a time.

    When an entry was last used is what its attribute `used` says, the later the higher; entries without one are dropped
    in the order in which they were put.
    """

    def put(self, key: Key, entry: Entry, most: int) -> list[Entry]:
        """Set an entry; returns those that were dropped because there were more than `most`."""
        self[key] = entry
        if len(self) <= most:
            return []
        # Several at once, so that the search for the oldest costs little per entry.
        oldest = sorted(self.items(), key=lambda item: getattr(item[1], "used", 0))[: max(1, most // 8)]
        for dropped, _ in oldest:
            del self[dropped]
        return [entry for _, entry in oldest]


MAX_CHARGED = 16 * 2**20  # Python values of the same content take ten to fifty times as much


class Meter:
    """
    What is remembered of large keys, in bytes of their text, since caches were last cleared.

    A limit on the number of entries bounds memory only if they are small, and tenants may write a megabyte into one. So
    what is large is charged here, and beyond a limit the results of all pure functions are dropped. Owners of other
    caches clear them when `generation` has changed.
    """

    def __init__(self) -> None:
        self.generation = 0
        self._charged = 0
        self._clear: list[Callable[[], None]] = []

    def watch(self, clear: Callable[[], None]) -> None:
        self._clear.append(clear)

    def charge(self, size: int) -> None:
        """Note that an entry of this size is about to be remembered."""
        self._charged += size
        if self._charged > MAX_CHARGED:
            self._charged = 0
            self.generation += 1
            for clear in self._clear:
                clear()


METER = Meter()


def memoised(most: int) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """A decorator for pure functions: the `most` most recently used results are kept."""

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        remembered = functools.lru_cache(maxsize=most)(function)
        METER.watch(remembered.cache_clear)
        return remembered  # type: ignore[return-value]

    return decorate
