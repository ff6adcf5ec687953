"""
Place pods as a scheduler does: by its queue, with retries and preemption, until nothing more can be placed.

`SchedulingQueue` orders the attempts by a clock that jumps to the end of the next backoff, so no time passes. A pod
that fits nowhere is tried again when a later placement lifts that, such as that of its affinity partner. Victims of
preemption leave at once; those that a controller manages come back pending and are placed too. Knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import msgspec

from bayplan import schedule_pod
from bayplan.engine import equivalence
from bayplan.engine.engine import Engine, EngineOf
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping.pods import SpreadContext
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.placing import place_pods, recreating
from bayplan.placing.place_pods import PodPlacement
from bayplan.preempting import preemption
from bayplan.preempting.disruption_budgets import DisruptionBudgets
from bayplan.preempting.preemption import Preemption
from bayplan.queueing import deciding, nominations, pod_evaluator
from bayplan.queueing.pending_pod import PendingPod
from bayplan.queueing.pod_evaluator import PodEvaluator
from bayplan.queueing.scheduling_queue import SchedulingQueue
from bayplan.wire.pods import Pod

if TYPE_CHECKING:
    from bayplan.placing.assumed_volumes import AssumedVolumes, TopologyKeys
    from bayplan.placing.group_scheduler import GroupScheduler  # most clusters have no groups

TERMINATING = "the pod is being deleted"
MAX_ATTEMPTS = 50  # of one pod: more than any chain of preemptions takes; ends what would go on for ever by a bug
_AS_WRITTEN = Pod()  # a queue keeps pods as written for API servers, and here there is none

OnPreemption = Callable[[Workload, Preemption], None]  # called before the victims leave
Recreate = Callable[[Workload], Workload | None]


class PreemptedPod(msgspec.Struct, frozen=True):
    """
    A running pod that was preempted, or evicted from its node without a `preemptor`.

    `is_recreated` if its controller creates it again.
    """

    victim: Workload
    node: str
    preemptor: WorkloadKey
    is_recreated: bool


class PodScheduler:
    """
    Schedules pending pods on an index.

    `placements` has the latest placement of each pod, victims that come back included, in the order of their first
    attempts. `doubts` says of placed pods why it is not known whether they can use their volumes. `budgets` are charged
    for victims. `recreate` returns the pod that a controller creates in place of a victim, None if none does.
    `on_attempt` is called after each attempt. `make_groups` makes what places groups, once there is a member of one;
    without it, members are placed one by one. `topology_keys` are those of each node's storage drivers.
    """

    def __init__(
        self,
        engine_of: EngineOf,
        index: PlacementIndex,
        budgets: Iterable[DisruptionBudget],
        recreate: Recreate,
        *,
        preempts: bool = True,
        on_preemption: OnPreemption = lambda _, __: None,
        on_attempt: Callable[[], None] = lambda: None,
        make_groups: Callable[[], GroupScheduler] | None = None,
        topology_keys: TopologyKeys | None = None,
    ) -> None:
        self.placements: dict[WorkloadKey, PodPlacement] = {}
        self.doubts: dict[WorkloadKey, str] = {}
        self.evictions: list[PreemptedPod] = []
        self._engine_of, self._index, self._recreate = engine_of, index, recreate
        self._preempts, self._on_preemption, self._on_attempt = preempts, on_preemption, on_attempt
        self._budgets, self._make_groups = DisruptionBudgets(budgets), make_groups
        self._groups: GroupScheduler | None = None
        self._topology_keys = topology_keys or {}
        self._volumes: AssumedVolumes | None = None
        self._seconds = 0.0
        evaluator = PodEvaluator(engine_of, self._budgets, preempts=preempts)
        self._queue: SchedulingQueue[PendingPod] = SchedulingQueue(index, evaluator, lambda: self._seconds)
        self._futile: dict[Hashable, int] = {}  # no victims were found for pods of this class at that position
        self._victims: dict[WorkloadKey, tuple[WorkloadKey, ...]] = {}
        self._unplaced: dict[WorkloadKey, Workload] = {}  # tried, and no node is feasible
        self._evicted: dict[WorkloadKey, PreemptedPod] = {}

    def add(self, workload: Workload) -> None:
        """Let a pod wait for a node, with its group if it is in one."""
        if workload.group is not None:
            self.place_groups()
        if self._groups is None or not self._groups.add(workload):
            self._queue.add(PendingPod(_AS_WRITTEN, workload))
        if workload.gates:
            self.placements[workload.key] = place_pods.gated(workload)
        elif workload.terminating:
            self.placements[workload.key] = PodPlacement(workload, message=TERMINATING)

    def place_groups(self) -> None:
        """From now on place groups as a whole, if the scheduler can; without members of any, nothing is different."""
        if self._groups is None and self._make_groups is not None:
            self._groups = self._make_groups()

    def remove(self, key: WorkloadKey) -> None:
        """Remove a pod, pending or placed; its placement is forgotten."""
        if not (self._groups is not None and self._groups.remove(key)) and self._queue.delete(key) is None:
            self._index.remove(key)
            self._note_change()
        self.placements.pop(key, None)
        self._unplaced.pop(key, None)

    def evict(self, key: WorkloadKey) -> str:
        """Evict a placed pod as the eviction API does, unless a budget forbids it: why, empty if it was evicted."""
        victim = self._index.records[key].workload
        forbidding = self._budgets.forbidding(victim)
        if not forbidding:
            self._remove_victim(victim, WorkloadKey(""))
        return forbidding

    def schedule(self, *, until: Callable[[], bool] = lambda: False) -> None:
        """Make attempts until no pod can be placed or tried, or until `until` is true after one of them."""
        while True:
            pending = self._next_pod()
            is_group_placed = self._groups is not None and self._attempt_groups(self._groups, pending)
            if pending is not None:
                self._attempt(pending)
            elif not is_group_placed and (self._volumes is None or not self._volumes.provision()):
                break
            self._on_attempt()
            if until():
                break
        self._diagnose_unplaced()

    def _attempt_groups(self, groups: GroupScheduler, pending: PendingPod | None) -> bool:
        """Try the groups whose turn comes before a pod, or all if no pod can be tried; whether one was placed."""
        placed = groups.attempt(None if pending is None else pending.workload)
        self.placements.update((one.workload.key, one) for one in placed)
        for one in placed:
            if one.workload.needs.claims.names:
                self._assume_volumes(one.workload, self._index.slots.by_name[one.target])
        return bool(placed)

    def _note_change(self) -> None:
        """Let groups be tried again."""
        if self._groups is not None:
            self._groups.n_changes += 1

    def _next_pod(self) -> PendingPod | None:
        while (pending := self._queue.pop()) is None:
            self._queue.move_to_active_or_backoff()
            ready_at = self._queue.ready_at()
            if ready_at is None:
                return None
            self._seconds = max(self._seconds, ready_at)
        return pending

    def _attempt(self, pending: PendingPod) -> None:
        workload, engine = pending.workload, self._engine_of(pending.workload)
        choice = deciding.choose(workload, engine, self._queue.nominations)
        if choice.slot >= 0:
            if workload.needs.claims.names:
                self._assume_volumes(workload, choice.slot)
            target = schedule_pod.assume(self._index, workload, choice.slot)
            if self._groups is not None:
                self._groups.n_changes += 1
            self._queue.assumed(pending)
            self._queue.done(pending)
            self._unplaced.pop(workload.key, None)
            if workload.key in self._evicted:
                self._budgets.charge(workload, -1)
            self._record(workload, target, choice.total, victims=self._victims.pop(workload.key, ()))
            return
        self._record(workload)
        self._unplaced[workload.key] = workload
        found = self._preemption_for(pending, engine)
        if found.target:
            self._preempt(workload, found)
        elif found.clears_nomination:
            self._queue.clear_nomination(workload.key)
        self._queue.add_unschedulable_if_not_present(pending, nominated=bool(found.target))
        if found.target:
            self._queue.activate(workload.key, workload.uid)

    def _assume_volumes(self, workload: Workload, slot: int) -> None:
        if self._volumes is None:
            from bayplan.placing.assumed_volumes import AssumedVolumes  # only pods with claims need it

            self._volumes = AssumedVolumes(self._index, self._topology_keys, self.doubts)
        self._volumes.assume(workload, slot)

    def _preemption_for(self, pending: PendingPod, engine: Engine) -> Preemption:
        """The preemption for a pod that fits nowhere; searched for once for equal pods until something changes."""
        workload, nominated = pending.workload, self._queue.nominations
        if not self._preempts or pending.attempts > MAX_ATTEMPTS:
            return preemption.NOTHING
        if not pod_evaluator.has_lower_priority_pod(workload, self._index):
            return preemption.NOTHING
        equal = equivalence.signature(workload, self._index), workload.priority, workload.preempts
        key: Hashable = (equal, workload.scheduler_name, nominated.generation, nominated.target_of(workload.key))
        if self._futile.get(key) == self._index.journal.end:
            return preemption.NOTHING
        found = preemption.preempt(workload, engine, self._budgets, nominated.all())
        if not found.target:
            self._futile[key] = self._index.journal.end
        return found

    def _preempt(self, workload: Workload, found: Preemption) -> None:
        """Nominate the pod and evict its victims: in the answer they are gone before anything else is decided."""
        self._on_preemption(workload, found)
        victims = [self._index.records[key].workload for key in found.victims]
        self._queue.nominate(workload, found.target, frozenset(map(pod_evaluator.evicted_id, victims)))
        self._victims[workload.key] = (*self._victims.get(workload.key, ()), *found.victims)
        for victim in victims:
            self._remove_victim(victim, workload.key)

    def _remove_victim(self, victim: Workload, preemptor: WorkloadKey) -> None:
        """Remove a pod that was evicted, for a preemptor or for none; the pod that replaces it waits."""
        node = self._index.records[victim.key].shares[0][0]
        again = None if victim.terminating else self._recreate(victim)
        self._index.remove(victim.key)
        self._note_change()
        self._budgets.charge(victim, 1)
        eviction = PreemptedPod(victim, node, preemptor, again is not None)
        self.evictions.append(eviction)
        self._evicted[victim.key] = eviction
        self.placements.pop(victim.key, None)
        if again is not None:
            self.add(again)
        elif not victim.terminating:
            self._record(victim, lost=True)

    def _diagnose_unplaced(self) -> None:
        """Say why pods fit nowhere, in the cluster as it is now: it may have changed since they were tried."""
        if self._groups is not None:
            for key, wait in self._groups.waits().items():
                self.placements[key] = place_pods.waiting_with_group(self._groups.workload(key), wait)
        for workload in self._unplaced.values():
            competing = self._queue.nominations.competing_with(workload)
            with nominations.with_nominated_pods(competing, self._index) if competing else nullcontext():
                failure = place_pods.fit_failure_of(workload, self._engine_of(workload))
            self._record(workload, message=failure.message, reasons=failure.reasons)

    def _record(self, workload: Workload, target: str = "", total: int = 0, **further: Any) -> None:
        evicted = self._evicted.get(workload.key)
        if evicted is not None and evicted.preemptor:
            further |= {"preemptor": evicted.preemptor, "preempted_from": evicted.node}
        self.placements[workload.key] = PodPlacement(workload, target, total, **further)


def recreated_by_controller(index: PlacementIndex, context: SpreadContext) -> Recreate:
    """The pod that its controller creates in place of a victim; None for a bare pod, and for one of its node."""

    def recreate(victim: Workload) -> Workload | None:
        if victim.controller is None or victim.controller.kind == "Node":
            return None
        return recreating.as_recreated(index.records[victim.key], index, context)

    return recreate
