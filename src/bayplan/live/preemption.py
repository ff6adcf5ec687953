"""
Making room: whom to ask to go so that a more important pod fits, and asking them.

The search is `preempting`; here its answer is carried out: the victims are told why and deleted, and the pod is
promised the node meanwhile.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from bayplan.errors import ClusterError
from bayplan.live import conditions
from bayplan.live.cluster_state import ClusterState
from bayplan.live.events import Events
from bayplan.live.metrics import Metrics
from bayplan.live.outside import GoneError, Outside, PodRef
from bayplan.model.workloads import Workload
from bayplan.preempting import preemption
from bayplan.rules.rule import Rule

log = logging.getLogger("bayplan.preemption")


class Attempt(msgspec.Struct, frozen=True):
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
        outside: Outside,
        events: Events,
        metrics: Metrics,
        *,
        wall: Callable[[], datetime],
    ) -> None:
        self._state = state
        self._outside = outside
        self._events = events
        self._metrics = metrics
        self._wall = wall

    def attempt(self, workload: Workload, rules: Sequence[Rule]) -> Attempt:
        """Look for room that less important pods could make. Changes nothing but what is promised to whom."""
        self._metrics.preemption_attempts.inc()
        state = self._state
        found = preemption.preempt(workload, state.index, rules, state.budgets, state.nominations.all())
        if found.target:
            displaced = state.nominations.displaced_by(workload, found.target)
            for other in displaced:
                state.nominations.forget(other.key)
            state.nominations.promise(workload, found.target)
            self._metrics.preemption_victims.observe(len(found.victims))
            victims = tuple(state.index.records[key].workload for key in found.victims)
            # Those that are on their way out already are only waited for.
            going = tuple(victim for victim in victims if not victim.terminating)
            return Attempt(found.message, found.target, going, displaced)
        if found.clears_nomination and state.nominations.target_of(workload.key):
            state.nominations.forget(workload.key)
            state.waiting.doubt_all()
            return Attempt(found.message, "")
        return Attempt(found.message)

    async def carry_out(self, workload: Workload, attempt: Attempt) -> None:
        """Tell the victims and delete them; those that are gone already have saved us the trouble."""
        for other in attempt.displaced:
            with contextlib.suppress(ClusterError):  # its status will be written again when it is tried again
                await self._outside.patch_status(PodRef.of(other), {"nominatedNodeName": None})
        for victim in attempt.victims:
            try:
                await self._end(victim, workload, attempt.nominated or "")
            except GoneError:
                continue
            except ClusterError as error:
                log.warning("victim not deleted", extra={"pod": victim.key, "for": workload.key, "error": str(error)})

    async def _end(self, victim: Workload, workload: Workload, node: str) -> None:
        pod = PodRef.of(victim)
        await self._outside.patch_status(pod, conditions.preempted(workload.scheduler_name, self._wall()))
        await self._outside.delete(pod)
        note = f"Preempted by pod {workload.uid} on node {node}"
        self._events.tell(pod, "Preempted", note, action="Preempting")
