"""
The conditions that a scheduler writes into a pod's status: as patches, and written until the API server has them.

Autoscalers make nodes for pods that are said to be unschedulable, so one that got lost would leave a pod waiting.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from bayplan.errors import ClusterError
from bayplan.live.cluster_writer import ClusterWriter, PodRef, UnknownOutcomeError
from bayplan.queueing.pending_pod import PendingPod
from bayplan.wire.pods import Pod

UNSCHEDULABLE, SCHEDULER_ERROR = "Unschedulable", "SchedulerError"
POD_SCHEDULED, NOMINATED = "PodScheduled", "nominatedNodeName"
MAX_CONCURRENT_WRITES = 32  # conditions on their way, so that they leave room for binds
MAX_RETRY_PAUSE_SECONDS = 30.0
log = logging.getLogger("bayplan.conditions")


class ConditionWriter:
    """Writes what was last said of a pending pod; `is_current` is asked right before, as a pod may be placed by then."""

    def __init__(
        self,
        writer: ClusterWriter,
        is_current: Callable[[PendingPod], bool],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._writer = writer
        self._is_current = is_current
        self._sleep = sleep
        self._write_slots = asyncio.Semaphore(MAX_CONCURRENT_WRITES)

    async def write(self, pending: PendingPod) -> None:
        """Until it is written, or no longer so, or something else is to be said."""
        status, pod, pause = pending.unwritten, PodRef.of(pending.workload), 1.0
        while True:
            async with self._write_slots:
                if status is None or pending.unwritten is not status or not self._is_current(pending):
                    return
                try:
                    await self._writer.patch_status(pod, status)
                except ClusterError as error:
                    log.warning("status not written", extra={"pod": pending.key, "error": str(error)})
                    if not isinstance(error, UnknownOutcomeError):
                        return
                else:
                    if pending.unwritten is status:
                        pending.unwritten = None
                    return
            await self._sleep(pause)
            pause = min(2 * pause, MAX_RETRY_PAUSE_SECONDS)


def not_scheduled(
    message: str, at: datetime, pod: Pod, *, reason: str = UNSCHEDULABLE, nominated: str | None
) -> dict[str, Any]:
    """PodScheduled is false, and why; `nominated` is the node promised to the pod, "" to take that back."""
    condition = _condition(POD_SCHEDULED, "False", reason, message, at)
    if any((known.type, known.status) == (POD_SCHEDULED, "False") for known in pod.status.conditions or ()):
        del condition["lastTransitionTime"]  # it is so since long ago
    status: dict[str, Any] = {"conditions": [condition]}
    if nominated is not None:
        status[NOMINATED] = nominated or None
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
