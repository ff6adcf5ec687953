"""
The API objects an audit reads, with the fields that tell where a node sits and what runs on it.

Richer than `wire.nodes` and `wire.pods` in what tells machines and owners apart, poorer in everything else. Knows
nothing of files.
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


class ClaimSource(WireObject):
    claim_name: str = ""


class PodVolume(WireObject):
    persistent_volume_claim: ClaimSource | None = None


class PodAffinity(WireObject):
    """Whether pods are kept apart by their spec at all; what exactly it says is the scheduler's business."""

    pod_anti_affinity: dict[str, object] | None = None


class PodSpec(WireObject):
    node_name: str = ""
    containers: list[Container] | None = None
    volumes: list[PodVolume] | None = None
    affinity: PodAffinity | None = None
    topology_spread_constraints: list[dict[str, object]] | None = None


class PodStatus(WireObject):
    phase: str = ""
    conditions: list[Condition] | None = None


class Pod(ApiObject):
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)


class PodTemplate(WireObject):
    spec: PodSpec = msgspec.field(default_factory=PodSpec)


class ControllerSpec(WireObject):
    replicas: int | None = None
    template: PodTemplate = msgspec.field(default_factory=PodTemplate)


class Controller(ApiObject):
    """A Deployment or a StatefulSet."""

    spec: ControllerSpec = msgspec.field(default_factory=ControllerSpec)


class LeaseSpec(WireObject):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None


class Lease(ApiObject):
    """One per running API server, and one per leader of everything else."""

    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)


class NodeReference(WireObject):
    name: str = ""


class MachineSpec(WireObject):
    failure_domain: str = ""
    provider_id: str = msgspec.field(default="", name="providerID")


class MachineStatus(WireObject):
    node_ref: NodeReference | None = None
    conditions: list[Condition] | None = None


class Machine(ApiObject):
    """Of Cluster API: the zone a node was meant for, and how its part of the control plane is."""

    spec: MachineSpec = msgspec.field(default_factory=MachineSpec)
    status: MachineStatus = msgspec.field(default_factory=MachineStatus)


class ConfigMap(ApiObject):
    data: dict[str, str] | None = None


class Endpoint(WireObject):
    addresses: list[str] | None = None
    node_name: str | None = None


class EndpointSlice(ApiObject):
    """Of the Service `default/kubernetes`: one address per API server, or one for all of them."""

    endpoints: list[Endpoint] | None = None


class CsiDriver(WireObject):
    name: str = ""
    topology_keys: list[str] | None = None


class CsiNodeSpec(WireObject):
    drivers: list[CsiDriver] | None = None


class CsiNode(ApiObject):
    """Which labels of the node its storage drivers wrote."""

    spec: CsiNodeSpec = msgspec.field(default_factory=CsiNodeSpec)
