"""
The loop of every live scheduler: try what is active in the queue, wake what a change has made schedulable, wait.

One thread owns the index; deciding and counting the result happen without an `await` between them. Requests to the API
server run in tasks. A step ends after a few milliseconds, so that watches and requests continue. What an attempt is and
what is written after it is up to the subclass.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Generic

import msgspec

from bayplan.live.metrics import CommonMetrics
from bayplan.queueing.pending_pod import Pending, QueueStage
from bayplan.queueing.scheduling_queue import SchedulingQueue

MAX_STEP_SECONDS = 0.008  # of scheduling, before other tasks run
MAX_REQUEUE_SECONDS = 0.004  # of a step, for evaluating unschedulable workloads
REST_FACTOR = 4  # what takes long gets a fifth of the time while others are waiting
IDLE_POLL_SECONDS = 0.05  # between two checks whether a busy task has begun to wait for something else than the server
SWEEP_INTERVAL_SECONDS = 300.0
MAX_BINDS_IN_FLIGHT = 64  # more would only wait in the API server instead of here
log = logging.getLogger("bayplan.scheduler")


class InFlightBinds:
    """
    Counts the binds that wait for the API server; `on_free` is called when another may start.

    `waiting_tasks` are the tasks of binds that wait for something else and are not counted.
    """

    def __init__(self, on_free: Callable[[], None], limit: int = MAX_BINDS_IN_FLIGHT) -> None:
        self.waiting_tasks: set[asyncio.Task[Any] | None] = set()
        self._on_free = on_free
        self._limit = limit
        self._count = 0

    @property
    def is_full(self) -> bool:
        return self._count >= self._limit

    def enter(self) -> None:
        self._count += 1

    def leave(self) -> None:
        self._count -= 1
        self._on_free()

    @contextlib.contextmanager
    def released(self) -> Iterator[None]:
        """Do not count the current bind inside the block, in which it waits for something else than the API server."""
        task = asyncio.current_task()
        self.waiting_tasks.add(task)
        self.leave()
        try:
            yield
        finally:
            self.enter()
            self.waiting_tasks.discard(task)


class LoopSettings(msgspec.Struct, frozen=True):
    """
    What a loop is run by: `clock` counts seconds, and `activity` is set when there may be something to do.

    `on_step` is for recordings.
    """

    clock: Callable[[], float]
    activity: asyncio.Event
    binds_in_flight: InFlightBinds
    on_step: Callable[[], None]


class SchedulingLoop(Generic[Pending]):
    """Schedules what is in the queue."""

    def __init__(self, queue: SchedulingQueue[Pending], metrics: CommonMetrics, settings: LoopSettings) -> None:
        self._queue, self._missed_requeues = queue, metrics.missed_requeues
        self._clock, self._activity = settings.clock, settings.activity
        self._binds_in_flight, self._on_step = settings.binds_in_flight, settings.on_step
        self._tasks: set[asyncio.Task[None]] = set()
        self._last_sweep = settings.clock()
        self._no_large_before = self._no_requeue_before = 0.0
        self.longest_step = 0.0  # seconds of processor time of this thread
        self._failure: BaseException | None = None

    # For subclasses

    def _attempt(self, pending: Pending) -> None:
        """Decide about one workload, count the result and begin to write it."""
        raise NotImplementedError

    def _before_attempts(self) -> None:
        """What else a step does, after unschedulable workloads were requeued."""

    def _has_more(self) -> bool:
        """Whether something is left to be done before attempts."""
        return False

    def _further_times(self) -> list[float]:
        """When something else than the queue and the sweep is due."""
        return []

    # The loop

    async def run(self) -> None:
        """Schedule until cancelled."""
        while True:
            self._activity.clear()
            if self._failure is not None:
                raise self._failure
            if self.step():
                await asyncio.sleep(0)
            else:
                await self._wait()

    def changed(self) -> None:
        """Note a change in the cluster: what is unschedulable may be schedulable now."""
        self._activity.set()

    async def idle(self) -> None:
        """Wait until all writes in progress have ended, except binds that wait for something else than the server."""
        while busy := self._tasks - self._binds_in_flight.waiting_tasks:
            await asyncio.wait(busy, timeout=IDLE_POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED)

    def step(self) -> bool:
        """Decide about as many workloads as the time of a step allows. Return whether there was anything to do."""
        began, thread_began = self._clock(), time.thread_time()
        self._on_step()
        self._requeue_unschedulable(began)
        self._before_attempts()
        worked = self._queue.has_candidates or self._has_more()
        while not self._binds_in_flight.is_full and (pending := self._next()) is not None:
            tried = self._clock()
            self._attempt(pending)
            worked = True  # at least one per step, however late: what is ready causes no further activity
            now = self._clock()
            if pending.is_large:
                self._no_large_before = now + (now - tried) * REST_FACTOR
            if now - began >= MAX_STEP_SECONDS:
                break
        self.longest_step = max(self.longest_step, time.thread_time() - thread_began)
        return worked

    def _next(self) -> Pending | None:
        return self._queue.pop(large=self._clock() >= self._no_large_before)

    async def _wait(self) -> None:
        """Wait for activity, or for the time when something is due."""
        until = self.next_at()
        # Every answer to a bind ends such a wait, and `asyncio.timeout` takes three times as long as a timer.
        timer = asyncio.get_running_loop().call_later(max(until - self._clock(), 0.0), self._activity.set)
        try:
            await self._activity.wait()
        finally:
            timer.cancel()

    def next_at(self) -> float:
        """When the next backoff ends, something else is due or the next sweep is."""
        times = [self._last_sweep + SWEEP_INTERVAL_SECONDS, *self._further_times()]
        next_retry = self._queue.ready_at()
        if next_retry is not None and not self._binds_in_flight.is_full:
            times.append(next_retry)
        return min(times)

    def _requeue_unschedulable(self, now: float) -> None:
        def out_of_time() -> bool:
            return self._clock() - now >= MAX_REQUEUE_SECONDS

        if now < self._no_requeue_before and self._queue.sizes[QueueStage.ACTIVE]:
            return
        self._queue.move_to_active_or_backoff(out_of_time)
        if now - self._last_sweep >= SWEEP_INTERVAL_SECONDS:
            self._last_sweep = now
            self._queue.mark_all_for_sweep()
        if out_of_time():
            # One evaluation may take much longer than its share; until that is made up for, workloads are scheduled.
            self._no_requeue_before = now + (self._clock() - now) * REST_FACTOR
            return
        for pending in self._queue.sweep(out_of_time):
            self._missed_requeues.inc()
            log.error("requeued by the sweep, not by a change", extra={"workload": pending.key})

    # Tasks

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failure = task.exception()  # a bug in Bayplan: it ends the loop
            self._activity.set()
