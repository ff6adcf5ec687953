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


def memoised(most: int) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """A decorator for pure functions: the `most` most recently used results are kept."""

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        return functools.lru_cache(maxsize=most)(function)  # type: ignore[return-value]

    return decorate
