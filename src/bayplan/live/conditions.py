"""The conditions that a scheduler writes into a pod's status, as patches."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

UNSCHEDULABLE, SCHEDULER_ERROR = "Unschedulable", "SchedulerError"


def not_scheduled(message: str, at: datetime, *, reason: str = UNSCHEDULABLE, nominated: str | None) -> dict[str, Any]:
    """PodScheduled is false, and why; `nominated` is the node promised to the pod, "" to take that back."""
    status: dict[str, Any] = {"conditions": [_condition("PodScheduled", "False", reason, message, at)]}
    if nominated is not None:
        status["nominatedNodeName"] = nominated or None
    return status


def preempted(scheduler_name: str, at: datetime) -> dict[str, Any]:
    """The pod must go, and not by its own fault."""
    message = f"{scheduler_name}: preempting to accommodate a higher priority pod"
    return {"conditions": [_condition("DisruptionTarget", "True", "PreemptionByScheduler", message, at)]}


def _condition(kind: str, status: str, reason: str, message: str, at: datetime) -> dict[str, Any]:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastProbeTime": None,
        "lastTransitionTime": at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
