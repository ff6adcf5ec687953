"""Background tasks whose failures reach the code that started them, and a wait for the first of several events."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self


class BackgroundTasks:
    """
    An async context manager that cancels its tasks at the end of the block.

    If a task fails, the block is cancelled and raises the failure of that task.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._owner: asyncio.Task[Any] | None = None
        self._failure: BaseException | None = None

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)
        return task

    def _task_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None and self._failure is None:
            self._failure = task.exception()
            if self._owner is not None:
                self._owner.cancel()

    async def __aenter__(self) -> Self:
        self._owner = asyncio.current_task()
        return self

    async def __aexit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        owner, self._owner = self._owner, None
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._failure is not None and (error is None or isinstance(error, asyncio.CancelledError)):
            if owner is not None and error is not None:
                owner.uncancel()
            raise self._failure


async def wait_for_any(*events: asyncio.Event, timeout: float | None = None) -> None:  # noqa: ASYNC109
    """Return when one of the events is set, or after `timeout` seconds."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
