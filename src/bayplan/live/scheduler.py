"""
The scheduling loop: take the next pod, decide, assume it on its node, bind it in the background, continue.

One thread owns the index; deciding and assuming happen without an `await` between them. Requests to the API server run
in tasks. A step ends after a few milliseconds, so that watches and requests continue.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

from bayplan.live import conditions, reserving
from bayplan.live.binding import Binder, InFlightBinds, VolumeBinder
from bayplan.live.cluster_writer import PodRef
from bayplan.live.conditions import ConditionWriter
from bayplan.live.context import Engines, SchedulerContext
from bayplan.live.metrics import ERROR, UNSCHEDULABLE
from bayplan.live.preemption import PreemptionAttempt, PreemptionEvaluator
from bayplan.live.reserving import NodeReserver, ReservationChange
from bayplan.model.workloads import Workload
from bayplan.queueing import deciding
from bayplan.queueing.deciding import Diagnosis
from bayplan.queueing.pending_pod import PendingPod, QueueStage

MAX_STEP_SECONDS = 0.008  # of scheduling, before other tasks run
MAX_REQUEUE_SECONDS = 0.004  # of a step, for evaluating unschedulable pods
MAX_RESERVE_SECONDS = 0.002  # of a step, for finding nodes to reserve
REST_FACTOR = 4  # what takes long gets a fifth of the time while other pods are waiting
IDLE_POLL_SECONDS = 0.05  # between two checks whether a busy task has begun to wait for its volumes
SWEEP_INTERVAL_SECONDS = 300.0
log = logging.getLogger("bayplan.scheduler")

OnDecision = Callable[[Workload, str, str], None]  # the pod, its node or "", and why it has none


class Scheduler:
    """
    Schedules the pending pods.

    `activity` is set when there may be something to do. `on_decision` and `on_step` are for recordings.
    """

    def __init__(
        self,
        context: SchedulerContext,
        engines: Engines,
        *,
        activity: asyncio.Event,
        volumes: VolumeBinder,
        binds_in_flight: InFlightBinds,
        preemptor: PreemptionEvaluator,
        on_decision: OnDecision,
        on_step: Callable[[], None],
    ) -> None:
        self._state, self._queue = context.state, context.state.queue
        self._events, self._metrics, self._names = context.events, context.metrics, context.names
        self._clock, self._wall = context.clock, context.wall
        self._engines = engines
        self._binder = Binder(context, volumes)
        self._volumes = volumes
        self._binds_in_flight = binds_in_flight
        self._preemptor = preemptor
        self._reserver = NodeReserver(context, engines)
        self._on_decision, self._on_step = on_decision, on_step
        self._tasks: set[asyncio.Task[None]] = set()
        self._conditions = ConditionWriter(context.writer, context.state.queue.is_unplaced)
        self._activity = activity
        self._last_sweep = self._clock()
        self._no_large_before = self._no_requeue_before = self._no_reserve_before = 0.0
        self.longest_step = 0.0  # seconds of processor time of this thread
        self._failure: BaseException | None = None

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
        """Note a change in the cluster: an unschedulable pod may be schedulable now."""
        self._activity.set()

    async def idle(self) -> None:
        """Wait until all writes in progress have ended, except binds that wait for volumes."""
        while busy := self._tasks - self._binds_in_flight.waiting_tasks:
            await asyncio.wait(busy, timeout=IDLE_POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED)

    def step(self) -> bool:
        """Decide about as many pods as the time of a step allows. Return whether there was anything to do."""
        began, thread_began = self._clock(), time.thread_time()
        self._on_step()
        self._requeue_unschedulable(began)
        self._reserve_nodes()
        worked = self._queue.has_candidates
        while not self._binds_in_flight.is_full and (pending := self._next_pod()) is not None:
            tried = self._clock()
            self._attempt(pending)
            worked = True  # at least one pod per step, however late: ready pods cause no further activity
            now = self._clock()
            if pending.is_large:
                self._no_large_before = now + (now - tried) * REST_FACTOR
            if now - began >= MAX_STEP_SECONDS:
                break
        self.longest_step = max(self.longest_step, time.thread_time() - thread_began)
        return worked

    def _next_pod(self) -> PendingPod | None:
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
        """When the next backoff ends, a reservation is due or the next sweep is."""
        times = [self._last_sweep + SWEEP_INTERVAL_SECONDS]
        next_retry, next_reservation = self._queue.ready_at(), self._queue.reservations.next_at()
        if next_retry is not None and not self._binds_in_flight.is_full:
            times.append(next_retry)
        if next_reservation is not None:
            times.append(max(next_reservation, self._no_reserve_before))
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
            # One evaluation may take much longer than its share; until that is made up for, pods are scheduled.
            self._no_requeue_before = now + (self._clock() - now) * REST_FACTOR
            return
        for pending in self._queue.sweep(out_of_time):
            self._metrics.missed_requeues.inc()
            log.error("requeued by the sweep, not by a change", extra={"pod": pending.key})

    def _reserve_nodes(self) -> None:
        if not self._queue.reservations.after:
            return
        began = self._clock()
        if began < self._no_reserve_before:
            return
        for change in self._reserver.run(lambda: self._clock() - began >= MAX_RESERVE_SECONDS):
            self._report_reservation(change)
        self._no_reserve_before = began + (self._clock() - began) * REST_FACTOR

    def _report_reservation(self, change: ReservationChange) -> None:
        self._events.record(PodRef.of(change.pending.workload), change.reason, change.note, action="Scheduling")
        message = change.pending.message
        if change.ended_node:
            message = message.removesuffix(f" {reserving.sentence(change.ended_node)}")
        if change.node:
            message = f"{message} {reserving.sentence(change.node)}"
        self._update_condition(change.pending, message, conditions.UNSCHEDULABLE, nominated=change.node)

    # One pod

    def _attempt(self, pending: PendingPod) -> None:
        state, nominations, began = self._state, self._queue.nominations, self._clock()
        state.refresh(pending)
        workload = pending.workload
        engine = self._engines[workload.scheduler_name]
        try:
            choice = deciding.choose(workload, engine, nominations)
            decided = self._clock()
            if choice.slot < 0:
                diagnosis = deciding.diagnose(workload, engine, nominations)
                attempt = self._preemptor.attempt(workload, engine)
        except Exception:
            # A bug in Bayplan: it is reported as such, and the other pods are still scheduled.
            log.exception("internal error while deciding", extra={"pod": pending.key})
            self._handle_internal_error(pending)
            return
        self._metrics.algorithm_seconds.observe(decided - began)
        if choice.slot >= 0:
            node = state.index.slots.at(choice.slot).name
            if log.isEnabledFor(logging.DEBUG):
                log.debug("scheduled", extra={"pod": pending.key, "node": node, "total": choice.total})
            self._on_decision(workload, node, "")
            self._volumes.assume(workload, choice.slot)
            state.assume(pending, choice.slot)
            self._binds_in_flight.enter()
            self._start_task(self._bind(pending, node, began))
        else:
            self._handle_unschedulable(pending, diagnosis, attempt, began)

    async def _bind(self, pending: PendingPod, node: str, began: float) -> None:
        try:
            await self._binder.bind(pending, node, began)
        finally:
            self._binds_in_flight.leave()

    def _handle_unschedulable(
        self, pending: PendingPod, diagnosis: Diagnosis, attempt: PreemptionAttempt, began: float
    ) -> None:
        workload = pending.workload
        reserved = self._reserver.note(workload.key)
        message = " ".join(part for part in (diagnosis.message, attempt.message, reserved) if part)
        self._metrics.observe_attempt(UNSCHEDULABLE, workload.scheduler_name, self._clock() - began)
        log.debug("unschedulable", extra={"pod": pending.key, "message_text": message})
        self._on_decision(workload, "", message)
        blockers = self._names.listed(diagnosis.blockers, workload.namespace)
        note = f"{message} Blocked by {blockers}." if blockers else message
        self._events.record(PodRef.of(workload), "FailedScheduling", note, action="Scheduling", warning=True)
        if message != pending.message or attempt.nominated is not None:
            self._update_condition(pending, message, conditions.UNSCHEDULABLE, nominated=attempt.nominated)
        if attempt.victims or attempt.displaced:
            self._start_task(self._preemptor.carry_out(workload, attempt))
        self._queue.add_unschedulable_if_not_present(pending, nominated=bool(attempt.nominated))
        self._reserver.attempt_failed(pending)

    def _handle_internal_error(self, pending: PendingPod) -> None:
        """Report that the scheduler, not the pod, is at fault, and retry later."""
        self._metrics.attempts.labels(ERROR, pending.workload.scheduler_name).inc()
        pod, message = PodRef.of(pending.workload), "internal error of the scheduler; its log has the details"
        self._events.record(pod, "FailedScheduling", message, action="Scheduling", warning=True)
        self._update_condition(pending, message, conditions.SCHEDULER_ERROR, nominated=None)
        self._queue.requeue(pending)

    def _update_condition(self, pending: PendingPod, message: str, reason: str, *, nominated: str | None) -> None:
        status = conditions.not_scheduled(message, self._wall(), pending.pod, reason=reason, nominated=nominated)
        if pending.unwritten is not None and conditions.NOMINATED in pending.unwritten:
            status.setdefault(conditions.NOMINATED, pending.unwritten[conditions.NOMINATED])
        pending.message, pending.unwritten = message, status
        self._start_task(self._conditions.write(pending))

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failure = task.exception()  # a bug in Bayplan: it ends the loop
            self._activity.set()
