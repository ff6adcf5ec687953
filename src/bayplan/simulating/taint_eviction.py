"""
Pods that have to leave a node: those that do not tolerate its taints, and those whose node is gone.

Mirrors pkg/controller/tainteviction and pkg/controller/podgc.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any

from bayplan.controllers.desired_state import ObjectKey
from bayplan.mapping.pods import FINISHED
from bayplan.model.labels import Taint, Toleration, tolerated
from bayplan.simulating.cluster_api import TAINTED, ClusterApi, named
from bayplan.simulating.event_log import EventLog
from bayplan.simulating.node_lifecycle import NO_EXECUTE, UNREACHABLE, has_taint
from bayplan.simulating.store import NODE, POD, key_of
from bayplan.wire.nodes import Node
from bayplan.wire.pods import Pod

GARBAGE_PERIOD_SECONDS = 20.0  # gcCheckPeriod of the pod garbage collector
QUARANTINE_SECONDS = 40.0  # of a node that is gone, before its pods are
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


class TaintEviction:
    """Follows the taints of the effect NoExecute."""

    def __init__(self, api: ClusterApi, events: EventLog, loop: asyncio.AbstractEventLoop) -> None:
        self._api, self._store, self._events, self._loop = api, api.store, events, loop
        self._due: dict[ObjectKey, tuple[float, asyncio.TimerHandle]] = {}  # since when, and when it leaves
        self._store.listen(self._changed)

    def _changed(self, key: ObjectKey, before: Any, after: Any) -> None:
        if key.kind == NODE:
            if after is None:
                self._collect_later(key.name)
            elif before is None or before.spec.taints != after.spec.taints:
                self._judge_all(after)
        elif key.kind == POD:
            was_bound = before is not None and before.spec.node_name
            if after is None:
                self._cancel(key)
            elif after.spec.node_name and not was_bound:
                node = self._store.node(after.spec.node_name)
                if node is not None and _no_execute(node):
                    self._judge(after, _no_execute(node))

    def _judge_all(self, node: Node) -> None:
        taints = _no_execute(node)
        for pod in self._store.pods_on(node.metadata.name):
            if taints:
                self._judge(pod, taints)
            else:
                self._cancel(key_of(pod))
        if has_taint(node, OUT_OF_SERVICE) and has_taint(node, UNREACHABLE):
            self._collect_later(node.metadata.name)

    def _judge(self, pod: Pod, taints: list[Taint]) -> None:
        key = key_of(pod)
        if pod.metadata.deletion_timestamp is not None or pod.status.phase in FINISHED:
            return
        seconds = _tolerated_seconds(pod, taints)
        if seconds <= 0:
            self._cancel(key)
            self._evict(key)
        elif seconds == math.inf:
            self._cancel(key)
        else:
            since = self._due[key][0] if key in self._due else self._loop.time()
            self._cancel(key)
            self._due[key] = since, self._loop.call_at(since + seconds, self._evict, key)

    def _evict(self, key: ObjectKey) -> None:
        self._due.pop(key, None)
        pod = self._store.find(key)
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return
        self._events.record(named(key), "TaintManagerEviction", f"deleted from node {pod.spec.node_name}: its taints")
        self._api.count_eviction(pod, TAINTED)
        self._api.delete_pod(key)

    def _cancel(self, key: ObjectKey) -> None:
        found = self._due.pop(key, None)
        if found is not None:
            found[1].cancel()

    # The pod garbage collector

    def _collect_later(self, node: str) -> None:
        period = GARBAGE_PERIOD_SECONDS
        at = math.ceil(self._loop.time() / period) * period
        self._loop.call_at(at + (QUARANTINE_SECONDS if self._store.node(node) is None else 0.0), self._collect, node)

    def _collect(self, name: str) -> None:
        node = self._store.node(name)
        for pod in self._store.pods_on(name):
            if node is None or (pod.metadata.deletion_timestamp is not None and has_taint(node, OUT_OF_SERVICE)):
                if pod.metadata.deletion_timestamp is None:
                    self._api.count_eviction(pod, TAINTED)
                self._events.record(named(key_of(pod)), "PodGC", f"node {name} is gone or out of service")
                self._api.delete_pod(key_of(pod), force=True)


def _no_execute(node: Node) -> list[Taint]:
    return [Taint(one.key, one.value, one.effect) for one in node.spec.taints or () if one.effect == NO_EXECUTE]


def _tolerated_seconds(pod: Pod, taints: list[Taint]) -> float:
    """For how long the pod tolerates the taints: 0 for not at all (getMinTolerationTime)."""
    least = math.inf
    for taint in taints:
        for one in pod.spec.tolerations or ():
            if tolerated(taint, [Toleration(one.key, one.operator, one.value, one.effect)]):
                if one.toleration_seconds is not None:
                    least = min(least, max(0, one.toleration_seconds))
                break
        else:
            return 0.0
    return least
