"""A pod fits on nodes that reach its bound volumes, and where unbound claims can be bound or provisioned."""

from reference.cycle import SKIP, UNRESOLVABLE, Rejected
from reference.objects import annotations_of, exact, labels_of, name_of, namespace_of
from reference.selecting import node_selected, selects

BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
BOUND = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


def class_of(thing):
    """Of a claim or a volume."""
    return annotations_of(thing).get(BETA_CLASS) or (thing.get("spec") or {}).get("storageClassName") or ""


def claims_of(pod):
    """(claim name, whether the pod owns it) of every volume that refers to a claim."""
    for volume in pod.volumes:
        if volume.get("persistentVolumeClaim") is not None:
            yield volume["persistentVolumeClaim"].get("claimName") or "", False
        elif volume.get("ephemeral") is not None:
            yield f"{pod.name}-{volume.get('name')}", True


def before_filter(cycle):
    claims, pod = [], cycle.pod
    for name, own in claims_of(pod):
        claim = cycle.cluster.find("PersistentVolumeClaim", name, pod.namespace)
        reason = unusable(pod, name, claim, own)
        if reason:
            return Rejected(UNRESOLVABLE, reason)
        claims.append(claim)
    if not claims:
        return SKIP
    bound, waiting = [], []
    for claim in claims:
        if claim["spec"].get("volumeName") and BOUND in annotations_of(claim):
            bound.append(claim)
        elif waits_for_pod(cycle, claim) and not claim["spec"].get("volumeName"):
            waiting.append(claim)
        else:
            return Rejected(UNRESOLVABLE, "pod has unbound immediate PersistentVolumeClaims")
    cycle.notes["VolumeBinding"] = (bound, waiting)
    return None


def unusable(pod, name, claim, own):
    """Why the claim cannot be used at all, or nothing."""
    if claim is None:
        if own:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        return f'persistentvolumeclaim "{name}" not found'
    if (claim.get("status") or {}).get("phase") == "Lost":
        volume = claim["spec"].get("volumeName") or ""
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
    if claim["metadata"].get("deletionTimestamp"):
        return f'persistentvolumeclaim "{name}" is being deleted'
    owners = claim["metadata"].get("ownerReferences") or []
    uid = pod.manifest["metadata"].get("uid")
    if own and not any(owner.get("controller") and owner.get("uid") == uid for owner in owners):
        return f"PVC {pod.namespace}/{name} was not created for pod {pod.namespace}/{pod.name} (pod is not owner)"
    return None


def storage_class(cycle, claim):
    return cycle.cluster.find("StorageClass", class_of(claim))


def waits_for_pod(cycle, claim):
    found = storage_class(cycle, claim)
    return found is not None and found.get("volumeBindingMode") == "WaitForFirstConsumer"


def check(cycle, node):
    bound, waiting = cycle.notes["VolumeBinding"]
    reasons = []
    where, exist = bound_volumes(cycle, bound, node)
    if not where:
        reasons.append("node(s) didn't match PersistentVolume's node affinity")
    if not can_bind(cycle, waiting, node):
        reasons.append("node(s) didn't find available persistent volumes to bind")
    elif not can_bind(cycle, waiting, node, with_space=True):
        reasons.append("node(s) did not have enough free storage")
    if not exist:
        reasons.append("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)")
    return Rejected(UNRESOLVABLE, *reasons) if reasons else None


def bound_volumes(cycle, claims, node):
    """Whether the volumes can be reached from the node, and whether they exist; the first that fails decides."""
    for claim in claims:
        volume = cycle.cluster.find("PersistentVolume", claim["spec"]["volumeName"])
        if volume is None:
            return True, False
        if not reachable(volume, node):
            return False, True
    return True, True


def reachable(volume, node):
    required = ((volume.get("spec") or {}).get("nodeAffinity") or {}).get("required")
    return required is None or node_selected(required, node.labels, "")


def can_bind(cycle, claims, node, *, with_space=False):
    """Whether every unbound claim finds a volume, or one can be provisioned (with capacity), for a pod on this node."""
    searching, to_make = [], []
    for claim in claims:
        chosen = annotations_of(claim).get(SELECTED_NODE)
        if chosen is None:
            searching.append(claim)
        elif chosen != node.name:
            return False
        else:
            to_make.append(claim)
    taken = set()
    for claim in sorted(searching, key=size):
        volume = find_volume(cycle, claim, node, taken)
        if volume is None:
            to_make.append(claim)
        else:
            taken.add(name_of(volume))
    return all(can_make(cycle, claim, node) and (not with_space or has_space(cycle, claim, node)) for claim in to_make)


def size(claim):
    return exact(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", 0))


def find_volume(cycle, claim, node, taken):
    """The volume reserved for the claim if there is one, else the smallest that matches it."""
    best = None
    for volume in cycle.cluster.of_kind("PersistentVolume"):
        if class_of(volume) != class_of(claim) or name_of(volume) in taken:
            continue
        spec = volume["spec"]
        if spec.get("claimRef") and not kept_for(volume, claim):
            continue
        if capacity(volume) < size(claim) or volume["metadata"].get("deletionTimestamp"):
            continue
        if (spec.get("volumeMode") or "Filesystem") != (claim["spec"].get("volumeMode") or "Filesystem"):
            continue
        if kept_for(volume, claim):
            return volume if reachable(volume, node) else None
        if not available(volume, claim) or not reachable(volume, node):
            continue
        if best is None or capacity(volume) < capacity(best):
            best = volume
    return best


def capacity(volume):
    return exact((volume["spec"].get("capacity") or {}).get("storage", 0))


def kept_for(volume, claim):
    keeper = volume["spec"].get("claimRef")
    if not keeper or keeper.get("name") != name_of(claim) or keeper.get("namespace") != namespace_of(claim):
        return False
    return not keeper.get("uid") or keeper["uid"] == (claim["metadata"].get("uid") or "")


def available(volume, claim):
    if (volume.get("status") or {}).get("phase") != "Available":
        return False
    selector = claim["spec"].get("selector")
    if selector is not None and not selects(selector, labels_of(volume)):
        return False
    return set(claim["spec"].get("accessModes") or []) <= set(volume["spec"].get("accessModes") or [])


def can_make(cycle, claim, node):
    """Whether the claim's class provisions volumes that this node may use."""
    found = storage_class(cycle, claim)
    if (found.get("provisioner") or "") in ("", NO_PROVISIONER):
        return False
    allowed = found.get("allowedTopologies") or []
    return not allowed or any(topology_matches(term, node) for term in allowed)


def topology_matches(term, node):
    wanted = term.get("matchLabelExpressions") or []
    return bool(wanted) and all(node.labels.get(entry["key"]) in (entry.get("values") or []) for entry in wanted)


def has_space(cycle, claim, node):
    """Whether the driver, if it publishes its capacity, has enough for the claim where the node can reach it."""
    driver = cycle.cluster.find("CSIDriver", storage_class(cycle, claim).get("provisioner") or "")
    if driver is None or not (driver.get("spec") or {}).get("storageCapacity") or not size(claim):
        return True
    for space in cycle.cluster.of_kind("CSIStorageCapacity"):
        largest = space.get("maximumVolumeSize", space.get("capacity"))
        topology = space.get("nodeTopology")
        if space.get("storageClassName") != class_of(claim) or largest is None or topology is None:
            continue
        if exact(largest) >= size(claim) and selects(topology, node.labels):
            return True
    return False
