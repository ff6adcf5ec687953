"""
A KubeSchedulerConfiguration and the arguments of its plugins as written, in kubescheduler.config.k8s.io/v1.

Every field may be null, which means absent, except the names without which an entry means nothing. What is not read has
no type here: leader election, client settings, extenders and the arguments of plugins that are no rules.
"""

from __future__ import annotations

from typing import Any

from bayplan.wire.meta import Int32, Int64, WireObject
from bayplan.wire.pods import TopologySpreadConstraint, WireNodeAffinity


class PluginEntry(WireObject):
    name: str | None = None
    weight: Int32 | None = None


class PluginSet(WireObject):
    enabled: list[PluginEntry] | None = None
    disabled: list[PluginEntry] | None = None


class ConfiguredPlugins(WireObject):
    """The extension points, as in Plugins of staging/src/k8s.io/kube-scheduler/config/v1/types.go."""

    bind: PluginSet | None = None
    filter: PluginSet | None = None
    multi_point: PluginSet | None = None
    permit: PluginSet | None = None
    placement_generate: PluginSet | None = None
    placement_score: PluginSet | None = None
    post_bind: PluginSet | None = None
    post_filter: PluginSet | None = None
    pre_bind: PluginSet | None = None
    pre_enqueue: PluginSet | None = None
    pre_filter: PluginSet | None = None
    pre_score: PluginSet | None = None
    queue_sort: PluginSet | None = None
    reserve: PluginSet | None = None
    score: PluginSet | None = None


class PluginConfig(WireObject):
    """The type of `args` depends on the plugin."""

    name: str
    args: Any = None


class ConfiguredProfile(WireObject):
    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: ConfiguredPlugins | None = None
    plugin_config: list[PluginConfig] | None = None


class SchedulerConfiguration(WireObject):
    parallelism: Int32 | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    pod_initial_backoff_seconds: Int64 | None = None
    pod_max_backoff_seconds: Int64 | None = None
    profiles: list[ConfiguredProfile] | None = None


class WrittenArguments(WireObject):
    """The arguments of a plugin that has none, or whose arguments are not read."""


class DefaultPreemptionArgs(WrittenArguments):
    min_candidate_nodes_percentage: Int32 | None = None
    min_candidate_nodes_absolute: Int32 | None = None


class InterPodAffinityArgs(WrittenArguments):
    hard_pod_affinity_weight: Int32 | None = None
    ignore_preferred_terms_of_existing_pods: bool | None = None


class NodeAffinityArgs(WrittenArguments):
    added_affinity: WireNodeAffinity | None = None


class ResourceWeight(WireObject):
    name: str
    weight: Int64 | None = None


class NodeResourcesBalancedAllocationArgs(WrittenArguments):
    resources: list[ResourceWeight] | None = None


class UtilizationShapePoint(WireObject):
    utilization: Int32 | None = None
    score: Int32 | None = None


class RequestedToCapacityRatioParam(WireObject):
    shape: list[UtilizationShapePoint] | None = None


class WrittenScoringStrategy(WireObject):
    type: str | None = None
    resources: list[ResourceWeight] | None = None
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


class NodeResourcesFitArgs(WrittenArguments):
    ignored_resources: list[str] | None = None
    ignored_resource_groups: list[str] | None = None
    scoring_strategy: WrittenScoringStrategy | None = None


class VolumeBindingArgs(WrittenArguments):
    bind_timeout_seconds: Int64 | None = None
    shape: list[UtilizationShapePoint] | None = None


class PodTopologySpreadArgs(WrittenArguments):
    defaulting_type: str | None = None
    default_constraints: list[TopologySpreadConstraint] | None = None
