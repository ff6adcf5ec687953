"""A place for things worth keeping, up to a limit: what was used least recently goes first, an eighth at a time."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar


class CacheEntry(Protocol):
    """`used` is when it was last of use, as a position in the journal."""

    @property
    def used(self) -> int: ...


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value", bound=CacheEntry)


class BoundedCache(Generic[Key, Value]):
    def __init__(self) -> None:
        self._kept: dict[Key, Value] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Key) -> Value | None:
        return self._kept.get(key)

    def put(self, key: Key, value: Value, most: int) -> list[Value]:
        """Keep a value in place of any other under its key; returns what had to go because there were over `most`."""
        self._kept[key] = value
        if len(self._kept) <= most:
            return []
        # Several at once, so that looking for the oldest costs little for each.
        oldest = sorted(self._kept.items(), key=lambda item: item[1].used)[: max(1, most // 8)]
        for gone, _ in oldest:
            del self._kept[gone]
        return [value for _, value in oldest]

    def clear(self) -> list[Value]:
        """Forget everything; returns what was kept."""
        kept = list(self._kept.values())
        self._kept.clear()
        return kept
