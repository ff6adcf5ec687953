"""
The table of rules for pods on nodes, in kube-scheduler's order and configurable like its profiles.

It mirrors pkg/scheduler/apis/config/v1/default_plugins.go, without the plugins that act on a cluster; a rule that
kube-scheduler lacks stands before those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from bayplan.model.kubernetes_versions import DEFAULT_VERSION, V1_37, KubernetesVersion
from bayplan.rules.arguments import Arguments
from bayplan.rules.balanced_allocation import BalancedAllocation
from bayplan.rules.image_locality import ImageLocality
from bayplan.rules.inter_pod_affinity import InterPodAffinity
from bayplan.rules.node_affinity import NodeAffinityRule
from bayplan.rules.node_name import NodeName
from bayplan.rules.node_ports import NodePorts
from bayplan.rules.node_unschedulable import NodeUnschedulable
from bayplan.rules.placeable import Placeable
from bayplan.rules.resources_fit import ResourcesFit
from bayplan.rules.rule import AnyRule
from bayplan.rules.taint_toleration import TaintToleration
from bayplan.rules.topology_spread import TopologySpread
from bayplan.rules.volume_binding import VolumeBinding
from bayplan.rules.volume_limits import VolumeLimits
from bayplan.rules.volume_restrictions import VolumeRestrictions
from bayplan.rules.volume_zone import VolumeZone

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
DEFAULT_WEIGHTS = {plugin.name: plugin.default_weight for plugin in POD_PLUGINS}


def default_plugins(version: KubernetesVersion = DEFAULT_VERSION) -> tuple[str, ...]:
    """The plugins of the default profile, in the order in which that version runs them."""
    names = [plugin.name for plugin in POD_PLUGINS]
    if version >= V1_37:  # NodeName runs before NodeUnschedulable
        first, second = names.index(NodeUnschedulable.name), names.index(NodeName.name)
        names[first], names[second] = names[second], names[first]
    return tuple(names)


class SchedulerProfile(msgspec.Struct, frozen=True, kw_only=True):
    """
    The plugins by their names, as one profile of a KubeSchedulerConfiguration enables them.

    `filter` and `pre_filter` are in the order in which plugins run; `score` are those that score, with their weights.
    """

    filter: tuple[str, ...]
    pre_filter: tuple[str, ...]
    pre_score: frozenset[str]
    score: Mapping[str, int]
    arguments: Mapping[str, Arguments] = {}  # of a plugin without an entry: its defaults


def default_profile(version: KubernetesVersion = DEFAULT_VERSION) -> SchedulerProfile:
    """The profile without a configuration."""
    names = default_plugins(version)
    return SchedulerProfile(filter=names, pre_filter=names, pre_score=frozenset(names), score=DEFAULT_WEIGHTS)


RulesByScheduler = Mapping[str, Sequence[AnyRule]]  # by the name of the scheduler


def pod_rules(profile: SchedulerProfile | None = None) -> tuple[AnyRule, ...]:
    """The rules for pods; those that kube-scheduler has as plugins are configured by the profile."""
    profile = profile or default_profile()
    rules: list[AnyRule] = [Placeable()]
    by_name = {plugin.name: plugin for plugin in POD_PLUGINS}
    for name in dict.fromkeys((*profile.filter, *profile.pre_filter, *profile.score)):
        given = profile.arguments.get(name)
        rule = by_name[name]() if given is None else by_name[name](given)
        rule.weight = profile.score.get(name, 0)
        rule.filters, rule.pre_filters = name in profile.filter, name in profile.pre_filter
        rule.pre_scores = name in profile.pre_score
        rule.pre_filter_order = profile.pre_filter.index(name) if rule.pre_filters else 0
        rules.append(rule)
    return tuple(rules)
