"""
Leader election in a thread of its own, which work in the event loop of the caller cannot hold up.

The thread has its own event loop and its own connection. It is told to stop by cancelling `run`, and tells of its
progress through two events; whether this replica leads right now is read from the clock, without a message.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable

from bayplan.kube_api.connection import Connection
from bayplan.kube_api.leader_election import LeaderElector

MakeElector = Callable[[Connection], LeaderElector]


class ElectionThread:
    """
    A `LeaderElector` in a thread, with the same life: `run` returns when leadership is lost.

    `connection` is opened and closed by the thread and must not be used elsewhere. What the elector calls, such as
    `on_trouble`, it calls in the thread.
    """

    def __init__(self, connection: Connection, make_elector: MakeElector) -> None:
        self.leading, self.lost = asyncio.Event(), asyncio.Event()
        self._connection, self._elector = connection, make_elector(connection)

    def may_write(self) -> bool:
        """As `LeaderElector.may_write`."""
        return self._elector.may_write()

    async def run(self) -> None:
        """As `LeaderElector.run`. Cancelled, it returns when the lease is released and the thread has ended."""
        self.lost.clear()
        loop, stop = asyncio.get_running_loop(), _Stop()
        outcome: concurrent.futures.Future[None] = concurrent.futures.Future()

        def on_leading() -> None:
            with contextlib.suppress(RuntimeError):  # the loop of the caller is closed
                loop.call_soon_threadsafe(self.leading.set)

        def work() -> None:
            try:
                asyncio.run(self._elect(stop, on_leading))
            except BaseException as error:  # noqa: BLE001 (raised by `run`)
                outcome.set_exception(error)
            else:
                outcome.set_result(None)

        threading.Thread(target=work, name="leader election", daemon=True).start()
        ended = asyncio.wrap_future(outcome)
        try:
            await asyncio.shield(ended)
        except asyncio.CancelledError:
            stop.set()
            await asyncio.wait([ended])
            raise
        finally:
            self.leading.clear()
            self.lost.set()

    async def _elect(self, stop: _Stop, on_leading: Callable[[], None]) -> None:
        async with self._connection:
            running = asyncio.create_task(self._elector.run())
            leading = asyncio.create_task(self._elector.leading.wait())
            stop.call(asyncio.get_running_loop(), running.cancel)
            try:
                await asyncio.wait({running, leading}, return_when=asyncio.FIRST_COMPLETED)
                if not running.done():
                    on_leading()
                with contextlib.suppress(asyncio.CancelledError):
                    await running
            finally:
                leading.cancel()


class _Stop:
    """A request to stop that may come before the thread is ready to receive it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_set = False
        self._cancel: Callable[[], object] | None = None

    def set(self) -> None:
        with self._lock:
            self._is_set = True
            if self._cancel is not None:
                with contextlib.suppress(RuntimeError):  # the loop of the thread has ended by itself
                    self._cancel()

    def call(self, loop: asyncio.AbstractEventLoop, cancel: Callable[[], object]) -> None:
        """Call this in that loop when a stop is requested."""
        with self._lock:
            self._cancel = lambda: loop.call_soon_threadsafe(cancel)
            if self._is_set:
                self._cancel()
