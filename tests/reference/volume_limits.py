"""No more volumes of a driver on a node than it can attach there."""

from reference.cycle import SKIP, UNSCHEDULABLE, Rejected
from reference.objects import name_of
from reference.volume_binding import claims_of, storage_class


def before_filter(cycle):
    return None if any(True for _ in claims_of(cycle.pod)) else SKIP


def check(cycle, node):
    limits = limits_of(cycle, node)
    wanted = volumes_of(cycle, cycle.pod)
    used = {volume for pod in node.pods for volume in volumes_of(cycle, pod)}
    attached = used | left_attached(cycle, node)
    for driver, limit in limits.items():
        there = {volume for volume in attached if volume[0] == driver}
        new = {volume for volume in wanted if volume[0] == driver} - used
        if new and len(there) + len(new) > limit:
            return Rejected(UNSCHEDULABLE, "node(s) exceed max volume count")
    return None


def limits_of(cycle, node):
    found = next((one for one in cycle.cluster.of_kind("CSINode") if name_of(one) == node.name), {})
    drivers = (found.get("spec") or {}).get("drivers") or []
    return {one["name"]: one["allocatable"]["count"] for one in drivers if (one.get("allocatable") or {}).get("count")}


def left_attached(cycle, node):
    """(driver, handle) of every volume that a VolumeAttachment attaches to the node."""
    found = set()
    for one in cycle.cluster.of_kind("VolumeAttachment"):
        spec = one.get("spec") or {}
        name = (spec.get("source") or {}).get("persistentVolumeName") or ""
        source = ((cycle.cluster.find("PersistentVolume", name) or {}).get("spec") or {}).get("csi")
        if spec.get("nodeName") == node.name and spec.get("attacher") and source:
            found.add((spec["attacher"], source["volumeHandle"]))
    return found


def volumes_of(cycle, pod):
    """(driver, handle) of every volume of a driver; one that is not provisioned yet is identified by its claim."""
    found = set()
    for name, _ in claims_of(pod):
        claim = cycle.cluster.find("PersistentVolumeClaim", name, pod.namespace)
        if claim is None:
            continue
        volume = cycle.cluster.find("PersistentVolume", claim["spec"].get("volumeName") or "")
        if volume is not None:
            source = volume["spec"].get("csi")
            if source:
                found.add((source["driver"], source["volumeHandle"]))
            continue
        made_by = (storage_class(cycle, claim) or {}).get("provisioner")
        if made_by:
            found.add((made_by, f"{pod.namespace}/{name}"))
    return found
