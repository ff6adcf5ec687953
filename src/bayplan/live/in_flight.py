"""How many binds are being asked of the API server now. Knows nothing of what they are."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

MOST = 64  # more at once only wait in the API server instead of here


class InFlight:
    """Counts binds; `on_room` is called when there may be room for another one. `resting` are the tasks of others."""

    def __init__(self, most: int = MOST) -> None:
        self.on_room: Callable[[], None] = lambda: None
        self._most = most
        self._n = 0
        self.resting: set[asyncio.Task[Any] | None] = set()

    @property
    def is_full(self) -> bool:
        return self._n >= self._most

    def enter(self) -> None:
        self._n += 1

    def leave(self) -> None:
        self._n -= 1
        self.on_room()

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """For a bind that waits for somebody else than the API server: it keeps no other from being asked for."""
        task = asyncio.current_task()
        self.resting.add(task)
        self.leave()
        try:
            yield
        finally:
            self.enter()
            self.resting.discard(task)
