"""
The disks that pods and PersistentVolumes name without a CSI driver, and the drivers that have taken them over.

Mirrors csi-translation-lib for the plugins that kube-scheduler counts as migrated (isCSIMigrationOn of
nodevolumelimits/utils.go): AWS EBS, GCE PD, Azure Disk, Cinder and Portworx.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from bayplan.model.labels import IN
from bayplan.model.node_selectors import NodeRequirement, NodeTerm
from bayplan.model.terms import REGION, ZONE
from bayplan.model.volumes import InlineDisk, VolumeHandle
from bayplan.wire.pods import DiskSources, WireVolume

AWS, GCE, AZURE = "ebs.csi.aws.com", "pd.csi.storage.gke.io", "disk.csi.azure.com"
CINDER, PORTWORX = "cinder.csi.openstack.org", "pxd.portworx.com"
# The names under which storage classes provision them
DRIVER_OF_PROVISIONER = {
    "kubernetes.io/aws-ebs": AWS,
    "kubernetes.io/gce-pd": GCE,
    "kubernetes.io/azure-disk": AZURE,
    "kubernetes.io/cinder": CINDER,
    "kubernetes.io/portworx-volume": PORTWORX,
}
PLUGIN_OF_DRIVER = {driver: plugin for plugin, driver in DRIVER_OF_PROVISIONER.items()}
# Their own keys for the zone of a node; the other drivers have none, or leave the key of Kubernetes
ZONE_KEYS = {
    AWS: "topology.ebs.csi.aws.com/zone",
    GCE: "topology.gke.io/zone",
    CINDER: "topology.cinder.csi.openstack.org/zone",
}
# Those that kube-scheduler knows as migratable, but counts no volumes of
_UNCOUNTED = ("kubernetes.io/azure-file", "kubernetes.io/vsphere-volume")
_OLD_ZONE, _OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
_SEPARATOR = "__"
_UNSPECIFIED = "UNSPECIFIED"


def migrated_handle(written: DiskSources, labels: Mapping[str, str] | None = None) -> VolumeHandle | None:
    """The identity of the disk for its CSI driver; the labels are those of a PersistentVolume."""
    if written.aws_elastic_block_store is not None:
        volume = _aws_volume(written.aws_elastic_block_store.volume_id)
        return VolumeHandle(AWS, volume) if volume else None
    if written.gce_persistent_disk is not None:
        return VolumeHandle(GCE, f"{_gce_location(labels or {})}/disks/{written.gce_persistent_disk.pd_name}")
    if written.azure_disk is not None:
        return VolumeHandle(AZURE, written.azure_disk.disk_uri)
    for driver, source in ((CINDER, written.cinder), (PORTWORX, written.portworx_volume)):
        if source is not None:
            return VolumeHandle(driver, source.volume_id)
    return None


def terms_for_driver(
    driver: str, required: tuple[NodeTerm, ...] | None, labels: Mapping[str, str]
) -> tuple[NodeTerm, ...] | None:
    """What a PersistentVolume requires of nodes once the driver has taken it over: the zone under the driver's key."""
    key = ZONE_KEYS.get(driver)
    if key is None:
        return required
    terms = required or ()
    used = {one.key for term in terms for one in term.expressions}
    old = next((zone for known in (used, labels) for zone in (ZONE, _OLD_ZONE) if zone in known), ZONE)
    renamed = {old: key, **({_OLD_REGION: REGION} if old == _OLD_ZONE else {})}
    terms = tuple(
        NodeTerm(tuple(replace(one, key=renamed.get(one.key, one.key)) for one in term.expressions), term.fields)
        for term in terms
    )
    zones = {zone.strip() for zone in labels.get(old, "").split(_SEPARATOR)} - {""}
    if old in used or not zones:
        return terms or None
    added = NodeRequirement(key, IN, tuple(sorted(zones)))
    return tuple(NodeTerm((*term.expressions, added), term.fields) for term in terms or (NodeTerm(),))


def driver_of(provisioner: str) -> str:
    """The CSI driver that provisions for a storage class; "" if its volumes are not counted."""
    return "" if provisioner in _UNCOUNTED else DRIVER_OF_PROVISIONER.get(provisioner, provisioner)


def inline_disks(volumes: list[WireVolume]) -> tuple[InlineDisk, ...]:
    """The disks of the volumes; `source` and `name` say with which others a disk may be in conflict."""
    found = []
    for one in volumes:
        named = one.gce_persistent_disk or one.aws_elastic_block_store or one.azure_disk or one.cinder or one.rbd
        if named is None and one.portworx_volume is None and one.iscsi is None:
            continue  # nearly every volume
        disk = _inline_disk(one)
        if disk is not None:
            found.append(disk)
    return tuple(found)


def _inline_disk(volume: WireVolume) -> InlineDisk | None:
    handle = migrated_handle(volume)
    if (gce := volume.gce_persistent_disk) is not None:
        return InlineDisk("gcePersistentDisk", gce.pd_name, gce.read_only, handle=handle)
    if (aws := volume.aws_elastic_block_store) is not None:
        return InlineDisk("awsElasticBlockStore", aws.volume_id, exclusive=True, handle=handle)
    if (iscsi := volume.iscsi) is not None:
        return InlineDisk("iscsi", iscsi.iqn, iscsi.read_only)
    if (rbd := volume.rbd) is not None and rbd.monitors:  # without monitors it is in conflict with nothing
        return InlineDisk("rbd", f"{rbd.pool}/{rbd.image}", rbd.read_only, monitors=tuple(rbd.monitors))
    return InlineDisk("", "", handle=handle) if handle is not None else None


def _aws_volume(text: str) -> str:
    """`vol-1` of `aws://zone/vol-1`; "" if there is none."""
    if not text.startswith("aws://"):
        return text
    last = text.removeprefix("aws://").rpartition("/")[2]
    return last if last.startswith("vol-") else ""


def _gce_location(labels: Mapping[str, str]) -> str:
    zones = (labels.get(ZONE) or labels.get(_OLD_ZONE) or _UNSPECIFIED).split(_SEPARATOR)
    if len(zones) == 1:
        return f"projects/{_UNSPECIFIED}/zones/{zones[0]}"
    return f"projects/{_UNSPECIFIED}/regions/{zones[0].rpartition('-')[0]}"
