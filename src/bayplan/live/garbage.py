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
from collections.abc import Awaitable, Callable, Iterator

PAUSE = 0.05  # seconds
OLDER_EVERY = 4  # turns


@contextlib.contextmanager
def only_made() -> Iterator[None]:
    """For a block that only makes objects, and makes them to stay: nothing is collected, then or later."""
    gc.disable()
    try:
        yield
        gc.freeze()  # before collecting is allowed again, which would begin with a look at all of them
    finally:
        gc.enable()


async def tidy(sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
    """Collect for ever, a little at a time."""
    gc.disable()
    try:
        for turn in itertools.count(1):
            await sleep(PAUSE)
            collect(turn)
    finally:
        gc.enable()


def collect(turn: int) -> None:
    """The collection of one turn: of what is new; every few turns of what survived that, and the rest then stays."""
    if turn % OLDER_EVERY:
        gc.collect(0)
    else:
        gc.collect(1)
        gc.freeze()
