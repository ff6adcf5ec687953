"""
A page for every reason for which a target is refused: what it means, and what to do about it.

The texts are those of the rules, with <placeholders> where a rule fills in a name; a test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bayplan.cli.fleet_reason_pages import FLEET_PAGES
from bayplan.cli.reason_page import ReasonPage


def find(code: str) -> Sequence[ReasonPage]:
    """The pages that an id, a rule, a plugin or a message stands for; an id means its page alone."""
    wanted = code.strip().casefold()
    exact = [page for page in PAGES if _is_id(page, wanted)]
    of_rule = [page for page in PAGES if wanted in (page.rule.casefold(), page.plugin.casefold())]
    return exact or of_rule or _longest([page for page in PAGES if page.says(code.strip())])


def _is_id(page: ReasonPage, wanted: str) -> bool:
    pattern = ".+".join(re.escape(piece) for piece in re.split(r"<[a-z]+>", page.id))
    return re.fullmatch(pattern, wanted) is not None


def _longest(pages: list[ReasonPage]) -> list[ReasonPage]:
    """Without those whose text is but the beginning of another one's that was found too."""
    return [page for page in pages if not any(page.text in other.text for other in pages if other is not page)]


POD_PAGES: tuple[ReasonPage, ...] = (
    ReasonPage(
        "pod-affinity",
        "pod-affinity",
        "InterPodAffinity",
        "node(s) didn't match pod affinity rules",
        "The pod must run beside other pods (requiredDuringSchedulingIgnoredDuringExecution of podAffinity), and "
        "no pod that meets all its terms runs in this node's domain. A domain is all nodes with the same value of "
        "the term's topologyKey; a node without that label is in none. If no pod anywhere matches, only a pod "
        "that matches its own terms may be the first.",
        "Check the term's labelSelector and namespaces against the pods it should find, and that nodes carry the "
        "topologyKey. If company is welcome but not vital, make the term a preferred one.",
    ),
    ReasonPage(
        "pod-anti-affinity",
        "pod-affinity",
        "InterPodAffinity",
        "node(s) didn't match pod anti-affinity rules",
        "A pod that this one refuses to stand beside (a required term of its podAntiAffinity) runs in this node's "
        "domain.",
        "`bayplan explain` names the pods in the way. Add nodes in further domains, move or scale down those "
        "pods, choose a smaller domain (kubernetes.io/hostname instead of a zone), or make the term a preferred "
        "one.",
    ),
    ReasonPage(
        "existing-anti-affinity",
        "pod-affinity",
        "InterPodAffinity",
        "node(s) didn't satisfy existing pods anti-affinity rules",
        "A pod that runs in this node's domain refuses this one: required anti-affinity holds in both directions, "
        "so its own term keeps this pod away although this pod says nothing.",
        "`bayplan explain` names the owners of the term. Change this pod's labels or namespace so that their "
        "selector no longer matches it, narrow their selector, or give the pod nodes in another domain.",
    ),
    ReasonPage(
        "topology-spread",
        "topology-spread",
        "PodTopologySpread",
        "node(s) didn't match pod topology spread constraints",
        "Placing the pod here would make its domain hold more than maxSkew matching pods above the emptiest "
        "domain, and the constraint says whenUnsatisfiable: DoNotSchedule.",
        "Look at the emptiest domain: often its nodes are full, cordoned or tainted, yet count. nodeTaintsPolicy: "
        "Honor leaves tainted nodes out. Else raise maxSkew, or use ScheduleAnyway.",
    ),
    ReasonPage(
        "topology-spread-label",
        "topology-spread",
        "PodTopologySpread",
        "node(s) didn't match pod topology spread constraints (missing required label)",
        "The node lacks the label that is the constraint's topologyKey, so it belongs to no domain.",
        "Label the node, or keep the pod off such nodes with node affinity so that the message goes away.",
    ),
    ReasonPage(
        "taint",
        "taint",
        "TaintToleration",
        "node(s) had untolerated taint(s)",
        "The node has a taint with the effect NoSchedule or NoExecute that no toleration of the pod matches.",
        "If the pod may run there, add a toleration for the taint; if the taint is a left-over, remove it: "
        "kubectl taint nodes NODE KEY-.",
    ),
    ReasonPage(
        "node-affinity",
        "node-affinity",
        "NodeAffinity",
        "node(s) didn't match Pod's node affinity/selector",
        "The node's labels do not meet the pod's nodeSelector, or none of the terms of its required node affinity.",
        "Compare the node's labels (kubectl get node NODE --show-labels) with what the pod asks. Terms are "
        "alternatives; the expressions within one must all hold.",
    ),
    ReasonPage(
        "scheduler-node-affinity",
        "node-affinity",
        "NodeAffinity",
        "node(s) didn't match scheduler-enforced node affinity",
        "The scheduler's configuration adds a node affinity to every pod (addedAffinity), and the node does not "
        "meet it.",
        "Label the node as the configuration wants it, or use another scheduler profile for this pod.",
    ),
    ReasonPage(
        "node-affinity-conflict",
        "node-affinity",
        "NodeAffinity",
        "pod affinity terms conflict",
        "The pod's required node affinity names nodes by metadata.name in a way that no node can meet.",
        "Mend the matchFields of the pod's node affinity: all of them within one term must name the same node.",
    ),
    ReasonPage(
        "node-name",
        "node-name",
        "NodeName",
        "node(s) didn't match the requested node name",
        "The pod asks for another node by spec.nodeName.",
        "Leave spec.nodeName empty and let the scheduler choose; to bind a pod to one node, use node affinity.",
    ),
    ReasonPage(
        "node-unschedulable",
        "node-unschedulable",
        "NodeUnschedulable",
        "node(s) were unschedulable",
        "The node is cordoned: spec.unschedulable is true, and the pod does not tolerate that.",
        "kubectl uncordon NODE, once whatever it was cordoned for is done.",
    ),
    ReasonPage(
        "node-ports",
        "node-ports",
        "NodePorts",
        "node(s) didn't have free ports for the requested pod ports",
        "A pod on the node holds a host port that this one asks for, for the same protocol and address.",
        "Do without hostPort (a Service does the same), choose another port, or add nodes: one such pod fits per node.",
    ),
    ReasonPage(
        "insufficient-<resource>",
        "resources",
        "NodeResourcesFit",
        "Insufficient <resource>",
        "What the pod requests of the resource is more than the node has left: allocatable less the requests of "
        "the pods on it. Requests count, not use.",
        "Lower the requests if they are more than needed, free or add nodes. If the request is larger than any "
        "empty node offers, only larger nodes help.",
    ),
    ReasonPage(
        "too-many-pods",
        "resources",
        "NodeResourcesFit",
        "Too many pods",
        "The node runs as many pods as its kubelet allows (allocatable pods, often 110).",
        "Add nodes, or raise the kubelet's maxPods where the network has addresses for more.",
    ),
    ReasonPage(
        "claim-missing",
        "volume-binding",
        "VolumeBinding",
        'persistentvolumeclaim "<name>" not found',
        "The pod mounts a PersistentVolumeClaim that is not in its namespace. For an ephemeral volume the text is "
        "`waiting for ephemeral volume controller to create the persistentvolumeclaim`.",
        "Create the claim, mend its name, or give its manifest with -f too.",
    ),
    ReasonPage(
        "claim-unbound",
        "volume-binding",
        "VolumeBinding",
        "pod has unbound immediate PersistentVolumeClaims",
        "A claim of the pod has no volume yet although its class binds at once (volumeBindingMode: Immediate).",
        "See why the claim is pending: kubectl describe pvc NAME. A class with WaitForFirstConsumer lets the "
        "scheduler choose the node first.",
    ),
    ReasonPage(
        "claim-lost",
        "volume-binding",
        "VolumeBinding",
        'persistentvolumeclaim "<name>" bound to non-existent persistentvolume "<volume>"',
        "The claim has lost the volume that it was bound to.",
        "Restore the volume, or delete the claim and make it anew; its data is gone with the volume.",
    ),
    ReasonPage(
        "claim-deleted",
        "volume-binding",
        "VolumeBinding",
        'persistentvolumeclaim "<name>" is being deleted',
        "Somebody deleted a claim of the pod; it goes as soon as no pod uses it, and no new pod may.",
        "Wait for it to go and create it again.",
    ),
    ReasonPage(
        "volume-elsewhere",
        "volume-binding",
        "VolumeBinding",
        "node(s) didn't match PersistentVolume's node affinity",
        "A volume of the pod can only be reached from other nodes: a local disk, or a disk in another zone.",
        "Make room on the nodes that reach the volume, or move the data.",
    ),
    ReasonPage(
        "volume-none",
        "volume-binding",
        "VolumeBinding",
        "node(s) didn't find available persistent volumes to bind",
        "A claim of the pod waits for its first consumer, and for this node there is neither a free volume of its "
        "class, size and access mode nor a way to make one.",
        "Create volumes that this node reaches, or look at the class's provisioner and allowedTopologies.",
    ),
    ReasonPage(
        "volume-space",
        "volume-binding",
        "VolumeBinding",
        "node(s) did not have enough free storage",
        "A claim of the pod waits for its first consumer, and the storage driver says (CSIStorageCapacity) that for "
        "this node it has no space for a volume of that size.",
        "Free or add storage where the node reaches it, or ask for a smaller volume.",
    ),
    ReasonPage(
        "volume-limits",
        "volume-limits",
        "NodeVolumeLimits",
        "node(s) exceed max volume count",
        "The storage driver attaches only so many volumes to the node (CSINode, allocatable.count), and with the pod's "
        "there would be more.",
        "Add nodes, move pods with volumes of that driver elsewhere, or put several directories on one volume.",
    ),
    ReasonPage(
        "volume-gone",
        "volume-binding",
        "VolumeBinding",
        "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
        "A claim of the pod is bound to a volume that does not exist (any more).",
        "Restore the volume, or delete the claim and make it anew. In a dump, include the PersistentVolumes.",
    ),
    ReasonPage(
        "volume-zone",
        "volume-zone",
        "VolumeZone",
        "node(s) had no available volume zone",
        "A volume of the pod carries a zone or region label that the node does not have.",
        "Make room in the volume's zone, or move the data.",
    ),
    ReasonPage(
        "volume-missing",
        "volume-zone",
        "VolumeZone",
        'persistentvolume "<name>" not found',
        "The volume that a claim names does not exist.",
        "Restore the volume, or make the claim anew. In a dump, include the PersistentVolumes.",
    ),
    ReasonPage(
        "claim-unnamed",
        "volume-zone",
        "VolumeZone",
        "PersistentVolumeClaim had no pv name and storageClass name",
        "The claim has neither a volume nor a storage class that would make one.",
        "Name a storageClassName, or mark one class as the default.",
    ),
    ReasonPage(
        "class-missing",
        "volume-zone",
        "VolumeZone",
        'storageclass.storage.k8s.io "<name>" not found',
        "The storage class that a claim names does not exist.",
        "Create the class or mend its name. In a dump, include the StorageClasses.",
    ),
    ReasonPage(
        "class-unclear",
        "volume-zone",
        "VolumeZone",
        'VolumeBindingMode not set for StorageClass "<name>"',
        "The storage class does not say when volumes are bound. API servers fill this in, so the class is from a file.",
        "Set volumeBindingMode: Immediate or WaitForFirstConsumer.",
    ),
    ReasonPage(
        "volume-unnamed",
        "volume-zone",
        "VolumeZone",
        "PersistentVolume had no name",
        "The claim's class binds at once, yet the claim has no volume.",
        "See why the claim is pending: kubectl describe pvc NAME.",
    ),
    ReasonPage(
        "claim-in-use",
        "volume-restrictions",
        "VolumeRestrictions",
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
        "another pod",
        "Another pod uses a claim that only one pod at a time may use.",
        "Wait for the other pod to end, or use the access mode ReadWriteOnce or ReadWriteMany.",
    ),
    ReasonPage(
        "unreadable-rule",
        "placeable",
        "Bayplan",
        "<problem>",
        "The pod's annotation bayplan.io/affinity cannot be read; the message says where. It is never read in "
        "part, because a rule that is left out in silence is worse than a pod that waits.",
        "Mend the annotation: `bayplan validate` names every fault in it.",
    ),
    ReasonPage(
        "scheduling-gates",
        "placeable",
        "SchedulingGates",
        "Scheduling is blocked due to non-empty scheduling gates",
        "The pod carries spec.schedulingGates; no scheduler looks at it before they are gone.",
        "Whoever set the gate removes it: find out which controller that is from the gate's name.",
    ),
    ReasonPage(
        "no-nodes",
        "placeable",
        "Bayplan",
        "no nodes available to schedule pods",
        "There is no node at all.",
        "Give the nodes too: kubectl get nodes -o yaml > nodes.yaml, then -f nodes.yaml.",
    ),
)
PAGES = POD_PAGES + FLEET_PAGES
