"""
Propagation policies: Karmada's `Placement`, field for field and in its order, and the other fields of a policy.

Bayplan's own fields, which Karmada does not have, are marked as such.
"""

from __future__ import annotations

import msgspec

from bayplan.wire.meta import ApiObject, Int32, Int64, LabelSelector, WireObject
from bayplan.wire.pods import NodeSelectorRequirement, WireToleration


class FieldSelector(WireObject):
    match_expressions: list[NodeSelectorRequirement] | None = None


class WireClusterAffinity(WireObject):
    """`supplements` is Bayplan's own. Nested ones are invalid, and decoded so that they can be reported."""

    label_selector: LabelSelector | None = None
    field_selector: FieldSelector | None = None
    cluster_names: list[str] | None = None
    exclude: list[str] | None = None
    supplements: list[WireClusterAffinity] | None = None


class OverflowClusterAffinity(WireObject):
    """A tier of Karmada's `overflowAffinities`."""

    affinity_name: str = ""
    label_selector: LabelSelector | None = None
    field_selector: FieldSelector | None = None
    cluster_names: list[str] | None = None
    exclude: list[str] | None = None


class ClusterAffinityTerm(WireObject):
    affinity_name: str = ""
    label_selector: LabelSelector | None = None
    field_selector: FieldSelector | None = None
    cluster_names: list[str] | None = None
    exclude: list[str] | None = None
    overflow_affinities: list[OverflowClusterAffinity] | None = None
    supplements: list[WireClusterAffinity] | None = None


class AffinityStrategy(WireObject):
    """Bayplan's own. `mode` is Exclusive (the default) or Inherited."""

    mode: str = ""


class GroupTerm(WireObject):
    """Karmada's term: workloads with the same value of one label."""

    group_by_label_key: str = ""


class WorkloadAffinityTerm(WireObject):
    """
    Bayplan's own: a selector of peers, or `affinityEnabled` for the keys of the scheduler's configuration.

    `affinityEnabled: false` instead of a selector switches the term off.
    """

    label_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    affinity_enabled: bool | None = None
    topology_key: str = ""
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None


class WeightedWorkloadAffinityTerm(WireObject):
    weight: Int64 = 0
    workload_affinity_term: WorkloadAffinityTerm = msgspec.field(default_factory=WorkloadAffinityTerm)


class WorkloadTerms(WireObject):
    """Bayplan's own: the lists of `workloadAntiAffinity`, which `workloadAffinity` has too."""

    required_during_scheduling_required_during_execution: list[WorkloadAffinityTerm] | None = None
    required_during_scheduling_ignored_during_execution: list[WorkloadAffinityTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[WeightedWorkloadAffinityTerm] | None = None


class WorkloadAffinity(WireObject):
    """Karmada's two terms and Bayplan's lists, which share the name `workloadAffinity`."""

    affinity: GroupTerm | None = None
    anti_affinity: GroupTerm | None = None
    required_during_scheduling_required_during_execution: list[WorkloadAffinityTerm] | None = None
    required_during_scheduling_ignored_during_execution: list[WorkloadAffinityTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[WeightedWorkloadAffinityTerm] | None = None


class WireSpreadConstraint(WireObject):
    spread_by_field: str = ""
    spread_by_label: str = ""
    max_groups: Int64 = 0
    min_groups: Int64 = 0


class StaticClusterWeight(WireObject):
    target_cluster: WireClusterAffinity = msgspec.field(default_factory=WireClusterAffinity)
    weight: Int64 = 0


class ClusterPreferences(WireObject):
    static_weight_list: list[StaticClusterWeight] | None = None
    dynamic_weight: str = ""


class ReplicaSchedulingStrategy(WireObject):
    replica_scheduling_type: str = ""
    replica_division_preference: str = ""
    weight_preference: ClusterPreferences | None = None


class WirePlacement(WireObject):
    """
    `workloadAntiAffinity`, `affinityStrategy` and `preferredClusterAffinities` are Bayplan's own.

    The annotation `bayplan.io/placement` holds Bayplan's own fields in the same form.
    """

    cluster_affinity: WireClusterAffinity | None = None
    cluster_affinities: list[ClusterAffinityTerm] | None = None
    cluster_tolerations: list[WireToleration] | None = None
    spread_constraints: list[WireSpreadConstraint] | None = None
    replica_scheduling: ReplicaSchedulingStrategy | None = None
    workload_affinity: WorkloadAffinity | None = None
    workload_anti_affinity: WorkloadTerms | None = None
    affinity_strategy: AffinityStrategy | None = None
    preferred_cluster_affinities: list[ClusterAffinityTerm] | None = None


class ResourceSelector(WireObject):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    label_selector: LabelSelector | None = None


class StatePreservationRule(WireObject):
    alias_label_name: str = ""
    json_path: str = ""


class StatePreservation(WireObject):
    rules: list[StatePreservationRule] | None = None


class DecisionConditions(WireObject):
    toleration_seconds: Int64 | None = None


class ApplicationFailoverBehavior(WireObject):
    decision_conditions: DecisionConditions = msgspec.field(default_factory=DecisionConditions)
    purge_mode: str = ""
    grace_period_seconds: Int32 | None = None
    state_preservation: StatePreservation | None = None


class ClusterFailoverBehavior(WireObject):
    purge_mode: str = ""
    state_preservation: StatePreservation | None = None


class FailoverBehavior(WireObject):
    application: ApplicationFailoverBehavior | None = None
    cluster: ClusterFailoverBehavior | None = None


class SuspendClusters(WireObject):
    cluster_names: list[str] | None = None


class Suspension(WireObject):
    """Of a policy; a binding's suspension also has `scheduling`."""

    dispatching: bool | None = None
    dispatching_on_clusters: SuspendClusters | None = None


class SchedulePriority(WireObject):
    priority_class_source: str = ""
    priority_class_name: str = ""


class PropagationSpec(WireObject):
    resource_selectors: list[ResourceSelector] | None = None
    association: bool = False
    propagate_deps: bool = False
    placement: WirePlacement = msgspec.field(default_factory=WirePlacement)
    priority: Int32 | None = None
    preemption: str = ""
    dependent_overrides: list[str] | None = None
    scheduler_name: str = ""
    failover: FailoverBehavior | None = None
    conflict_resolution: str = ""
    activation_preference: str = ""
    suspension: Suspension | None = None
    preserve_resources_on_deletion: bool | None = None
    schedule_priority: SchedulePriority | None = None


class PropagationPolicy(ApiObject):
    """Also a ClusterPropagationPolicy, which has no namespace."""

    spec: PropagationSpec = msgspec.field(default_factory=PropagationSpec)
