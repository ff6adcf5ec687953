"""
The loop: take the next pod, decide, count it in, bind it in the background, and go on with the next.

One thread owns the index; deciding and counting in happen without a pause between them. What takes longer than a
moment (the API server) happens in tasks. A step ends after a few milliseconds, so that watching goes on.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from typing import Any

from bayplan.live import conditions, deciding
from bayplan.live.binding import Binder, InFlightBinds, VolumeBinder
from bayplan.live.cluster_writer import ClusterWriter, PodRef
from bayplan.live.conditions import ConditionWriter
from bayplan.live.deciding import Diagnosis
from bayplan.live.events import EventRecorder
from bayplan.live.metrics import ERROR, UNSCHEDULABLE, Metrics
from bayplan.live.preemption import PreemptionAttempt, Preemptor
from bayplan.model.workloads import Workload
from bayplan.queueing.pending_pod import PendingPod, QueueStage
from bayplan.rules.rule import Rule
from bayplan.watching.cluster_state import ClusterState

MAX_STEP_SECONDS = 0.008  # seconds of deciding before others may run
MAX_REQUEUE_SECONDS = 0.004  # of them, seconds for finding out who can be woken
IDLE_POLL_SECONDS = 0.05  # seconds until it is looked again who of the busy has begun to wait for something
SWEEP_INTERVAL_SECONDS = 300.0
log = logging.getLogger("bayplan.scheduler")

Profiles = Mapping[str, Sequence[Rule]]  # scheduler name → its rules
OnDecision = Callable[[Workload, str, str], None]  # the pod, its node or "", and why not


class Scheduler:
    """Places what is pending in `state`, while `leading`."""

    def __init__(
        self,
        state: ClusterState,
        profiles: Profiles,
        *,
        writer: ClusterWriter,
        binder: Binder,
        volumes: VolumeBinder,
        binds_in_flight: InFlightBinds,
        preemptor: Preemptor,
        events: EventRecorder,
        metrics: Metrics,
        clock: Callable[[], float],
        wall: Callable[[], datetime],
        on_decision: OnDecision,
        on_step: Callable[[], None],
    ) -> None:
        self._state = state
        self._profiles = profiles
        self._binder = binder
        self._volumes = volumes
        self._binds_in_flight = binds_in_flight
        self._preemptor = preemptor
        self._events = events
        self._metrics = metrics
        self._clock, self._wall = clock, wall
        self._on_decision, self._on_step = on_decision, on_step
        self._tasks: set[asyncio.Task[None]] = set()
        self._conditions = ConditionWriter(writer, state.is_unplaced)
        self._activity = asyncio.Event()
        self._swept = clock()
        self.longest_step = 0.0  # seconds of this thread that a step has taken at most
        self._failure: BaseException | None = None
        state.on_pending = binds_in_flight.on_free = self._activity.set

    # The loop

    async def run(self) -> None:
        """Schedule for ever."""
        while True:
            self._activity.clear()
            if self._failure is not None:
                raise self._failure
            if self.step():
                await asyncio.sleep(0)
            else:
                await self._wait()

    def changed(self) -> None:
        """Something in the cluster is other than it was: perhaps a sleeper fits now."""
        self._activity.set()

    async def idle(self) -> None:
        """Until every write that is under way has come to its end; those that wait for volumes may take for ever."""
        while busy := self._tasks - self._binds_in_flight.waiting_tasks:
            await asyncio.wait(busy, timeout=IDLE_POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED)

    def step(self) -> bool:
        """Decide about as many pods as a moment allows; whether there was anything to do."""
        began, spent = self._clock(), time.thread_time()
        self._on_step()
        self._requeue_unschedulable(began)
        worked = self._state.unschedulable.has_candidates
        while not self._binds_in_flight.is_full and (pending := self._state.queue.pop(self._clock())) is not None:
            self._attempt(pending)
            worked = True  # at least once, however late it is: nobody calls again for those who are ready already
            if self._clock() - began >= MAX_STEP_SECONDS:
                break
        self.longest_step = max(self.longest_step, time.thread_time() - spent)
        return worked

    async def _wait(self) -> None:
        """Until something happens, a back-off ends or the sweep is due."""
        until = self._swept + SWEEP_INTERVAL_SECONDS
        next_retry = self._state.queue.ready_at()
        if next_retry is not None and not self._binds_in_flight.is_full:
            until = min(until, next_retry)
        try:
            async with asyncio.timeout(max(until - self._clock(), 0.0)):
                await self._activity.wait()
        except TimeoutError:
            return

    def _requeue_unschedulable(self, now: float) -> None:
        def enough() -> bool:
            return self._clock() - now >= MAX_REQUEUE_SECONDS

        state = self._state
        for pending in state.unschedulable.wake(enough):
            state.queue.retry(pending, now)
        if now - self._swept >= SWEEP_INTERVAL_SECONDS:
            self._swept = now
            state.unschedulable.mark_all_for_sweep()
        if enough():
            return
        for pending in state.unschedulable.sweep(enough):
            self._metrics.missed_requeues.inc()
            log.error("woken by the sweep, not by an event", extra={"pod": pending.key})
            state.queue.retry(pending, now)

    # One pod

    def _attempt(self, pending: PendingPod) -> None:
        state, began = self._state, self._clock()
        state.refresh(pending)
        workload = pending.workload
        rules = self._profiles[workload.scheduler_name]
        try:
            choice = deciding.choose(workload, state.index, rules, state.nominations)
            decided = self._clock()
            if choice.slot < 0:
                diagnosis = deciding.diagnose(workload, state.index, rules, state.nominations)
                attempt = self._preemptor.attempt(workload, rules)
        except Exception:
            # A bug of ours: told as what it is, loudly, and the other pods go on.
            log.exception("internal error while deciding", extra={"pod": pending.key})
            self._handle_internal_error(pending)
            return
        self._metrics.algorithm_seconds.observe(decided - began)
        if choice.slot >= 0:
            node = state.index.slots.at(choice.slot).name
            log.debug("placed", extra={"pod": pending.key, "node": node, "total": choice.total})
            self._on_decision(workload, node, "")
            self._volumes.assume(workload, choice.slot)
            state.assume(pending, choice.slot)
            state.unschedulable.placed(workload)
            self._bind(pending, node, began)
        else:
            self._handle_unschedulable(pending, diagnosis, attempt, began)

    def _bind(self, pending: PendingPod, node: str, began: float) -> None:
        async def bind() -> None:
            try:
                await self._binder.bind(pending, node, began)
            finally:
                self._binds_in_flight.leave()

        self._binds_in_flight.enter()
        self._start_task(bind())

    def _handle_unschedulable(
        self, pending: PendingPod, diagnosis: Diagnosis, attempt: PreemptionAttempt, began: float
    ) -> None:
        state, workload = self._state, pending.workload
        message = " ".join(part for part in (diagnosis.message, attempt.message) if part)
        profile = workload.scheduler_name
        self._metrics.attempts.labels(UNSCHEDULABLE, profile).inc()
        self._metrics.attempt_seconds.labels(UNSCHEDULABLE, profile).observe(self._clock() - began)
        log.debug("refused", extra={"pod": pending.key, "message_text": message})
        self._on_decision(workload, "", message)
        self._record_unschedulable(pending, message, diagnosis, attempt.nominated)
        if attempt.victims or attempt.displaced:
            self._start_task(self._preemptor.carry_out(workload, attempt))
        state.queue.move(pending, QueueStage.WAITING)
        state.unschedulable.add(pending)
        if attempt.nominated:
            state.unschedulable.placed(workload)

    def _handle_internal_error(self, pending: PendingPod) -> None:
        """Tell the owner of a pod that it is us, not the pod, and try again later."""
        self._metrics.attempts.labels(ERROR, pending.workload.scheduler_name).inc()
        pod, message = PodRef.of(pending.workload), "internal error of the scheduler; its log has the details"
        self._events.record(pod, "FailedScheduling", message, action="Scheduling", warning=True)
        self._update_condition(pending, message, conditions.SCHEDULER_ERROR, nominated=None)
        self._state.unschedulable.remove(pending.key)
        self._state.queue.retry(pending, self._clock())

    def _record_unschedulable(
        self, pending: PendingPod, message: str, diagnosis: Diagnosis, nominated: str | None
    ) -> None:
        """The event and the condition; the condition only if it says something new."""
        pod = PodRef.of(pending.workload)
        note = message
        if diagnosis.blockers:
            note = f"{message} Blocked by {', '.join(diagnosis.blockers)}."
        self._events.record(pod, "FailedScheduling", note, action="Scheduling", warning=True)
        if message != pending.message or nominated is not None:
            self._update_condition(pending, message, conditions.UNSCHEDULABLE, nominated=nominated)

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
            self._failure = task.exception()  # a bug of ours: the loop ends with it, loudly
            self._activity.set()
