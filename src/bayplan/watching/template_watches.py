"""
Watches the metadata of the kinds that bindings name: the labels that terms of workload affinity select by.

A binding has neither the labels nor the annotations of its template. Each kind is looked up in the discovery of the API
server and watched from the first binding that names it to the last. What may not be listed, or is not served, is logged
once, and asked for again every minute: until then the labels of its objects are not known.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from bayplan.kube_api.connection import Connection
from bayplan.kube_api.decoding import Key, Undecodable
from bayplan.kube_api.errors import KubeError
from bayplan.kube_api.listing import Selection
from bayplan.kube_api.reflector import Reflector
from bayplan.watching import fetching
from bayplan.watching.background_tasks import BackgroundTasks
from bayplan.watching.fleet_state import FleetState
from bayplan.watching.fleet_templates import TemplateKind
from bayplan.wire.meta import ApiObject

RETRY_SECONDS = 60.0
METADATA = Selection(metadata_only=True)
log = logging.getLogger("bayplan.watch")


class TemplateHandler:
    """Hands the metadata of one kind to the state."""

    def __init__(self, kind: TemplateKind, state: FleetState, on_change: Callable[[], None]) -> None:
        self._kind, self._state, self._on_change = kind, state, on_change

    def upsert(self, obj: ApiObject) -> None:
        self._state.put_template(self._kind, obj)
        self._on_change()

    def delete(self, key: Key, uid: str) -> None:
        del uid
        self._state.drop_template(self._kind, key.namespace, key.name)
        self._on_change()

    def undecodable(self, found: Undecodable) -> None:
        log.error("unreadable object", extra={"kind": self._kind.kind, "object": str(found.key), "error": found.error})
        self._state.drop_template(self._kind, found.key.namespace, found.key.name)
        self._on_change()

    def synced(self) -> None:
        self._on_change()


class TemplateWatches:
    """One watch for each kind; `run` starts those of kinds that are named later, and ends those of others."""

    def __init__(self, connection: Connection, state: FleetState, on_change: Callable[[], None]) -> None:
        self._connection, self._state, self._on_change = connection, state, on_change
        self._started: dict[TemplateKind, asyncio.Task[None]] = {}

    async def sync(self, background_tasks: BackgroundTasks) -> None:
        """Start the watches of all kinds that are named by now; return when each has listed its objects or failed."""
        begun = [self._start(kind, background_tasks) for kind in sorted(self._state.templates.kinds)]
        await asyncio.gather(*(one.wait() for one in begun))

    async def run(self, background_tasks: BackgroundTasks) -> None:
        """Start the watches of kinds as they are named, and end those of kinds that no binding names any more."""
        templates = self._state.templates
        while True:
            templates.kinds_changed.clear()
            for kind in sorted(templates.kinds.keys() - self._started.keys()):
                self._start(kind, background_tasks)
            for kind in sorted(self._started.keys() - templates.kinds.keys()):
                self._started.pop(kind).cancel()
                templates.forget(kind)
            await templates.kinds_changed.wait()

    def _start(self, kind: TemplateKind, background_tasks: BackgroundTasks) -> asyncio.Event:
        settled = asyncio.Event()
        self._started[kind] = background_tasks.start(self._watch(kind, settled, background_tasks))
        return settled

    async def _watch(self, kind: TemplateKind, settled: asyncio.Event, background_tasks: BackgroundTasks) -> None:
        told = ""
        while True:
            try:
                resource = await fetching.served_resource(self._connection, kind.api_version, kind.kind)
                handler = TemplateHandler(kind, self._state, self._on_change)
                reflector = Reflector(self._connection, resource, ApiObject, handler, METADATA, on_trouble=log.warning)
                waiting = background_tasks.start(_settle(reflector.synced, settled))
                try:
                    await reflector.run()
                finally:
                    waiting.cancel()
            except KubeError as error:
                if str(error) != told:
                    log.warning("labels of %s (%s) are not known: %s", kind.kind, kind.api_version, error)
                told = str(error)
            settled.set()
            await asyncio.sleep(RETRY_SECONDS)


async def _settle(synced: asyncio.Event, settled: asyncio.Event) -> None:
    await synced.wait()
    settled.set()
