"""
What an object means that cannot be read: it is set aside, and no node looks free because of it.

A node that cannot be read keeps the labels it had, because its pods still count in its domains, and is closed: nothing
more is placed on it. A pod that cannot be read and was not counted on its node before closes that node, because it
takes an unknown part of it. A pending pod that cannot be read is not scheduled. What can be read again, or is deleted,
opens the node.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import msgspec

from bayplan.errors import InputError
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.kube_api import decoding
from bayplan.kube_api.decoding import Undecodable
from bayplan.model.targets import Target
from bayplan.model.workloads import WorkloadKey
from bayplan.wire.meta import ApiObject, ObjectMeta
from bayplan.wire.pods import Pod, PodSpec, PodStatus

log = logging.getLogger("bayplan.watching")
Arguments = ParamSpec("Arguments")
Found = TypeVar("Found")


class UnreadableError(InputError):
    """An object that was decoded and whose content cannot be used."""


def mapped(read: Callable[Arguments, Found], *arguments: Arguments.args, **options: Arguments.kwargs) -> Found:
    """
    What `read` returns; whatever it raises is an error of the object, not of this process.

    Objects are mapped before anything is changed, so one that cannot be mapped leaves the index as it was.
    """
    try:
        return read(*arguments, **options)
    except InputError:
        raise
    except Exception as error:
        raise UnreadableError(f"{type(error).__name__}: {error}") from error


def mapped_running(read: Callable[[Pod], Found], pod: Pod) -> Found:
    """
    What `read` returns of a pod on a node; without the pod's annotations if these cannot be read.

    A tenant may write them while the pod runs, and a pod that cannot be read at all closes its node for others.
    """
    try:
        return mapped(read, pod)
    except UnreadableError:
        if not pod.metadata.annotations:
            raise
        bare = msgspec.structs.replace(pod.metadata, annotations=None)
        found = mapped(read, msgspec.structs.replace(pod, metadata=bare))
        log.exception("unreadable annotations", extra={"pod": f"{pod.metadata.namespace}/{pod.metadata.name}"})
        return found


def stub_of(found: Undecodable, item_type: type) -> ApiObject:
    """What can be told of an object that cannot be decoded: which one it is, and of a pod where it runs."""
    meta = ObjectMeta(namespace=found.key.namespace, name=found.key.name, uid=found.uid)
    if item_type is not Pod:
        return ApiObject(metadata=meta)
    node_name, phase = (decoding.text_at(found.raw, *path) for path in (("spec", "nodeName"), ("status", "phase")))
    return Pod(metadata=meta, spec=PodSpec(node_name=node_name), status=PodStatus(phase=phase))


class NodesSetAside:
    """
    The nodes of an index on which nothing more is placed.

    `pods` are the unreadable pods that close the node they run on. All changes of nodes go through `put` and `drop`.
    """

    def __init__(self, index: PlacementIndex) -> None:
        self.pods: dict[WorkloadKey, str] = {}
        self._index = index
        self._unreadable: set[str] = set()
        self._readable: dict[str, Target] = {}  # the last readable state of each closed node

    def __len__(self) -> int:
        return len(self._readable)

    def put(self, target: Target) -> None:
        """Add or change a node that can be read."""
        self._unreadable.discard(target.name)
        if target.name in self._readable:
            self._readable[target.name] = target
            self._apply(target.name)
        elif target.name in self.pods.values():
            self._readable[target.name] = target
            self._put(_closed(target))
        else:
            self._put(target)

    def drop(self, name: str) -> None:
        self._unreadable.discard(name)
        self._readable.pop(name, None)
        if name in self._index.slots.by_name:
            self._index.remove_target(name)

    def close_unreadable(self, name: str) -> None:
        """Close a node that cannot be read; one that is not known yet stays unknown."""
        self._unreadable.add(name)
        self._apply(name)

    def close_for(self, key: WorkloadKey, name: str) -> None:
        """Close the node of a pod that cannot be read."""
        self.pods[key] = name
        self._apply(name)

    def open_for(self, key: WorkloadKey) -> None:
        """The pod is gone or can be read."""
        name = self.pods.pop(key, None)
        if name is not None:
            self._apply(name)

    def _apply(self, name: str) -> None:
        slot = self._index.slots.by_name.get(name)
        if slot is None:
            return
        is_closed = name in self._unreadable or name in self.pods.values()
        target = self._readable.pop(name, None) or self._index.slots.at(slot)
        if is_closed:
            self._readable[name] = target
        self._index.update_target(_closed(target) if is_closed else target)

    def _put(self, target: Target) -> None:
        if target.name in self._index.slots.by_name:
            self._index.update_target(target)
        else:
            self._index.add_target(target)


def _closed(target: Target) -> Target:
    """The node with its labels and room for nothing: a pod that tolerates unschedulable nodes does not fit either."""
    return msgspec.structs.replace(target, unschedulable=True, allocatable=())
