"""
API objects as an audit reads them: where a node is, and what runs on it.

More than `wire.nodes` and `wire.pods` about machines and owners, less about everything else, so that large clusters
take little memory.
"""

from __future__ import annotations

import msgspec

from bayplan.wire.meta import ApiObject, Int32, WireObject
from bayplan.wire.nodes import WireTaint


class ObservedCondition(WireObject):
    type: str = ""
    status: str = ""


class ObservedAddress(WireObject):
    type: str = ""
    address: str = ""


class ObservedNodeInfo(WireObject):
    system_uuid: str = msgspec.field(default="", name="systemUUID")
    machine_id: str = msgspec.field(default="", name="machineID")
    kernel_version: str = ""
    os_image: str = ""
    kubelet_version: str = ""


class ObservedNodeSpec(WireObject):
    provider_id: str = msgspec.field(default="", name="providerID")
    taints: list[WireTaint] | None = None
    unschedulable: bool = False


class ObservedNodeStatus(WireObject):
    conditions: list[ObservedCondition] | None = None
    addresses: list[ObservedAddress] | None = None
    node_info: ObservedNodeInfo = msgspec.field(default_factory=ObservedNodeInfo)


class ObservedNode(ApiObject):
    spec: ObservedNodeSpec = msgspec.field(default_factory=ObservedNodeSpec)
    status: ObservedNodeStatus = msgspec.field(default_factory=ObservedNodeStatus)


class ObservedContainer(WireObject):
    name: str = ""
    command: list[str] | None = None
    args: list[str] | None = None


class ObservedClaimSource(WireObject):
    claim_name: str = ""


class ObservedPodVolume(WireObject):
    persistent_volume_claim: ObservedClaimSource | None = None


class ObservedPodAffinity(WireObject):
    """Only whether the pod has anti-affinity at all; the terms are read by the scheduler."""

    pod_anti_affinity: dict[str, object] | None = None


class ObservedPodSpec(WireObject):
    node_name: str = ""
    containers: list[ObservedContainer] | None = None
    volumes: list[ObservedPodVolume] | None = None
    affinity: ObservedPodAffinity | None = None
    topology_spread_constraints: list[dict[str, object]] | None = None


class ObservedPodStatus(WireObject):
    phase: str = ""
    conditions: list[ObservedCondition] | None = None


class ObservedPod(ApiObject):
    spec: ObservedPodSpec = msgspec.field(default_factory=ObservedPodSpec)
    status: ObservedPodStatus = msgspec.field(default_factory=ObservedPodStatus)


class ObservedPodTemplate(WireObject):
    spec: ObservedPodSpec = msgspec.field(default_factory=ObservedPodSpec)


class ObservedControllerSpec(WireObject):
    replicas: Int32 | None = None
    template: ObservedPodTemplate = msgspec.field(default_factory=ObservedPodTemplate)


class ObservedController(ApiObject):
    """A Deployment or a StatefulSet."""

    spec: ObservedControllerSpec = msgspec.field(default_factory=ObservedControllerSpec)


class ObservedLeaseSpec(WireObject):
    holder_identity: str | None = None
    lease_duration_seconds: Int32 | None = None
    renew_time: str | None = None


class ObservedLease(ApiObject):
    """Each running API server has one, and so does the leader of every other component."""

    spec: ObservedLeaseSpec = msgspec.field(default_factory=ObservedLeaseSpec)


class ObservedNodeReference(WireObject):
    name: str = ""


class ObservedMachineSpec(WireObject):
    failure_domain: str = ""
    provider_id: str = msgspec.field(default="", name="providerID")


class ObservedMachineStatus(WireObject):
    node_ref: ObservedNodeReference | None = None
    conditions: list[ObservedCondition] | None = None


class ObservedMachine(ApiObject):
    """A Machine of Cluster API: the zone intended for a node, and the health of its control-plane components."""

    spec: ObservedMachineSpec = msgspec.field(default_factory=ObservedMachineSpec)
    status: ObservedMachineStatus = msgspec.field(default_factory=ObservedMachineStatus)


class ObservedConfigMap(ApiObject):
    data: dict[str, str] | None = None


class ObservedEndpoint(WireObject):
    addresses: list[str] | None = None
    node_name: str | None = None


class ObservedEndpointSlice(ApiObject):
    """Of the Service `default/kubernetes`: one address per API server, or one address for all."""

    endpoints: list[ObservedEndpoint] | None = None


class ObservedCsiDriver(WireObject):
    name: str = ""
    topology_keys: list[str] | None = None


class ObservedCsiNodeSpec(WireObject):
    drivers: list[ObservedCsiDriver] | None = None


class ObservedCsiNode(ApiObject):
    """The labels of the node that its storage drivers wrote."""

    spec: ObservedCsiNodeSpec = msgspec.field(default_factory=ObservedCsiNodeSpec)
