"""
The scheduling loop for pods: decide, assume the pod on its node, bind it in the background, continue.

What the loop has in common with that for bindings is in `loop`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from bayplan.live import blocked_by, conditions, reserving
from bayplan.live.binding import Binder, VolumeBinder
from bayplan.live.cluster_writer import PodRef
from bayplan.live.conditions import ConditionWriter
from bayplan.live.context import Engines, SchedulerContext
from bayplan.live.first_pods import FirstPods
from bayplan.live.group_placer import GroupParts, GroupPlacer
from bayplan.live.group_reports import GroupReporter
from bayplan.live.known_groups import KnownGroups
from bayplan.live.loop import REST_FACTOR, LoopSettings, SchedulingLoop
from bayplan.live.metrics import ERROR, UNSCHEDULABLE
from bayplan.live.preemption import PreemptionAttempt, PreemptionEvaluator
from bayplan.live.reserving import NodeReserver, ReservationChange
from bayplan.model.workloads import Workload
from bayplan.queueing import deciding
from bayplan.queueing.deciding import Diagnosis
from bayplan.queueing.pending_pod import PendingPod

MAX_RESERVE_SECONDS = 0.002  # of a step, for finding nodes to reserve
log = logging.getLogger("bayplan.scheduler")

OnDecision = Callable[[Workload, str, str], None]  # the pod, its node or "", and why it has none


class Scheduler(SchedulingLoop[PendingPod]):
    """Schedules the pending pods. `on_decision` is for recordings."""

    def __init__(
        self,
        context: SchedulerContext,
        engines: Engines,
        loop: LoopSettings,
        *,
        volumes: VolumeBinder,
        preemptor: PreemptionEvaluator,
        on_decision: OnDecision,
        groups: KnownGroups | None = None,
    ) -> None:
        """Without `groups`, pods are scheduled one by one."""
        super().__init__(context.state.queue, context.metrics, loop)
        self._state = context.state
        self._events, self._metrics, self._names = context.events, context.metrics, context.names
        self._wall = context.wall
        self._engines = engines
        self._first_pods = FirstPods(context, engines, context.clock)
        self._binder = Binder(context, volumes, self._first_pods.note)
        self._volumes = volumes
        self._preemptor = preemptor
        self._reserver = NodeReserver(context, engines)
        self._on_decision = on_decision
        self._conditions = ConditionWriter(context.writer, context.state.queue.is_unplaced)
        self._no_reserve_before = 0.0
        self._groups = None if groups is None else self._group_placer(context, groups)

    def _group_placer(self, context: SchedulerContext, groups: KnownGroups) -> GroupPlacer:
        parts = GroupParts(
            self._binder,
            self._volumes,
            self._preemptor,
            GroupReporter(context, self._update_condition),
            self._binds_in_flight,
            self._start_task,
            self.changed,
        )
        return GroupPlacer(context, self._engines, groups, parts)

    # Reservations and groups

    def _further_times(self) -> list[float]:
        next_reservation = self._queue.reservations.next_at()
        times = [] if next_reservation is None else [max(next_reservation, self._no_reserve_before)]
        next_group = None if self._groups is None else self._groups.next_at()
        further = (next_group, self._first_pods.next_at())
        return [*times, *(time for time in further if time is not None)]

    def _before_attempts(self) -> None:
        self._first_pods.step()
        if self._groups is not None:
            self._groups.step()
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
        self._update_condition(change.pending, message, conditions.UNSCHEDULABLE, change.node)

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
        note = message + blocked_by.sentence(diagnosis.blockers, self._names, workload.namespace)
        self._events.record(PodRef.of(workload), "FailedScheduling", note, action="Scheduling", warning=True)
        if message != pending.message or attempt.nominated is not None:
            self._update_condition(pending, message, conditions.UNSCHEDULABLE, attempt.nominated)
        if attempt.victims or attempt.displaced:
            self._start_task(self._preemptor.carry_out(workload, attempt))
        self._queue.add_unschedulable_if_not_present(pending, nominated=bool(attempt.nominated))
        self._reserver.attempt_failed(pending)

    def _handle_internal_error(self, pending: PendingPod) -> None:
        """Report that the scheduler, not the pod, is at fault, and retry later."""
        self._metrics.attempts.labels(ERROR, pending.workload.scheduler_name).inc()
        pod, message = PodRef.of(pending.workload), "internal error of the scheduler; its log has the details"
        self._events.record(pod, "FailedScheduling", message, action="Scheduling", warning=True)
        self._update_condition(pending, message, conditions.SCHEDULER_ERROR, None)
        self._queue.requeue(pending)

    def _update_condition(self, pending: PendingPod, message: str, reason: str, nominated: str | None) -> None:
        status = conditions.not_scheduled(message, self._wall(), pending.pod, reason=reason, nominated=nominated)
        if pending.unwritten is not None and conditions.NOMINATED in pending.unwritten:
            status.setdefault(conditions.NOMINATED, pending.unwritten[conditions.NOMINATED])
        pending.message, pending.unwritten = message, status
        self._start_task(self._conditions.write(pending))
