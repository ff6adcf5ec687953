"""Volumes that only one pod may use at a time."""

from reference.cycle import SKIP, UNRESOLVABLE, UNSCHEDULABLE, Rejected

ONE_POD = "ReadWriteOncePod"
EXCLUSIVE_DISKS = ("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd")


def before_filter(cycle):
    taken = 0
    for name in cycle.pod.claims:
        claim = cycle.cluster.find("PersistentVolumeClaim", name, cycle.pod.namespace)
        if claim is None:
            return Rejected(UNRESOLVABLE, f'persistentvolumeclaim "{name}" not found')
        if ONE_POD in ((claim.get("spec") or {}).get("accessModes") or []) and in_use(cycle, name):
            taken += 1
    cycle.notes["VolumeRestrictions"] = taken
    inline = any(volume.get(kind) for volume in cycle.pod.volumes for kind in EXCLUSIVE_DISKS)
    return None if taken or inline else SKIP


def in_use(cycle, claim):
    """Whether a pod on any node uses the claim already."""
    return any(
        claim in pod.claims for node in cycle.cluster.nodes for pod in node.pods if pod.namespace == cycle.pod.namespace
    )


def check(cycle, node):
    for volume in cycle.pod.volumes:
        if any(same_disk(volume, other) for pod in node.pods for other in pod.volumes):
            return Rejected(UNSCHEDULABLE, "node(s) had no available disk")
    if cycle.notes["VolumeRestrictions"]:
        return Rejected(
            UNSCHEDULABLE,
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
        )
    return None


def same_disk(one, other):
    """Whether two inline volumes are one disk that may not be mounted twice."""
    for kind, identity in (("gcePersistentDisk", "pdName"), ("awsElasticBlockStore", "volumeID"), ("iscsi", "iqn")):
        ours, theirs = one.get(kind), other.get(kind)
        if ours and theirs and ours.get(identity) == theirs.get(identity):
            read_only = kind != "awsElasticBlockStore" and ours.get("readOnly") and theirs.get("readOnly")
            if not read_only:
                return True
    ours, theirs = one.get("rbd"), other.get("rbd")
    if not (ours and theirs) or (ours.get("readOnly") and theirs.get("readOnly")):
        return False
    shared = set(ours.get("monitors") or []) & set(theirs.get("monitors") or [])
    pool = (ours.get("pool") or "rbd") == (theirs.get("pool") or "rbd")
    return bool(shared) and pool and ours.get("image") == theirs.get("image")
