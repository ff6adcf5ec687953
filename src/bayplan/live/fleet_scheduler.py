"""
The scheduling loop for bindings: decide, count the result on its clusters, write it in the background, continue.

Who is tried and what becomes of a failure is as in karmada-scheduler, with two differences: a binding that fits nowhere
is not dropped, and it is tried again as soon as a change makes it fit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from bayplan import schedule_binding
from bayplan.assigning import failback, group_failover, unknown_labels
from bayplan.assigning.candidates import LabelsNotKnown, NoClusterFit
from bayplan.assigning.cluster_ranking import FleetEngine
from bayplan.errors import ClusterError
from bayplan.explaining.peer_names import PeerNames
from bayplan.live import blocked_by, fleet_results
from bayplan.live.binding_writer import BindingWriter, SupersededError
from bayplan.live.cluster_writer import NotLeadingError, PodGoneError
from bayplan.live.events import EventRecorder
from bayplan.live.fleet_metrics import ERROR, RECONCILE, SCALE, SCHEDULED, FleetMetrics
from bayplan.live.fleet_results import SCHEDULER_ERROR, SUCCEEDED, SUCCESS, UNSCHEDULABLE, ScheduleResult, Shares
from bayplan.live.fleet_writer import QUOTA_EXCEEDED, FleetWriter, exceeds_quota, ref_of, template_ref
from bayplan.live.loop import LoopSettings, SchedulingLoop
from bayplan.mapping import bindings
from bayplan.model.workloads import Workload
from bayplan.placing import place_bindings
from bayplan.queueing import deciding
from bayplan.queueing.binding_evaluator import BindingEvaluator, PendingBinding
from bayplan.schedule_binding import FleetDecision
from bayplan.watching.fleet_state import FleetState
from bayplan.wire.fleets import ResourceBinding

if TYPE_CHECKING:  # it needs the extra `estimator`
    from bayplan.live.estimators import Estimators

INTERNAL_ERROR = "internal error of the scheduler; its log has the details"
MAX_READ_SECONDS = 0.004  # of a step, for reading bindings whose policy has changed
NO_PLACEMENT = "failed to get placement from {kind}({name})"
log = logging.getLogger("bayplan.scheduler")

OnDecision = Callable[[Workload, Shares, str], None]  # the binding, its clusters, and why it has none


class FleetContext(msgspec.Struct, frozen=True):
    """What the scheduler of bindings works with; `names` says how events name bindings of other namespaces."""

    state: FleetState
    engine: FleetEngine
    writer: FleetWriter
    events: EventRecorder
    metrics: FleetMetrics
    clock: Callable[[], float]
    wall: Callable[[], datetime]
    names: PeerNames


class FleetScheduler(SchedulingLoop[PendingBinding]):
    """Schedules the bindings that are due. `on_decision` is for recordings."""

    def __init__(
        self,
        context: FleetContext,
        evaluator: BindingEvaluator,
        loop: LoopSettings,
        on_decision: OnDecision,
        estimators: Estimators | None = None,
    ) -> None:
        super().__init__(context.state.queue, context.metrics, loop)
        self._state, self._index = context.state, context.state.index
        self._events, self._metrics, self._names = context.events, context.metrics, context.names
        self._evaluator, self._estimators = evaluator, estimators
        self._writer = BindingWriter(context.state, context.writer, context.wall)
        self._on_decision = on_decision

    # Bindings whose policy has changed

    def _before_attempts(self) -> None:
        began = self._clock()
        self._state.capacity.expire(began)
        self._state.read_again(lambda: self._clock() - began >= MAX_READ_SECONDS)

    def _has_more(self) -> bool:
        return self._state.has_to_read

    def _further_times(self) -> list[float]:
        return [self._state.capacity.next_at]

    # One binding

    def _attempt(self, pending: PendingBinding) -> None:
        state, key, began = self._state, pending.key, self._clock()
        if key in state.writing:  # what is being written comes first
            self._queue.requeue(pending)
            return
        state.bring_up_to_date(key)
        if not self._queue.holds(pending):
            return  # its policy has changed, and it is in the queue anew
        written, pending.workload = state.bindings[key], state.workloads[key]
        fails_back = key in state.failing_back
        if fails_back:
            state.failing_back.discard(key)
            pending.workload = failback.permitted(pending.workload)
        is_first = pending.attempts == 1 and not pending.must
        if is_first and not state.needs_scheduling(key):
            self._in_background(pending, self._observe(pending, state.begin_write(key, assumes=False)))
            return
        if self._is_to_be_estimated(pending, fails_back=fails_back):
            return
        try:
            result, decision = self._decide(pending.workload, written)
            if fails_back and result.succeeded:
                result = fleet_results.leaving_gradually(result, written)
        except Exception:
            # A bug in Bayplan: it is reported as such, and the other bindings are still scheduled.
            log.exception("internal error while deciding", extra={"binding": key})
            result, decision = ScheduleResult(SCHEDULER_ERROR, INTERNAL_ERROR, is_retried=True), None
        self._metrics.algorithm_seconds.observe(self._clock() - began)
        self._on_decision(pending.workload, result.shares or (), "" if result.succeeded else result.message)
        is_refused = decision is not None and not decision.placed
        pending.failure = self._evaluator.failure_of(pending.workload) if is_refused else None
        if decision is not None:
            place_bindings.settle(pending.workload, decision, self._index)
            if decision.placed:
                before = dict(bindings.shares_of(written))
                state.capacity.placed(pending.workload, decision.shares, before)
                if self._index.semantics.scheduling_overcommit_protection:
                    state.capacity.assume(pending.workload, decision.shares, before)
        self._report_terms(written, decision)
        note = result.message if decision is None else self._with_blockers(pending.workload, decision, result)
        if result.succeeded:
            self._queue.assumed(pending)
        elif not result.is_retried:
            self._queue.add_unschedulable_if_not_present(pending)
        base = state.begin_write(key, assumes=result.shares is not None)
        self._in_background(pending, self._write(pending, base, result, note, began))

    def _decide(self, workload: Workload, written: ResourceBinding) -> tuple[ScheduleResult, FleetDecision | None]:
        """Decide about a binding; the index stays as it is."""
        if written.spec.placement is None:
            found = ref_of(written)
            name = NO_PLACEMENT.format(kind=found.kind[:1].lower() + found.kind[1:], name=found)
            return ScheduleResult(SCHEDULER_ERROR, name), None
        decision = self._as_seen(self._evaluator.decision(workload), workload)
        several = written.spec.placement.get("clusterAffinities") is not None
        if not decision.placed and decision.reason != NoClusterFit.reason:
            reason = UNSCHEDULABLE if decision.reason == LabelsNotKnown.reason else decision.reason
            return ScheduleResult(reason, decision.errors[0]), decision
        # With what the annotation of the policy adds, so that a change of it is noticed.
        applied = self._state.templates.with_policy(written).spec.placement
        placement = msgspec.json.encode(applied).decode()
        if decision.placed:
            affinity = decision.observed if several else None
            return ScheduleResult(SUCCESS, SUCCEEDED, decision.shares, placement, affinity), decision
        return ScheduleResult(decision.reason, decision.errors[0], (), placement), decision

    def _as_seen(self, decision: FleetDecision, workload: Workload) -> FleetDecision:
        """The decision with the messages that the owners of the binding may read, who see one namespace."""
        visible, hidden = self._names.split(decision.whose, workload.namespace)
        if not hidden:
            return decision
        names = [*unknown_labels.names_of(visible, workload, self._index), hidden]
        return msgspec.structs.replace(decision, errors=(unknown_labels.sentence(names),))

    def _report_terms(self, written: ResourceBinding, decision: FleetDecision | None) -> None:
        """Record an event for each affinity term that failed, if there are several."""
        if decision is None or not (written.spec.placement or {}).get("clusterAffinities"):
            return
        found, observed = ref_of(written), written.status.scheduler_observing_affinity_name
        names = [term.get("affinityName") for term in (written.spec.placement or {})["clusterAffinities"]]
        first = names.index(observed) if observed in names else 0
        for number, error in enumerate(decision.errors, first):
            text = f"failed to schedule {found.kind}({found}) with clusterAffiliates index({number}): {error}"
            self._record(written, text, warning=True)

    def _with_blockers(self, workload: Workload, decision: FleetDecision, result: ScheduleResult) -> str:
        """The message of a failure, with the bindings that stand in the way."""
        if result.succeeded or decision.verdicts is None:
            return result.message
        with group_failover.without_workload(workload, self._index):
            blockers = deciding.blockers(decision.verdicts, workload, self._index)
        return result.message + blocked_by.sentence(blockers, self._names, workload.namespace, "cluster")

    # Estimators

    def _is_to_be_estimated(self, pending: PendingBinding, *, fails_back: bool) -> bool:
        """Whether estimators are being asked, after which the binding is tried: once for each attempt."""
        if self._estimators is None or pending.estimated:
            pending.estimated = False
            return False
        names = self._estimators.to_ask(pending.workload)
        if names:
            self._binds_in_flight.enter()
            self._start_task(self._estimate(self._estimators, pending, names, fails_back=fails_back))
        return bool(names)

    async def _estimate(
        self, estimators: Estimators, pending: PendingBinding, names: list[str], *, fails_back: bool
    ) -> None:
        try:
            await estimators.ask(pending.workload, names)
        finally:
            pending.estimated = True
            if fails_back and self._queue.holds(pending):
                self._state.failing_back.add(pending.key)
            self._queue.put_back(pending)
            self._binds_in_flight.leave()

    # Writes

    def _in_background(self, pending: PendingBinding, work: Coroutine[Any, Any, None]) -> None:
        self._binds_in_flight.enter()
        self._start_task(self._until_ended(pending, work))

    async def _until_ended(self, pending: PendingBinding, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except (PodGoneError, NotLeadingError):
            self._state.forget(pending.key)  # a report says so, or another replica decides
            self._queue.done(pending)
        except SupersededError as error:
            self._metrics.write_failures.labels("superseded").inc()
            log.info("decided in vain", extra={"binding": pending.key, "error": str(error)})
            self._state.forget(pending.key)
            self._queue.requeue(pending)  # unless the newer generation has been reported already
        finally:
            self._state.ended(pending.key)
            self._binds_in_flight.leave()

    async def _observe(self, pending: PendingBinding, written: ResourceBinding) -> None:
        try:
            await self._writer.observe(written)
        except (PodGoneError, NotLeadingError):
            raise
        except ClusterError as error:
            self._metrics.write_failures.labels("rejected").inc()
            log.warning("generation not observed", extra={"binding": pending.key, "error": str(error)})
            self._queue.requeue(pending)
        else:
            self._queue.done(pending)

    async def _write(
        self, pending: PendingBinding, written: ResourceBinding, result: ScheduleResult, note: str, began: float
    ) -> None:
        kind = SCALE if _is_scaled(written) else RECONCILE
        try:
            has_written = await self._writer.write(written, result)
        except (PodGoneError, NotLeadingError):
            raise
        except ClusterError as error:
            self._metrics.observe_attempt(ERROR, kind, self._clock() - began)
            await self._report_rejection(pending, written, error)
            return
        self._metrics.observe_attempt(SCHEDULED if result.succeeded else ERROR, kind, self._clock() - began)
        if result.succeeded:
            if has_written:
                self._record(written, _success_text(written, result), warning=False)
            self._queue.done(pending)
            return
        self._record(written, note, warning=True)
        if result.is_retried:
            self._state.on_failure(pending)

    async def _report_rejection(self, pending: PendingBinding, written: ResourceBinding, error: ClusterError) -> None:
        """Report that the API server does not accept a result, and try again later."""
        self._metrics.write_failures.labels("rejected").inc()
        log.warning("result not written", extra={"binding": pending.key, "error": str(error)})
        self._state.forget(pending.key)
        quota = exceeds_quota(error)
        result = ScheduleResult(QUOTA_EXCEEDED if quota else SCHEDULER_ERROR, quota or str(error))
        self._record(written, result.message, warning=True)
        known = self._state.bindings.get(pending.key)
        if known is not None and known.metadata.uid == written.metadata.uid:
            try:
                await self._writer.write(known, result)
            except (PodGoneError, NotLeadingError):
                raise
            except ClusterError as failure:
                log.warning("status not written", extra={"binding": pending.key, "error": str(failure)})
        self._state.on_failure(pending)

    def _record(self, written: ResourceBinding, text: str, *, warning: bool) -> None:
        """Record an event about a binding, and about the resource that it propagates."""
        reason = "ScheduleBindingFailed" if warning else "ScheduleBindingSucceed"
        for subject in (ref_of(written), template_ref(written)):
            if subject.name:
                self._events.record(subject, reason, text, action="Scheduling", warning=warning)


def _success_text(written: ResourceBinding, result: ScheduleResult) -> str:
    """As karmada-scheduler words it, without the colon for cluster-scoped bindings; and whether it fails back."""
    colon = ":" if written.metadata.namespace else ""
    back = f" It fails back from {', '.join(result.leaving)}." if result.leaving else ""
    return f"{SUCCEEDED} Result{colon} {{{schedule_binding.listed(result.shares or ())}}}{back}"


def _is_scaled(written: ResourceBinding) -> bool:
    """Whether the attempt was made because the number of replicas has changed."""
    shares = written.spec.clusters or ()
    return bool(shares) and sum(one.replicas for one in shares) != written.spec.replicas
