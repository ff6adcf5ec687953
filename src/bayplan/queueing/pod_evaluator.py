"""
Evaluates unschedulable pods for the queue: does one fit now, and can preemption help it?

Each pod is evaluated by the engine of its profile. Neither the index nor a nomination is changed here.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from bayplan.engine import filtering
from bayplan.engine.engine import EngineOf
from bayplan.engine.filtering import Verdicts
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.pod_table import FREE_ROW
from bayplan.model.reasons import Mask
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.preempting import preemption
from bayplan.preempting.disruption_budgets import DisruptionBudgets
from bayplan.queueing import deciding
from bayplan.queueing.nominations import Nominations
from bayplan.queueing.pending_pod import Pending, PendingWorkload

MAX_NOMINATED_PODS_SEARCHED = 4  # per evaluation of an equivalence class, to keep it short


class PodEvaluator:
    """The `Evaluator` of the scheduling queue, by the engines of the profiles."""

    def __init__(self, engine_of: EngineOf, budgets: DisruptionBudgets, *, preempts: bool = True) -> None:
        self._engine_of = engine_of
        self._budgets = budgets
        self._preempts = preempts

    def fits(self, workload: Workload, nominations: Nominations) -> bool:
        return deciding.choose(workload, self._engine_of(workload), nominations).slot >= 0

    def is_outdated(self, pending: PendingWorkload) -> bool:
        del pending  # as in kube-scheduler, the condition of a pod is that of its last attempt
        return False

    def verdicts(self, workload: Workload) -> Verdicts:
        return filtering.run(workload, self._engine_of(workload))

    def pod_helped_by_preemption(
        self, equivalent: Mapping[WorkloadKey, Pending], nominations: Nominations
    ) -> Pending | None:
        sample = next(iter(equivalent.values())).workload
        if not self._preempts or not sample.preempts:
            return None
        index = self._engine_of(sample).index
        lower = _lower_priority_rows(sample, index)
        # Pods without a nomination all have the same answer. Of the nominated ones a few are enough for one evaluation.
        without = (pending for key, pending in equivalent.items() if not nominations.target_of(key))
        nominated = [(equivalent[one.key], node) for one, node in nominations.all() if one.key in equivalent]
        if len(nominated) > MAX_NOMINATED_PODS_SEARCHED:
            # First those whose victims are gone: they may leave each other no room, until one loses its nomination.
            may_wait = np.zeros(index.slots.capacity, np.bool_)
            may_wait[index.pod_table.slot[lower]] = True
            slots = index.slots.by_name
            nominated.sort(key=lambda one: one[1] in slots and bool(may_wait[slots[one[1]]]))
        candidates = itertools.chain(
            itertools.islice(without, bool(lower.any())),
            (pending for pending, _ in nominated[:MAX_NOMINATED_PODS_SEARCHED]),
        )
        return next((one for one in candidates if self._would_change(one.workload, nominations)), None)

    def _would_change(self, workload: Workload, nominations: Nominations) -> bool:
        """Whether the pod would preempt pods that are not its victims yet, or else lose its nomination."""
        engine = self._engine_of(workload)
        found = preemption.preempt(workload, engine, self._budgets, nominations.all())
        if not found.target:
            return found.clears_nomination and nominations.waits_for_victims(workload.key)
        victims = {evicted_id(engine.index.records[key].workload) for key in found.victims}
        return not victims <= nominations.victims_of(workload.key)


def evicted_id(victim: Workload) -> str:
    """What identifies a victim, so that it is not evicted twice: hand-written pods have no uid."""
    return victim.uid or victim.key


def has_lower_priority_pod(workload: Workload, index: PlacementIndex) -> bool:
    """Whether there is any pod that this one might preempt."""
    return bool(_lower_priority_rows(workload, index).any())


def _lower_priority_rows(workload: Workload, index: PlacementIndex) -> Mask:
    pod_table = index.pod_table
    lower: Mask = (pod_table.slot != FREE_ROW) & (pod_table.priority < workload.priority)
    return lower
