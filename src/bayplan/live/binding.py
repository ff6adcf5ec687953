"""
Carrying out a decision: volumes first, then the bind, then the event; taken back where the API server says no.

An answer that never came does not mean that nothing happened: the pod is looked at until it is known.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from bayplan.live.cluster_writer import ClusterWriter, FailedError, PodGoneError, PodRef, RefusedError, UnclearError
from bayplan.live.events import Events
from bayplan.live.metrics import ERROR, SCHEDULED, Metrics
from bayplan.live.volumes import Volumes, VolumesUnboundError
from bayplan.queueing.pending_pod import PendingPod
from bayplan.watching.cluster_state import ClusterState

log = logging.getLogger("bayplan.binding")
LONGEST_PAUSE = 10.0


class Binder:
    """Binds one pod at a time per call; calls run side by side."""

    def __init__(
        self,
        state: ClusterState,
        writer: ClusterWriter,
        events: Events,
        metrics: Metrics,
        volumes: Volumes,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._state = state
        self._writer = writer
        self._events = events
        self._metrics = metrics
        self._volumes = volumes
        self._clock = clock
        self._sleep = sleep

    async def bind(self, pending: PendingPod, node: str, began: float) -> None:
        """Bring a pod to the node where it is already counted."""
        pod = PodRef.of(pending.workload)
        try:
            await self._volumes.bind(pending.workload, node)
            await self._until_clear(pod, node, pending)
        except PodGoneError:
            self._unreserve(pending, "gone", again=False)
        except (RefusedError, VolumesUnboundError) as error:
            log.warning("binding refused", extra={"pod": pending.key, "node": node, "error": str(error)})
            if self._is_still(pending):
                note = f"binding {pending.key} to {node} was refused: {error}"
                self._events.tell(pod, "FailedScheduling", note, action="Binding", warning=True)
            self._metrics.attempts.labels(ERROR, pending.workload.scheduler_name).inc()
            self._unreserve(pending, "refused", again=True)
        else:
            self._done(pending, pod, node, began)

    async def _until_clear(self, pod: PodRef, node: str, pending: PendingPod) -> None:
        """Bind, and where the answer stays away find out what happened."""
        pause = 1.0
        while True:
            if node not in self._state.index.slots.by_name:
                raise RefusedError(f"node {node} is gone")  # the API server would not mind
            try:
                await self._writer.bind(pod, node)
            except UnclearError as error:
                failure = str(error) if isinstance(error, FailedError) else ""
                self._metrics.bind_failures.labels("unclear").inc()
                log.warning("bind unclear", extra={"pod": pending.key, "node": node, "error": str(error)})
            else:
                return
            await self._sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            if not self._is_still(pending):
                if self._state.is_bound(pod.uid, pending.key, node):
                    return  # the watch has told meanwhile
                raise PodGoneError(f"{pending.key} went another way")
            try:
                found = await self._writer.node_of(pod)
            except UnclearError:
                continue
            if found == node:
                return
            if found:
                raise RefusedError(f"it is on {found} already")
            if failure:  # it did not happen, and others need not wait behind it
                raise RefusedError(failure)

    def _done(self, pending: PendingPod, pod: PodRef, node: str, began: float) -> None:
        now = self._clock()
        profile = pending.workload.scheduler_name
        self._metrics.attempts.labels(SCHEDULED, profile).inc()
        self._metrics.attempt_seconds.labels(SCHEDULED, profile).observe(now - began)
        self._metrics.sli_seconds.labels(str(min(pending.attempts, 16))).observe(now - pending.since)
        self._metrics.attempts_per_pod.observe(pending.attempts)
        self._events.tell(pod, "Scheduled", f"Successfully assigned {pending.key} to {node}", action="Binding")
        if self._is_still(pending):
            self._state.queue.remove(pending.key)
            self._state.clear_nomination(pending.key)

    def _unreserve(self, pending: PendingPod, cause: str, *, again: bool) -> None:
        """Let go of the place, and unless the pod is no more have it tried `again`."""
        self._metrics.bind_failures.labels(cause).inc()
        self._volumes.unreserve(pending.workload)
        if not self._is_still(pending):
            return
        if again:
            self._state.requeue(pending)
        else:
            self._state.drop_pod(pending.key, pending.uid)

    def _is_still(self, pending: PendingPod) -> bool:
        """Whether the pod is the one that was decided about, and nobody has said otherwise since."""
        return self._state.queue.pods.get(pending.key) is pending
