"""The pods of selected namespaces, watched while a caller waits for evicted pods to be replaced."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import msgspec

from bayplan.enforcing.move_execution import SeenPod
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.decoding import Key, Undecodable
from bayplan.kube_api.listing import Selection
from bayplan.kube_api.reflector import Reflector
from bayplan.kube_api.resources import PODS
from bayplan.mapping import pods
from bayplan.model.workloads import WorkloadKey
from bayplan.watching.background_tasks import BackgroundTasks
from bayplan.wire.meta import ApiObject, WireObject


class _PodNode(WireObject):
    node_name: str = ""


class _PodPhase(WireObject):
    phase: str = ""


class WatchedPod(ApiObject):
    """A pod with only the fields that say where it runs and whether it ends."""

    spec: _PodNode = msgspec.field(default_factory=_PodNode)
    status: _PodPhase = msgspec.field(default_factory=_PodPhase)


class PodWatch:
    """`pods` holds the pods of the followed namespaces; `changed` is set when one is added, changed or deleted."""

    def __init__(
        self, connection: Connection, background_tasks: BackgroundTasks, on_trouble: Callable[[str], None]
    ) -> None:
        self.pods: dict[Key, SeenPod] = {}
        self.changed = asyncio.Event()
        self._connection, self._background_tasks, self._on_trouble = connection, background_tasks, on_trouble
        self._reflectors: dict[str, Reflector[WatchedPod]] = {}

    async def follow(self, namespaces: Iterable[str]) -> None:
        """Start to watch these namespaces and return when all their pods are listed."""
        for namespace in sorted(set(namespaces) - self._reflectors.keys()):
            selection = Selection(namespace=namespace)
            reflector = Reflector(self._connection, PODS, WatchedPod, self, selection, on_trouble=self._on_trouble)
            self._reflectors[namespace] = reflector
            self._background_tasks.start(reflector.run())
            await reflector.synced.wait()

    # Called by the reflectors

    def upsert(self, pod: WatchedPod) -> None:
        meta = pod.metadata
        controller = next((owner.uid for owner in meta.owner_references or () if owner.controller), "")
        inactive = meta.deletion_timestamp is not None or pod.status.phase in pods.FINISHED
        key = Key(meta.namespace, meta.name)
        self.pods[key] = SeenPod(WorkloadKey(str(key)), meta.uid, controller, pod.spec.node_name, inactive)
        self.changed.set()

    def delete(self, key: Key, uid: str) -> None:
        known = self.pods.get(key)
        if known is not None and known.uid == uid:
            del self.pods[key]
        self.changed.set()

    def undecodable(self, found: Undecodable) -> None:
        self.pods.pop(found.key, None)

    def synced(self) -> None:
        self.changed.set()
