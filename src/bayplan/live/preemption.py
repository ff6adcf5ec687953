"""
Carries out preemption: nominates the node for the pod and deletes its victims.

`preempting` searches for the node and the victims. The victims get the condition DisruptionTarget and an event.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Mapping

import msgspec

from bayplan.engine.engine import Engine
from bayplan.errors import ClusterError
from bayplan.indexing.pod_table import FREE_ROW
from bayplan.live import conditions
from bayplan.live.cluster_writer import PodGoneError, PodRef
from bayplan.live.context import SchedulerContext
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.preempting import preemption
from bayplan.queueing.scheduling_queue import PendingPod

MAX_NOMINATED_PODS_SEARCHED = 4  # per evaluation of an equivalence class, to keep it short
log = logging.getLogger("bayplan.preemption")


class PreemptionAttempt(msgspec.Struct, frozen=True):
    """
    The result of a search. `nominated` is the newly nominated node, "" if the nomination is cleared, None if it stays.

    `displaced` are pods of lower priority for which the same node had been nominated.
    """

    message: str = ""
    nominated: str | None = None
    victims: tuple[Workload, ...] = ()
    displaced: tuple[Workload, ...] = ()


class Preemptor:
    """Searches for victims when a pod is unschedulable, and deletes them."""

    def __init__(self, context: SchedulerContext) -> None:
        self._state, self._writer = context.state, context.writer
        self._events, self._metrics, self._wall = context.events, context.metrics, context.wall

    def attempt(self, workload: Workload, engine: Engine) -> PreemptionAttempt:
        """Search for victims of lower priority. Only nominations are changed here."""
        self._metrics.preemption_attempts.inc()
        state = self._state
        found = self._search(workload, engine)
        if found.target:
            displaced = state.nominations.displaced_by(workload, found.target)
            for other in displaced:
                state.clear_nomination(other.key)
                state.activate(other.key, other.uid)  # it may fit another node, or preempt pods there
            victims = self._victims(found)
            state.nominate(workload, found.target)
            state.nominations.note_victims(workload.key, frozenset(victim.uid for victim in victims))
            self._metrics.preemption_victims.observe(len(victims))
            # Victims that terminate already need no deletion.
            to_delete = tuple(victim for victim in victims if not victim.terminating)
            return PreemptionAttempt(found.message, found.target, to_delete, displaced)
        if found.clears_nomination and (state.nominations.target_of(workload.key) or workload.nominated_target):
            state.clear_nomination(workload.key)
            return PreemptionAttempt(found.message, "")
        return PreemptionAttempt(found.message)

    def pod_helped(self, equivalent: Mapping[WorkloadKey, PendingPod], engine: Engine) -> PendingPod | None:
        """Return one of these equivalent pods that would preempt new victims if it were scheduled now, else None."""
        sample, nominations = next(iter(equivalent.values())).workload, self._state.nominations
        if not sample.preempts or not self._has_lower_priority_pod(sample):
            return None
        # Pods without a nomination all have the same answer. Of the nominated ones a few are enough for one evaluation.
        without = (pending for key, pending in equivalent.items() if not nominations.target_of(key))
        nominated = (equivalent[one.key] for one, _ in nominations.all() if one.key in equivalent)
        candidates = itertools.chain(
            itertools.islice(without, 1), itertools.islice(nominated, MAX_NOMINATED_PODS_SEARCHED)
        )
        return next((pending for pending in candidates if self._has_new_victims(pending.workload, engine)), None)

    def _has_new_victims(self, workload: Workload, engine: Engine) -> bool:
        """Whether the pod would preempt pods that are not its victims yet."""
        found = self._search(workload, engine)
        known = self._state.nominations.victims_of(workload.key)
        return bool(found.target) and not {victim.uid for victim in self._victims(found)} <= known

    def _has_lower_priority_pod(self, workload: Workload) -> bool:
        pod_table = self._state.index.pod_table
        return bool(((pod_table.slot != FREE_ROW) & (pod_table.priority < workload.priority)).any())

    def _search(self, workload: Workload, engine: Engine) -> preemption.Preemption:
        state = self._state
        return preemption.preempt(workload, engine, state.budgets, state.nominations.all())

    def _victims(self, found: preemption.Preemption) -> tuple[Workload, ...]:
        return tuple(self._state.index.records[key].workload for key in found.victims)

    async def carry_out(self, workload: Workload, attempt: PreemptionAttempt) -> None:
        """
        Clear the nominations of displaced pods in the API server and delete the victims that still exist.

        If a victim cannot be deleted, no change will requeue the pod, so it is activated here.
        """
        for other in attempt.displaced:
            if self._state.nominations.target_of(other.key):
                continue  # another node was nominated meanwhile, and that status is written separately
            with contextlib.suppress(ClusterError):  # the next attempt of the pod writes its status again
                await self._writer.patch_status(PodRef.of(other), {"nominatedNodeName": None})
        for victim in attempt.victims:
            try:
                await self._delete_victim(victim, workload, attempt.nominated or "")
            except PodGoneError:
                continue
            except ClusterError as error:
                log.warning("victim not deleted", extra={"pod": victim.key, "for": workload.key, "error": str(error)})
                self._state.activate(workload.key, workload.uid)

    async def _delete_victim(self, victim: Workload, workload: Workload, node: str) -> None:
        pod = PodRef.of(victim)
        await self._writer.patch_status(pod, conditions.preempted(workload.scheduler_name, self._wall()))
        await self._writer.delete(pod)
        note = f"Preempted by pod {workload.uid} on node {node}"
        self._events.record(pod, "Preempted", note, action="Preempting")
