"""
The conditions that the scheduler writes into the status of a pod, as patches that are retried until they are written.

Autoscalers add nodes for pods with the condition PodScheduled=False, so a lost condition would leave a pod pending.
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
MAX_CONCURRENT_WRITES = 32  # leaves capacity for binds
MAX_RETRY_PAUSE_SECONDS = 30.0
log = logging.getLogger("bayplan.conditions")


class ConditionWriter:
    """
    Writes the latest status of a pending pod.

    `is_current` is called immediately before each write, because the pod may have been placed meanwhile.
    """

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
        """Retry until the status is written, is no longer true, or is replaced by a newer one."""
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
    """Return the patch for PodScheduled=False; `nominated` is the nominated node, "" to clear it, None to keep it."""
    condition = _condition(POD_SCHEDULED, "False", reason, message, at)
    if any((known.type, known.status) == (POD_SCHEDULED, "False") for known in pod.status.conditions or ()):
        del condition["lastTransitionTime"]  # the status of the condition does not change
    status: dict[str, Any] = {"conditions": [condition]}
    if nominated is not None:
        status[NOMINATED] = nominated or None
    return status


def preempted(scheduler_name: str, at: datetime) -> dict[str, Any]:
    """Return the status patch that marks a preemption victim as a disruption target."""
    message = f"{scheduler_name}: preempting to accommodate a higher priority pod"
    return {"conditions": [_condition("DisruptionTarget", "True", "PreemptionByScheduler", message, at)]}


def _condition(condition_type: str, status: str, reason: str, message: str, at: datetime) -> dict[str, Any]:
    return {
        "type": condition_type,
        "status": status,
        "reason": reason,
        "message": message,
        "lastProbeTime": None,
        "lastTransitionTime": at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
