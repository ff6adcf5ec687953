"""A workload that is to be scheduled, with its stage and what its attempts so far have left. Moves itself nowhere."""

from __future__ import annotations

import enum
from typing import Any, TypeVar

from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.wire.pods import Pod


class QueueStage(enum.Enum):
    """
    The stage of a pending workload; the values are those of kube-scheduler's `queue` metric label, but for `group`.

    What is in GROUP is tried together with the other members of its group.
    """

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    GROUP = "group"
    BINDING = "binding"


class PendingWorkload:
    """
    One workload in the queue. To decide about one that `is_large` takes long.

    `since` is when it could first be tried, `tried` when it last was, and `queued` when it last became active: the
    order among equal priorities. The queue sets these times, the first ones when the workload is added.
    """

    __slots__ = ("attempts", "is_large", "key", "queued", "since", "stage", "tried", "workload")

    def __init__(self, workload: Workload, *, is_large: bool = False) -> None:
        self.workload = workload
        self.is_large = is_large
        self.key: WorkloadKey = workload.key
        self.since = self.queued = self.tried = 0.0
        self.attempts = 0
        self.stage = QueueStage.ACTIVE

    @property
    def uid(self) -> str:
        return self.workload.uid


Pending = TypeVar("Pending", bound=PendingWorkload)


class PendingPod(PendingWorkload):
    """
    One pod that is not bound yet.

    `pod` is kept as written, so that it can be mapped again when the Services and controllers that select it change;
    `context_generation` is the generation of those that `workload` was mapped with.
    """

    __slots__ = ("context_generation", "message", "pod", "unwritten")

    def __init__(self, pod: Pod, workload: Workload, context_generation: int = 0, *, is_large: bool = False) -> None:
        super().__init__(workload, is_large=is_large)
        self.pod = pod
        self.context_generation = context_generation
        self.message = ""  # why it is not placed, as last reported
        self.unwritten: dict[str, Any] | None = None  # the status with that message, until the API server has it


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
