"""Nodes and namespaces."""

from agreeing.drawing import HOSTNAME, NAMESPACES, NODE_LABELS, REGION, ZONE, thing
from reference.strategies import IMAGES, MIB, labels

ROOMY = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "500Gi"}
ROOMY |= {"example.com/gpu": "64", "hugepages-2Mi": "4Gi", "hugepages-1Gi": "4Gi"}
SIZES = (10 * MIB, 23 * MIB, 300 * MIB, 1500 * MIB, 4000 * MIB)
ADDRESSES = ("0.0.0.0", "10.0.0.1", "10.0.0.2")
DRIVER_ZONES = ("topology.gke.io/zone", "topology.ebs.csi.aws.com/zone", "topology.cinder.csi.openstack.org/zone")
OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
WELL_KNOWN_TAINTS = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/memory-pressure",
)


def node(theme, name):
    found = labels(theme, NODE_LABELS, 2)
    for key in (ZONE, REGION):  # most nodes have them
        if theme.often(8):
            found.setdefault(key, theme.pick(NODE_LABELS[key]))
    if theme.often(12):
        found[HOSTNAME] = name
    if theme.has("volume-zones") and ZONE in found and theme.rarely(3):
        found[OLD_ZONE] = found.pop(ZONE)
        if REGION in found:
            found[OLD_REGION] = found.pop(REGION)
    if ZONE in found and theme.has("attach-limits", "volume-zones"):
        found |= {key: found[ZONE] for key in DRIVER_ZONES if theme.rarely(2)}
    spec = {}
    if theme.has("taints"):
        spec["taints"] = [taint(theme) for _ in range(theme.number(1, 2))]
    if theme.has("cordons") and theme.rarely(2):
        spec["unschedulable"] = True
        cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        if theme.rarely(2):
            spec["taints"] = [*(one for one in spec.get("taints", ()) if one["key"] != cordon["key"]), cordon]
    return thing("Node", name, labels=found, spec=spec, status=_status(theme))


def _status(theme):
    room = allocatable(theme) if theme.has("scarce") else dict(ROOMY)
    status = {"capacity": room} if theme.rarely(15) else {"capacity": room, "allocatable": room}
    if theme.has("images"):
        status["images"] = [image(theme, name) for name in theme.some(IMAGES, 1, 4)]
    return status


def image(theme, name):
    """Its size may differ from that on another node, and it may have several names."""
    names = [name, f"{name.partition(':')[0]}@sha256:{'0' * 8}"] if theme.rarely(4) else [name]
    return {"names": names, "sizeBytes": theme.pick(SIZES)}


def allocatable(theme):
    room = {
        "cpu": theme.pick(("4", "2", "7500m", "1")),
        "memory": theme.pick(("8Gi", "4Gi", "9000M", "2Gi")),
        "pods": theme.pick(("110", "110", "110", "3", "1")),
    }
    if theme.often(4):
        room["ephemeral-storage"] = theme.pick(("10Gi", "4Gi"))
    for name, amounts in (
        ("example.com/gpu", ("1", "4")),
        ("example.com/fpga", ("1", "2")),
        ("hugepages-2Mi", ("64Mi", "1Gi")),
        ("hugepages-1Gi", ("1Gi", "2Gi")),
    ):
        if theme.rarely(2):
            room[name] = theme.pick(amounts)
    return room


def taint(theme):
    return {
        "key": theme.pick(("dedicated", "gpu", *WELL_KNOWN_TAINTS)),
        "value": theme.pick(("a", "b", "")),
        "effect": theme.pick(("PreferNoSchedule", "NoSchedule", "NoExecute")),
    }


def toleration(theme):
    drawn = {"key": theme.pick(("dedicated", "gpu", *WELL_KNOWN_TAINTS))}
    if theme.rarely(2):
        drawn["effect"] = theme.pick(("NoSchedule", "NoExecute", "PreferNoSchedule"))
    if theme.rarely(2):
        drawn["operator"] = "Exists"
        if theme.rarely(4):
            drawn.pop("key")
    else:
        drawn["value"] = theme.pick(("a", "b", ""))
        if theme.rarely(2):
            drawn["operator"] = "Equal"
    if drawn.get("effect") == "NoExecute" and theme.rarely(2):
        drawn["tolerationSeconds"] = 60
    return drawn


def namespaces(theme):
    """With the label that every API server adds; now and then a name has no namespace."""
    found = []
    for name in NAMESPACES:
        own = {"kubernetes.io/metadata.name": name}
        if theme.often(2):
            own["team"] = theme.pick(("a", "b"))
        if theme.rarely(2):
            own["stage"] = theme.pick(("prod", "test"))
        found.append(thing("Namespace", name, labels=own))
    return found
