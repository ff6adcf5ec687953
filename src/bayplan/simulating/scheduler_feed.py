"""Tells the live scheduler of every change in the store, as its watches would, at once."""

from __future__ import annotations

from typing import Any

from bayplan.controllers.desired_state import ObjectKey
from bayplan.kube_api.decoding import Key
from bayplan.live.assembly import SchedulerAssembly
from bayplan.mapping import groups
from bayplan.simulating.event_log import EventLog
from bayplan.simulating.store import Store, key_of
from bayplan.watching import resources
from bayplan.watching.resources import ResourceHandler
from bayplan.wire import kinds
from bayplan.wire.controllers import ReplicationController, SelectorMapController, SelectorMapSpec

POD_GROUP = "PodGroup"


class SchedulerFeed:
    """Hands objects on by kind; of other kinds the scheduler knows nothing."""

    def __init__(self, parts: SchedulerAssembly, events: EventLog) -> None:
        self._state, self._events = parts.state, events
        self._handlers: dict[str, ResourceHandler] = {}
        by_plural = {(row.group, row.plural): row.kind for row in kinds.decoded()}
        for watched in resources.scheduling_resources(parts.state):
            kind = by_plural[watched.resource.group, watched.resource.plural]
            self._handlers[kind] = ResourceHandler(watched, parts.change_handler(watched.resource), self._unreadable)
        self._on_group = parts.scheduler.changed

    def follow(self, store: Store) -> None:
        """Hand on every change from now on."""
        store.listen(self._changed)

    def tell(self, found: Any) -> None:
        """Hand on an object that exists already."""
        self._changed(key_of(found), None, found)

    def begin(self) -> None:
        """Build what is maintained from the start, as a running scheduler does before it leads."""
        index = self._state.index
        _ = index.pod_table, index.attachments

    def _unreadable(self, resource: str) -> None:
        self._events.remark(f"{resource} that the scheduler cannot read are set aside")

    def _changed(self, key: ObjectKey, before: Any, after: Any) -> None:
        if key.kind == POD_GROUP:
            self._group_changed(key, before, after)
            return
        handler = self._handlers.get(key.kind)
        if handler is None:
            return
        if after is None:
            handler.delete(Key(key.namespace, key.name), before.metadata.uid)
        else:
            handler.upsert(_as_watched(after))

    def _group_changed(self, key: ObjectKey, before: Any, after: Any) -> None:
        if after is not None:
            self._state.put_pod_group(after)
        else:
            source = groups.declaration_of(before).source
            self._state.drop_pod_group(f"{key.namespace}/{key.name}", source)
        self._on_group()


def _as_watched(found: Any) -> Any:
    """The object in the type in which it is watched."""
    if isinstance(found, ReplicationController):
        spec = SelectorMapSpec(selector=found.spec.selector or found.spec.template.metadata.labels)
        return SelectorMapController(api_version=found.api_version, kind=found.kind, metadata=found.metadata, spec=spec)
    return found
