"""
The objects of the simulated cluster, as its API server would hold them, and who is told of their changes.

Objects are values: a change puts another one. Does not know what changes mean.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec

from bayplan.controllers import pod_templates
from bayplan.controllers.desired_state import ObjectKey
from bayplan.wire import kinds
from bayplan.wire.meta import ApiObject
from bayplan.wire.nodes import Node
from bayplan.wire.pods import Pod

Found = TypeVar("Found", bound=ApiObject)
Listener = Callable[[ObjectKey, Any, Any], None]  # the key, the object before and after; None if there is none
POD, NODE, REPLICA_SET = "Pod", "Node", "ReplicaSet"
CONTROLLERS = frozenset(row.kind for row in kinds.held_in(kinds.CONTROLLERS))


def key_of(found: ApiObject) -> ObjectKey:
    """The identity of an object."""
    return ObjectKey(found.kind, found.metadata.namespace, found.metadata.name)


class WallClock:
    """The time of day in the simulated cluster, which begins at `start`."""

    def __init__(self, start: dt.datetime, clock: Callable[[], float]) -> None:
        self.start, self._clock = start, clock
        self._second, self._text = -1, ""

    def now(self) -> dt.datetime:
        return self.start + dt.timedelta(seconds=self._clock())

    def text(self) -> str:
        """As API servers write it, in whole seconds."""
        second = int(self._clock())
        if second != self._second:
            self._second = second
            at = self.start.astimezone(dt.UTC).replace(tzinfo=None, microsecond=0) + dt.timedelta(seconds=second)
            self._text = f"{at.isoformat()}Z"
        return self._text


class Store:
    """All objects by kind and by namespace and name."""

    def __init__(self, wall: WallClock) -> None:
        self.wall = wall
        self._kinds: dict[str, dict[ObjectKey, Any]] = {}
        self._listeners: list[Listener] = []
        self._untold: deque[tuple[ObjectKey, Any, Any]] = deque()
        self._is_telling = False
        self._version = 0
        self.pods_by_owner: dict[ObjectKey, dict[str, None]] = {}
        self.pods_by_node: dict[str, dict[ObjectKey, None]] = {}
        self._sets_by_owner: dict[ObjectKey, dict[ObjectKey, None]] = {}

    def listen(self, listener: Listener) -> None:
        """Tell a function of every change, after those that listen already."""
        self._listeners.append(listener)

    def ignore(self, listener: Listener) -> None:
        """Tell a function no more, if it was told."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    # Reading

    def find(self, key: ObjectKey) -> Any:
        """The object, or None."""
        return self._kinds.get(key.kind, {}).get(key)

    def of_kind(self, kind: str) -> Iterator[Any]:
        """All objects of a kind, in the order in which they were created; they may change meanwhile."""
        yield from list(self._kinds.get(kind, {}).values())

    def all(self) -> Iterator[Any]:
        """Every object, by kind in the order in which kinds and objects were first created."""
        for kind in list(self._kinds):
            yield from self.of_kind(kind)

    def count(self, kind: str) -> int:
        return len(self._kinds.get(kind, ()))

    def pod(self, namespace: str, name: str) -> Pod | None:
        found: Pod | None = self.find(ObjectKey(POD, namespace, name))
        return found

    def node(self, name: str) -> Node | None:
        found: Node | None = self.find(ObjectKey(NODE, "", name))
        return found

    def pods(self) -> Iterator[Pod]:
        yield from self.of_kind(POD)

    def nodes(self) -> Iterator[Node]:
        yield from self.of_kind(NODE)

    def pods_on(self, node: str) -> list[Pod]:
        """The pods that are bound to a node."""
        return [self.find(key) for key in self.pods_by_node.get(node, ())]

    def pods_of(self, owner: ObjectKey) -> list[Pod]:
        """The pods that a controller owns."""
        return [self.find(ObjectKey(POD, owner.namespace, name)) for name in self.pods_by_owner.get(owner, ())]

    def owned_sets(self, owner: ObjectKey) -> list[Any]:
        """The ReplicaSets of a Deployment, in the order in which they were created."""
        return [self.find(key) for key in self._sets_by_owner.get(owner, ())]

    # Writing

    def put(self, written: Found) -> Found:
        """Create or replace an object. The server's own metadata is filled in."""
        key = key_of(written)
        known = self._kinds.setdefault(key.kind, {})
        before = known.get(key)
        self._version += 1
        meta = written.metadata
        changed: dict[str, Any] = {"resource_version": str(self._version)}
        if before is not None:
            changed |= {"uid": before.metadata.uid, "creation_timestamp": before.metadata.creation_timestamp}
        else:
            if not meta.uid:
                changed["uid"] = self._new_uid(written)
            if not meta.creation_timestamp:
                changed["creation_timestamp"] = self.wall.text()
        stored = msgspec.structs.replace(written, metadata=msgspec.structs.replace(meta, **changed))
        known[key] = stored
        if key.kind == POD:
            self._index_pod(before, -1)
            self._index_pod(known[key], 1)
        elif key.kind == REPLICA_SET and (owner := owner_of(stored)) is not None:
            self._sets_by_owner.setdefault(owner, {})[key] = None
        self._tell(key, before, stored)
        return stored

    def _new_uid(self, written: ApiObject) -> str:
        """A uid; that of a controller follows from its name, because it makes pods before it is stored."""
        if written.kind in CONTROLLERS:
            return pod_templates.owner_reference(written).uid
        return str(uuid.UUID(int=self._version))

    def remove(self, key: ObjectKey) -> None:
        """Remove an object, if it is there."""
        before = self._kinds.get(key.kind, {}).pop(key, None)
        if before is None:
            return
        if key.kind == POD:
            self._index_pod(before, -1)
        elif key.kind == REPLICA_SET and (owner := owner_of(before)) is not None:
            self._sets_by_owner.get(owner, {}).pop(key, None)
        self._tell(key, before, None)

    def _tell(self, key: ObjectKey, before: Any, after: Any) -> None:
        """Tell all listeners; what they change themselves they all are told of afterwards, in order."""
        self._untold.append((key, before, after))
        if self._is_telling:
            return
        self._is_telling = True
        try:
            while self._untold:
                change = self._untold.popleft()
                for listener in tuple(self._listeners):
                    listener(*change)
        finally:
            self._is_telling = False

    def _index_pod(self, pod: Pod | None, sign: int) -> None:
        if pod is None:
            return
        key = key_of(pod)
        owner = owner_of(pod)
        places: list[tuple[dict[Any, dict[Any, None]], Any, Any]] = []
        if owner is not None:
            places.append((self.pods_by_owner, owner, key.name))
        if pod.spec.node_name:
            places.append((self.pods_by_node, pod.spec.node_name, key))
        for table, place, entry in places:
            if sign > 0:
                table.setdefault(place, {})[entry] = None
            else:
                table[place].pop(entry, None)
                if not table[place]:
                    del table[place]


def owner_of(found: ApiObject) -> ObjectKey | None:
    """The controller that manages an object, or None."""
    for owner in found.metadata.owner_references or ():
        if owner.controller:
            return ObjectKey(owner.kind, found.metadata.namespace, owner.name)
    return None
