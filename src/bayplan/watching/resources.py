"""The watched resources: one row for each, with the type of its objects and the change that an object makes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from bayplan.errors import InputError
from bayplan.kube_api import resources
from bayplan.kube_api.decoding import Key, Undecodable
from bayplan.kube_api.listing import ALL, Selection
from bayplan.kube_api.resources import Resource
from bayplan.mapping import selectors, storage
from bayplan.model import labels
from bayplan.model.labels import Selector
from bayplan.model.workloads import WorkloadKey
from bayplan.reading.quota_limits import CONFIG_MAP
from bayplan.watching.cluster_state import ClusterState
from bayplan.watching.setting_aside import mapped, stub_of
from bayplan.wire import kinds
from bayplan.wire.controllers import ReplicationController, SelectorController, SelectorMapController
from bayplan.wire.kinds import ApiKind, Trait
from bayplan.wire.meta import ApiObject
from bayplan.wire.observed import ObservedConfigMap

log = logging.getLogger("bayplan.watch")


class WatchedResource(msgspec.Struct, frozen=True):
    """
    A resource, the type of its objects, and what to call when an object is added or changed (`put`) or deleted.

    `put` raises InputError, and changes nothing, for an object that cannot be read. `set_aside` is then called with
    what can be told of it; by default its last readable state stays. One that `may_be_missing` is waited for.
    """

    resource: Resource
    item_type: type[Any]
    put: Callable[[Any], None]
    drop: Callable[[Key, str], None]
    selection: Selection = ALL
    set_aside: Callable[[Any], None] = lambda _stub: None
    may_be_missing: bool = False


def scheduling_resources(state: ClusterState) -> tuple[WatchedResource, ...]:
    """
    Return every resource that a decision about a pod may read, in the order in which it is listed.

    Nodes and namespaces precede pods, so that each pod is counted on its node when it is added.
    """
    index, spread = state.index, state.spread_context
    return (
        _stored("Namespace", lambda written: written.metadata.labels or {}, index.set_namespace),
        _watched("Node", state.put_node, lambda key, _uid: state.drop_node(key.name), state.set_aside_node),
        _stored("StorageClass", storage.storage_class_of, index.set_storage_class),
        _stored("CSINode", storage.attach_limits_of, partial(index.set_stored, "attach_limits")),
        _stored("VolumeAttachment", storage.attachment_of, partial(index.set_stored, "attachments")),
        _watched("CSIDriver", state.put_driver, lambda key, _uid: state.drop_driver(key.name)),
        _stored("CSIStorageCapacity", storage.space_of, partial(index.set_stored, "space")),
        _watched("PersistentVolume", state.put_volume, lambda key, _uid: state.drop_volume(key.name)),
        _stored("PersistentVolumeClaim", storage.claim_of, index.set_claim),
        _watched(
            "PodDisruptionBudget",
            state.put_budget,
            lambda key, _uid: state.budgets.drop(key.namespace, key.name),
        ),
        _watched("Service", spread.put_service, lambda key, _uid: spread.drop_service(key.namespace, key.name)),
        *(_controller(row, state) for row in kinds.having(Trait.SPREADS)),
        _watched(
            "Pod", state.put_pod, lambda key, uid: state.drop_pod(WorkloadKey(str(key)), uid), state.set_aside_pod
        ),
    )


def quota_resource(state: ClusterState) -> WatchedResource:
    """Return the single ConfigMap that holds the quota limits; no other ConfigMap is read."""
    namespace, _, name = CONFIG_MAP.partition("/")
    return WatchedResource(
        resources.of_kind("ConfigMap"),
        ObservedConfigMap,
        state.put_quota,
        lambda _key, _uid: state.drop_quota(),
        Selection(namespace=namespace, field_selector=f"metadata.name={name}"),
    )


def _watched(
    kind: str,
    put: Callable[[Any], None],
    drop: Callable[[Key, str], None],
    set_aside: Callable[[Any], None] = lambda _stub: None,
) -> WatchedResource:
    row = kinds.named(kind)
    assert row.wire_type is not None
    return WatchedResource(resources.resource_of(row), row.wire_type, put, drop, set_aside=set_aside)


def _stored(kind: str, read: Callable[[Any], Any], store: Callable[[str, Any], None]) -> WatchedResource:
    """A resource whose objects the index stores by key; storing None removes one."""
    return _watched(
        kind, lambda written: store(str(_key(written)), mapped(read, written)), lambda key, _uid: store(str(key), None)
    )


def _controller(row: ApiKind, state: ClusterState) -> WatchedResource:
    """A controller, of which only the selector is read."""

    def put(written: SelectorController | SelectorMapController) -> None:
        key = _key(written)
        if isinstance(written, SelectorMapController):
            selector: Selector | None = labels.equals(written.spec.selector or {})
        else:
            selector = mapped(selectors.selector_of, written.spec.selector)
        state.spread_context.put_controller(row.kind, key.namespace, key.name, selector)

    def drop(key: Key, _uid: str) -> None:
        state.spread_context.put_controller(row.kind, key.namespace, key.name, None)

    item_type = SelectorMapController if row.wire_type is ReplicationController else SelectorController
    return WatchedResource(resources.resource_of(row), item_type, put, drop)


def _key(written: ApiObject) -> Key:
    return Key(written.metadata.namespace, written.metadata.name)


class ResourceHandler:
    """
    Handles what a reflector reports: applies it and then calls `on_change`.

    `on_unreadable` receives the resource of each object that cannot be read.
    """

    def __init__(
        self, watched: WatchedResource, on_change: Callable[[], None], on_unreadable: Callable[[str], None]
    ) -> None:
        self._watched = watched
        self._on_change = on_change
        self._on_unreadable = on_unreadable

    def upsert(self, obj: Any) -> None:
        try:
            self._watched.put(obj)
        except InputError as error:  # such as a quantity that is out of range
            self._set_aside(_key(obj), obj, str(error))
        self._on_change()

    def delete(self, key: Key, uid: str) -> None:
        self._watched.drop(key, uid)
        self._on_change()

    def undecodable(self, found: Undecodable) -> None:
        self._set_aside(found.key, stub_of(found, self._watched.item_type), found.error)
        self._on_change()

    def _set_aside(self, key: Key, stub: ApiObject, error: str) -> None:
        """Set one unreadable object aside, count and log it. Other objects are not affected."""
        self._watched.set_aside(stub)
        resource = str(self._watched.resource)
        self._on_unreadable(resource)
        log.error("unreadable object", extra={"resource": resource, "object": str(key), "error": error})

    def synced(self) -> None:
        self._on_change()
