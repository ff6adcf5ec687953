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
from bayplan.live.binding import Binder
from bayplan.live.cluster_writer import ClusterWriter, PodRef
from bayplan.live.conditions import Conditions
from bayplan.live.deciding import Diagnosis
from bayplan.live.events import Events
from bayplan.live.in_flight import InFlight
from bayplan.live.metrics import ERROR, UNSCHEDULABLE, Metrics
from bayplan.live.preemption import PreemptionAttempt, Preemptor
from bayplan.live.volumes import Volumes
from bayplan.model.workloads import Workload
from bayplan.queueing.pending_pod import PendingPod, QueueStage
from bayplan.rules.rule import Rule
from bayplan.watching.cluster_state import ClusterState

STEP = 0.008  # seconds of deciding before others may run
ASKING = 0.004  # of them, seconds for finding out who can be woken
A_MOMENT = 0.05  # seconds until it is looked again who of the busy has begun to wait for something
SWEEP_EVERY = 300.0
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
        volumes: Volumes,
        in_flight: InFlight,
        preemptor: Preemptor,
        events: Events,
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
        self._in_flight = in_flight
        self._preemptor = preemptor
        self._events = events
        self._metrics = metrics
        self._clock, self._wall = clock, wall
        self._on_decision, self._on_step = on_decision, on_step
        self._tasks: set[asyncio.Task[None]] = set()
        self._conditions = Conditions(writer, state.is_unplaced)
        self._call = asyncio.Event()
        self._swept = clock()
        self.longest_step = 0.0  # seconds of this thread that a step has taken at most
        self._broken: BaseException | None = None
        state.on_pending = in_flight.on_room = self._call.set

    # The loop

    async def run(self) -> None:
        """Schedule for ever."""
        while True:
            self._call.clear()
            if self._broken is not None:
                raise self._broken
            if self.step():
                await asyncio.sleep(0)
            else:
                await self._rest()

    def changed(self) -> None:
        """Something in the cluster is other than it was: perhaps a sleeper fits now."""
        self._call.set()

    async def idle(self) -> None:
        """Until every write that is under way has come to its end; those that wait for volumes may take for ever."""
        while busy := self._tasks - self._in_flight.resting:
            await asyncio.wait(busy, timeout=A_MOMENT, return_when=asyncio.FIRST_COMPLETED)

    def step(self) -> bool:
        """Decide about as many pods as a moment allows; whether there was anything to do."""
        began, spent = self._clock(), time.thread_time()
        self._on_step()
        self._wake(began)
        worked = self._state.waiting.has_candidates
        while not self._in_flight.is_full and (pending := self._state.queue.pop(self._clock())) is not None:
            self._attempt(pending)
            worked = True  # at least once, however late it is: nobody calls again for those who are ready already
            if self._clock() - began >= STEP:
                break
        self.longest_step = max(self.longest_step, time.thread_time() - spent)
        return worked

    async def _rest(self) -> None:
        """Until something happens, a back-off ends or the sweep is due."""
        until = self._swept + SWEEP_EVERY
        next_retry = self._state.queue.ready_at()
        if next_retry is not None and not self._in_flight.is_full:
            until = min(until, next_retry)
        try:
            async with asyncio.timeout(max(until - self._clock(), 0.0)):
                await self._call.wait()
        except TimeoutError:
            return

    def _wake(self, now: float) -> None:
        def enough() -> bool:
            return self._clock() - now >= ASKING

        state = self._state
        for pending in state.waiting.wake(enough):
            state.queue.retry(pending, now)
        if now - self._swept >= SWEEP_EVERY:
            self._swept = now
            state.waiting.mark_all_for_sweep()
        if enough():
            return
        for pending in state.waiting.sweep(enough):
            self._metrics.missed_wakeups.inc()
            log.error("woken by the sweep, not by an event", extra={"pod": pending.key})
            state.queue.retry(pending, now)

    # One pod

    def _attempt(self, pending: PendingPod) -> None:
        state, began = self._state, self._clock()
        state.freshen(pending)
        workload = pending.workload
        rules = self._profiles[workload.scheduler_name]
        try:
            choice = deciding.choose(workload, state.index, rules, state.nominations)
            decided = self._clock()
            if choice.slot < 0:
                refusal = deciding.refusal(workload, state.index, rules, state.nominations)
                attempt = self._preemptor.attempt(workload, rules)
        except Exception:
            # A bug of ours: told as what it is, loudly, and the other pods go on.
            log.exception("internal error while deciding", extra={"pod": pending.key})
            self._stumble(pending)
            return
        self._metrics.algorithm_seconds.observe(decided - began)
        if choice.slot >= 0:
            node = state.index.slots.at(choice.slot).name
            log.debug("placed", extra={"pod": pending.key, "node": node, "total": choice.total})
            self._on_decision(workload, node, "")
            self._volumes.assume(workload, choice.slot)
            state.assume(pending, choice.slot)
            state.waiting.placed(workload)
            self._bind(pending, node, began)
        else:
            self._refuse(pending, refusal, attempt, began)

    def _bind(self, pending: PendingPod, node: str, began: float) -> None:
        async def bind() -> None:
            try:
                await self._binder.bind(pending, node, began)
            finally:
                self._in_flight.leave()

        self._in_flight.enter()
        self._spawn(bind())

    def _refuse(self, pending: PendingPod, refusal: Diagnosis, attempt: PreemptionAttempt, began: float) -> None:
        state, workload = self._state, pending.workload
        message = " ".join(part for part in (refusal.message, attempt.message) if part)
        profile = workload.scheduler_name
        self._metrics.attempts.labels(UNSCHEDULABLE, profile).inc()
        self._metrics.attempt_seconds.labels(UNSCHEDULABLE, profile).observe(self._clock() - began)
        log.debug("refused", extra={"pod": pending.key, "message_text": message})
        self._on_decision(workload, "", message)
        self._tell(pending, message, refusal, attempt.nominated)
        if attempt.victims or attempt.displaced:
            self._spawn(self._preemptor.carry_out(workload, attempt))
        state.queue.move(pending, QueueStage.WAITING)
        state.waiting.add(pending)
        if attempt.nominated:
            state.waiting.placed(workload)

    def _stumble(self, pending: PendingPod) -> None:
        """Tell the owner of a pod that it is us, not the pod, and try again later."""
        self._metrics.attempts.labels(ERROR, pending.workload.scheduler_name).inc()
        pod, message = PodRef.of(pending.workload), "internal error of the scheduler; its log has the details"
        self._events.tell(pod, "FailedScheduling", message, action="Scheduling", warning=True)
        self._say(pending, message, conditions.SCHEDULER_ERROR, nominated=None)
        self._state.waiting.remove(pending.key)
        self._state.queue.retry(pending, self._clock())

    def _tell(self, pending: PendingPod, message: str, refusal: Diagnosis, nominated: str | None) -> None:
        """The event and the condition; the condition only if it says something new."""
        pod = PodRef.of(pending.workload)
        note = message
        if refusal.blockers:
            note = f"{message} Blocked by {', '.join(refusal.blockers)}."
        self._events.tell(pod, "FailedScheduling", note, action="Scheduling", warning=True)
        if message != pending.message or nominated is not None:
            self._say(pending, message, conditions.UNSCHEDULABLE, nominated=nominated)

    def _say(self, pending: PendingPod, message: str, reason: str, *, nominated: str | None) -> None:
        status = conditions.not_scheduled(message, self._wall(), pending.pod, reason=reason, nominated=nominated)
        if pending.unwritten is not None and conditions.NOMINATED in pending.unwritten:
            status.setdefault(conditions.NOMINATED, pending.unwritten[conditions.NOMINATED])
        pending.message, pending.unwritten = message, status
        self._spawn(self._conditions.write(pending))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._broken = task.exception()  # a bug of ours: the loop ends with it, loudly
            self._call.set()
