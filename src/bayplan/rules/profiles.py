"""
The tables of rules: for pods on nodes and for workloads on clusters.

The first has kube-scheduler's order, configurable like its profiles. It mirrors
pkg/scheduler/apis/config/v1/default_plugins.go, without the plugins that act on a cluster; a rule that kube-scheduler
lacks stands behind those. Karmada calls its plugins in random order; the order of the second table is ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from bayplan.rules.api_enablement import ApiEnablementRule
from bayplan.rules.arguments import Arguments
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
from bayplan.rules.resources_fit import ResourcesFit
from bayplan.rules.rule import AnyRule
from bayplan.rules.spread_property import SpreadProperty
from bayplan.rules.taint_toleration import TaintToleration
from bayplan.rules.topology_spread import TopologySpread
from bayplan.rules.volume_binding import VolumeBinding
from bayplan.rules.volume_limits import VolumeLimits
from bayplan.rules.volume_restrictions import VolumeRestrictions
from bayplan.rules.volume_zone import VolumeZone
from bayplan.rules.workload_groups import WorkloadGroupAffinity, WorkloadGroupAntiAffinity
from bayplan.rules.workload_terms import WorkloadTermAffinity, WorkloadTermAntiAffinity

# In the order in which they are evaluated; the first that rejects a target gives the reason.
POD_PLUGINS: tuple[type[AnyRule], ...] = (
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinityRule,
    NodePorts,
    ResourcesFit,
    VolumeRestrictions,
    VolumeLimits,
    VolumeBinding,
    VolumeZone,
    TopologySpread,
    InterPodAffinity,
    BalancedAllocation,
    ImageLocality,
)
FLEET_RULES: tuple[type[AnyRule], ...] = (
    Placeable,
    ClusterLeaving,
    ClusterAffinityRule,
    ApiEnablementRule,
    ClusterTaints,
    SpreadProperty,
    ClusterEviction,
    WorkloadGroupAffinity,
    WorkloadTermAffinity,
    WorkloadGroupAntiAffinity,
    WorkloadTermAntiAffinity,
)
DEFAULT_WEIGHTS = {plugin.name: plugin.default_weight for plugin in POD_PLUGINS}


class SchedulerProfile(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of the plugins by their names: one profile of a KubeSchedulerConfiguration."""

    weights: Mapping[str, int] = msgspec.field(default_factory=lambda: DEFAULT_WEIGHTS)
    disabled: frozenset[str] = frozenset()
    disabled_filters: frozenset[str] = frozenset()
    disabled_scores: frozenset[str] = frozenset()
    arguments: Mapping[str, Arguments] = {}  # of a plugin without an entry: its defaults


DEFAULT = SchedulerProfile()
RulesByScheduler = Mapping[str, Sequence[AnyRule]]  # by the name of the scheduler


def pod_rules(profile: SchedulerProfile = DEFAULT) -> tuple[AnyRule, ...]:
    """The rules for pods; those that kube-scheduler has as plugins are configured by the profile."""
    rules: list[AnyRule] = [Placeable()]
    for plugin in POD_PLUGINS:
        if plugin.name not in profile.disabled:
            given = profile.arguments.get(plugin.name)
            rule = plugin() if given is None else plugin(given)
            rule.weight = 0 if plugin.name in profile.disabled_scores else profile.weights.get(plugin.name, 0)
            rule.filters = plugin.name not in profile.disabled_filters
            rules.append(rule)
    return tuple(rules)


def fleet_rules() -> tuple[AnyRule, ...]:
    """The rules for bindings."""
    return tuple(rule() for rule in FLEET_RULES)
