"""
Pods and PodGroups: the fields that decide where a pod may run, and Bayplan's own fields of affinity terms.
"""

from __future__ import annotations

import msgspec

from bayplan.wire.meta import ApiObject, Int32, Int64, LabelSelector, Quantities, WireObject

# Bayplan's own fields of a PodAffinityTerm, with their types as in the tables of fields: see docs/differences.md.
OWN_TERM_FIELDS = {"limit": "int", "tolerateNamespaces": "[string]"}


class PodAffinityTerm(WireObject):
    """Some fields are Bayplan's own: `OWN_TERM_FIELDS`."""

    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None
    limit: Int64 | None = None
    tolerate_namespaces: list[str] | None = None


class WeightedPodAffinityTerm(WireObject):
    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = msgspec.field(default_factory=PodAffinityTerm)


class PodAffinity(WireObject):
    """`podAffinity` or `podAntiAffinity`, which have the same fields."""

    required_during_scheduling_required_during_execution: list[PodAffinityTerm] | None = None
    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] | None = None


class AnnotatedGroupAffinity(WireObject):
    """The annotation with the rules between groups: terms like those of pod affinity, for members of other groups."""

    group_affinity: PodAffinity | None = None
    group_anti_affinity: PodAffinity | None = None


class NodeSelectorRequirement(WireObject):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class NodeSelectorTerm(WireObject):
    match_expressions: list[NodeSelectorRequirement] | None = None
    match_fields: list[NodeSelectorRequirement] | None = None


class NodeSelector(WireObject):
    node_selector_terms: list[NodeSelectorTerm] | None = None


class PreferredSchedulingTerm(WireObject):
    weight: Int32 = 0
    preference: NodeSelectorTerm = msgspec.field(default_factory=NodeSelectorTerm)


class WireNodeAffinity(WireObject):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredSchedulingTerm] | None = None


class Affinity(WireObject):
    node_affinity: WireNodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(WireObject):
    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class WireToleration(WireObject):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class ContainerPort(WireObject):
    container_port: Int32 = 0
    host_port: Int32 = 0
    protocol: str = ""
    host_ip: str = msgspec.field(default="", name="hostIP")


class ResourceRequirements(WireObject):
    requests: Quantities | None = None
    limits: Quantities | None = None


class Container(WireObject):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements | None = None
    ports: list[ContainerPort] | None = None
    restart_policy: str | None = None


class PersistentVolumeClaimVolumeSource(WireObject):
    claim_name: str = ""


class ImageVolumeSource(WireObject):
    reference: str = ""


class GcePersistentDisk(WireObject):
    pd_name: str = ""
    read_only: bool = False


class AwsElasticBlockStore(WireObject):
    volume_id: str = msgspec.field(default="", name="volumeID")


class IscsiVolume(WireObject):
    iqn: str = ""
    read_only: bool = False


class RbdVolume(WireObject):
    monitors: list[str] | None = None
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class AzureDisk(WireObject):
    disk_uri: str = msgspec.field(default="", name="diskURI")


class VolumeById(WireObject):
    """`cinder` or `portworxVolume`."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class DiskSources(WireObject):
    """The disks that a volume of a pod, or a PersistentVolume, can name without a CSI driver."""

    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    cinder: VolumeById | None = None
    portworx_volume: VolumeById | None = None


class WireVolume(DiskSources):
    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: dict[str, object] | None = None
    image: ImageVolumeSource | None = None
    iscsi: IscsiVolume | None = None
    rbd: RbdVolume | None = None


class PodSchedulingGate(WireObject):
    name: str = ""


class PodSchedulingGroup(WireObject):
    pod_group_name: str = ""


class PodSpec(WireObject):
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    node_name: str = ""
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[WireToleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    overhead: Quantities | None = None
    resources: ResourceRequirements | None = None
    volumes: list[WireVolume] | None = None
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    scheduler_name: str = ""
    scheduling_gates: list[PodSchedulingGate] | None = None
    scheduling_group: PodSchedulingGroup | None = None
    resource_claims: list[dict[str, object]] | None = None
    host_network: bool = False
    runtime_class_name: str = ""
    active_deadline_seconds: Int64 | None = None


class ContainerStatus(WireObject):
    name: str = ""
    restart_count: Int32 = 0
    allocated_resources: Quantities | None = None
    resources: ResourceRequirements | None = None


class PodCondition(WireObject):
    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: str | None = None


class PodStatus(WireObject):
    phase: str = ""
    conditions: list[PodCondition] | None = None
    start_time: str | None = None
    nominated_node_name: str = ""
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: Quantities | None = None


class Pod(ApiObject):
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)


class GangSchedulingPolicy(WireObject):
    min_count: Int32 = 0


class PodGroupSchedulingPolicy(WireObject):
    """`basic` has no fields; either one must be set."""

    basic: dict[str, object] | None = None
    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(WireObject):
    key: str = ""


class PodGroupSchedulingConstraints(WireObject):
    topology: list[TopologyConstraint] | None = None


class PodGroupSpec(WireObject):
    scheduling_policy: PodGroupSchedulingPolicy = msgspec.field(default_factory=PodGroupSchedulingPolicy)
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    priority: Int32 | None = None
    priority_class_name: str = ""
    parent_composite_pod_group_name: str | None = None


class PodGroup(ApiObject):
    """Of Kubernetes: 1.36 serves v1alpha2, 1.37 v1beta1; the fields that are read are the same."""

    spec: PodGroupSpec = msgspec.field(default_factory=PodGroupSpec)


class CoschedulingSpec(WireObject):
    min_member: Int32 = 0


class CoschedulingPodGroup(ApiObject):
    """The PodGroup of scheduler-plugins."""

    spec: CoschedulingSpec = msgspec.field(default_factory=CoschedulingSpec)
