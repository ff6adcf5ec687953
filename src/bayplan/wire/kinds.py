"""
The registry of API kinds: one row for each, which everything that reads, lists, watches or checks objects reads.

A row says what a kind is and what its objects are used for; what is done with an object is written where it is done.
Does not know files or fields.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Sequence

import msgspec

from bayplan.caching import memoised
from bayplan.wire import observed
from bayplan.wire.admission import LimitRange, ResourceQuota, RuntimeClass, WebhookConfiguration
from bayplan.wire.controllers import (
    Controller,
    CronJob,
    HorizontalPodAutoscaler,
    PodDisruptionBudget,
    PriorityClass,
    ReplicationController,
    Service,
)
from bayplan.wire.fleets import (
    Cluster,
    ClusterTaintPolicy,
    ResourceBinding,
    ResourceInterpreterCustomization,
    ResourceInterpreterWebhookConfiguration,
    WorkloadRebalancer,
)
from bayplan.wire.meta import ApiObject
from bayplan.wire.nodes import Namespace, Node
from bayplan.wire.placements import PropagationPolicy
from bayplan.wire.pods import CoschedulingPodGroup, Pod, PodGroup
from bayplan.wire.storage import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    VolumeAttachment,
    WireStorageClass,
)

WireType = type[ApiObject]
GroupKind = tuple[str, str]
TEMPLATE, CRON_TEMPLATE = ("spec", "template"), ("spec", "jobTemplate", "spec", "template")
CONTROLLERS = "controllers"
_KARMADA = ".karmada.io"  # how its API groups end


class Trait(enum.Flag):
    """What is true of a kind, and who reads its objects."""

    NONE = 0
    CLUSTER_WIDE = enum.auto()  # its objects have no namespace
    DECIDES = enum.auto()  # a decision about a pod may depend on its objects
    SPREADS = enum.auto()  # a controller whose selector default spread constraints use: plugins/helper/spread.go
    AUDITED = enum.auto()  # an audit lists it
    DISPLACED = enum.auto()  # an audit that places displaced pods again reads it
    INTERPRETED = enum.auto()  # a controller whose replica field Karmada knows
    HAS_PLACEMENT = enum.auto()  # its objects have a Karmada placement
    NO_STATUS = enum.auto()  # its objects have no status, on a server neither
    CONFIDENTIAL = enum.auto()  # its objects may hold secrets, so no snapshot has them
    TARGET = enum.auto()  # pods or bindings are placed on its objects, so they are never propagated
    OF_CLUSTER = enum.auto()  # every cluster has objects of its own; that no policy selects them is not reported
    ADMITS = enum.auto()  # an API server may change or refuse pods because of its objects, which are not read
    TRANSIENT = enum.auto()  # a cluster creates its objects by itself, in large numbers; they are never propagated


class PodNames(enum.Enum):
    """What follows the name of an object in the names of its pods, as a regular expression."""

    ITSELF = ""
    HASHED = r"-[a-z0-9]+-[a-z0-9]{5}"
    RANDOM = r"-[a-z0-9]{5}"
    ORDINAL = r"-[0-9]+"
    INDEXED = r"(-[0-9]+)?-[a-z0-9]{5}"
    SCHEDULED = r"-[0-9]+(-[0-9]+)?-[a-z0-9]{5}"


class ApiKind(msgspec.Struct, frozen=True):
    """
    One kind.

    The group is empty for the core group; `version` is the one that is requested, `plural` the resource in URLs. In
    files, objects are decoded as `wire_type` and kept in the list `held_in` of a DesiredState; without both they are
    skipped. An audit decodes `audited_type` instead. `pod_path` leads to the pod template; it is empty for a pod.
    """

    kind: str
    group: str
    version: str
    plural: str
    wire_type: WireType | None = None
    held_in: str = ""
    traits: Trait = Trait.NONE
    audited_type: WireType | None = None
    pod_path: tuple[str, ...] | None = None
    pod_names: PodNames | None = None
    short_name: str = ""

    # What follows from the rest is computed once: it is read for every object of a dump.
    key: GroupKind = ("", "")
    api_version: str = ""
    cluster_wide: bool = False
    is_karmada: bool = False

    def __post_init__(self) -> None:
        put = msgspec.structs.force_setattr
        put(self, "key", (self.group, self.kind))
        put(self, "api_version", f"{self.group}/{self.version}" if self.group else self.version)
        put(self, "cluster_wide", Trait.CLUSTER_WIDE in self.traits)
        put(self, "is_karmada", self.group.endswith(_KARMADA))


_WIDE, _DECIDES, _SPREADS = Trait.CLUSTER_WIDE, Trait.DECIDES, Trait.DECIDES | Trait.SPREADS
_AUDITED, _DISPLACED, _INTERPRETED = Trait.AUDITED, Trait.DISPLACED, Trait.INTERPRETED
_PLACEMENT, _NO_STATUS = Trait.HAS_PLACEMENT, Trait.NO_STATUS
_CONFIDENTIAL, _TRANSIENT = Trait.CONFIDENTIAL, Trait.TRANSIENT
_TARGET, _OF_CLUSTER, _ADMITS = Trait.TARGET, Trait.OF_CLUSTER, Trait.ADMITS
_PLACED_AGAIN = _DECIDES | _AUDITED | _DISPLACED
_CLUSTER, _POLICY, _WORK, _CONFIG = "cluster.karmada.io", "policy.karmada.io", "work.karmada.io", "config.karmada.io"
_ADMISSION, _RBAC, _FLOW = "admissionregistration.k8s.io", "rbac.authorization.k8s.io", "flowcontrol.apiserver.k8s.io"
_STORAGE, _NETWORK = "storage.k8s.io", "networking.k8s.io"

# fmt: off
_ROWS = (
    # Pods, what they run on, and what selects them.
    ApiKind("Pod", "", "v1", "pods", Pod, "pods", _PLACED_AGAIN, observed.ObservedPod, (), PodNames.ITSELF, "po"),
    ApiKind("Node", "", "v1", "nodes", Node, "nodes", _PLACED_AGAIN | _TARGET | _WIDE, observed.ObservedNode),
    ApiKind("Namespace", "", "v1", "namespaces", Namespace, "namespaces",
            _PLACED_AGAIN | _OF_CLUSTER | _WIDE, Namespace),
    ApiKind("Service", "", "v1", "services", Service, "services", _PLACED_AGAIN, short_name="svc"),
    # What creates pods.
    ApiKind("Deployment", "apps", "v1", "deployments", Controller, CONTROLLERS, _INTERPRETED | _AUDITED | _DISPLACED,
            observed.ObservedController, TEMPLATE, PodNames.HASHED, "deploy"),
    ApiKind("ReplicaSet", "apps", "v1", "replicasets", Controller, CONTROLLERS,
            _INTERPRETED | _SPREADS | _PLACED_AGAIN, None, TEMPLATE, PodNames.RANDOM, "rs"),
    ApiKind("StatefulSet", "apps", "v1", "statefulsets", Controller, CONTROLLERS,
            _INTERPRETED | _SPREADS | _PLACED_AGAIN, observed.ObservedController, TEMPLATE, PodNames.ORDINAL, "sts"),
    ApiKind("Job", "batch", "v1", "jobs", Controller, CONTROLLERS, _INTERPRETED, None, TEMPLATE, PodNames.INDEXED),
    ApiKind("CronJob", "batch", "v1", "cronjobs", CronJob, "cron_jobs", Trait.NONE, None,
            CRON_TEMPLATE, PodNames.SCHEDULED, "cj"),
    ApiKind("ReplicationController", "", "v1", "replicationcontrollers", ReplicationController, CONTROLLERS,
            _SPREADS | _DISPLACED, None, TEMPLATE, PodNames.RANDOM, "rc"),
    ApiKind("DaemonSet", "apps", "v1", "daemonsets", Controller, CONTROLLERS, Trait.NONE, None,
            TEMPLATE, PodNames.RANDOM, "ds"),
    ApiKind("HorizontalPodAutoscaler", "autoscaling", "v2", "horizontalpodautoscalers", HorizontalPodAutoscaler,
            "autoscalers", short_name="hpa"),
    # What changes pods that are created, or refuses them.
    ApiKind("LimitRange", "", "v1", "limitranges", LimitRange, "limit_ranges", _OF_CLUSTER | _NO_STATUS),
    ApiKind("ResourceQuota", "", "v1", "resourcequotas", ResourceQuota, "resource_quotas", _OF_CLUSTER),
    ApiKind("RuntimeClass", "node.k8s.io", "v1", "runtimeclasses", RuntimeClass, "runtime_classes",
            _OF_CLUSTER | _WIDE | _NO_STATUS),
    ApiKind("MutatingWebhookConfiguration", _ADMISSION, "v1", "mutatingwebhookconfigurations",
            WebhookConfiguration, "mutating_webhooks", _OF_CLUSTER | _WIDE | _NO_STATUS),
    ApiKind("ValidatingWebhookConfiguration", _ADMISSION, "v1", "validatingwebhookconfigurations",
            WebhookConfiguration, "validating_webhooks", _OF_CLUSTER | _WIDE | _NO_STATUS),
    # Storage.
    ApiKind("PersistentVolume", "", "v1", "persistentvolumes", PersistentVolume, "volumes",
            _PLACED_AGAIN | _OF_CLUSTER | _WIDE, PersistentVolume),
    ApiKind("PersistentVolumeClaim", "", "v1", "persistentvolumeclaims", PersistentVolumeClaim, "claims",
            _PLACED_AGAIN, short_name="pvc"),
    ApiKind("StorageClass", _STORAGE, "v1", "storageclasses", WireStorageClass, "storage_classes",
            _PLACED_AGAIN | _OF_CLUSTER | _WIDE | _NO_STATUS),
    ApiKind("CSINode", _STORAGE, "v1", "csinodes", CsiNode, "csi_nodes",
            _DECIDES | _AUDITED | _OF_CLUSTER | _WIDE, observed.ObservedCsiNode),
    ApiKind("VolumeAttachment", _STORAGE, "v1", "volumeattachments", VolumeAttachment, "volume_attachments",
            _DECIDES | _OF_CLUSTER | _WIDE),
    ApiKind("CSIDriver", _STORAGE, "v1", "csidrivers", CsiDriver, "csi_drivers",
            _DECIDES | _OF_CLUSTER | _WIDE),
    ApiKind("CSIStorageCapacity", _STORAGE, "v1", "csistoragecapacities", CsiStorageCapacity, "storage_capacities",
            _DECIDES | _OF_CLUSTER),
    # Who goes first, and who may be evicted.
    ApiKind("PriorityClass", "scheduling.k8s.io", "v1", "priorityclasses", PriorityClass, "priority_classes",
            _PLACED_AGAIN | _OF_CLUSTER | _WIDE | _NO_STATUS),
    ApiKind("PodDisruptionBudget", "policy", "v1", "poddisruptionbudgets", PodDisruptionBudget, "disruption_budgets",
            _AUDITED, PodDisruptionBudget),

    # Pods that are placed together.
    ApiKind("PodGroup", "scheduling.k8s.io", "v1beta1", "podgroups", PodGroup, "pod_groups"),
    ApiKind("PodGroup", "scheduling.x-k8s.io", "v1alpha1", "podgroups", CoschedulingPodGroup, "pod_groups"),

    # Karmada.
    ApiKind("Cluster", _CLUSTER, "v1alpha1", "clusters", Cluster, "clusters", _TARGET | _WIDE),
    ApiKind("PropagationPolicy", _POLICY, "v1alpha1", "propagationpolicies", PropagationPolicy, "policies",
            _PLACEMENT | _NO_STATUS),
    ApiKind("ClusterPropagationPolicy", _POLICY, "v1alpha1", "clusterpropagationpolicies", PropagationPolicy,
            "policies", _PLACEMENT | _WIDE | _NO_STATUS),
    ApiKind("ResourceBinding", _WORK, "v1alpha2", "resourcebindings", ResourceBinding, "bindings",
            _PLACEMENT, short_name="rb"),
    ApiKind("ClusterResourceBinding", _WORK, "v1alpha2", "clusterresourcebindings", ResourceBinding, "bindings",
            _PLACEMENT | _WIDE, short_name="crb"),
    ApiKind("WorkloadRebalancer", "apps.karmada.io", "v1alpha1", "workloadrebalancers", WorkloadRebalancer,
            "rebalancers", _WIDE),
    ApiKind("ClusterTaintPolicy", _POLICY, "v1alpha1", "clustertaintpolicies", ClusterTaintPolicy, "taint_policies",
            _WIDE | _NO_STATUS),
    ApiKind("ResourceInterpreterCustomization", _CONFIG, "v1alpha1", "resourceinterpretercustomizations",
            ResourceInterpreterCustomization, "customizations", _WIDE | _NO_STATUS),
    ApiKind("ResourceInterpreterWebhookConfiguration", _CONFIG, "v1alpha1", "resourceinterpreterwebhookconfigurations",
            ResourceInterpreterWebhookConfiguration, "interpreter_webhooks", _WIDE | _NO_STATUS),

    # Read by an audit, or for one purpose only.
    ApiKind("ConfigMap", "", "v1", "configmaps", None, "", _CONFIDENTIAL, observed.ObservedConfigMap, short_name="cm"),
    ApiKind("Lease", "coordination.k8s.io", "v1", "leases", None, "", _AUDITED | _TRANSIENT, observed.ObservedLease),
    ApiKind("EndpointSlice", "discovery.k8s.io", "v1", "endpointslices", None, "",
            _AUDITED | _TRANSIENT, observed.ObservedEndpointSlice),
    ApiKind("Machine", "cluster.x-k8s.io", "v1beta1", "machines", None, "", _AUDITED, observed.ObservedMachine),
    ApiKind("Secret", "", "v1", "secrets", traits=_CONFIDENTIAL),
    ApiKind("Event", "", "v1", "events", traits=_TRANSIENT),
    ApiKind("Event", "events.k8s.io", "v1", "events", traits=_TRANSIENT),

    # Known by name. A fleet may propagate their objects, unless they are transient.
    ApiKind("ControllerRevision", "apps", "v1", "controllerrevisions", traits=_TRANSIENT),
    ApiKind("Endpoints", "", "v1", "endpoints", traits=_TRANSIENT),
    ApiKind("Ingress", _NETWORK, "v1", "ingresses"),
    ApiKind("NetworkPolicy", _NETWORK, "v1", "networkpolicies"),
    ApiKind("PodTemplate", "", "v1", "podtemplates"),
    ApiKind("Role", _RBAC, "v1", "roles"),
    ApiKind("RoleBinding", _RBAC, "v1", "rolebindings"),
    ApiKind("ServiceAccount", "", "v1", "serviceaccounts"),
    ApiKind("ServiceExport", "multicluster.x-k8s.io", "v1alpha1", "serviceexports"),
    ApiKind("ServiceImport", "multicluster.x-k8s.io", "v1alpha1", "serviceimports"),
    ApiKind("APIService", "apiregistration.k8s.io", "v1", "apiservices", traits=_WIDE),
    ApiKind("ClusterRole", _RBAC, "v1", "clusterroles", traits=_WIDE),
    ApiKind("ClusterRoleBinding", _RBAC, "v1", "clusterrolebindings", traits=_WIDE),
    ApiKind("CustomResourceDefinition", "apiextensions.k8s.io", "v1", "customresourcedefinitions", traits=_WIDE),
    ApiKind("DeviceClass", "resource.k8s.io", "v1", "deviceclasses", traits=_WIDE),
    ApiKind("FlowSchema", _FLOW, "v1", "flowschemas", traits=_WIDE),
    ApiKind("GatewayClass", "gateway.networking.k8s.io", "v1", "gatewayclasses", traits=_WIDE),
    ApiKind("IngressClass", _NETWORK, "v1", "ingressclasses", traits=_WIDE),
    ApiKind("MutatingAdmissionPolicy", _ADMISSION, "v1", "mutatingadmissionpolicies", traits=_ADMITS | _WIDE),
    ApiKind("MutatingAdmissionPolicyBinding", _ADMISSION, "v1", "mutatingadmissionpolicybindings",
            traits=_ADMITS | _WIDE),
    ApiKind("PriorityLevelConfiguration", _FLOW, "v1", "prioritylevelconfigurations", traits=_WIDE),
    ApiKind("ValidatingAdmissionPolicy", _ADMISSION, "v1", "validatingadmissionpolicies", traits=_ADMITS | _WIDE),
    ApiKind("ValidatingAdmissionPolicyBinding", _ADMISSION, "v1", "validatingadmissionpolicybindings",
            traits=_ADMITS | _WIDE),
    ApiKind("VolumeAttributesClass", _STORAGE, "v1", "volumeattributesclasses", traits=_WIDE),
)
# fmt: on
KINDS: dict[GroupKind, ApiKind] = {row.key: row for row in _ROWS}
POD: GroupKind = ("", "Pod")
CONFIG_MAP: GroupKind = ("", "ConfigMap")
# A group of Kubernetes that no row has any more.
FORMER_GROUPS = frozenset({"extensions"})


def named(kind: str, group: str | None = None) -> ApiKind:
    """The row of a kind, which must have one; `group` is needed only where two groups have a kind of this name."""
    return next(row for row in KINDS.values() if row.kind == kind and group in (None, row.group))


def having(trait: Trait) -> list[ApiKind]:
    """The kinds with this trait, in the order of the registry."""
    return [row for row in KINDS.values() if trait in row.traits]


def held_in(name: str) -> list[ApiKind]:
    """The kinds whose objects this list of a DesiredState holds."""
    return [row for row in KINDS.values() if row.held_in == name]


def decoded() -> list[ApiKind]:
    """The kinds whose objects are decoded when files are read."""
    return [row for row in KINDS.values() if row.wire_type is not None]


def propagated() -> list[ApiKind]:
    """The decoded kinds whose objects a fleet propagates if a policy selects them. Karmada skips its own groups."""
    return [row for row in decoded() if not row.is_karmada and Trait.TARGET not in row.traits]


class KindHandling(msgspec.Struct, frozen=True):
    """
    What to do with objects of a kind: decode them as `wire_type`, reject them for `problem`, or (neither) skip them.

    A skipped object may still be a `template` that a fleet propagates. `row` is the kind's row, if it has one.
    """

    row: ApiKind | None = None
    wire_type: WireType | None = None
    problem: str = ""
    path: str = ""
    template: bool = False


@memoised(1024)
def handling_of(api_version: str, kind: str) -> KindHandling:
    """How objects of this version and kind are handled."""
    if not kind or not api_version:
        missing = "kind" if not kind else "apiVersion"
        return KindHandling(problem="expected an object with apiVersion and kind", path=missing)
    group = api_version.rpartition("/")[0]
    of_karmada = group.endswith(_KARMADA)
    # Any other group may reuse the names of Kubernetes' kinds.
    is_own = group in FORMER_GROUPS or any(
        row.group == group and row.wire_type is not None and not row.is_karmada for row in KINDS.values()
    )
    # Readers unpack lists before this point; a list that is left has no items.
    if kind.endswith("List") and (is_own or of_karmada):
        return KindHandling(problem="expected a list", path="items")
    row = KINDS.get((group, kind))
    template = KindHandling(row, template=kind not in {one.kind for one in having(Trait.TRANSIENT)})
    if not is_own and not of_karmada:
        return template
    family = [one for one in KINDS.values() if one.is_karmada == of_karmada]
    of_name = [one for one in family if one.kind == kind and one.wire_type is not None]
    # Two groups have a PodGroup.
    expected = next((one for one in of_name if one.group == group), of_name[0] if of_name else None)
    if expected is None:
        return _misspelt(kind, family) or (KindHandling(row) if of_karmada else template)
    # Every version of a Kubernetes kind has the fields that are read; the versions of Karmada's kinds differ.
    if api_version == expected.api_version or (not of_karmada and group == expected.group):
        return KindHandling(expected, expected.wire_type)
    message = f"expected {expected.api_version} for a {kind}, got {api_version}"
    return KindHandling(problem=message, path="apiVersion")


def _misspelt(kind: str, family: Sequence[ApiKind]) -> KindHandling | None:
    """Most unknown kinds may be skipped, but `pod` and `Deploymnet` would be left out without notice."""
    by_folded = {row.kind.casefold(): row.kind for row in family if row.wire_type is not None}
    near = difflib.get_close_matches(kind.casefold(), by_folded, n=1, cutoff=0.85)
    # A kind that is known and not decoded may have a similar name.
    if near and not any(row.kind == kind for row in family):
        return KindHandling(problem=f"unknown kind {kind}, did you mean {by_folded[near[0]]}?", path="kind")
    return None
