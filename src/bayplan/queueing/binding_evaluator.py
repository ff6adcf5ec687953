"""Evaluates unschedulable bindings for the queue: would a scheduling attempt succeed now? Nothing is changed here."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan import schedule_binding
from bayplan.assigning import group_failover
from bayplan.assigning.candidates import LabelsNotKnown
from bayplan.assigning.cluster_ranking import FleetEngine
from bayplan.engine import filtering
from bayplan.engine.filtering import Verdicts
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.queueing.nominations import Nominations
from bayplan.queueing.pending_pod import Pending
from bayplan.schedule_binding import FleetDecision


class BindingEvaluator:
    """The `Evaluator` of the scheduling queue for bindings, which nothing is nominated for or preempted by."""

    def __init__(self, engine: FleetEngine) -> None:
        self._engine = engine

    def decision(self, workload: Workload) -> FleetDecision:
        """What a scheduling attempt would decide now."""
        with group_failover.without_workload(workload, self._engine.index):
            return schedule_binding.schedule(workload, self._engine)

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
