"""
Servers in a thread of their own, so that requests never wait for scheduling and scheduling never waits for requests.

The thread uses at most a share of one processor. Python runs one thread at a time, so without that bound a flood of
requests would take the time of the other threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import selectors
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Self, TypeVar

PROCESSOR_SHARE = 0.5
BURST_SECONDS = 0.2  # of processor time, after a quiet time
Result = TypeVar("Result")
Entered = TypeVar("Entered")


class ThrottledSelector(selectors.DefaultSelector):
    """The selector of an event loop whose thread uses at most a share of one processor, bursts aside."""

    def __init__(
        self,
        share: float = PROCESSOR_SHARE,
        clock: Callable[[], float] = time.monotonic,
        thread_clock: Callable[[], float] = time.thread_time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__()
        self._share, self._clock, self._thread_clock, self._sleep = share, clock, thread_clock, sleep
        self._budget = BURST_SECONDS
        self._read: tuple[float, float] | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._refill()
        if self._budget < 0:
            self._sleep(-self._budget / self._share)
        return super().select(timeout)

    def _refill(self) -> None:
        now, used = self._clock(), self._thread_clock()
        if self._read is not None:
            earned, spent = self._share * (now - self._read[0]), used - self._read[1]
            self._budget = min(BURST_SECONDS, self._budget + earned) - spent
        self._read = now, used


class ServerThread:
    """
    An event loop in a thread, as a context manager of the loop that owns the state of the process.

    `run` runs a coroutine in the thread, `on_owner` one in the loop of the owner; both are awaited in the other loop.
    """

    def __init__(self, share: float = PROCESSOR_SHARE) -> None:
        self._loop = asyncio.SelectorEventLoop(ThrottledSelector(share))
        self._thread = threading.Thread(target=self._loop.run_forever, name="bayplan-servers", daemon=True)
        self._owner: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Self:
        self._owner = asyncio.get_running_loop()
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.run(_cancel_other_tasks())
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)
        self._loop.close()

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the thread. Called in the loop of the owner."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def on_owner(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the loop of the owner. Called in the thread."""
        assert self._owner is not None
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._owner))

    def call_on_owner(self, function: Callable[..., object], *arguments: object) -> None:
        """Have the loop of the owner call a function soon."""
        assert self._owner is not None
        with contextlib.suppress(RuntimeError):  # the owner's loop is closed: the process is ending
            self._owner.call_soon_threadsafe(functools.partial(function, *arguments))

    @contextlib.asynccontextmanager
    async def entered(self, manager: contextlib.AbstractAsyncContextManager[Entered]) -> AsyncIterator[Entered]:
        """Enter and leave an async context manager in the thread."""
        found = await self.run(_enter(manager))
        try:
            yield found
        finally:
            await self.run(_leave(manager))


async def _enter(manager: contextlib.AbstractAsyncContextManager[Entered]) -> Entered:
    return await manager.__aenter__()


async def _leave(manager: contextlib.AbstractAsyncContextManager[Any]) -> None:
    await manager.__aexit__(None, None, None)


async def _cancel_other_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
