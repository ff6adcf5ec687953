"""Volumes, claims and storage classes, mapped to the values that the rules read."""

from __future__ import annotations

from bayplan.mapping import disks, selectors
from bayplan.model import quantities, volumes
from bayplan.wire import storage

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def volume_of(written: storage.PersistentVolume) -> volumes.Volume:
    spec, claim = written.spec, written.spec.claim_ref
    labels = written.metadata.labels or {}
    migrated = disks.migrated_handle(spec, labels) if spec.csi is None else None
    required = selectors.node_terms_of(spec.node_affinity.required) if spec.node_affinity else None
    return volumes.Volume(
        name=written.metadata.name,
        labels=labels,
        storage_class=(written.metadata.annotations or {}).get(CLASS_ANNOTATION, spec.storage_class_name),
        capacity=quantities.units((spec.capacity or {}).get("storage", 0)),
        access_modes=tuple(spec.access_modes or ()),
        volume_mode=spec.volume_mode or "Filesystem",
        required=required,
        claim=f"{claim.namespace}/{claim.name}" if claim else "",
        claim_uid=claim.uid if claim else "",
        phase=written.status.phase,
        terminating=written.metadata.deletion_timestamp is not None,
        driver=spec.csi.driver if spec.csi else migrated.driver if migrated else "",
        handle=spec.csi.volume_handle if spec.csi else migrated.name if migrated else "",
        migrated=migrated is not None,
        taken_over=disks.PLUGIN_OF_DRIVER[migrated.driver] if migrated else "",
        required_by_driver=disks.terms_for_driver(migrated.driver, required, labels) if migrated else None,
        attributes_class=spec.volume_attributes_class_name or "",
    )


def attach_limits_of(written: storage.CsiNode) -> dict[str, int | None]:
    """
    Driver of the node → the maximum number of volumes it attaches to it; None for a driver without a limit.

    The plugins that drivers have taken over there are among them, without limits.
    """
    taken_over = (written.metadata.annotations or {}).get(MIGRATED_PLUGINS, "")
    return dict.fromkeys(filter(None, taken_over.split(","))) | {
        driver.name: None if driver.allocatable is None else driver.allocatable.count
        for driver in written.spec.drivers or ()
    }


def attachment_of(written: storage.VolumeAttachment) -> volumes.Attachment:
    spec = written.spec
    return volumes.Attachment(node=spec.node_name, driver=spec.attacher, volume=spec.source.persistent_volume_name)


def space_of(written: storage.CsiStorageCapacity) -> volumes.AvailableSpace:
    largest = written.maximum_volume_size if written.maximum_volume_size is not None else written.capacity
    return volumes.AvailableSpace(
        storage_class=written.storage_class_name,
        topology=selectors.selector_of(written.node_topology),
        largest=None if largest is None else quantities.units(largest),
        capacity=0 if written.capacity is None else quantities.units(written.capacity),
    )


def claim_of(written: storage.PersistentVolumeClaim, default_class: str = "") -> volumes.Claim:
    spec, annotations = written.spec, written.metadata.annotations or {}
    requested = (spec.resources.requests if spec.resources else None) or {}
    owner = next((one for one in written.metadata.owner_references or () if one.controller), None)
    named = spec.storage_class_name if spec.storage_class_name is not None else default_class
    return volumes.Claim(
        key=f"{written.metadata.namespace or 'default'}/{written.metadata.name}",
        uid=written.metadata.uid,
        volume=spec.volume_name,
        bound=bool(spec.volume_name) and BIND_COMPLETED in annotations,
        lost=written.status.phase == "Lost",
        terminating=written.metadata.deletion_timestamp is not None,
        storage_class=annotations.get(CLASS_ANNOTATION, named),
        selected_node=annotations.get(SELECTED_NODE, ""),
        requested=quantities.units(requested.get("storage", 0)),
        access_modes=tuple(spec.access_modes or ()),
        volume_mode=spec.volume_mode or "Filesystem",
        selector=selectors.selector_of(spec.selector),
        attributes_class=spec.volume_attributes_class_name or "",
        owner=owner.name if owner is not None and owner.kind == "Pod" else "",
        owner_uid=owner.uid if owner is not None else "",
    )


def storage_class_of(written: storage.WireStorageClass) -> volumes.StorageClass:
    return volumes.StorageClass(
        name=written.metadata.name,
        provisioner=written.provisioner,
        binding_mode=written.volume_binding_mode,
        allowed=tuple(
            tuple((e.key, tuple(e.values or ())) for e in term.match_label_expressions or ())
            for term in written.allowed_topologies or ()
        ),
    )
