"""
Garbage collection in small, regular portions.

Left to itself, Python collects when it has made many more objects than it has given back. A scheduler gives back about
as many as it makes, so that comes late and all at once: hundreds of milliseconds in which nothing else happens. Here a
little is collected many times a second, and what survives two collections is never looked at again. Reference counts
give it back: neither the index nor requests and watches leave cycles behind.
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

COLLECT_INTERVAL_SECONDS = 0.05  # seconds
OLDER_GENERATION_EVERY = 4  # turns


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """For a block that only makes objects, and makes them to stay: nothing is collected, then or later."""
    gc.disable()
    try:
        yield
        gc.freeze()  # before collecting is allowed again, which would begin with a look at all of them
    finally:
        gc.enable()


async def collect_periodically(sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
    """Collect for ever, a little at a time."""
    gc.disable()
    try:
        for turn in itertools.count(1):
            await sleep(COLLECT_INTERVAL_SECONDS)
            collect(turn)
    finally:
        gc.enable()


def collect(turn: int) -> None:
    """The collection of one turn: of what is new; every few turns of what survived that, and the rest then stays."""
    if turn % OLDER_GENERATION_EVERY:
        gc.collect(0)
    else:
        gc.collect(1)
        gc.freeze()


# RF merged from live.loop_turns: How long each turn of the event loop takes: who else has a request, a timer or a
# renewal due waits that long. A turn is what happens between two looks at the network. All of them are measured, not
# samples: it is two readings of a clock each. Knows nothing of what was done in the turn.

MAX_ITERATION_SECONDS = 0.05  # seconds
log = logging.getLogger("bayplan.loop")

OnIteration = Callable[[float], None]  # is told the seconds of a turn


class IterationTimer(selectors.DefaultSelector):
    """
    The selector of an event loop that tells how long its turns are.

    `on_iteration` is told of each. One in which this thread was at work for more than 50 ms is logged; in others that took
    so long, the machine was busy with something else.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, worked: Callable[[], float] = time.thread_time
    ) -> None:
        super().__init__()
        self.on_iteration: OnIteration = lambda _seconds: None
        self._clock, self._worked = clock, worked
        self._began = self._work_began = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self._began:
            seconds = self._clock() - self._began
            self.on_iteration(seconds)
            if (
                seconds > MAX_ITERATION_SECONDS
                and (worked := self._worked() - self._work_began) > MAX_ITERATION_SECONDS
            ):
                log.warning("the event loop was held", extra={"seconds": round(seconds, 3), "worked": round(worked, 3)})
        found = super().select(timeout)
        self._began, self._work_began = self._clock(), self._worked()
        return found

    def run(self, work: Callable[[], Any]) -> None:
        """Run a coroutine, as `asyncio.run` does, in a loop whose turns are measured."""
        with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(self)) as runner:
            runner.run(work())
