"""
An event loop whose clock jumps: what is due later happens at once, and nothing ever waits.

Threads are not used: a call that asyncio would run in one runs in place, so that the order of everything is fixed.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from typing import Any


class StalledError(Exception):
    """Nothing is due any more, at no time: a bug, because a simulation ends by itself."""


class _JumpingSelector(selectors.SelectSelector):
    """Moves the clock on instead of waiting. Nothing is ever read: the loop has no connections."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.on_settled: Callable[[], bool] = lambda: False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return []
        if self.on_settled():
            return []
        if timeout is None:
            raise StalledError
        self.now += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def when_settled(self, call: Callable[[], bool]) -> None:
        """
        Call a function whenever nothing is left to do at a moment, before the clock moves on.

        If it returns true, it has made something ready, and the clock stays.
        """
        self._jumping.on_settled = call

    def time(self) -> float:
        """Seconds since the loop began."""
        return self._jumping.now

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Call the function now, in this thread."""
        del executor
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it is raised where the result is awaited
            future.set_exception(error)
        return future
