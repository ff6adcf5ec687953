"""
The order in which a plan is carried out so that each step is safe: pods are placed, and running pods move.

A step is safe if the scheduler accepts each pod of it on its node as things are then, no PodDisruptionBudget forbids
the eviction, and no other pod that met its hard rules breaks one afterwards. A pod that moves is evicted, and runs
again before the next step. The members of a group are placed in one step. Does not know how a plan was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from bayplan import schedule_pod
from bayplan.engine import filtering
from bayplan.engine.engine import EngineOf
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.terms import resolve
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.preempting.disruption_budgets import DisruptionBudgets


class PlanStep(msgspec.Struct, frozen=True):
    """Pods that are placed, each on its node; or one pod that moves, with the node that it is on `before`."""

    pods: tuple[Workload, ...]
    nodes: tuple[str, ...]
    before: str = ""


class SafeSteps:
    """Carries out steps on an index, one at a time, each only if it is safe."""

    def __init__(self, index: PlacementIndex, engine_of: EngineOf, budgets: Iterable[DisruptionBudget]) -> None:
        self._index, self._engine_of = index, engine_of
        self._budgets = DisruptionBudgets(budgets)

    def in_order(self, steps: Sequence[PlanStep]) -> list[PlanStep] | None:
        """Carry out all steps in a safe order, placing before moving where both are safe; None if there is none."""
        left, found = sorted(steps, key=lambda step: bool(step.before)), list[PlanStep]()
        while left:
            chosen = next((step for step in left if self.carry_out(step)), None)
            if chosen is None:
                return None
            left.remove(chosen)
            found.append(chosen)
        return found

    def carry_out(self, step: PlanStep) -> bool:
        """Carry out a step if it is safe, and return whether it is; else nothing is changed."""
        if step.before and self._budgets.forbidding(step.pods[0]):
            return False
        slots = [self._index.slots.by_name[node] for node in step.nodes]
        watched = self._concerned(step)
        mark = self._index.mark()
        if step.before:
            self._index.remove(step.pods[0].key)
        for pod, slot in zip(step.pods, slots, strict=True):
            schedule_pod.assume(self._index, pod, slot)
        placed = dict(zip((pod.key for pod in step.pods), slots, strict=True))
        if self._hold(placed) and self._hold(watched):
            self._index.forget(mark)
            return True
        self._index.undo_to(mark)
        return False

    def _hold(self, slots: Mapping[WorkloadKey, int]) -> bool:
        """Whether each of these pods is feasible where it is, in the presence of all others."""
        return all(self._is_feasible(key, slot) for key, slot in slots.items())

    def _is_feasible(self, key: WorkloadKey, slot: int) -> bool:
        workload = self._index.records[key].workload
        with self._index.without(key):
            return bool(filtering.run(workload, self._engine_of(workload)).feasible[slot])

    def _concerned(self, step: PlanStep) -> dict[WorkloadKey, int]:
        """Other pods whose hard rules hold, and may not once a pod has left or others have come."""
        own = {pod.key for pod in step.pods}
        return {
            record.key: record.slots[0]
            for record in list(self._index.records.values())
            if record.key not in own
            and len(record.slots) == 1
            and any(self._selects(record.workload, pod) for pod in step.pods)
            and self._is_feasible(record.key, record.slots[0])
        }

    def _selects(self, owner: Workload, pod: Workload) -> bool:
        """Whether a required affinity term or hard spread constraint of a pod selects another."""
        affinity, spread = owner.needs.affinity, owner.needs.spread
        if affinity.required or affinity.group_required:
            resolved = resolve(affinity, owner.namespace, self._index.semantics, incoming=True)
            terms = (*resolved.required, *resolved.group_required)
            if any(self._index.peer_index.matches(use.term, pod.labels, pod.namespace) for use in terms):
                return True
        hard = [one for one in spread.constraints if one.hard]
        return bool(hard) and owner.namespace == pod.namespace
