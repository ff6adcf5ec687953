"""
Which kinds an API server of a Kubernetes version serves, with its default flags.

Mirrors api/discovery of v1.36.4 and v1.37.1: versions that are neither alpha nor beta, since no other is served by
default. Groups that are not Kubernetes' own may be defined by a CustomResourceDefinition, so nothing is said of them.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping

from bayplan.model.kubernetes_versions import V1_37, KubernetesVersion

# Group and version → kinds.
_SERVED = {
    "v1": "Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume "
    "PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount",
    "admissionregistration.k8s.io/v1": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding "
    "MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding "
    "ValidatingWebhookConfiguration",
    "apiextensions.k8s.io/v1": "CustomResourceDefinition",
    "apiregistration.k8s.io/v1": "APIService",
    "apps/v1": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "authentication.k8s.io/v1": "SelfSubjectReview TokenReview",
    "authorization.k8s.io/v1": "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview "
    "SubjectAccessReview",
    "autoscaling/v1": "HorizontalPodAutoscaler",
    "autoscaling/v2": "HorizontalPodAutoscaler",
    "batch/v1": "CronJob Job",
    "certificates.k8s.io/v1": "CertificateSigningRequest",
    "coordination.k8s.io/v1": "Lease",
    "discovery.k8s.io/v1": "EndpointSlice",
    "events.k8s.io/v1": "Event",
    "flowcontrol.apiserver.k8s.io/v1": "FlowSchema PriorityLevelConfiguration",
    "networking.k8s.io/v1": "IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR",
    "node.k8s.io/v1": "RuntimeClass",
    "policy/v1": "PodDisruptionBudget",
    "rbac.authorization.k8s.io/v1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "resource.k8s.io/v1": "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice",
    "scheduling.k8s.io/v1": "PriorityClass",
    "storage.k8s.io/v1": "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass",
}
_ADDED_IN_1_37 = {
    "certificates.k8s.io/v1": "ClusterTrustBundle PodCertificateRequest",
    "resource.k8s.io/v1": "DeviceTaintRule",
    "storagemigration.k8s.io/v1": "StorageVersionMigration",
}
# Versions that these servers know and serve only if a flag asks for them.
_OFF_BY_DEFAULT = {
    "admissionregistration.k8s.io/v1alpha1": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding",
    "admissionregistration.k8s.io/v1beta1": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding",
    "certificates.k8s.io/v1beta1": "ClusterTrustBundle PodCertificateRequest",
    "coordination.k8s.io/v1alpha2": "LeaseCandidate",
    "coordination.k8s.io/v1beta1": "LeaseCandidate",
    "internal.apiserver.k8s.io/v1alpha1": "StorageVersion",
    "resource.k8s.io/v1alpha3": "DeviceTaintRule ResourcePoolStatusRequest",
    "resource.k8s.io/v1beta1": "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice",
    "resource.k8s.io/v1beta2": "DeviceClass DeviceTaintRule ResourceClaim ResourceClaimTemplate ResourceSlice",
    "storagemigration.k8s.io/v1beta1": "StorageVersionMigration",
}
_OFF_IN_1_36 = {
    "certificates.k8s.io/v1alpha1": "ClusterTrustBundle",
    "networking.k8s.io/v1beta1": "IPAddress ServiceCIDR",
    "scheduling.k8s.io/v1alpha2": "PodGroup Workload",
    "storage.k8s.io/v1beta1": "VolumeAttributesClass",
}
_OFF_IN_1_37 = {
    "lifecycle.k8s.io/v1alpha1": "Eviction EvictionRequest",
    "scheduling.k8s.io/v1alpha3": "CompositePodGroup PodGroup Workload",
    "scheduling.k8s.io/v1beta1": "PodGroup Workload",
}
# Groups of Kubernetes of which no version is left.
_REMOVED_GROUPS = frozenset({"extensions", "auditregistration.k8s.io", "settings.k8s.io"})

Served = Mapping[str, tuple[str, ...]]


@functools.cache
def served(version: KubernetesVersion) -> Served:
    """Group and version → the kinds that are served by default."""
    return _merged(_SERVED, *([_ADDED_IN_1_37] if version >= V1_37 else ()))


def no_match(api_version: str, kind: str, version: KubernetesVersion) -> str:
    """The sentence of kubectl if the server has no such kind, and where it is; empty if it has it or may have it."""
    every, group = served(version), api_version.rpartition("/")[0]
    is_own = group in _REMOVED_GROUPS or group in {name.rpartition("/")[0] for name in every}
    # Readers unpack lists, so one that is left is malformed.
    if not api_version or not kind or kind.endswith("List") or kind in every.get(api_version, ()):
        return ""
    on_demand = _merged(_OFF_BY_DEFAULT, _OFF_IN_1_37 if version >= V1_37 else _OFF_IN_1_36)
    if not is_own and api_version not in on_demand:
        return ""
    return f'no matches for kind "{kind}" in version "{api_version}"{_advice(api_version, kind, every, on_demand)}'


def _advice(api_version: str, kind: str, every: Served, on_demand: Served) -> str:
    places = [name for name, kinds in every.items() if kind in kinds]
    if kind in on_demand.get(api_version, ()):
        return "; it is served only if the API server enables it with --runtime-config"
    if places:
        return f"; it is in {' and '.join(places)}"
    folded = {name.casefold(): name for name in every.get(api_version, ())}
    near = difflib.get_close_matches(kind.casefold(), folded, n=1)
    return f"; did you mean {folded[near[0]]}?" if near else ""


def _merged(*tables: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for table in tables:
        for api_version, kinds in table.items():
            found[api_version] = (*found.get(api_version, ()), *kinds.split())
    return found
