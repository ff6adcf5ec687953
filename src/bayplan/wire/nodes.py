"""Nodes, and namespaces with the labels that namespace selectors match."""

from __future__ import annotations

import msgspec

from bayplan.wire.meta import ApiObject, Int64, Quantities, WireObject


class WireTaint(WireObject):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(WireObject):
    taints: list[WireTaint] | None = None
    unschedulable: bool = False


class ContainerImage(WireObject):
    names: list[str] | None = None
    size_bytes: Int64 = 0


class NodeStatus(WireObject):
    capacity: Quantities | None = None
    allocatable: Quantities | None = None
    images: list[ContainerImage] | None = None


class Node(ApiObject):
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class Namespace(ApiObject):
    """Only its name and labels are read."""
