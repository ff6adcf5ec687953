"""
The API objects an audit reads, with the fields that tell where a node sits and what runs on it.

Richer than `wire.nodes` in what tells machines apart, poorer in everything else. Knows nothing of files.
"""

from __future__ import annotations

import msgspec

from bayplan.wire.meta import ApiObject, WireObject
from bayplan.wire.nodes import Taint


class Condition(WireObject):
    type: str = ""
    status: str = ""


class Address(WireObject):
    type: str = ""
    address: str = ""


class NodeInfo(WireObject):
    system_uuid: str = msgspec.field(default="", name="systemUUID")
    machine_id: str = msgspec.field(default="", name="machineID")
    kernel_version: str = ""
    os_image: str = ""
    kubelet_version: str = ""


class NodeSpec(WireObject):
    provider_id: str = msgspec.field(default="", name="providerID")
    taints: list[Taint] | None = None
    unschedulable: bool = False


class NodeStatus(WireObject):
    conditions: list[Condition] | None = None
    addresses: list[Address] | None = None
    node_info: NodeInfo = msgspec.field(default_factory=NodeInfo)


class Node(ApiObject):
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class Container(WireObject):
    name: str = ""
    command: list[str] | None = None
    args: list[str] | None = None


class PodSpec(WireObject):
    node_name: str = ""
    containers: list[Container] | None = None


class PodStatus(WireObject):
    phase: str = ""
    conditions: list[Condition] | None = None


class Pod(ApiObject):
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)


class Lease(ApiObject):
    """Its name and labels: one per running API server."""


class NodeReference(WireObject):
    name: str = ""


class MachineSpec(WireObject):
    failure_domain: str = ""
    provider_id: str = msgspec.field(default="", name="providerID")


class MachineStatus(WireObject):
    node_ref: NodeReference | None = None


class Machine(ApiObject):
    """Of Cluster API: the zone a node was meant for."""

    spec: MachineSpec = msgspec.field(default_factory=MachineSpec)
    status: MachineStatus = msgspec.field(default_factory=MachineStatus)


class ConfigMap(ApiObject):
    data: dict[str, str] | None = None
