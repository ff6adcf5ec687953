"""
Evaluates unschedulable pods for the queue: does one fit now, and can preemption help it?

Each pod is evaluated by the engine of its profile. Neither the index nor a nomination is changed here.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from bayplan.engine import filtering
from bayplan.engine.engine import EngineOf
from bayplan.engine.filtering import Verdicts
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.pod_table import FREE_ROW
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.preempting import preemption
from bayplan.preempting.disruption_budgets import DisruptionBudgets
from bayplan.queueing import deciding
from bayplan.queueing.nominations import Nominations
from bayplan.queueing.pending_pod import PendingPod

MAX_NOMINATED_PODS_SEARCHED = 4  # per evaluation of an equivalence class, to keep it short


class PodEvaluator:
    """The `Evaluator` of the scheduling queue, by the engines of the profiles."""

    def __init__(self, engine_of: EngineOf, budgets: DisruptionBudgets, *, preempts: bool = True) -> None:
        self._engine_of = engine_of
        self._budgets = budgets
        self._preempts = preempts

    def fits(self, workload: Workload, nominations: Nominations) -> bool:
        return deciding.choose(workload, self._engine_of(workload), nominations).slot >= 0

    def verdicts(self, workload: Workload) -> Verdicts:
        return filtering.run(workload, self._engine_of(workload))

    def pod_helped_by_preemption(
        self, equivalent: Mapping[WorkloadKey, PendingPod], nominations: Nominations
    ) -> PendingPod | None:
        sample = next(iter(equivalent.values())).workload
        if (
            not self._preempts
            or not sample.preempts
            or not has_lower_priority_pod(sample, self._engine_of(sample).index)
        ):
            return None
        # Pods without a nomination all have the same answer. Of the nominated ones a few are enough for one evaluation.
        without = (pending for key, pending in equivalent.items() if not nominations.target_of(key))
        nominated = (equivalent[one.key] for one, _ in nominations.all() if one.key in equivalent)
        candidates = itertools.chain(
            itertools.islice(without, 1), itertools.islice(nominated, MAX_NOMINATED_PODS_SEARCHED)
        )
        return next((pending for pending in candidates if self._has_new_victims(pending.workload, nominations)), None)

    def _has_new_victims(self, workload: Workload, nominations: Nominations) -> bool:
        """Whether the pod would preempt pods that are not its victims yet."""
        engine = self._engine_of(workload)
        found = preemption.preempt(workload, engine, self._budgets, nominations.all())
        victims = {evicted_id(engine.index.records[key].workload) for key in found.victims}
        return bool(found.target) and not victims <= nominations.victims_of(workload.key)


def evicted_id(victim: Workload) -> str:
    """What identifies a victim, so that it is not evicted twice: hand-written pods have no uid."""
    return victim.uid or victim.key


def has_lower_priority_pod(workload: Workload, index: PlacementIndex) -> bool:
    """Whether there is any pod that this one might preempt."""
    pod_table = index.pod_table
    return bool(((pod_table.slot != FREE_ROW) & (pod_table.priority < workload.priority)).any())
