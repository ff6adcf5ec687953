"""
Reserves nodes for pods that have been unschedulable for long, and gives them back (`bayplan run --reserve-after`).

`queueing.reservations` says which pod is next and for how long, `preempting.reservable_nodes` which node. The caller
tells the pod.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from bayplan.explaining import shortages
from bayplan.live.context import Engines, SchedulerContext
from bayplan.model.workloads import WorkloadKey
from bayplan.preempting import reservable_nodes
from bayplan.preempting.reservable_nodes import ReservableNodes
from bayplan.queueing import nominations
from bayplan.queueing.pending_pod import PendingPod
from bayplan.queueing.reservations import DURATION_FACTOR, Reservation

RESERVED, ENDED = "NodeReserved", "ReservationEnded"  # reasons of events
log = logging.getLogger("bayplan.reserving")


class ReservationChange(msgspec.Struct, frozen=True):
    """A node that is reserved for a pod from now on, or no longer; `note` says why."""

    pending: PendingPod
    reason: str
    note: str
    node: str = ""
    ended_node: str = ""


class NodeReserver:
    """Reserves nodes for the pods of the scheduling queue."""

    def __init__(self, context: SchedulerContext, engines: Engines) -> None:
        self._queue, self._reservations = context.state.queue, context.state.queue.reservations
        self._clock, self._engines = context.clock, engines

    def note(self, key: WorkloadKey) -> str:
        """What a pod is told of its reservation, empty if it has none."""
        node = self._reservations.node_of(key)
        return sentence(node) if node else ""

    def attempt_failed(self, pending: PendingPod) -> None:
        """Let a pod wait for a reservation after an attempt that found no node."""
        if self._reservations.after:
            self._reservations.wait(pending, self._clock(), is_short=self._reservable(pending).is_short)

    def run(self, out_of_time: Callable[[], bool]) -> list[ReservationChange]:
        """End the reservations that are over or of no use, and make those that pods have waited for."""
        changes: list[ReservationChange] = []
        if not self._reservations.after:
            return changes
        for held in self._reservations.to_check(self._clock()):
            why = self._why_ended(held)
            if why:
                self._queue.clear_nomination(held.pending.key)
                changes.append(_ended(held, why))
            else:
                self._reservations.keep(held, self._clock())
        while (waited := self._reservations.next_candidate(self._clock())) is not None:
            reserved = self._reserve(waited.pending, was_short=waited.is_short)
            if reserved is not None:
                changes.append(reserved)
            if out_of_time():
                break
        return changes

    def _reserve(self, pending: PendingPod, *, was_short: bool) -> ReservationChange | None:
        found = self._reservable(pending)
        is_nominated = bool(self._queue.nominations.target_of(pending.key))  # it waits for victims
        if not (was_short and found.nearest) or is_nominated:
            self._reservations.wait_again(pending, self._clock(), is_short=found.is_short)
            return None
        self._queue.reserve(pending, found.nearest)
        lasts = f"{DURATION_FACTOR * self._reservations.after:g}"
        missing = shortages.amounts_text(found.missing)
        log.info("node reserved", extra={"pod": pending.key, "node": found.nearest, "missing": missing})
        note = f"{sentence(found.nearest)} It lacks {missing}. The reservation ends after {lasts} s."
        return ReservationChange(pending, RESERVED, note, node=found.nearest)

    def _why_ended(self, held: Reservation[PendingPod]) -> str:
        if self._clock() >= held.ends_at:
            return "its time is over, and the pod waits again"
        index, found = self._engines[held.pending.workload.scheduler_name].index, self._reservable(held.pending)
        slot = index.slots.by_name.get(held.node)
        if slot is None or not (found.fits or found.nodes[slot]):
            return "the pod could no longer be placed there"
        return ""

    def _reservable(self, pending: PendingPod) -> ReservableNodes:
        workload = pending.workload
        engine, nominated = self._engines[workload.scheduler_name], self._queue.nominations
        taken = [node for other, node in nominated.all() if other.key != workload.key]
        with nominations.with_nominated_pods(nominated.competing_with(workload), engine.index):
            return reservable_nodes.find(workload, engine, taken)


def sentence(node: str) -> str:
    return f"Node {node} is reserved for this pod."


def _ended(held: Reservation[PendingPod], why: str) -> ReservationChange:
    log.info("reservation ended", extra={"pod": held.pending.key, "node": held.node, "reason": why})
    note = f"Node {held.node} is no longer reserved for this pod: {why}."
    return ReservationChange(held.pending, ENDED, note, ended_node=held.node)
