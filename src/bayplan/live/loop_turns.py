"""
How long each turn of the event loop takes: who else has a request, a timer or a renewal due waits that long.

A turn is what happens between two looks at the network. All of them are measured, not samples: it is two readings of a
clock each. Knows nothing of what was done in the turn.
"""

from __future__ import annotations

import asyncio
import logging
import selectors
import time
from collections.abc import Callable
from typing import Any

TOO_LONG = 0.05  # seconds
log = logging.getLogger("bayplan.loop")

Turned = Callable[[float], None]  # is told the seconds of a turn


class LoopTurns(selectors.DefaultSelector):
    """
    The selector of an event loop that tells how long its turns are.

    `on_turn` is told of each. One in which this thread was at work for more than 50 ms is logged; in others that took
    so long, the machine was busy with something else.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, worked: Callable[[], float] = time.thread_time
    ) -> None:
        super().__init__()
        self.on_turn: Turned = lambda _seconds: None
        self._clock, self._worked = clock, worked
        self._began = self._work_began = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self._began:
            seconds = self._clock() - self._began
            self.on_turn(seconds)
            if seconds > TOO_LONG and (worked := self._worked() - self._work_began) > TOO_LONG:
                log.warning("the event loop was held", extra={"seconds": round(seconds, 3), "worked": round(worked, 3)})
        found = super().select(timeout)
        self._began, self._work_began = self._clock(), self._worked()
        return found

    def run(self, work: Callable[[], Any]) -> None:
        """Run a coroutine, as `asyncio.run` does, in a loop whose turns are measured."""
        with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(self)) as runner:
            runner.run(work())
