"""
Which pod is tried next: by priority, then by age; who failed waits one second, then two, up to ten.

Time is given by the caller. Who waits for an event is in `waiting`; here they only have their stage.
"""

from __future__ import annotations

import heapq
from collections import Counter
from itertools import count

from bayplan.model.workloads import WorkloadKey
from bayplan.queueing.pending_pod import PendingPod, QueueStage


class SchedulingQueue:
    """All pending pods by key, those that may be tried in order, those in back-off by the time it ends."""

    def __init__(self, initial_backoff: float = 1.0, max_backoff: float = 10.0) -> None:
        self.initial_backoff = initial_backoff
        self.max_backoff = max_backoff
        self.pods: dict[WorkloadKey, PendingPod] = {}
        self.sizes: Counter[QueueStage] = Counter()
        self._ready: list[tuple[int, float, int, PendingPod]] = []
        self._backing_off: list[tuple[float, int, PendingPod]] = []
        self._tickets = count()  # among equals the first to come, and no comparison of pods
        self._ticket: dict[PendingPod, int] = {}  # the one entry of a pod that still means something

    def __len__(self) -> int:
        return len(self.pods)

    def add(self, pending: PendingPod, stage: QueueStage) -> None:
        """Take in a pod that is new here."""
        assert pending.key not in self.pods, "a pod is pending once"
        self.pods[pending.key] = pending
        self.sizes[stage] += 1
        pending.stage = stage
        self._enter(pending)

    def remove(self, key: WorkloadKey) -> PendingPod | None:
        """Forget a pod, wherever it was."""
        pending = self.pods.pop(key, None)
        if pending is not None:
            self.sizes[pending.stage] -= 1
            self._ticket.pop(pending, None)
        return pending

    def move(self, pending: PendingPod, stage: QueueStage, now: float = 0.0) -> None:
        """Let a pod enter another stage; `now` matters where it becomes ready or backs off."""
        if pending.stage is QueueStage.GATED and not pending.attempts:
            pending.since = now  # nobody could have placed it before
        self.sizes[pending.stage] -= 1
        self.sizes[stage] += 1
        pending.stage = stage
        self._ticket.pop(pending, None)
        if stage is QueueStage.ACTIVE:
            pending.queued = now
        self._enter(pending, now)

    def retry(self, pending: PendingPod, now: float) -> None:
        """Something that may help has happened: to be tried once its back-off is over, which may have been long ago."""
        self.move(pending, QueueStage.BACKOFF, now)

    def pop(self, now: float) -> PendingPod | None:
        """The next pod to try, which then counts as tried once more; None if nobody is ready."""
        self._end_backoff(now)
        while self._ready:
            *_, ticket, pending = heapq.heappop(self._ready)
            if self._ticket.get(pending) == ticket:
                del self._ticket[pending]
                pending.attempts += 1
                pending.tried = now
                return pending
        return None

    def ready_at(self) -> float | None:
        """When the next back-off ends; None if nobody backs off."""
        while self._backing_off and self._ticket.get(self._backing_off[0][2]) != self._backing_off[0][1]:
            heapq.heappop(self._backing_off)
        return self._backing_off[0][0] if self._backing_off else None

    def backoff(self, pending: PendingPod) -> float:
        """How long a pod rests after its last attempt: doubling from the first failure on."""
        doublings = min(max(pending.attempts - 1, 0), 30)
        return float(min(self.initial_backoff * 2**doublings, self.max_backoff))

    def _enter(self, pending: PendingPod, now: float = 0.0) -> None:
        ticket = next(self._tickets)
        if pending.stage is QueueStage.ACTIVE:
            self._ticket[pending] = ticket
            heapq.heappush(self._ready, (-pending.workload.priority, pending.queued, ticket, pending))
        elif pending.stage is QueueStage.BACKOFF:
            self._ticket[pending] = ticket
            ends = max(now, pending.tried + self.backoff(pending))
            heapq.heappush(self._backing_off, (ends, ticket, pending))

    def _end_backoff(self, now: float) -> None:
        until = self.ready_at()
        while until is not None and until <= now:
            _, _, pending = heapq.heappop(self._backing_off)
            self.move(pending, QueueStage.ACTIVE, until)
            until = self.ready_at()
