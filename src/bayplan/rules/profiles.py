"""
The tables of rules: for pods on nodes and for workloads on clusters.

The first has kube-scheduler's order and weights, configurable like its profiles. It mirrors
pkg/scheduler/apis/config/v1/default_plugins.go, without the plugins that act on a cluster. Karmada calls its plugins in
random order; the order of the second table is ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from bayplan.model.node_selectors import NodeAffinity
from bayplan.model.workloads import SpreadConstraint
from bayplan.rules import resources_fit, topology_spread
from bayplan.rules.api_enablement import ApiEnablementRule
from bayplan.rules.balanced_allocation import BalancedAllocation
from bayplan.rules.cluster_affinity import ClusterAffinityRule
from bayplan.rules.cluster_eviction import ClusterEviction
from bayplan.rules.cluster_leaving import ClusterLeaving
from bayplan.rules.cluster_taints import ClusterTaints
from bayplan.rules.image_locality import ImageLocality
from bayplan.rules.inter_pod_affinity import InterPodAffinity
from bayplan.rules.node_affinity import NodeAffinityRule
from bayplan.rules.node_name import NodeName
from bayplan.rules.node_ports import NodePorts
from bayplan.rules.node_unschedulable import NodeUnschedulable
from bayplan.rules.placeable import Placeable
from bayplan.rules.rule import AnyRule
from bayplan.rules.spread_property import SpreadProperty
from bayplan.rules.taint_toleration import TaintToleration
from bayplan.rules.volume_binding import VolumeBinding
from bayplan.rules.volume_limits import VolumeLimits
from bayplan.rules.volume_restrictions import VolumeRestrictions
from bayplan.rules.volume_zone import VolumeZone
from bayplan.rules.workload_groups import WorkloadGroupAffinity, WorkloadGroupAntiAffinity
from bayplan.rules.workload_terms import WorkloadTermAffinity, WorkloadTermAntiAffinity

DEFAULT_WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}


class SchedulerProfile(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of the rules: one profile of a KubeSchedulerConfiguration, with its defaults."""

    weights: Mapping[str, int] = msgspec.field(default_factory=lambda: DEFAULT_WEIGHTS)
    disabled: frozenset[str] = frozenset()
    disabled_filters: frozenset[str] = frozenset()
    disabled_scores: frozenset[str] = frozenset()
    strategy: resources_fit.ScoringStrategy = resources_fit.ScoringStrategy()
    ignored_resources: frozenset[str] = frozenset()
    ignored_resource_groups: frozenset[str] = frozenset()
    balanced_resources: tuple[str, ...] = ("cpu", "memory")
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False
    added_affinity: NodeAffinity | None = None
    spread_defaults: tuple[SpreadConstraint, ...] = topology_spread.SYSTEM_DEFAULTS
    spread_defaults_are_systems: bool = True


DEFAULT = SchedulerProfile()
RulesByScheduler = Mapping[str, Sequence[AnyRule]]  # by the name of the scheduler


def pod_rules(profile: SchedulerProfile = DEFAULT) -> tuple[AnyRule, ...]:
    """The rules in the order in which they are evaluated; the first that rejects a node gives the reason."""
    table: tuple[AnyRule, ...] = (
        Placeable(),
        NodeUnschedulable(),
        NodeName(),
        TaintToleration(),
        NodeAffinityRule(profile.added_affinity),
        NodePorts(),
        resources_fit.ResourcesFit(profile.strategy, profile.ignored_resources, profile.ignored_resource_groups),
        VolumeRestrictions(),
        VolumeLimits(),
        VolumeBinding(),
        VolumeZone(),
        topology_spread.TopologySpread(profile.spread_defaults, system=profile.spread_defaults_are_systems),
        InterPodAffinity(
            profile.hard_pod_affinity_weight,
            ignore_preferred_terms_of_existing_pods=profile.ignore_preferred_terms_of_existing_pods,
        ),
        BalancedAllocation(profile.balanced_resources),
        ImageLocality(),
    )
    for rule in table:
        rule.weight = 0 if rule.name in profile.disabled_scores else profile.weights.get(rule.name, 0)
        rule.filters = rule.name not in profile.disabled_filters
    return tuple(rule for rule in table if rule.name not in profile.disabled)


def fleet_rules() -> tuple[AnyRule, ...]:
    """The rules in the order in which they are evaluated; the first that rejects a cluster gives the reason."""
    return (
        Placeable(),
        ClusterLeaving(),
        ClusterAffinityRule(),
        ApiEnablementRule(),
        ClusterTaints(),
        SpreadProperty(),
        ClusterEviction(),
        WorkloadGroupAffinity(),
        WorkloadTermAffinity(),
        WorkloadGroupAntiAffinity(),
        WorkloadTermAntiAffinity(),
    )
