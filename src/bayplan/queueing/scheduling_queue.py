"""
The scheduling queue: pods are tried by priority, then by age; backoff doubles from one second to ten.

The caller passes in the time. Unschedulable pods only have their stage here: `unschedulable_pods` says when to retry
them.
"""

from __future__ import annotations

import enum
import heapq
from collections import Counter
from itertools import count
from typing import Any

from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.wire.pods import Pod


class QueueStage(enum.Enum):
    """The stage of a pending pod; the values are those of kube-scheduler's `queue` metric label."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    BINDING = "binding"


class PendingPod:
    """
    One pod that is not bound yet.

    `pod` is kept as written, so that it can be mapped again when the Services and controllers that select it change;
    `context_generation` is the generation of those that `workload` was mapped with. `since` is when the pod could first
    be tried, `tried` when it last was, and `queued` when it last became active: the order among equal priorities.
    """

    __slots__ = (
        "attempts",
        "context_generation",
        "key",
        "message",
        "pod",
        "queued",
        "since",
        "stage",
        "tried",
        "unwritten",
        "workload",
    )

    def __init__(self, pod: Pod, workload: Workload, now: float, context_generation: int = 0) -> None:
        self.pod = pod
        self.workload = workload
        self.context_generation = context_generation
        self.key: WorkloadKey = workload.key
        self.since = now
        self.queued = now
        self.tried = now
        self.attempts = 0
        self.stage = QueueStage.ACTIVE
        self.message = ""  # why it is not placed, as last reported
        self.unwritten: dict[str, Any] | None = None  # the status with that message, until the API server has it

    @property
    def uid(self) -> str:
        return self.workload.uid


class SchedulingQueue:
    """All pending pods by key, the active ones in order, those in backoff by the time at which it ends."""

    def __init__(self, initial_backoff: float = 1.0, max_backoff: float = 10.0) -> None:
        self.initial_backoff = initial_backoff
        self.max_backoff = max_backoff
        self.pods: dict[WorkloadKey, PendingPod] = {}
        self.sizes: Counter[QueueStage] = Counter()
        self._active: list[tuple[int, float, int, PendingPod]] = []
        self._backing_off: list[tuple[float, int, PendingPod]] = []
        self._tickets = count()  # orders equals by arrival, so that pods are never compared
        self._ticket: dict[PendingPod, int] = {}  # the ticket of a pod's one valid heap entry

    def __len__(self) -> int:
        return len(self.pods)

    def add(self, pending: PendingPod, stage: QueueStage) -> None:
        """Add a new pod."""
        assert pending.key not in self.pods, "a pod is pending once"
        self.pods[pending.key] = pending
        self.sizes[stage] += 1
        pending.stage = stage
        self._enter(pending)

    def remove(self, key: WorkloadKey) -> PendingPod | None:
        """Remove a pod, whatever its stage."""
        pending = self.pods.pop(key, None)
        if pending is not None:
            self.sizes[pending.stage] -= 1
            self._ticket.pop(pending, None)
        return pending

    def move(self, pending: PendingPod, stage: QueueStage, now: float = 0.0) -> None:
        """Move a pod to another stage; `now` is needed for the active stage and for backoff."""
        if pending.stage is QueueStage.GATED and not pending.attempts:
            pending.since = now  # it could not be scheduled before
        self.sizes[pending.stage] -= 1
        self.sizes[stage] += 1
        pending.stage = stage
        self._ticket.pop(pending, None)
        if stage is QueueStage.ACTIVE:
            pending.queued = now
        self._enter(pending, now)

    def retry(self, pending: PendingPod, now: float) -> None:
        """Retry a pod that may be schedulable once its backoff ends, which may be in the past."""
        self.move(pending, QueueStage.BACKOFF, now)

    def pop(self, now: float) -> PendingPod | None:
        """The next pod to try, with this attempt counted; None if no pod is active."""
        ends = self.ready_at()
        while ends is not None and ends <= now:
            _, _, pending = heapq.heappop(self._backing_off)
            self.move(pending, QueueStage.ACTIVE, ends)
            ends = self.ready_at()
        while self._active:
            *_, ticket, pending = heapq.heappop(self._active)
            if self._ticket.get(pending) == ticket:
                del self._ticket[pending]
                pending.attempts += 1
                pending.tried = now
                return pending
        return None

    def ready_at(self) -> float | None:
        """When the next backoff ends; None if no pod is in backoff."""
        while self._backing_off and self._ticket.get(self._backing_off[0][2]) != self._backing_off[0][1]:
            heapq.heappop(self._backing_off)
        return self._backing_off[0][0] if self._backing_off else None

    def backoff(self, pending: PendingPod) -> float:
        """The backoff after the last attempt of a pod: it doubles with every failure."""
        doublings = min(max(pending.attempts - 1, 0), 30)
        return float(min(self.initial_backoff * 2**doublings, self.max_backoff))

    def _enter(self, pending: PendingPod, now: float = 0.0) -> None:
        ticket = next(self._tickets)
        if pending.stage is QueueStage.ACTIVE:
            self._ticket[pending] = ticket
            heapq.heappush(self._active, (-pending.workload.priority, pending.queued, ticket, pending))
        elif pending.stage is QueueStage.BACKOFF:
            self._ticket[pending] = ticket
            ends = max(now, pending.tried + self.backoff(pending))
            heapq.heappush(self._backing_off, (ends, ticket, pending))
