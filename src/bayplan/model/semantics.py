"""
The switches for every difference between the design documents and today's schedulers, and two presets.

`docs/differences.md` has a row for each switch.
"""

from __future__ import annotations

import msgspec

from bayplan.model.kubernetes_versions import DEFAULT_VERSION, V1_37, KubernetesVersion


class Semantics(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The defaults are the `upstream` preset: the behaviour of kube-scheduler 1.36."""

    # The version of Kubernetes whose scheduler, and whose API server, decides.
    kubernetes_version: KubernetesVersion = DEFAULT_VERSION

    # One pod must meet all required affinity terms (upstream), or each term may be met by another pod (seed).
    affinity_terms_met_apart: bool = False
    # The first pod of a set: over all terms and pods on labelled nodes (upstream), or per term and anywhere (seed).
    first_pod_per_term: bool = False
    # The first pod of a set needs the topology keys of its terms (upstream), or its terms are disregarded (seed).
    first_pod_needs_topology_key: bool = True
    # A node without the topology key meets required anti-affinity (upstream) or does not (seed).
    anti_affinity_needs_topology_key: bool = False
    # An existing pod's required anti-affinity rejects always (upstream) or only while it is satisfied (seed).
    neighbours_reject_when_satisfied: bool = False
    # A soft term adds its weight once per matching pod (upstream) or once per node (seed).
    soft_terms_count_once: bool = False
    # An existing pod's soft term counts always (upstream) or only if this placement newly meets or breaks it (seed).
    neighbours_count_when_changed: bool = False
    # Whether the soft anti-affinity of existing pods lowers the score of an incoming pod.
    soft_anti_affinity_symmetric: bool = True
    # `namespaces: []` means the owner's own (upstream) or all (seed).
    empty_namespaces_mean_all: bool = False
    # `topologyKey: ""` is an error (upstream) or means any of the default keys (seed); without any of these, any label
    # key that a node has (seed).
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

    # Where victims on one node do not suffice, preemption may also evict pods on other nodes: those that hard
    # anti-affinity, theirs or the incoming pod's, does not allow in one domain with it.
    preempt_across_nodes: bool = False
    # Preemption evicts no pod that the incoming pod has required affinity to.
    spare_affinity_partners: bool = False
    # An execution-time rule evicts pods of other namespaces without their consent (seed).
    evict_across_namespaces: bool = False

    # Fleets. Spread by zone, provider and label holds for the selected clusters (seed), or only requires the property.
    spread_by_every_field: bool = False
    # `overflowAffinities` under Duplicated and static weight: the first tier alone (seed), or filled in order.
    first_tier_alone: bool = False
    # A copy that is still draining from a cluster keeps anti-affine workloads out of it.
    draining_copies_count: bool = False
    # Required affinity ignores peers on clusters that the workload has to leave.
    groups_move_together: bool = False
    # Karmada's feature gate of this name, off by default: workloads of several components are read as such, and whole
    # sets of them are estimated.
    multiple_pod_templates_scheduling: bool = False
    # Karmada's feature gate of this name, off by default: a running scheduler deducts what it has just placed from the
    # capacity that clusters report.
    scheduling_overcommit_protection: bool = False
    # Seconds after which a workload may return to an earlier group or tier that has capacity again; 0 for never.
    fail_back_after: int = 0
    # Whether terminating peers still satisfy an affinity: pods do, draining copies do not.
    terminating_peers_satisfy: bool = True


UPSTREAM = Semantics()
DESIGN = Semantics(
    affinity_terms_met_apart=True,
    first_pod_per_term=True,
    first_pod_needs_topology_key=False,
    anti_affinity_needs_topology_key=True,
    neighbours_reject_when_satisfied=True,
    soft_terms_count_once=True,
    neighbours_count_when_changed=True,
    empty_namespaces_mean_all=True,
    empty_topology_key_means_any=True,
    default_topology_keys=(),
    daemon_namespaces=("kube-system",),
    negative_namespace_selector_matches_all=False,
    preempt_across_nodes=True,
    spare_affinity_partners=True,
    evict_across_namespaces=True,
    spread_by_every_field=True,
    first_tier_alone=True,
    draining_copies_count=True,
    groups_move_together=True,
)


def for_fleets(semantics: Semantics) -> Semantics:
    """The same switches, except those that are fixed in a fleet: Karmada has no such terms to be compatible with."""
    return msgspec.structs.replace(
        semantics,
        affinity_terms_met_apart=True,
        first_pod_per_term=True,
        first_pod_needs_topology_key=True,
        anti_affinity_needs_topology_key=False,
        neighbours_reject_when_satisfied=False,
        soft_terms_count_once=True,
        negative_namespace_selector_matches_all=False,
        empty_topology_key_means_any=False,
        daemon_namespaces=(),
        terminating_peers_satisfy=False,
    )


PRESETS = {"upstream": UPSTREAM, "design": DESIGN}


def preset_of(name: str, version: KubernetesVersion = DEFAULT_VERSION) -> Semantics:
    """The preset as it is with this version of Kubernetes."""
    preset = PRESETS[name]
    return msgspec.structs.replace(
        preset,
        kubernetes_version=version,
        negative_namespace_selector_matches_all=preset.negative_namespace_selector_matches_all and version < V1_37,
    )
