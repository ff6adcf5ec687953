"""A volume that carries zone or region labels is used from nodes with the same ones."""

from reference.cycle import SKIP, UNRESOLVABLE, Rejected
from reference.objects import labels_of
from reference.volume_binding import class_of

CURRENT = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
KEYS = (*CURRENT, *CURRENT.values())


def before_filter(cycle):
    wanted = []  # (key, values) of every bound volume
    for name in cycle.pod.claims:
        if not name:
            return Rejected(UNRESOLVABLE, "PersistentVolumeClaim had no name")
        claim = cycle.cluster.find("PersistentVolumeClaim", name, cycle.pod.namespace)
        if claim is None:
            return Rejected(UNRESOLVABLE, f'persistentvolumeclaim "{name}" not found')
        volume_name = claim["spec"].get("volumeName")
        if not volume_name:
            reason = unbound(cycle, claim)
            if reason:
                return Rejected(UNRESOLVABLE, reason)
            continue
        volume = cycle.cluster.find("PersistentVolume", volume_name)
        if volume is None:
            return Rejected(UNRESOLVABLE, f'persistentvolume "{volume_name}" not found')
        wanted += zones(volume)
    cycle.notes["VolumeZone"] = wanted
    return None if wanted else SKIP


def unbound(cycle, claim):
    """Why a claim without a volume cannot be evaluated, or nothing if its volume is provisioned later."""
    name = class_of(claim)
    if not name:
        return "PersistentVolumeClaim had no pv name and storageClass name"
    found = cycle.cluster.find("StorageClass", name)
    if found is None:
        return f'storageclass.storage.k8s.io "{name}" not found'
    if found.get("volumeBindingMode") is None:
        return f'VolumeBindingMode not set for StorageClass "{name}"'
    return None if found["volumeBindingMode"] == "WaitForFirstConsumer" else "PersistentVolume had no name"


def zones(volume):
    """A label may name several zones, joined by two underscores; one with an empty name is ignored."""
    found = []
    for key in KEYS:
        if key in labels_of(volume):
            values = [value.strip() for value in labels_of(volume)[key].split("__")]
            if all(values):
                found.append((key, values))
    return found


def check(cycle, node):
    if not any(key in node.labels for key in KEYS):  # a cluster of one zone may do without the labels
        return None
    for key, values in cycle.notes["VolumeZone"]:
        if node.labels.get(key, node.labels.get(CURRENT.get(key, key))) not in values:
            return Rejected(UNRESOLVABLE, "node(s) had no available volume zone")
    return None
