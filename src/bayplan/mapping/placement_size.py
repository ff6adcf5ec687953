"""
How much of a placement a decision has to read: its scheduling constraints, counted on the placement as written.

An API server checks the types of the fields that it knows and keeps others, so a value of a wrong type counts as one.
"""

from __future__ import annotations

from collections.abc import Mapping

PER_CONSTRAINT = 10  # names, values or static weights, each of which costs little
PER_GROUP = 10  # a group that selects nothing is looked at on every cluster before the next one is tried


def n_constraints(placement: Mapping[str, object]) -> int:
    """
    The groups of clusters, their tiers and requirements, the tolerations, spread constraints and static weights.

    A group counts as ten; ten names of clusters, ten values of a requirement or ten static weights count as one. Terms
    of the annotation, whose length is limited, are not counted.
    """
    terms = _listed(placement, "clusterAffinities")
    n = _of_affinity(placement.get("clusterAffinity")) + _n(placement, "clusterTolerations")
    n += sum(PER_GROUP + _of_affinity(term) for term in terms)
    n += sum(1 + _n(one, "matchLabels") for one in _listed(placement, "spreadConstraints"))
    scheduling = _mapping(placement.get("replicaScheduling"))
    weights = _listed(_mapping(scheduling.get("weightPreference")), "staticWeightList")
    return n + sum(_of_affinity(_mapping(one).get("targetCluster")) for one in weights) + len(weights) // PER_CONSTRAINT


def _of_affinity(written: object) -> int:
    """What a selection of clusters counts beside the selection itself."""
    affinity = _mapping(written)
    n = _n(affinity, "clusterNames") // PER_CONSTRAINT + _n(affinity, "exclude") // PER_CONSTRAINT
    for selector in (_mapping(affinity.get("labelSelector")), _mapping(affinity.get("fieldSelector"))):
        n += _n(selector, "matchLabels")
        n += sum(1 + _n(one, "values") // PER_CONSTRAINT for one in _listed(selector, "matchExpressions"))
    tiers = (*_listed(affinity, "overflowAffinities"), *_listed(affinity, "supplements"))
    return n + sum(1 + _of_affinity(tier) for tier in tiers)


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _listed(written: object, name: str) -> list[object]:
    value = _mapping(written).get(name)
    return value if isinstance(value, list) else []


def _n(written: object, name: str) -> int:
    value = _mapping(written).get(name)
    return len(value) if isinstance(value, (list, Mapping)) else 0
