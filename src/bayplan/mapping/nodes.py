"""Nodes as written → targets."""

from __future__ import annotations

from bayplan.model import quantities
from bayplan.model.taints import Taint
from bayplan.model.targets import Target, TargetName
from bayplan.wire.nodes import Node


def target_of(node: Node) -> Target:
    """The node as a target; what it can give away is its capacity where it does not say otherwise."""
    offered = node.status.allocatable or node.status.capacity or {}
    return Target(
        name=TargetName(node.metadata.name),
        labels=node.metadata.labels or {},
        taints=tuple(Taint(taint.key, taint.value, taint.effect) for taint in node.spec.taints or ()),
        unschedulable=node.spec.unschedulable,
        allocatable=tuple((name, quantities.amount(name, text)) for name, text in offered.items()),
        images=tuple((name, image.size_bytes) for image in node.status.images or () for name in image.names or ()),
    )
