"""Volumes, claims and storage classes: the fields that decide which nodes a pod may use."""

from __future__ import annotations

import msgspec

from bayplan.wire.meta import ApiObject, Int32, LabelSelector, ObjectReference, Quantities, Quantity, WireObject
from bayplan.wire.pods import DiskSources, NodeSelector, ResourceRequirements


class VolumeNodeAffinity(WireObject):
    required: NodeSelector | None = None


class CsiPersistentVolumeSource(WireObject):
    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(DiskSources):
    csi: CsiPersistentVolumeSource | None = None
    capacity: Quantities | None = None
    access_modes: list[str] | None = None
    storage_class_name: str = ""
    volume_mode: str = ""
    volume_attributes_class_name: str | None = None
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None


class PhaseStatus(WireObject):
    phase: str = ""


class PersistentVolume(ApiObject):
    spec: PersistentVolumeSpec = msgspec.field(default_factory=PersistentVolumeSpec)
    status: PhaseStatus = msgspec.field(default_factory=PhaseStatus)


class PersistentVolumeClaimSpec(WireObject):
    access_modes: list[str] | None = None
    resources: ResourceRequirements | None = None
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str = ""
    volume_attributes_class_name: str | None = None
    selector: LabelSelector | None = None


class PersistentVolumeClaim(ApiObject):
    spec: PersistentVolumeClaimSpec = msgspec.field(default_factory=PersistentVolumeClaimSpec)
    status: PhaseStatus = msgspec.field(default_factory=PhaseStatus)


class TopologySelectorLabelRequirement(WireObject):
    key: str = ""
    values: list[str] | None = None


class TopologySelectorTerm(WireObject):
    match_label_expressions: list[TopologySelectorLabelRequirement] | None = None


class WireStorageClass(ApiObject):
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologySelectorTerm] | None = None


class VolumeNodeResources(WireObject):
    count: Int32 | None = None


class CsiNodeDriver(WireObject):
    name: str = ""
    topology_keys: list[str] | None = None
    allocatable: VolumeNodeResources | None = None


class CsiNodeSpec(WireObject):
    drivers: list[CsiNodeDriver] | None = None


class CsiNode(ApiObject):
    """`CSINode`: the storage drivers of a node, and the maximum number of volumes each can attach."""

    spec: CsiNodeSpec = msgspec.field(default_factory=CsiNodeSpec)


class VolumeAttachmentSource(WireObject):
    persistent_volume_name: str = ""


class VolumeAttachmentSpec(WireObject):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = msgspec.field(default_factory=VolumeAttachmentSource)


class VolumeAttachment(ApiObject):
    """`VolumeAttachment`: a volume that is, or will be, attached to a node."""

    spec: VolumeAttachmentSpec = msgspec.field(default_factory=VolumeAttachmentSpec)


class CsiDriverSpec(WireObject):
    attach_required: bool | None = None
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CsiDriver(ApiObject):
    """`CSIDriver`: whether a driver attaches volumes, publishes its capacity, and must run where its pods run."""

    spec: CsiDriverSpec = msgspec.field(default_factory=CsiDriverSpec)


class CsiStorageCapacity(ApiObject):
    """`CSIStorageCapacity`: the capacity of a storage class, and for which nodes."""

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None
