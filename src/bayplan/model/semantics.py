"""
One switch per place where the seeds and today's schedulers differ, and the two presets.

`docs/differences.md` has a row for each switch.
"""

from __future__ import annotations

import msgspec


class Semantics(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The defaults are the `upstream` preset: what kube-scheduler 1.36 does."""

    # One pod must meet all required affinity terms (upstream), or each term may be met by another pod (seed).
    affinity_terms_met_apart: bool = False
    # The first pod of a set: judged over all terms and pods on labelled nodes (upstream), or per term and anywhere.
    first_pod_per_term: bool = False
    # A soft term adds its weight once per matching pod (upstream) or once per node (seed).
    soft_terms_count_once: bool = False
    # A neighbour's soft term counts always (upstream) or only if this placement newly meets or breaks it (seed).
    neighbours_count_when_changed: bool = False
    # Whether a neighbour's soft anti-affinity keeps us away too.
    soft_anti_affinity_symmetric: bool = True
    # `namespaces: []` means the owner's own (upstream) or all (seed).
    empty_namespaces_mean_all: bool = False
    # `topologyKey: ""` is an error (upstream) or means any of the default keys (seed).
    empty_topology_key_means_any: bool = False
    default_topology_keys: tuple[str, ...] = (
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
    )
    # Namespaces whose pods neither block nor are blocked by hard anti-affinity.
    daemon_namespaces: tuple[str, ...] = ()
    # kube-scheduler 1.34 to 1.36 lets a namespaceSelector of only negative requirements match every namespace, for
    # the incoming pod's own terms (kubernetes#141526).
    negative_namespace_selector_matches_all: bool = True

    # Where freeing one node does not help, preemption may also take pods off others: those whose hard anti-affinity, or
    # ours against them, keeps the pod out of a domain.
    preempt_across_nodes: bool = False
    # Preemption takes no pod that the incoming one must be near.
    spare_affinity_partners: bool = False

    # Fleets. Constraints by zone, provider and label hold for the chosen clusters (seed), or only ask for the property.
    spread_by_every_field: bool = False
    # `overflowAffinities` under Duplicated and static weight: the first tier alone (seed), or filled in order.
    first_tier_alone: bool = False
    # A copy that is still draining from a cluster keeps anti-affine workloads out of it.
    draining_copies_count: bool = False
    # Peers on clusters that a workload has to leave do not hold it back.
    groups_move_together: bool = False
    # Seconds after which a workload may go back to an earlier group or tier that has room again; 0 for never.
    fail_back_after: int = 0
    # Whether peers that are on their way out still meet an affinity: pods do, draining copies do not.
    terminating_peers_satisfy: bool = True


UPSTREAM = Semantics()
DESIGN = Semantics(
    affinity_terms_met_apart=True,
    first_pod_per_term=True,
    soft_terms_count_once=True,
    neighbours_count_when_changed=True,
    empty_namespaces_mean_all=True,
    empty_topology_key_means_any=True,
    daemon_namespaces=("kube-system",),
    negative_namespace_selector_matches_all=False,
    preempt_across_nodes=True,
    spare_affinity_partners=True,
    spread_by_every_field=True,
    first_tier_alone=True,
    draining_copies_count=True,
    groups_move_together=True,
)


def for_fleets(semantics: Semantics) -> Semantics:
    """The same switches, with what workload terms mean in a fleet whatever the preset: Karmada has none of its own."""
    return msgspec.structs.replace(
        semantics,
        affinity_terms_met_apart=True,
        first_pod_per_term=True,
        soft_terms_count_once=True,
        negative_namespace_selector_matches_all=False,
        empty_topology_key_means_any=False,
        daemon_namespaces=(),
        terminating_peers_satisfy=False,
    )


PRESETS = {"upstream": UPSTREAM, "design": DESIGN}
