"""
The registry of kinds: which are read, in which version and wire type, and which are cluster-wide.

Does not know files or fields.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from bayplan.wire import controllers, fleets, meta, nodes, placements, pods, storage

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
    "PodDisruptionBudget": ("policy/v1", controllers.PodDisruptionBudget),
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
# Of the kinds that a fleet only propagates. Unknown kinds count as namespaced.
CLUSTER_WIDE_TEMPLATES = frozenset({
    "APIService", "CSIDriver", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "DeviceClass",
    "FlowSchema", "GatewayClass", "IngressClass", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration", "PriorityLevelConfiguration", "RuntimeClass", "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "VolumeAttributesClass",
})  # fmt: skip
# Objects that a cluster creates by itself, in large numbers. They are never propagated.
_TRANSIENT = frozenset({"ControllerRevision", "Endpoints", "EndpointSlice", "Event", "Lease"})
# The API groups of Kubernetes' own kinds; another group may reuse any of their names.
_OWN_GROUPS = frozenset({"", "apps", "batch", "policy", "extensions", "storage.k8s.io", "scheduling.k8s.io"})
# Real kinds whose names are close to those of kinds that are read.
_LOOKALIKES = frozenset({"CronJob", "PodTemplate"})


class KindHandling(msgspec.Struct, frozen=True):
    """
    What to do with objects of a kind: decode them as `wire_type`, reject them for `problem`, or (neither) skip them.

    A skipped object may still be a `template` that a fleet propagates.
    """

    wire_type: WireType | None = None
    problem: str = ""
    path: str = ""
    template: bool = False


@lru_cache(maxsize=1024)
def handling_of(api_version: str, kind: str) -> KindHandling:
    """How objects of this version and kind are handled."""
    if not kind or not api_version:
        missing = "kind" if not kind else "apiVersion"
        return KindHandling(problem="expected an object with apiVersion and kind", path=missing)
    group = api_version.rpartition("/")[0]
    is_karmada = group.endswith(".karmada.io")
    # Readers unpack lists before this point; a list that is left has no items.
    if kind.endswith("List") and (group in _OWN_GROUPS or is_karmada):
        return KindHandling(problem="expected a list", path="items")
    template = KindHandling(template=kind not in _TRANSIENT)
    if group not in _OWN_GROUPS and not is_karmada:
        return template
    registry = KARMADA if is_karmada else BUILT_IN
    if kind not in registry:
        return _misspelt(kind, registry) or (KindHandling() if is_karmada else template)
    expected, wire_type = registry[kind]
    # Every version of a Kubernetes kind has the fields that are read; the versions of Karmada's kinds differ.
    if api_version == expected or (not is_karmada and group == expected.rpartition("/")[0]):
        return KindHandling(wire_type=wire_type)
    return KindHandling(problem=f"expected {expected} for a {kind}, got {api_version}", path="apiVersion")


def _misspelt(kind: str, registry: Mapping[str, object]) -> KindHandling | None:
    """Most unknown kinds may be skipped, but `pod` and `Deploymnet` would be left out without notice."""
    by_folded = {name.casefold(): name for name in registry}
    near = difflib.get_close_matches(kind.casefold(), by_folded, n=1, cutoff=0.85)
    if near and kind not in _LOOKALIKES:
        return KindHandling(problem=f"unknown kind {kind}, did you mean {by_folded[near[0]]}?", path="kind")
    return None
