"""
Making room: whom to ask to go so that a more important pod fits, and asking them.

The search is `preempting`; here its answer is carried out: the victims are told why and deleted, and the pod is
promised the node meanwhile.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import msgspec

from bayplan.errors import ClusterError
from bayplan.indexing.pod_table import FREE_ROW
from bayplan.live import conditions
from bayplan.live.cluster_writer import ClusterWriter, PodGoneError, PodRef
from bayplan.live.events import EventRecorder
from bayplan.live.metrics import Metrics
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.preempting import preemption
from bayplan.queueing.pending_pod import PendingPod
from bayplan.rules.rule import Rule
from bayplan.watching.cluster_state import ClusterState

MAX_PODS_SEARCHED = 4  # searches that are no more than a moment's work
log = logging.getLogger("bayplan.preemption")


class PreemptionAttempt(msgspec.Struct, frozen=True):
    """
    What came of the search. `nominated` is the node promised now, "" if an earlier promise is taken back, None if
    nothing changes. `displaced` are less important pods that had been promised the same node.
    """

    message: str = ""
    nominated: str | None = None
    victims: tuple[Workload, ...] = ()
    displaced: tuple[Workload, ...] = ()


class Preemptor:
    """Searches for victims when a pod fits nowhere, and carries out what was found."""

    def __init__(
        self,
        state: ClusterState,
        writer: ClusterWriter,
        events: EventRecorder,
        metrics: Metrics,
        *,
        wall: Callable[[], datetime],
    ) -> None:
        self._state = state
        self._writer = writer
        self._events = events
        self._metrics = metrics
        self._wall = wall

    def attempt(self, workload: Workload, rules: Sequence[Rule]) -> PreemptionAttempt:
        """Look for room that less important pods could make. Changes nothing but what is promised to whom."""
        self._metrics.preemption_attempts.inc()
        state = self._state
        found = self._search(workload, rules)
        if found.target:
            displaced = state.nominations.displaced_by(workload, found.target)
            for other in displaced:
                state.clear_nomination(other.key)
                state.activate(other.key, other.uid)  # it may find another place, or make room elsewhere
            victims = self._victims(found)
            state.nominate(workload, found.target)
            state.nominations.note_victims(workload.key, frozenset(victim.uid for victim in victims))
            self._metrics.preemption_victims.observe(len(victims))
            # Those that are on their way out already are only waited for.
            going = tuple(victim for victim in victims if not victim.terminating)
            return PreemptionAttempt(found.message, found.target, going, displaced)
        if found.clears_nomination and (state.nominations.target_of(workload.key) or workload.nominated_target):
            state.clear_nomination(workload.key)
            return PreemptionAttempt(found.message, "")
        return PreemptionAttempt(found.message)

    def pod_helped(self, alike: Mapping[WorkloadKey, PendingPod], rules: Sequence[Rule]) -> PendingPod | None:
        """Of pods that no rule tells apart one that somebody would be asked to go for, if it were tried again now."""
        sample, nominated = next(iter(alike.values())).workload, self._state.nominations
        if not sample.preempts or not self._has_lesser(sample):
            return None
        # Of those without a promise all would be told the same; a few of the others will do for one look.
        without = (pending for key, pending in alike.items() if not nominated.target_of(key))
        having = (alike[one.key] for one, _ in nominated.all() if one.key in alike)
        asking = itertools.chain(itertools.islice(without, 1), itertools.islice(having, MAX_PODS_SEARCHED))
        return next((pending for pending in asking if self._would_help(pending.workload, rules)), None)

    def _would_help(self, workload: Workload, rules: Sequence[Rule]) -> bool:
        """Whether somebody would be asked to go for the pod who was not asked before."""
        found = self._search(workload, rules)
        asked = self._state.nominations.victims_of(workload.key)
        return bool(found.target) and not {victim.uid for victim in self._victims(found)} <= asked

    def _has_lesser(self, workload: Workload) -> bool:
        pod_table = self._state.index.pod_table
        return bool(((pod_table.slot != FREE_ROW) & (pod_table.priority < workload.priority)).any())

    def _search(self, workload: Workload, rules: Sequence[Rule]) -> preemption.Preemption:
        state = self._state
        return preemption.preempt(workload, state.index, rules, state.budgets, state.nominations.all())

    def _victims(self, found: preemption.Preemption) -> tuple[Workload, ...]:
        return tuple(self._state.index.records[key].workload for key in found.victims)

    async def carry_out(self, workload: Workload, attempt: PreemptionAttempt) -> None:
        """
        Tell the victims and delete them; those that are gone already have saved us the trouble.

        If one could not be deleted, nothing will happen that wakes the pod: it is tried again.
        """
        for other in attempt.displaced:
            if self._state.nominations.target_of(other.key):
                continue  # it was promised another node meanwhile, and will say so itself
            with contextlib.suppress(ClusterError):  # its status will be written again when it is tried again
                await self._writer.patch_status(PodRef.of(other), {"nominatedNodeName": None})
        for victim in attempt.victims:
            try:
                await self._end(victim, workload, attempt.nominated or "")
            except PodGoneError:
                continue
            except ClusterError as error:
                log.warning("victim not deleted", extra={"pod": victim.key, "for": workload.key, "error": str(error)})
                self._state.activate(workload.key, workload.uid)

    async def _end(self, victim: Workload, workload: Workload, node: str) -> None:
        pod = PodRef.of(victim)
        await self._writer.patch_status(pod, conditions.preempted(workload.scheduler_name, self._wall()))
        await self._writer.delete(pod)
        note = f"Preempted by pod {workload.uid} on node {node}"
        self._events.record(pod, "Preempted", note, action="Preempting")
