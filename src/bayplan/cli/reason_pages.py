"""
The page of every reason for rejecting a node: what it means, and what to do.

The texts are those of the rules, with <placeholders> where a rule inserts a name; a test compares the two.
"""

from __future__ import annotations

import re

import msgspec

_MIN_FRAGMENT_LENGTH = 9
_PLACEHOLDER = re.compile(r"<[a-z]+>")


class ReasonPage(msgspec.Struct, frozen=True):
    """`id` and `rule` are stable names of Bayplan; `plugin` is the scheduler's name, `text` its message."""

    id: str
    rule: str
    plugin: str
    text: str
    means: str
    to_do: str

    def has_id(self, code: str) -> bool:
        """Whether the code is the id of the reason, with any value for its placeholders."""
        return re.fullmatch(".+".join(map(re.escape, _PLACEHOLDER.split(self.id))), code) is not None

    def says(self, message: str) -> bool:
        """Whether the message contains the text of the reason, or is a sufficiently long part of it."""
        if not _PLACEHOLDER.sub("", self.text):  # only a placeholder: it would match any message
            return False
        pattern = ".+?".join(map(re.escape, _PLACEHOLDER.split(self.text)))
        return re.search(pattern, message, re.IGNORECASE) is not None or (
            len(message) >= _MIN_FRAGMENT_LENGTH and message.casefold() in self.text.casefold()
        )


POD_PAGES: tuple[ReasonPage, ...] = (
    ReasonPage(
        "pod-affinity",
        "pod-affinity",
        "InterPodAffinity",
        "node(s) didn't match pod affinity rules",
        "The pod has required pod affinity (requiredDuringSchedulingIgnoredDuringExecution of podAffinity), and no "
        "pod in this node's topology domain matches all its terms. A topology domain is all nodes with the same value "
        "of the term's topologyKey; a node without that label is in no domain. If no pod in the cluster matches, only "
        "a pod that matches its own terms can be placed first.",
        "Compare the term's labelSelector and namespaces with the pods that it should match, and check that nodes have "
        "the topologyKey label. If the affinity is not essential, make the term a preferred one.",
    ),
    ReasonPage(
        "pod-anti-affinity",
        "pod-affinity",
        "InterPodAffinity",
        "node(s) didn't match pod anti-affinity rules",
        "A pod in this node's topology domain matches a required term of the pod's podAntiAffinity.",
        "`bayplan explain` names the conflicting pods. Add nodes in other topology domains, move or scale down those "
        "pods, use a smaller topology domain (kubernetes.io/hostname instead of a zone), or make the term a preferred "
        "one.",
    ),
    ReasonPage(
        "existing-anti-affinity",
        "pod-affinity",
        "InterPodAffinity",
        "node(s) didn't satisfy existing pods anti-affinity rules",
        "An existing pod in this node's topology domain has a required anti-affinity term that matches this pod. "
        "Required anti-affinity is symmetric: the term of the existing pod applies although this pod has none.",
        "`bayplan explain` names the owners of the term. Change the labels or namespace of this pod so that the "
        "selector no longer matches it, narrow the selector, or add nodes in another topology domain.",
    ),
    ReasonPage(
        "topology-spread",
        "topology-spread",
        "PodTopologySpread",
        "node(s) didn't match pod topology spread constraints",
        "With the pod, this node's topology domain would have more than maxSkew matching pods above the domain with "
        "the fewest, and the constraint has whenUnsatisfiable: DoNotSchedule.",
        "Check the domain with the fewest pods: its nodes may be full, cordoned or tainted, and still count. With "
        "nodeTaintsPolicy: Honor, tainted nodes do not count. Otherwise raise maxSkew, or use ScheduleAnyway.",
    ),
    ReasonPage(
        "topology-spread-label",
        "topology-spread",
        "PodTopologySpread",
        "node(s) didn't match pod topology spread constraints (missing required label)",
        "The node does not have the label of the constraint's topologyKey, so it is in no topology domain.",
        "Label the node, or exclude such nodes with node affinity.",
    ),
    ReasonPage(
        "taint",
        "taint",
        "TaintToleration",
        "node(s) had untolerated taint(s)",
        "The node has a taint with the effect NoSchedule or NoExecute that no toleration of the pod matches.",
        "If the pod may run there, add a toleration for the taint. If the taint is obsolete, remove it: "
        "kubectl taint nodes NODE KEY-.",
    ),
    ReasonPage(
        "node-affinity",
        "node-affinity",
        "NodeAffinity",
        "node(s) didn't match Pod's node affinity/selector",
        "The node's labels do not match the pod's nodeSelector, or match no term of its required node affinity.",
        "Compare the node's labels (kubectl get node NODE --show-labels) with the pod's nodeSelector and node "
        "affinity. Terms are ORed; the expressions within a term are ANDed.",
    ),
    ReasonPage(
        "scheduler-node-affinity",
        "node-affinity",
        "NodeAffinity",
        "node(s) didn't match scheduler-enforced node affinity",
        "The scheduler configuration adds a node affinity to every pod (addedAffinity), and the node does not match "
        "it.",
        "Label the node to match addedAffinity, or use another scheduler profile for this pod.",
    ),
    ReasonPage(
        "node-affinity-conflict",
        "node-affinity",
        "NodeAffinity",
        "pod affinity terms conflict",
        "The pod's required node affinity selects nodes by metadata.name in a way that no node can match.",
        "Correct the matchFields of the pod's node affinity: all of them within one term must name the same node.",
    ),
    ReasonPage(
        "node-name",
        "node-name",
        "NodeName",
        "node(s) didn't match the requested node name",
        "The pod's spec.nodeName is another node.",
        "Leave spec.nodeName empty and let the scheduler choose. To restrict a pod to one node, use node affinity.",
    ),
    ReasonPage(
        "node-unschedulable",
        "node-unschedulable",
        "NodeUnschedulable",
        "node(s) were unschedulable",
        "The node is cordoned: spec.unschedulable is true, and the pod does not tolerate it.",
        "When the maintenance of the node is done: kubectl uncordon NODE.",
    ),
    ReasonPage(
        "node-ports",
        "node-ports",
        "NodePorts",
        "node(s) didn't have free ports for the requested pod ports",
        "A pod on the node uses a host port that this pod requests, with the same protocol and address.",
        "Use a Service instead of hostPort, use another port, or add nodes: only one such pod fits per node.",
    ),
    ReasonPage(
        "insufficient-<resource>",
        "resources",
        "NodeResourcesFit",
        "Insufficient <resource>",
        "The pod requests more of the resource than the node has free: its allocatable amount minus the requests of "
        "its pods. Requests count, not usage.",
        "Lower the requests if they are higher than needed, or free or add nodes. If the request exceeds the "
        "allocatable amount of every node, only larger nodes help.",
    ),
    ReasonPage(
        "too-many-pods",
        "resources",
        "NodeResourcesFit",
        "Too many pods",
        "The node runs as many pods as its kubelet allows (allocatable pods, often 110).",
        "Add nodes, or raise maxPods of the kubelet if the pod network has enough addresses.",
    ),
    ReasonPage(
        "claim-missing",
        "volume-binding",
        "VolumeBinding",
        'persistentvolumeclaim "<name>" not found',
        "The pod mounts a PersistentVolumeClaim that is not in its namespace. For an ephemeral volume the text is "
        "`waiting for ephemeral volume controller to create the persistentvolumeclaim`.",
        "Create the claim, correct its name, or add its manifest with -f.",
    ),
    ReasonPage(
        "claim-unbound",
        "volume-binding",
        "VolumeBinding",
        "pod has unbound immediate PersistentVolumeClaims",
        "A claim of the pod has no volume yet, although its class binds immediately (volumeBindingMode: Immediate).",
        "Find out why the claim is pending: kubectl describe pvc NAME. With a class that has WaitForFirstConsumer, the "
        "scheduler chooses the node first.",
    ),
    ReasonPage(
        "claim-lost",
        "volume-binding",
        "VolumeBinding",
        'persistentvolumeclaim "<name>" bound to non-existent persistentvolume "<volume>"',
        "The volume that the claim was bound to does not exist any more.",
        "Restore the volume, or delete and recreate the claim; its data is lost with the volume.",
    ),
    ReasonPage(
        "claim-deleted",
        "volume-binding",
        "VolumeBinding",
        'persistentvolumeclaim "<name>" is being deleted',
        "A claim of the pod is deleted. It is removed when no pod uses it, and new pods cannot use it.",
        "Wait until the claim is removed, and create it again.",
    ),
    ReasonPage(
        "volume-elsewhere",
        "volume-binding",
        "VolumeBinding",
        "node(s) didn't match PersistentVolume's node affinity",
        "A volume of the pod is accessible only from other nodes: a local disk, or a disk in another zone.",
        "Free resources on the nodes that can access the volume, or move the data.",
    ),
    ReasonPage(
        "volume-none",
        "volume-binding",
        "VolumeBinding",
        "node(s) didn't find available persistent volumes to bind",
        "A claim of the pod waits for its first consumer, and for this node there is no free volume of its class, size "
        "and access mode, and none can be provisioned.",
        "Create volumes that this node can access, or check the provisioner and allowedTopologies of the class.",
    ),
    ReasonPage(
        "volume-space",
        "volume-binding",
        "VolumeBinding",
        "node(s) did not have enough free storage",
        "A claim of the pod waits for its first consumer, and the storage driver reports (CSIStorageCapacity) too "
        "little capacity for a volume of that size on this node.",
        "Free or add storage that the node can access, or request a smaller volume.",
    ),
    ReasonPage(
        "volume-limits",
        "volume-limits",
        "NodeVolumeLimits",
        "node(s) exceed max volume count",
        "With the pod's volumes, the node would exceed the number of volumes that the storage driver can attach to it "
        "(CSINode, allocatable.count).",
        "Add nodes, move pods with volumes of that driver to other nodes, or use one volume for several directories.",
    ),
    ReasonPage(
        "volume-gone",
        "volume-binding",
        "VolumeBinding",
        "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
        "A claim of the pod is bound to a volume that does not exist.",
        "Restore the volume, or delete and recreate the claim. If the input is a dump, include the PersistentVolumes.",
    ),
    ReasonPage(
        "volume-zone",
        "volume-zone",
        "VolumeZone",
        "node(s) had no available volume zone",
        "A volume of the pod has a zone or region label that the node does not have.",
        "Free resources in the volume's zone, or move the data.",
    ),
    ReasonPage(
        "volume-missing",
        "volume-zone",
        "VolumeZone",
        'persistentvolume "<name>" not found',
        "The volume that a claim names does not exist.",
        "Restore the volume, or recreate the claim. If the input is a dump, include the PersistentVolumes.",
    ),
    ReasonPage(
        "claim-unnamed",
        "volume-zone",
        "VolumeZone",
        "PersistentVolumeClaim had no pv name and storageClass name",
        "The claim has neither a volume nor a storage class to provision one.",
        "Set storageClassName, or mark one class as the default.",
    ),
    ReasonPage(
        "class-missing",
        "volume-zone",
        "VolumeZone",
        'storageclass.storage.k8s.io "<name>" not found',
        "The storage class that a claim names does not exist.",
        "Create the class or correct its name. If the input is a dump, include the StorageClasses.",
    ),
    ReasonPage(
        "class-unclear",
        "volume-zone",
        "VolumeZone",
        'VolumeBindingMode not set for StorageClass "<name>"',
        "The storage class has no volumeBindingMode. API servers set a default, so the class is from a file.",
        "Set volumeBindingMode: Immediate or WaitForFirstConsumer.",
    ),
    ReasonPage(
        "volume-unnamed",
        "volume-zone",
        "VolumeZone",
        "PersistentVolume had no name",
        "The class of the claim binds immediately, but the claim has no volume.",
        "Find out why the claim is pending: kubectl describe pvc NAME.",
    ),
    ReasonPage(
        "claim-in-use",
        "volume-restrictions",
        "VolumeRestrictions",
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
        "another pod",
        "Another pod uses a claim that only one pod at a time can use.",
        "Wait until the other pod ends, or use the access mode ReadWriteOnce or ReadWriteMany.",
    ),
    ReasonPage(
        "unreadable-rule",
        "placeable",
        "Bayplan",
        "<problem>",
        "The pod's annotation bayplan.io/affinity cannot be parsed; the message says where. It is never used in part, "
        "because a rule must not be ignored silently.",
        "Correct the annotation: `bayplan validate` reports every fault in it.",
    ),
    ReasonPage(
        "scheduling-gates",
        "placeable",
        "SchedulingGates",
        "Scheduling is blocked due to non-empty scheduling gates",
        "The pod has spec.schedulingGates. It is not scheduled until all gates are removed.",
        "The controller that set a gate removes it; the name of the gate shows which controller that is.",
    ),
    ReasonPage(
        "no-nodes",
        "placeable",
        "Bayplan",
        "no nodes available to schedule pods",
        "The cluster has no nodes.",
        "Add the nodes to the input: kubectl get nodes -o yaml > nodes.yaml, then -f nodes.yaml.",
    ),
)
