"""A pod that waits for a node, and what has become of it so far. Knows nothing of queues."""

from __future__ import annotations

import enum
from typing import Any

from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.wire.pods import Pod


class QueueStage(enum.Enum):
    """Where a pending pod is on its way; the names are those of kube-scheduler's `queue` metric label."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    WAITING = "unschedulable"
    GATED = "gated"
    BINDING = "binding"


class PendingPod:
    """
    One pod on its way to a node.

    `pod` is kept as written, so that it can be read again when the Services and controllers around it change;
    `context_generation` is the generation of those that `workload` was read with. `since` is when it could first have been tried,
    `tried` when it last was, `queued` when it last became ready to be: among equals, the order of the queue.
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
        self.message = ""  # why it is not placed, as last told to its owner
        self.unwritten: dict[str, Any] | None = None  # the status that says so, until the API server has it

    @property
    def uid(self) -> str:
        return self.workload.uid
