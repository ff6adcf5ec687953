"""The table of rules for workloads on clusters. Karmada calls its plugins in random order; this order is ours."""

from __future__ import annotations

from bayplan.rules.api_enablement import ApiEnablementRule
from bayplan.rules.cluster_affinity import ClusterAffinityRule
from bayplan.rules.cluster_eviction import ClusterEviction
from bayplan.rules.cluster_leaving import ClusterLeaving
from bayplan.rules.cluster_taints import ClusterTaints
from bayplan.rules.placeable import Placeable
from bayplan.rules.rule import AnyRule
from bayplan.rules.spread_property import SpreadProperty
from bayplan.rules.workload_groups import WorkloadGroupAffinity, WorkloadGroupAntiAffinity
from bayplan.rules.workload_terms import WorkloadTermAffinity, WorkloadTermAntiAffinity

# In the order in which they are evaluated; the first that rejects a target gives the reason.
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


def fleet_rules() -> tuple[AnyRule, ...]:
    """The rules for bindings."""
    return tuple(rule() for rule in FLEET_RULES)
