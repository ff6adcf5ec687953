"""
Carries out preemption: nominates the node for the pod and deletes its victims.

`preempting` searches for the node and the victims. The victims get the condition DisruptionTarget and an event.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence

import msgspec

from bayplan.engine.engine import Engine
from bayplan.errors import ClusterError
from bayplan.live import conditions
from bayplan.live.cluster_writer import PodGoneError, PodRef
from bayplan.live.context import SchedulerContext
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.preempting import preemption

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


class PreemptionEvaluator:
    """Searches for victims when a pod is unschedulable, and deletes them."""

    def __init__(self, context: SchedulerContext) -> None:
        self._state, self._queue, self._writer = context.state, context.state.queue, context.writer
        self._events, self._metrics, self._wall = context.events, context.metrics, context.wall

    def attempt(self, workload: Workload, engine: Engine) -> PreemptionAttempt:
        """Search for victims of lower priority. Only nominations are changed here."""
        self._metrics.preemption_attempts.inc()
        queue = self._queue
        found = preemption.preempt(workload, engine, self._state.budgets, queue.nominations.all())
        if found.target:
            log.info("preempting", extra={"pod": workload.key, "node": found.target, "victims": list(found.victims)})
            victims = tuple(engine.index.records[key].workload for key in found.victims)
            displaced = queue.nominate(workload, found.target, frozenset(victim.uid for victim in victims))
            self._metrics.preemption_victims.observe(len(victims))
            # Victims that terminate already need no deletion.
            to_delete = tuple(victim for victim in victims if not victim.terminating)
            return PreemptionAttempt(found.message, found.target, to_delete, displaced)
        if queue.reservations.node_of(workload.key):
            return PreemptionAttempt(found.message)  # its nomination waits for no victims
        if found.clears_nomination and (queue.nominations.target_of(workload.key) or workload.nominated_target):
            queue.clear_nomination(workload.key)
            return PreemptionAttempt(found.message, "")
        return PreemptionAttempt(found.message)

    def preempt_for_group(
        self, pods: Sequence[Workload], nodes: Mapping[WorkloadKey, str], victims: Sequence[Workload]
    ) -> PreemptionAttempt:
        """Nominate the pods of a group to their nodes, with all victims for each; only nominations are changed here."""
        self._metrics.preemption_attempts.inc()
        self._metrics.preemption_victims.observe(len(victims))
        uids = frozenset(victim.uid for victim in victims)
        displaced: dict[WorkloadKey, Workload] = {}
        for pod in pods:
            if pod.key in nodes:
                others = self._queue.nominate(pod, nodes[pod.key], uids)
                displaced.update((other.key, other) for other in others)
        log.info("preempting", extra={"pod": pods[0].key, "victims": [victim.key for victim in victims]})
        to_delete = tuple(victim for victim in victims if not victim.terminating)
        return PreemptionAttempt("", nodes.get(pods[0].key), to_delete, tuple(displaced.values()))

    async def carry_out(
        self, workload: Workload, attempt: PreemptionAttempt, on_failure: Callable[[Workload], None] = lambda _: None
    ) -> None:
        """
        Clear the nominations of displaced pods in the API server and delete the victims that still exist.

        If a victim cannot be deleted, no change will requeue the pod, so it is activated here.
        """
        for other in attempt.displaced:
            if self._queue.nominations.target_of(other.key):
                continue  # another node was nominated meanwhile, and that status is written separately
            with contextlib.suppress(ClusterError):  # the next attempt of the pod writes its status again
                await self._writer.patch_status(PodRef.of(other), {"nominatedNodeName": None})
        for victim in attempt.victims:
            if victim.terminating:
                continue  # as in kube-scheduler, which only waits for it
            try:
                await self._delete_victim(victim, workload, attempt.nominated or "")
            except PodGoneError:
                continue
            except ClusterError as error:
                log.warning("victim not deleted", extra={"pod": victim.key, "for": workload.key, "error": str(error)})
                on_failure(victim)
                self._queue.activate(workload.key, workload.uid)

    async def _delete_victim(self, victim: Workload, workload: Workload, node: str) -> None:
        pod = PodRef.of(victim)
        await self._writer.patch_status(pod, conditions.preempted(workload.scheduler_name, self._wall()))
        await self._writer.delete(pod)
        note = f"Preempted by pod {workload.uid} on node {node}"
        self._events.record(pod, "Preempted", note, action="Preempting")
