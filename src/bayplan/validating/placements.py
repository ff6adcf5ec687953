"""
A placement: which rule looks at which of its fields.

Mirrors `ValidatePlacement` in Karmada's pkg/util/validation/validation.go; the seeds' fields are judged by `tiers` and
by `workload_affinity`.
"""

from __future__ import annotations

from bayplan.validating import causes, cluster_affinities, go_structs, go_text, spread_constraints, workload_affinity
from bayplan.validating import tolerations as pod_tolerations
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.wire import placements as wire

DUPLICATED, DIVIDED = "Duplicated", "Divided"
AGGREGATED, WEIGHTED = "Aggregated", "Weighted"
OPERATORS = ("", pod_tolerations.EXISTS, pod_tolerations.EQUAL)

BOTH_AFFINITIES = "clusterAffinities cannot co-exist with clusterAffinity"
OVERFLOW_STRATEGY = "overflowAffinities can only be used together with dynamic weight or aggregated scheduling"


def causes_of(placement: Field) -> list[Cause]:
    """What Karmada holds against a placement."""
    return [
        *_both_affinities(placement),
        *_overflow_strategy(placement),
        *cluster_affinities.affinity(placement["clusterAffinity"]),
        *cluster_affinities.terms(placement["clusterAffinities"]),
        *spread_constraints.causes_of(placement["spreadConstraints"]),
        *workload_affinity.groups(placement["workloadAffinity"]),
        *_tolerations(placement["clusterTolerations"]),
    ]


def strategy(placement: Field) -> tuple[str, str]:
    """
    How replicas are scheduled and, if divided, by what preference.

    An absent type and an absent preference are what the API server and Karmada's mutating webhook make of them.
    """
    written = placement["replicaScheduling"]
    if not written.present:
        return DUPLICATED, ""
    kind = written["replicaSchedulingType"].text() if written["replicaSchedulingType"].present else DIVIDED
    return kind, written["replicaDivisionPreference"].text() or (WEIGHTED if kind == DIVIDED else "")


def by_dynamic_weight(placement: Field) -> bool:
    """Whether weights, where replicas are divided by weight, come from what is free."""
    return bool(placement.under("replicaScheduling", "weightPreference", "dynamicWeight").text())


def _both_affinities(placement: Field) -> list[Cause]:
    if placement["clusterAffinity"].present and placement["clusterAffinities"].present:
        return [causes.invalid(placement.path, go_structs.shown(placement, wire.Placement), BOTH_AFFINITIES)]
    return []


def _overflow_strategy(placement: Field) -> list[Cause]:
    how = strategy(placement)
    if how == (DIVIDED, AGGREGATED) or (how == (DIVIDED, WEIGHTED) and by_dynamic_weight(placement)):
        return []
    tiers = (term["overflowAffinities"] for term in placement["clusterAffinities"].items())
    return [
        causes.invalid(field.path, go_structs.listed(field, wire.OverflowClusterAffinity), OVERFLOW_STRATEGY)
        for field in tiers
        if field.present
    ]


def _tolerations(listed: Field) -> list[Cause]:
    """Karmada refuses the operators that compare numbers and looks at nothing else."""
    operators = (toleration["operator"] for toleration in listed.items())
    return [
        causes.unsupported(operator.path, go_text.as_json(operator.text()), OPERATORS)
        for operator in operators
        if operator.text() in pod_tolerations.COMPARING
    ]
