"""Claims, volumes, classes and what nodes and drivers say of storage."""

from agreeing import drawn_terms
from agreeing.drawing import REGION, ZONE, ZONES, thing

GROUP = "storage.k8s.io/v1"
CLAIMS = ("c0", "c1", "c2")
DRIVER, OTHER, MOVED = "csi.example.com", "other.example.com", "pd.csi.storage.gke.io"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
IN_TREE = ("kubernetes.io/gce-pd", "kubernetes.io/aws-ebs", "kubernetes.io/azure-disk", "kubernetes.io/cinder")
SIZES = ("1Gi", "2Gi", "5Gi", "10Gi")
CLASS_NAMES = ("late", "late", "late", "now", "static", "moved", "fast")


def storage(theme, namespace, pods, node_names):
    """Everything about storage that a question's claims, ephemeral volumes and disks may meet."""
    found = classes(theme)
    for name in CLAIMS:
        found += claim_and_volume(theme, name, namespace)
    found += ephemeral_claims(theme, pods)
    found += [volume(theme, f"pv-free-{i}") for i in range(theme.pick((0, 0, 1, 3)))]
    if theme.has("attach-limits"):
        found += attach_limits(theme, node_names)
    if theme.has("capacity", "attach-limits"):
        found += drivers(theme)
    if theme.has("capacity"):
        found += capacities(theme)
    return found


def classes(theme):
    found = []
    for name, provisioner, mode in (
        ("late", DRIVER, "WaitForFirstConsumer"),
        ("fast", OTHER, "WaitForFirstConsumer"),
        ("now", DRIVER, "Immediate"),
        ("static", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
        ("moved", "kubernetes.io/gce-pd", "WaitForFirstConsumer"),
    ):
        if theme.rarely(12):
            continue
        one = thing("StorageClass", name, GROUP, provisioner=provisioner, volumeBindingMode=mode)
        if theme.has("topologies"):
            one["allowedTopologies"] = [_allowed(theme) for _ in range(theme.number(1, 2))]
        found.append(one)
    return found


def _allowed(theme):
    by_key = {ZONE: ZONES, REGION: ("r1", "r2")}
    keys = theme.some(sorted(by_key), 1, 2)
    return {"matchLabelExpressions": [{"key": key, "values": theme.some(by_key[key], 1)} for key in keys]}


# Claims and volumes


def claim_and_volume(theme, name, namespace):
    state = (
        "bound"
        if theme.has("bound-claims")
        else theme.pick(
            ("bound", "bound", "waiting", "waiting", "waiting", "reserved", "chosen") * 2 + ("named", "lost", "missing")
        )
    )
    if state == "missing":
        return []
    claim = _claim(theme, name, namespace)
    own = volume(theme, f"pv-{name}", claim)
    if state in ("bound", "lost"):
        bind(claim, own)
        if state == "lost":
            claim["status"]["phase"] = "Lost"
        return [claim] if state == "lost" or theme.rarely(20) else [claim, own]
    if state == "named":  # its author names a volume, which no controller has bound yet
        claim["spec"]["volumeName"] = own["metadata"]["name"]
    if state == "reserved":
        own["spec"]["claimRef"] = _reference(claim, theme.often(2))
    if state == "chosen":
        claim["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": f"n{theme.below(6)}"}
    return [claim, own] if state in ("named", "reserved") or theme.rarely(2) else [claim]


def _claim(theme, name, namespace):
    spec = {
        "accessModes": [
            theme.pick(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany", "ReadOnlyMany"))
        ],
        "resources": {"requests": {"storage": theme.pick(SIZES)}},
        "volumeMode": theme.pick(("Filesystem",) * 5 + ("Block",)),
    }
    storage_class = theme.pick((*CLASS_NAMES, "absent", "", None) if theme.rarely(5) else CLASS_NAMES)
    if storage_class is not None:
        spec["storageClassName"] = storage_class
    if theme.rarely(8):
        spec["selector"] = {"matchLabels": {"disk": theme.pick(("ssd", "hdd"))}}
    if theme.rarely(10):
        spec["volumeAttributesClassName"] = "gold"
    claim = thing("PersistentVolumeClaim", name, namespace=namespace, spec=spec, status={"phase": "Pending"})
    if theme.rarely(20):
        claim["metadata"]["deletionTimestamp"] = "2026-01-04T00:00:00Z"
        claim["metadata"]["finalizers"] = ["kubernetes.io/pvc-protection"]
    return claim


def volume(theme, name, claim=None):
    """A volume that often suits the claim."""
    spec = {
        "capacity": {"storage": theme.pick(SIZES)},
        "accessModes": theme.some(("ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany", "ReadOnlyMany"), 1, 3),
        "volumeMode": theme.pick(("Filesystem",) * 5 + ("Block",)),
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": theme.pick(("late", "static", "moved", "")),
        **source(theme, name),
    }
    if claim is not None and theme.often(4):
        wanted = claim["spec"]
        spec |= {"storageClassName": wanted.get("storageClassName", ""), "volumeMode": wanted["volumeMode"]}
        spec["accessModes"] = wanted["accessModes"]
        if theme.often(2):
            spec["capacity"] = {"storage": wanted["resources"]["requests"]["storage"]}
        if "volumeAttributesClassName" in wanted and theme.often(3):
            spec["volumeAttributesClassName"] = wanted["volumeAttributesClassName"]
    own = {"disk": theme.pick(("ssd", "hdd"))} if theme.rarely(4) else {}
    if theme.has("volume-zones"):
        own |= _zones(theme)
    if theme.has("volumes") or "local" in spec:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": drawn_terms.zone_terms(theme)}}
    phase = theme.pick(("Available",) * 8 + ("Released", "Failed", "Pending"))
    made = thing("PersistentVolume", name, labels=own, spec=spec, status={"phase": phase})
    if theme.rarely(25):
        made["metadata"]["deletionTimestamp"] = "2026-01-04T00:00:00Z"
        made["metadata"]["finalizers"] = ["kubernetes.io/pv-protection"]
    return made


def source(theme, name):
    return theme.pick((
        {"csi": {"driver": DRIVER, "volumeHandle": f"handle-{name}"}},
        {"csi": {"driver": DRIVER, "volumeHandle": f"handle-{name}"}},
        {"csi": {"driver": OTHER, "volumeHandle": "handle-shared"}},
        {"csi": {"driver": MOVED, "volumeHandle": "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk-a"}},
        {"gcePersistentDisk": {"pdName": theme.pick(("disk-a", "disk-b"))}},
        {"awsElasticBlockStore": {"volumeID": theme.pick(("vol-a", "aws://z1/vol-b"))}},
        {"azureDisk": {"diskName": "a", "diskURI": "/subscriptions/s/disks/a", "kind": "Managed"}},
        {"cinder": {"volumeID": "c-a"}},
        {"local": {"path": "/mnt"}},
        {"nfs": {"server": "10.3.0.1", "path": "/"}},
        {"hostPath": {"path": "/data"}},
    ))  # fmt: skip


def _zones(theme):
    """The labels of a volume, also the older ones and several zones in one."""
    prefix = theme.pick(("topology.kubernetes.io", "topology.kubernetes.io", "failure-domain.beta.kubernetes.io"))
    found = {f"{prefix}/zone": "__".join(theme.some(ZONES, 1, 2))}
    if theme.rarely(3):
        found[f"{prefix}/region"] = theme.pick(("r1", "r2"))
    return found


def bind(claim, own):
    claim["spec"]["volumeName"] = own["metadata"]["name"]
    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    claim["status"]["phase"] = own["status"]["phase"] = "Bound"
    own["spec"]["claimRef"] = _reference(claim, True)


def _reference(claim, with_uid):
    meta = claim["metadata"]
    found = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": meta["namespace"], "name": meta["name"]}
    return found | ({"uid": meta["uid"]} if with_uid else {})


def ephemeral_claims(theme, pods):
    """The claims of ephemeral volumes: mostly made by their controller, some not yet, some of another pod."""
    found = []
    for pod in pods:
        meta = pod["metadata"]
        for one in pod["spec"].get("volumes", ()):
            if "ephemeral" not in one or theme.rarely(6):
                continue
            name = f"{meta['name']}-{one['name']}"
            made = claim_and_volume(theme, name, meta["namespace"])
            if made and theme.often(6):
                owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "controller": True}
                uid = meta["uid"] if theme.often(10) else "uid-of-another"
                made[0]["metadata"]["ownerReferences"] = [owner | {"uid": uid}]
            found += made
    return found


# Nodes and drivers


def attach_limits(theme, node_names):
    found = []
    for name in node_names:
        if theme.rarely(6):
            continue
        drivers_here = []
        for driver in (DRIVER, OTHER, MOVED, "ebs.csi.aws.com", "disk.csi.azure.com", "cinder.csi.openstack.org"):
            if theme.often(3):
                room = {"allocatable": {"count": theme.pick((1, 1, 2, 3))}} if theme.often(5) else {}
                drivers_here.append({"name": driver, "nodeID": name, **room})
        made = thing("CSINode", name, GROUP, spec={"drivers": drivers_here})
        if theme.often(3):
            made["metadata"]["annotations"] = {MIGRATED: ",".join(theme.some(IN_TREE, 1, 4))}
        found.append(made)
    for number in range(theme.pick((0, 0, 1, 2, 4))):
        attached = {"persistentVolumeName": theme.pick(("pv-c0", "pv-c1", "pv-c2", "pv-free-0", "pv-gone"))}
        spec = {"attacher": theme.pick((DRIVER, DRIVER, OTHER, MOVED)), "nodeName": theme.pick(node_names)}
        status = {"attached": theme.often(3)}
        found.append(thing("VolumeAttachment", f"a{number}", GROUP, spec={**spec, "source": attached}, status=status))
    return found


def drivers(theme):
    return [
        thing(
            "CSIDriver",
            name,
            GROUP,
            spec={"storageCapacity": theme.often(4), "attachRequired": theme.often(4)}
            | ({"preventPodSchedulingIfMissing": theme.often(2)} if theme.rarely(2) else {}),
        )
        for name in (DRIVER, OTHER, MOVED)
        if theme.often(3)
    ]


def capacities(theme):
    """Storage that drivers offer, by zone, by host, for all nodes or for none."""
    found = []
    for number in range(theme.number(1, 5)):
        one = {"storageClassName": theme.pick(("late", "late", "fast", "moved"))}
        reach = theme.pick(({ZONE: theme.pick(ZONES)}, {"kubernetes.io/hostname": f"n{theme.below(6)}"}, {}, None))
        if reach is not None:
            one["nodeTopology"] = {"matchLabels": reach} if reach else {}
        if theme.often(6):
            one["capacity"] = theme.pick(("512Mi", "1Gi", "4Gi", "20Gi", "0"))
        if theme.rarely(3):
            one["maximumVolumeSize"] = theme.pick(("512Mi", "1Gi", "4Gi"))
        found.append(thing("CSIStorageCapacity", f"s{number}", GROUP, namespace="kube-system", **one))
    return found
