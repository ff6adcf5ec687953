"""The table of rules for workloads on clusters. Karmada asks its plugins in random order; this order is ours."""

from __future__ import annotations

from bayplan.rules.cluster_affinity import ClusterAffinityRule
from bayplan.rules.cluster_facts import ApiEnablement, ClusterEviction, ClusterLeaving, ClusterTaints, SpreadProperty
from bayplan.rules.placeable import Placeable
from bayplan.rules.rule import Rule
from bayplan.rules.workload_groups import WorkloadGroupAffinity, WorkloadGroupAntiAffinity
from bayplan.rules.workload_terms import WorkloadTermAffinity, WorkloadTermAntiAffinity


def rules() -> tuple[Rule, ...]:
    """The rules in the order in which they are asked; the first that refuses a cluster gives the reason."""
    return (
        Placeable(),
        ClusterLeaving(),
        ClusterAffinityRule(),
        ApiEnablement(),
        ClusterTaints(),
        SpreadProperty(),
        ClusterEviction(),
        WorkloadGroupAffinity(),
        WorkloadTermAffinity(),
        WorkloadGroupAntiAffinity(),
        WorkloadTermAntiAffinity(),
    )
