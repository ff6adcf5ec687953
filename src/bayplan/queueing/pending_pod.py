"""A pod that is not bound yet, with its stage and what its attempts so far have left. Moves itself nowhere."""

from __future__ import annotations

import enum
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
    `context_generation` is the generation of those that `workload` was mapped with. To decide about an `is_large` pod
    takes long. `since` is when the pod could first
    be tried, `tried` when it last was, and `queued` when it last became active: the order among equal priorities. The
    queue sets these times, the first ones when the pod is added.
    """

    __slots__ = (
        "attempts",
        "context_generation",
        "is_large",
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

    def __init__(self, pod: Pod, workload: Workload, context_generation: int = 0, *, is_large: bool = False) -> None:
        self.pod = pod
        self.workload = workload
        self.context_generation = context_generation
        self.is_large = is_large
        self.key: WorkloadKey = workload.key
        self.since = self.queued = self.tried = 0.0
        self.attempts = 0
        self.stage = QueueStage.ACTIVE
        self.message = ""  # why it is not placed, as last reported
        self.unwritten: dict[str, Any] | None = None  # the status with that message, until the API server has it

    @property
    def uid(self) -> str:
        return self.workload.uid


def is_held_back(workload: Workload) -> bool:
    """Whether a pod is not to be tried: it has gates, or it is deleted and kept only until its deletion is reported."""
    return bool(workload.gates) or workload.terminating


def decides_alike(before: Workload, after: Workload) -> bool:
    """Whether two reports of a pod that is not held back are equal in everything that a decision reads."""
    return (
        before.labels == after.labels
        and before.needs == after.needs
        and before.priority == after.priority
        and before.unplaceable == after.unplaceable
    )
