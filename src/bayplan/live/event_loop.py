"""
Keeps the iterations of the event loop short: measures them, and collects garbage in small, regular portions.

By default Python collects when many more objects were allocated than freed. A scheduler frees about as many as it
allocates, so a collection comes late and takes hundreds of milliseconds, in which nothing else runs. Here a little is
collected many times a second, and objects that survive two collections are never examined again. Reference counts free
them: neither the index nor requests and watches leave reference cycles.

An iteration is what runs between two calls of the selector; every other request, timer or lease renewal that is due
waits that long. Each iteration is measured, at the cost of two clock readings.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import logging
import selectors
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

COLLECT_INTERVAL_SECONDS = 0.05
OLDER_GENERATION_EVERY = 4  # collections
MAX_ITERATION_SECONDS = 0.05
log = logging.getLogger("bayplan.loop")


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """Suspend garbage collection for a block that allocates long-lived objects, and exempt them from it afterwards."""
    gc.disable()
    try:
        yield
        gc.freeze()  # before collection is enabled again, which would start by examining all of them
    finally:
        gc.enable()


async def collect_periodically(sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
    """Collect a little garbage at regular intervals, until cancelled."""
    try:
        for number in itertools.count(1):
            gc.disable()  # again: another scheduler in this process may have enabled it when it was synced
            await sleep(COLLECT_INTERVAL_SECONDS)
            collect(number)
    finally:
        gc.enable()


def collect(number: int) -> None:
    """Collect the youngest generation; every few calls the next one too, and exempt what survives."""
    if number % OLDER_GENERATION_EVERY:
        gc.collect(0)
    else:
        gc.collect(1)
        gc.freeze()


class IterationTimer(selectors.DefaultSelector):
    """
    The selector of an event loop, which measures the iterations of the loop.

    `on_iteration` receives the seconds of each. An iteration in which this thread used the processor for more than
    50 ms is logged; other long iterations are due to load on the machine.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, thread_clock: Callable[[], float] = time.thread_time
    ) -> None:
        super().__init__()
        self.on_iteration: Callable[[float], None] = lambda _seconds: None
        self._clock, self._thread_clock = clock, thread_clock
        self._began = self._thread_began = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self._began:
            seconds, limit = self._clock() - self._began, MAX_ITERATION_SECONDS
            self.on_iteration(seconds)
            if seconds > limit and (worked := self._thread_clock() - self._thread_began) > limit:
                log.warning("event loop blocked", extra={"seconds": round(seconds, 3), "worked": round(worked, 3)})
        found = super().select(timeout)
        self._began, self._thread_began = self._clock(), self._thread_clock()
        return found

    def run(self, work: Callable[[], Any]) -> None:
        """Run a coroutine, as `asyncio.run` does, in a loop whose iterations are measured."""
        with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(self)) as runner:
            runner.run(work())
