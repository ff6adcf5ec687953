"""Which kinds of objects are read, as what, and which are namespaced. Knows nothing of files or fields."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from bayplan.wire import controllers, disruption, fleets, meta, nodes, placements, pods, storage

WireType = type[meta.ApiObject]

BUILT_IN: dict[str, tuple[str, WireType]] = {
    "Pod": ("v1", pods.Pod),
    "Node": ("v1", nodes.Node),
    "Namespace": ("v1", nodes.Namespace),
    "Service": ("v1", controllers.Service),
    "ReplicationController": ("v1", controllers.ReplicationController),
    "PersistentVolume": ("v1", storage.PersistentVolume),
    "PersistentVolumeClaim": ("v1", storage.PersistentVolumeClaim),
    "Deployment": ("apps/v1", controllers.Controller),
    "ReplicaSet": ("apps/v1", controllers.Controller),
    "StatefulSet": ("apps/v1", controllers.Controller),
    "DaemonSet": ("apps/v1", controllers.Controller),
    "Job": ("batch/v1", controllers.Controller),
    "StorageClass": ("storage.k8s.io/v1", storage.WireStorageClass),
    "CSINode": ("storage.k8s.io/v1", storage.CsiNode),
    "VolumeAttachment": ("storage.k8s.io/v1", storage.VolumeAttachment),
    "CSIDriver": ("storage.k8s.io/v1", storage.CsiDriver),
    "CSIStorageCapacity": ("storage.k8s.io/v1", storage.CsiStorageCapacity),
    "PriorityClass": ("scheduling.k8s.io/v1", controllers.PriorityClass),
    "PodDisruptionBudget": ("policy/v1", disruption.PodDisruptionBudget),
}
KARMADA: dict[str, tuple[str, WireType]] = {
    "Cluster": ("cluster.karmada.io/v1alpha1", fleets.Cluster),
    "PropagationPolicy": ("policy.karmada.io/v1alpha1", placements.PropagationPolicy),
    "ClusterPropagationPolicy": ("policy.karmada.io/v1alpha1", placements.PropagationPolicy),
    "ResourceBinding": ("work.karmada.io/v1alpha2", fleets.ResourceBinding),
    "ClusterResourceBinding": ("work.karmada.io/v1alpha2", fleets.ResourceBinding),
    "WorkloadRebalancer": ("apps.karmada.io/v1alpha1", fleets.WorkloadRebalancer),
}
CONTROLLERS = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController")
CLUSTER_WIDE = frozenset({
    "Node", "Namespace", "PersistentVolume", "StorageClass", "PriorityClass", "CSINode", "CSIDriver",
    "VolumeAttachment", "Cluster", "ClusterPropagationPolicy", "ClusterResourceBinding", "WorkloadRebalancer",
})  # fmt: skip
# Of the kinds that are only ever passed on to clusters; a kind that nobody knows is taken to be namespaced.
_CLUSTER_WIDE_TEMPLATES = frozenset({
    "APIService", "CSIDriver", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "DeviceClass",
    "FlowSchema", "GatewayClass", "IngressClass", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration", "PriorityLevelConfiguration", "RuntimeClass", "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "VolumeAttributesClass",
})  # fmt: skip
# What a cluster makes by itself, in numbers: nobody propagates it.
_TRANSIENT = frozenset({"ControllerRevision", "Endpoints", "EndpointSlice", "Event", "Lease"})
# Where Kubernetes itself keeps kinds; a group with a dot of its own is somebody else's and may reuse any name.
_OWN_GROUPS = frozenset({"", "apps", "batch", "policy", "extensions", "storage.k8s.io", "scheduling.k8s.io"})


class KindHandling(msgspec.Struct, frozen=True):
    """
    What to do with an object: read it as `wire_type`, refuse it for `problem`, or (neither) pass it over.

    What is passed over may still be a `template` that a fleet propagates.
    """

    wire_type: WireType | None = None
    problem: str = ""
    path: str = ""
    template: bool = False


PASSED_OVER = KindHandling()


@lru_cache(maxsize=1024)
def handling_of(api_version: str, kind: str) -> KindHandling:
    """What becomes of objects of this kind."""
    if not kind or not api_version:
        missing = "kind" if not kind else "apiVersion"
        return KindHandling(problem="expected an object with apiVersion and kind", path=missing)
    group = _group(api_version)
    # Whoever reads the file has opened the lists in it; what is left of them has no items to read.
    if kind.endswith("List") and (group in _OWN_GROUPS or group.endswith(".karmada.io")):
        return KindHandling(problem="expected a list", path="items")
    if group.endswith(".karmada.io"):
        return _known(api_version, kind, KARMADA) if kind in KARMADA else _unknown(kind, KARMADA)
    if group not in _OWN_GROUPS:
        return _template(kind)
    if kind in BUILT_IN:
        return _known(api_version, kind, BUILT_IN)
    return _unknown(kind, BUILT_IN, _template(kind))


def is_cluster_wide(kind: str, *, template: bool) -> bool:
    """Whether objects of the kind stand in no namespace."""
    return kind in (_CLUSTER_WIDE_TEMPLATES if template else CLUSTER_WIDE)


def _template(kind: str) -> KindHandling:
    return KindHandling(template=kind not in _TRANSIENT)


def _known(api_version: str, kind: str, known: Mapping[str, tuple[str, WireType]]) -> KindHandling:
    expected, wire_type = known[kind]
    # Of Kubernetes's own kinds every version has what we read; Karmada's differ.
    same = api_version == expected if known is KARMADA else _group(api_version) == _group(expected)
    if not same:
        return KindHandling(problem=f"expected {expected} for a {kind}, got {api_version}", path="apiVersion")
    return KindHandling(wire_type=wire_type)


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def _unknown(kind: str, known: Mapping[str, object], otherwise: KindHandling = PASSED_OVER) -> KindHandling:
    """Most kinds that we do not read are fine, but `pod` and `Deploymnet` would be missed in silence."""
    by_folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(kind.casefold(), by_folded, n=1, cutoff=0.85)
    if near and kind not in _LOOKALIKES:
        return KindHandling(problem=f"unknown kind {kind}, did you mean {by_folded[near[0]]}?", path="kind")
    return otherwise


# Real kinds whose names come close to ones that are read.
_LOOKALIKES = frozenset({"CronJob", "PodTemplate"})
