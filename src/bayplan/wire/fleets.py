"""
Karmada's Cluster and bindings: the fields that decide on which clusters a workload is placed.

Also what says how templates are read.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.wire.meta import ApiObject, Int32, Int64, Quantities, WireObject
from bayplan.wire.nodes import WireTaint
from bayplan.wire.placements import WireClusterAffinity


class ApiResource(WireObject):
    kind: str = ""
    name: str = ""


class ApiEnablement(WireObject):
    group_version: str = ""
    resources: list[ApiResource] | None = None


class AllocatableModeling(WireObject):
    grade: Int64 = 0
    count: Int64 = 0


class WireResourceSummary(WireObject):
    allocatable: Quantities | None = None
    allocated: Quantities | None = None
    allocating: Quantities | None = None
    allocatable_modelings: list[AllocatableModeling] | None = None


class ResourceRange(WireObject):
    name: str = ""
    min: str | int | float = 0
    max: str | int | float = 0


class ResourceModel(WireObject):
    grade: Int64 = 0
    ranges: list[ResourceRange] | None = None


class ClusterSpec(WireObject):
    provider: str = ""
    region: str = ""
    zones: list[str] | None = None
    taints: list[WireTaint] | None = None
    sync_mode: str = ""
    resource_models: list[ResourceModel] | None = None


class ClusterCondition(WireObject):
    type: str = ""
    status: str = ""


class ClusterStatus(WireObject):
    conditions: list[ClusterCondition] | None = None
    api_enablements: list[ApiEnablement] | None = None
    resource_summary: WireResourceSummary | None = None


class Cluster(ApiObject):
    spec: ClusterSpec = msgspec.field(default_factory=ClusterSpec)
    status: ClusterStatus = msgspec.field(default_factory=ClusterStatus)


class ResourceReference(WireObject):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class ReplicaRequirements(WireObject):
    """`node_claim` stays as written: only accurate estimators read it."""

    node_claim: dict[str, Any] | None = None
    resource_request: Quantities | None = None
    namespace: str = ""
    priority_class_name: str = ""


class BindingComponent(WireObject):
    name: str = ""
    replicas: Int32 = 0
    replica_requirements: ReplicaRequirements | None = None


class TargetCluster(WireObject):
    name: str = ""
    replicas: Int32 = 0


class GracefulEvictionTask(WireObject):
    from_cluster: str = ""
    purge_mode: str = ""


class WorkloadAffinityGroups(WireObject):
    affinity_group: str = ""
    anti_affinity_group: str = ""


class BindingSuspension(WireObject):
    scheduling: bool = False


class BindingSchedulePriority(WireObject):
    priority: Int32 = 0


class BindingSpec(WireObject):
    """`placement` stays as written: Bayplan's own fields are merged in before it is mapped."""

    resource: ResourceReference = msgspec.field(default_factory=ResourceReference)
    replicas: Int32 = 0
    replica_requirements: ReplicaRequirements | None = None
    components: list[BindingComponent] | None = None
    clusters: list[TargetCluster] | None = None
    placement: dict[str, Any] | None = None
    graceful_eviction_tasks: list[GracefulEvictionTask] | None = None
    workload_affinity_groups: WorkloadAffinityGroups | None = None
    reschedule_triggered_at: str | None = None
    scheduler_name: str = ""
    suspension: BindingSuspension | None = None
    schedule_priority: BindingSchedulePriority | None = None


class BindingStatus(WireObject):
    """
    `conditions` stay as written: those of other controllers are written back as they are. So does what each cluster
    says in `aggregated_status`, which only some features read.
    """

    scheduler_observing_affinity_name: str = ""
    last_scheduled_time: str | None = None
    scheduler_observed_generation: Int64 = 0
    conditions: list[dict[str, Any]] | None = None
    aggregated_status: list[dict[str, Any]] | None = None


class ResourceBinding(ApiObject):
    """Also a ClusterResourceBinding, which has no namespace."""

    spec: BindingSpec = msgspec.field(default_factory=BindingSpec)
    status: BindingStatus = msgspec.field(default_factory=BindingStatus)


class RebalancedWorkload(WireObject):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""


class WorkloadRebalancerSpec(WireObject):
    workloads: list[RebalancedWorkload] | None = None


class WorkloadRebalancer(ApiObject):
    """Requests that the bindings of its workloads are scheduled again."""

    spec: WorkloadRebalancerSpec = msgspec.field(default_factory=WorkloadRebalancerSpec)


# The configuration of Karmada's resource interpreter: scripts in Lua, and webhooks.


class LuaRule(WireObject):
    lua_script: str = ""


class CustomizationRules(WireObject):
    """The rules that decide how a template is scheduled; the others are not read."""

    replica_resource: LuaRule | None = None
    component_resource: LuaRule | None = None


class CustomizationTarget(WireObject):
    api_version: str = ""
    kind: str = ""


class CustomizationSpec(WireObject):
    target: CustomizationTarget = msgspec.field(default_factory=CustomizationTarget)
    customizations: CustomizationRules = msgspec.field(default_factory=CustomizationRules)


class ResourceInterpreterCustomization(ApiObject):
    spec: CustomizationSpec = msgspec.field(default_factory=CustomizationSpec)


class InterpreterRule(WireObject):
    operations: list[str] | None = None
    api_groups: list[str] | None = None
    api_versions: list[str] | None = None
    kinds: list[str] | None = None


class InterpreterWebhook(WireObject):
    name: str = ""
    rules: list[InterpreterRule] | None = None


class ResourceInterpreterWebhookConfiguration(ApiObject):
    webhooks: list[InterpreterWebhook] | None = None


class MatchCondition(WireObject):
    condition_type: str = ""
    operator: str = ""
    status_values: list[str] | None = None


class ClusterTaintPolicySpec(WireObject):
    target_clusters: WireClusterAffinity | None = None
    add_on_conditions: list[MatchCondition] | None = None
    taints: list[WireTaint] | None = None


class ClusterTaintPolicy(ApiObject):
    spec: ClusterTaintPolicySpec = msgspec.field(default_factory=ClusterTaintPolicySpec)
