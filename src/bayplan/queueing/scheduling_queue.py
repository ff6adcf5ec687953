"""
The scheduling queue: every pending pod in one stage, the nominations, and each transition between them.

As in kube-scheduler's PriorityQueue (pkg/scheduler/backend/queue), active pods are tried by priority, then by age; the
backoff of a pod doubles from one second to ten. An unschedulable pod is requeued when `unschedulable_pods` finds that a
change of the index has made it schedulable. Decides about no pod and writes to no API server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Generic

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.queueing.evaluator import Evaluator
from bayplan.queueing.nominations import Nominations
from bayplan.queueing.pending_pod import Pending, QueueStage, decides_alike, is_held_back
from bayplan.queueing.pod_heap import PodHeap
from bayplan.queueing.reservations import Reservations
from bayplan.queueing.unschedulable_pods import OutOfTime, UnschedulablePods
from bayplan.queueing.waiting_groups import WaitingGroups


class SchedulingQueue(Generic[Pending]):
    """
    All pending pods by key: active, in backoff, unschedulable, gated, waiting with their group, or being bound.

    A pod that is popped stays in the active stage until the result of its attempt is known: `assumed`,
    `add_unschedulable_if_not_present` or `requeue`. `sizes` counts the pods of each stage. `nominations` changes only
    here, and a pod with a reservation is nominated to its node. `clock` counts seconds. `on_pending` is called when a
    report or a failed write may have made a pod ready. With `groups`, their members are never popped: what places them
    as a whole takes them.
    """

    def __init__(
        self,
        index: PlacementIndex,
        evaluator: Evaluator[Pending],
        clock: Callable[[], float],
        *,
        initial_backoff: float = 1.0,
        max_backoff: float = 10.0,
        reserve_after: float = 0.0,
        max_reservations: int = 1,
        groups: WaitingGroups[Pending] | None = None,
        on_pending: Callable[[], None] = lambda: None,
    ) -> None:
        self.pods: dict[WorkloadKey, Pending] = {}
        self.sizes: Counter[QueueStage] = Counter()
        self.nominations = Nominations()
        self.groups = groups
        self.reservations: Reservations[Pending] = Reservations(reserve_after, max_reservations)
        self._initial_backoff, self._max_backoff = initial_backoff, max_backoff
        self._clock, self._on_pending = clock, on_pending
        self._active: PodHeap[tuple[int, float], Pending] = PodHeap()
        self._active_large: PodHeap[tuple[int, float], Pending] = PodHeap()
        self._backing_off: PodHeap[float, Pending] = PodHeap()  # by the end of the backoff
        self._unschedulable: UnschedulablePods[Pending] = UnschedulablePods(index, evaluator, self.nominations)

    def __len__(self) -> int:
        return len(self.pods)

    def holds(self, pending: Pending) -> bool:
        """Whether this very pod is pending still, and not another one of its name."""
        return self.pods.get(pending.key) is pending

    def is_unplaced(self, pending: Pending) -> bool:
        """Whether the pod is pending still and no node has been chosen for it."""
        return self.holds(pending) and pending.stage is not QueueStage.BINDING

    # Reports of pods

    def add(self, pending: Pending) -> None:
        """Add a new pod; it is active unless it is gated or terminating."""
        assert pending.key not in self.pods, "a pod is pending once"
        self._adopt_nomination(pending.workload, None)
        pending.since = pending.queued = pending.tried = self._clock()
        self.pods[pending.key] = pending
        self.sizes[pending.stage] += 1
        groups = None if pending.workload.group is None else self.groups
        if groups is not None:
            groups.put(pending)
        if is_held_back(pending.workload):
            self._move(pending, QueueStage.GATED)
        elif groups is not None:
            self._move(pending, QueueStage.GROUP)
        else:
            self._activate(pending, pending.queued)
        self._on_pending()

    def update(self, pending: Pending, workload: Workload) -> None:
        """
        Change a pod that is not being bound.

        It keeps its backoff and its place, as in kube-scheduler's PriorityQueue.Update: a tenant may change the labels
        of a pod as often as it likes. An unschedulable pod is retried if a decision may change, and one that was held
        back if it no longer is.
        """
        assert self.is_unplaced(pending), "a pod that is being bound does not change its stage"
        before, pending.workload = pending.workload, workload
        is_member = self.groups is not None and workload.group is not None
        self._adopt_nomination(workload, before)
        if is_held_back(workload):
            self._unschedulable.remove(pending.key)
            self.reservations.forget(pending.key)
            self._move(pending, QueueStage.GATED)
        elif pending.stage is QueueStage.GATED and not is_member:
            if not pending.attempts:
                pending.since = self._clock()  # it could not be scheduled before
            self._activate_or_back_off(pending)
        elif is_member:
            self._unschedulable.remove(pending.key)
            self._move(pending, QueueStage.GROUP)
        elif pending.stage is QueueStage.GROUP:
            self._activate_or_back_off(pending)
        elif not decides_alike(before, workload):
            self._unschedulable.remove(pending.key)
            if pending in self._heap_of(pending):
                if before.priority != workload.priority:
                    self._activate(pending, pending.queued)
            elif pending.stage is not QueueStage.BACKOFF:
                self._activate_or_back_off(pending)
        if self.groups is not None and (is_member or before.group is not None):
            self.groups.update(pending, before)
        self._on_pending()

    def delete(self, key: WorkloadKey) -> Pending | None:
        """Remove and return a pod, whatever its stage, with its nomination; None if there is none of this name."""
        self._unschedulable.remove(key)
        pending = self.pods.pop(key, None)
        if pending is not None and pending.workload.group is not None and self.groups is not None:
            self.groups.discard(key)
        if pending is not None:
            self.sizes[pending.stage] -= 1
            self._leave_order(pending)
        self.reservations.forget(key)
        self.clear_nomination(key)
        return pending

    # Attempts

    def pop(self, *, large: bool = True) -> Pending | None:
        """
        The next pod to try, with this attempt counted; None if no pod is active.

        Without `large`, pods that take long are passed over as long as there are others.
        """
        now = self._clock()
        self._flush_backoff_completed(now)
        first, first_large = self._active.least(), self._active_large.least()
        is_large = first_large is not None and (first is None or (large and first_large <= first))
        pending = (self._active_large if is_large else self._active).pop()
        if pending is not None:
            pending.attempts += 1
            pending.tried = now
        return pending

    def take(self, pending: Pending) -> None:
        """Pop a member of a group that is placed as a whole, with this attempt counted."""
        assert pending.stage is QueueStage.GROUP, "only members that wait with their group are taken"
        self._move(pending, QueueStage.ACTIVE)
        pending.attempts += 1
        pending.tried = self._clock()

    def ready_at(self) -> float | None:
        """When the next backoff ends; None if no pod is in backoff."""
        return self._backing_off.least()

    def assumed(self, pending: Pending) -> None:
        """Note that the popped pod is placed and is being bound: the next one of its class may be schedulable too."""
        assert self._is_in_flight(pending), "only a popped pod is placed"
        self._move(pending, QueueStage.BINDING)
        self.reservations.forget(pending.key)
        self._unschedulable.placed(pending.workload)

    def done(self, pending: Pending) -> None:
        """Remove a pod that is bound, unless its report has done so."""
        if self.holds(pending):
            self.delete(pending.key)

    def add_unschedulable_if_not_present(self, pending: Pending, *, nominated: bool = False) -> None:
        """
        Keep a popped pod for which no node is feasible until a change makes it schedulable.

        `nominated`: its attempt has nominated a node for it, so the next pod of its class may preempt too. A pod that
        is gone or queued again since it was popped is left as it is.
        """
        if not self._is_in_flight(pending):
            return
        self._move(pending, QueueStage.UNSCHEDULABLE)
        self._unschedulable.add(pending)
        if nominated:
            self._unschedulable.placed(pending.workload)

    def requeue(self, pending: Pending) -> None:
        """Retry a pod after its backoff although it is not unschedulable: binding it or deciding about it failed."""
        if not self._is_in_flight(pending):
            return
        self._unschedulable.remove(pending.key)
        groups = None if pending.workload.group is None else self.groups
        if groups is not None:
            groups.put(pending)
        if is_held_back(pending.workload):
            self._move(pending, QueueStage.GATED)
        elif groups is not None:
            self._move(pending, QueueStage.GROUP)
        else:
            self._back_off(pending)
        self._on_pending()

    def put_back(self, pending: Pending) -> None:
        """Let a popped pod be tried again at once, this attempt not counted: it waited for something else."""
        if self._is_in_flight(pending):
            pending.attempts -= 1
            self._activate(pending, pending.queued)
            self._on_pending()

    def activate(self, key: WorkloadKey, uid: str) -> None:
        """Requeue an unschedulable pod although no change has made it schedulable."""
        pending = self.pods.get(key)
        is_same = pending is not None and pending.uid == uid
        if is_same and pending is not None and pending.stage is QueueStage.GROUP and self.groups is not None:
            self.groups.put(pending)
            self._on_pending()
        elif pending is not None and pending.uid == uid and pending.stage is QueueStage.UNSCHEDULABLE:
            self._unschedulable.remove(key)
            self._back_off(pending)
            self._on_pending()

    # Changes of the index

    @property
    def has_candidates(self) -> bool:
        """Whether `move_to_active_or_backoff` or `sweep` ended before all their pods were evaluated."""
        return self._unschedulable.has_candidates

    @property
    def n_evaluations(self) -> int:
        """How many evaluations were made to decide whether an unschedulable pod is requeued."""
        return self._unschedulable.n_evaluations

    def move_to_active_or_backoff(self, out_of_time: OutOfTime = lambda: False) -> list[Pending]:
        """
        Requeue and return the pods that the changes since the last call have made schedulable.

        Those of which something else is to be reported now are requeued too.
        """
        return self._requeue_evaluated(self._unschedulable.pop_schedulable(out_of_time))

    def mark_all_for_sweep(self) -> None:
        """Let `sweep` evaluate all unschedulable pods."""
        self._unschedulable.mark_all_for_sweep()

    def sweep(self, out_of_time: OutOfTime = lambda: False) -> list[Pending]:
        """Requeue and return the schedulable pods that no change has requeued: each one is a bug."""
        return self._requeue_evaluated(self._unschedulable.sweep(out_of_time))

    # Nominations

    def nominate(self, workload: Workload, target: str, victims: frozenset[str]) -> tuple[Workload, ...]:
        """
        Nominate a pod to the node on which `victims` (uids) are evicted for it.

        Pods of lower priority nominated to the same node lose their nomination, are tried again and are returned.
        """
        displaced = self.nominations.displaced_by(workload, target)
        for other in displaced:
            self.clear_nomination(other.key)
            self.activate(other.key, other.uid)  # it may fit another node, or preempt pods there
        self.reservations.release(workload.key, self._clock())  # the victims leave sooner
        self._nominate(workload, target)
        self.nominations.note_victims(workload.key, victims)
        return displaced

    def reserve(self, pending: Pending, target: str) -> None:
        """Reserve a node, to which no other pod is nominated, for an unschedulable pod that has waited for it."""
        self._nominate(pending.workload, target)
        self.nominations.note_reserved(pending.key)
        self.reservations.hold(pending, target, self._clock())

    def clear_nomination(self, key: WorkloadKey) -> None:
        """Clear the nomination of a pod, if it has one, and with it a reservation. Other pods may then use the room."""
        if self.nominations.target_of(key):
            self.nominations.remove(key)
            self.reservations.release(key, self._clock())
            self._unschedulable.mark_all_for_retry()

    def _nominate(self, workload: Workload, target: str) -> None:
        """Nominate a pod to a node, in place of any other node."""
        if self.nominations.target_of(workload.key) != target:
            self.clear_nomination(workload.key)
        self.nominations.nominate(workload, target)

    def _adopt_nomination(self, workload: Workload, before: Workload | None) -> None:
        """Adopt the nominated node of the API server when it changes; until then our own write may be in progress."""
        target = self.nominations.target_of(workload.key)
        if workload.terminating:
            target = ""
        elif before is None or before.nominated_target != workload.nominated_target:
            target = workload.nominated_target
        if target:
            self._nominate(workload, target)
            if before is not None and not decides_alike(before, workload):
                self._unschedulable.mark_all_for_retry()  # it may leave more room than before
        else:
            self.clear_nomination(workload.key)
        if before is not None and before.nominated_target and not workload.nominated_target:
            self._unschedulable.mark_all_for_retry()  # the pod no longer waits for victims, so it may preempt again

    # Stages

    def _is_in_flight(self, pending: Pending) -> bool:
        """Whether the pod is popped and the result of its attempt unknown, or is being bound."""
        is_popped = pending.stage is QueueStage.ACTIVE and pending not in self._heap_of(pending)
        return self.holds(pending) and (is_popped or pending.stage is QueueStage.BINDING)

    def _move(self, pending: Pending, stage: QueueStage) -> None:
        """Move a pod to a stage, without a place in the order of attempts."""
        self._leave_order(pending)
        self.sizes[pending.stage] -= 1
        self.sizes[stage] += 1
        pending.stage = stage

    def _heap_of(self, pending: Pending) -> PodHeap[tuple[int, float], Pending]:
        return self._active_large if pending.is_large else self._active

    def _leave_order(self, pending: Pending) -> None:
        self._heap_of(pending).discard(pending)
        self._backing_off.discard(pending)

    def _activate(self, pending: Pending, since: float) -> None:
        self._move(pending, QueueStage.ACTIVE)
        pending.queued = since
        self._heap_of(pending).push(pending, (-pending.workload.priority, since))

    def _activate_or_back_off(self, pending: Pending) -> None:
        """Retry a pod that has changed: at once if its backoff is over or it was never tried."""
        now = self._clock()
        if pending.attempts and pending.tried + self._backoff(pending) > now:
            self._back_off(pending)
        else:
            self._activate(pending, now)

    def _back_off(self, pending: Pending) -> None:
        """Retry a pod when the backoff since its last attempt is over, which may be at once."""
        self._move(pending, QueueStage.BACKOFF)
        self._backing_off.push(pending, max(self._clock(), pending.tried + self._backoff(pending)))

    def _backoff(self, pending: Pending) -> float:
        """The backoff after the last attempt of a pod: it doubles with every failure."""
        doublings = min(max(pending.attempts - 1, 0), 30)
        return float(min(self._initial_backoff * 2**doublings, self._max_backoff))

    def _flush_backoff_completed(self, now: float) -> None:
        while (ends := self.ready_at()) is not None and ends <= now:
            pending = self._backing_off.pop()
            assert pending is not None
            self._activate(pending, ends)

    def _requeue_evaluated(self, schedulable: list[Pending]) -> list[Pending]:
        for pending in (*schedulable, *self._unschedulable.pop_outdated()):
            self._back_off(pending)
        return schedulable
