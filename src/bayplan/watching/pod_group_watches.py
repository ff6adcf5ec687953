"""
Watches PodGroups, of Kubernetes and of scheduler-plugins, in a version that the API server has.

Few servers have either, and one may come later with a custom resource definition. So each is looked up in the discovery
of the server, at the start and then every minute. What may not be listed is logged once; its groups are not known.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec

from bayplan.kube_api import decoding
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.decoding import Key
from bayplan.kube_api.errors import KubeError, NotFoundError
from bayplan.kube_api.reflector import Handler, Reflector
from bayplan.kube_api.resources import Resource
from bayplan.model.groups import GroupSource
from bayplan.watching import fetching
from bayplan.watching.background_tasks import BackgroundTasks
from bayplan.watching.cluster_state import ClusterState
from bayplan.watching.resources import WatchedResource
from bayplan.wire import kinds
from bayplan.wire.meta import WireObject

KIND = "PodGroup"
SOURCES = {"scheduling.k8s.io": GroupSource.POD_GROUP, "scheduling.x-k8s.io": GroupSource.COSCHEDULING}
RETRY_SECONDS = 60.0
log = logging.getLogger("bayplan.watch")

MakeHandler = Callable[[WatchedResource], Handler[Any]]


class _PodGroupVersion(WireObject):
    version: str = ""


class _PodGroupApi(WireObject):
    versions: list[_PodGroupVersion] = msgspec.field(default_factory=list)


_pod_group_api = msgspec.json.Decoder(_PodGroupApi)


class PodGroupWatches:
    """One watch for each API group that has PodGroups. `handler` is given what is reported."""

    def __init__(self, connection: Connection, state: ClusterState, handler: MakeHandler) -> None:
        self._connection, self._state, self._handler = connection, state, handler

    async def sync(self, background_tasks: BackgroundTasks) -> None:
        """Start the watches; return when each has listed its objects, or there is nothing to list."""
        begun = []
        for group in SOURCES:
            settled = asyncio.Event()
            background_tasks.start(self._watch(group, settled, background_tasks))
            begun.append(settled.wait())
        await asyncio.gather(*begun)

    async def _watch(self, group: str, settled: asyncio.Event, background_tasks: BackgroundTasks) -> None:
        told = ""
        while True:
            try:
                resource = await self._served(group)
                if resource is not None:
                    await self._reflect(resource, settled, background_tasks)
            except KubeError as error:
                if str(error) != told:
                    log.warning("PodGroups of %s are not known: %s", group, error)
                told = str(error)
            settled.set()
            await asyncio.sleep(RETRY_SECONDS)

    async def _served(self, group: str) -> Resource | None:
        """The resource in the first version that has it, in the order of the server; None if none has."""
        path = f"/apis/{group}"
        try:
            answer = await self._connection.get(path)
        except NotFoundError:
            return None
        found = decoding.decoded(_pod_group_api, answer, self._connection.tried("GET", path))
        for one in found.versions:
            try:
                return await fetching.served_resource(self._connection, f"{group}/{one.version}", KIND)
            except (fetching.NotServedError, NotFoundError):
                continue
        return None

    async def _reflect(self, resource: Resource, settled: asyncio.Event, background_tasks: BackgroundTasks) -> None:
        source = SOURCES[resource.group]
        item_type = kinds.named(KIND, resource.group).wire_type
        assert item_type is not None

        def drop(key: Key, _uid: str) -> None:
            self._state.drop_pod_group(str(key), source)

        watched = WatchedResource(resource, item_type, self._state.put_pod_group, drop)
        reflector: Reflector[Any] = Reflector(
            self._connection, resource, item_type, self._handler(watched), on_trouble=log.warning
        )

        async def settle() -> None:
            await reflector.synced.wait()
            settled.set()

        waiting = background_tasks.start(settle())
        try:
            await reflector.run()
        finally:
            waiting.cancel()
