"""
Evaluates unschedulable bindings for the queue: would an attempt succeed now, or fail for another reason than reported?

Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bayplan import schedule_binding
from bayplan.assigning import group_failover
from bayplan.assigning.candidates import LabelsNotKnown
from bayplan.assigning.cluster_ranking import FleetEngine
from bayplan.engine import filtering
from bayplan.engine.filtering import Verdicts
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.queueing.nominations import Nominations
from bayplan.queueing.pending_pod import Pending, PendingWorkload
from bayplan.schedule_binding import FleetDecision

MAX_MESSAGE_AGE_SECONDS = 300.0


class PendingBinding(PendingWorkload):
    """
    One binding that is due. Unless it `must` be scheduled, its first attempt checks whether it has to be.

    `failure` is the reason and the message with which its last decision failed, None if there was none. `estimated`:
    the capacity of clusters was asked for since the last one.
    """

    __slots__ = ("estimated", "failure", "must")

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.failure: tuple[str, str] | None = None
        self.must = self.estimated = False


class BindingEvaluator:
    """The `Evaluator` of the scheduling queue for bindings, which nothing is nominated for or preempted by."""

    def __init__(self, engine: FleetEngine, clock: Callable[[], float]) -> None:
        self._engine, self._clock = engine, clock
        self._last: tuple[Workload, int, FleetDecision] | None = None  # with the end of the journal

    def decision(self, workload: Workload) -> FleetDecision:
        """What a scheduling attempt would decide now."""
        journal, last = self._engine.index.journal, self._last
        if last is not None and last[0] is workload and last[1] == journal.end:
            return last[2]
        with group_failover.without_workload(workload, self._engine.index):
            decision = schedule_binding.schedule(workload, self._engine)
        self._last = workload, journal.end, decision
        return decision

    def failure_of(self, workload: Workload) -> tuple[str, str]:
        """The reason and the message with which an attempt would fail now."""
        decision = self.decision(workload)
        return decision.reason, "; ".join(decision.errors)

    def is_outdated(self, pending: PendingBinding) -> bool:
        """
        Whether a binding that does not fit fails for another reason than reported.

        The same reason in other words, such as the capacity that is missing, is outdated after some minutes: clusters
        report other numbers all the time.
        """
        if pending.failure is None:
            return False
        now = self.failure_of(pending.workload)
        if now == pending.failure or now[0] != pending.failure[0]:
            return now != pending.failure
        is_old = self._clock() - pending.tried >= MAX_MESSAGE_AGE_SECONDS
        return is_old or now[0] == LabelsNotKnown.reason  # whose are missing is what there is to do

    def fits(self, workload: Workload, nominations: Nominations) -> bool:
        del nominations
        return self.decision(workload).placed

    def verdicts(self, workload: Workload) -> Verdicts | None:
        """
        The verdicts of the rules about peers, which are the same for every affinity term.

        Every change of a cluster is evaluated, as it may change its capacity, so the other rules need not be known.
        """
        decision = self.decision(workload)
        if decision.reason == LabelsNotKnown.reason:  # the labels of any workload may settle it
            return None
        engine = self._engine
        return filtering.verdicts_of(engine.evaluate(workload, engine.about_peers), engine.index)

    def pod_helped_by_preemption(
        self, equivalent: Mapping[WorkloadKey, Pending], nominations: Nominations
    ) -> Pending | None:
        del equivalent, nominations
        return None
