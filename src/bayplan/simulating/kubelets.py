"""
The kubelets of all nodes: bound pods start and become ready, deleted ones leave, those of Jobs end.

A kubelet whose machine is lost does nothing. How long starting and stopping take is said by the timeline, because no
object says it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from bayplan.controllers.desired_state import ObjectKey
from bayplan.mapping.pods import FINISHED
from bayplan.simulating.cluster_api import ClusterApi, named
from bayplan.simulating.disruptions import is_ready
from bayplan.simulating.event_log import EventLog
from bayplan.simulating.store import POD
from bayplan.simulating.timeline import PodTimes
from bayplan.wire.pods import Pod, PodCondition

SUCCEEDED = "Succeeded"
_READY = ("ContainersReady", "Ready")


class Kubelets:
    """Runs the pods. `times_of` says how long the pods of a controller take, with the namespace of the pod."""

    def __init__(
        self,
        api: ClusterApi,
        events: EventLog,
        loop: asyncio.AbstractEventLoop,
        times_of: Callable[[Pod], PodTimes],
    ) -> None:
        self._api, self._store, self._events, self._loop = api, api.store, events, loop
        self._times_of = times_of
        self._timers: dict[str, asyncio.TimerHandle] = {}  # by uid
        self.lost: set[str] = set()  # nodes whose machine is lost
        self._store.listen(self._changed)

    def _changed(self, key: ObjectKey, before: Any, after: Any) -> None:
        if key.kind != POD:
            return
        if after is None:
            self._cancel(before.metadata.uid)
            return
        node = after.spec.node_name
        if not node or node in self.lost or after.status.phase in FINISHED:
            return
        was_bound = before is not None and before.spec.node_name
        if after.metadata.deletion_timestamp is not None:
            if before is None or before.metadata.deletion_timestamp is None:
                self._stop(key, after)
        elif not was_bound:
            self._begin(key, after)

    def _begin(self, key: ObjectKey, pod: Pod) -> None:
        """A pod that is on its node: start it, or see that it ends."""
        times = self._times_of(pod)
        if not is_ready(pod):
            self._later(pod, times.start, lambda: self._become_ready(key))
        elif times.run is not None:
            self._later(pod, times.run, lambda: self._succeed(key))

    def _stop(self, key: ObjectKey, pod: Pod) -> None:
        self._later(pod, self._times_of(pod).stop, lambda: self._api.remove_pod(key))

    def _become_ready(self, key: ObjectKey) -> None:
        pod = self._store.find(key)
        self._events.record(named(key), "Started")
        self.set_ready(pod, is_now_ready=True)
        run = self._times_of(pod).run
        if run is not None:
            self._later(pod, run, lambda: self._succeed(key))

    def _succeed(self, key: ObjectKey) -> None:
        pod = self._store.find(key)
        status = msgspec.structs.replace(pod.status, phase=SUCCEEDED, conditions=None)
        self._store.put(msgspec.structs.replace(pod, status=status))
        self._api.admission.remove(pod)

    def set_ready(self, pod: Pod, *, is_now_ready: bool) -> None:
        """Write the phase and the conditions of a pod that runs, or of whose node nothing is heard."""
        now, status = self._store.wall.text(), str(is_now_ready)
        kinds = _READY if is_now_ready else _READY[1:]
        written = [PodCondition(type=kind, status=status, last_transition_time=now) for kind in kinds]
        others = [one for one in pod.status.conditions or () if one.type not in kinds]
        start = pod.status.start_time or now
        changed = msgspec.structs.replace(pod.status, phase="Running", start_time=start, conditions=[*others, *written])
        self._store.put(msgspec.structs.replace(pod, status=changed))

    def lose(self, node: str) -> None:
        """The machine of a node is lost: nothing of its pods moves any more."""
        self.lost.add(node)
        for pod in self._store.pods_on(node):
            self._cancel(pod.metadata.uid)

    def recover(self, node: str) -> None:
        """The machine is back: deleted pods leave, and the others start again."""
        self.lost.discard(node)
        for pod in self._store.pods_on(node):
            key = ObjectKey(POD, pod.metadata.namespace, pod.metadata.name)
            if pod.metadata.deletion_timestamp is not None:
                self._stop(key, pod)
            elif pod.status.phase not in FINISHED:
                if is_ready(pod):
                    self.set_ready(pod, is_now_ready=False)
                self._begin(key, self._store.find(key))

    def _later(self, pod: Pod, seconds: float, call: Callable[[], None]) -> None:
        self._cancel(pod.metadata.uid)
        uid = pod.metadata.uid

        def act() -> None:
            self._timers.pop(uid, None)
            call()

        self._timers[uid] = self._loop.call_later(seconds, act)

    def _cancel(self, uid: str) -> None:
        timer = self._timers.pop(uid, None)
        if timer is not None:
            timer.cancel()
