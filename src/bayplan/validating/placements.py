"""
A placement: which rule looks at which of its fields.

Mirrors `ValidatePlacement` in Karmada's pkg/util/validation/validation.go; the seeds' fields are judged by `tiers` and
by `workload_affinity`.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.model import labels as model_labels
from bayplan.validating import causes, fields, go_structs, go_text, names, workload_affinity
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
        *cluster_affinity(placement["clusterAffinity"]),
        *affinity_terms(placement["clusterAffinities"]),
        *spread_causes(placement["spreadConstraints"]),
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
        return [causes.invalid(placement.path, go_structs.shown(placement, wire.WirePlacement), BOTH_AFFINITIES)]
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


# RF merged from validating.cluster_affinities: Which clusters a placement selects: `clusterAffinity`, the terms of
# `clusterAffinities`, their overflow tiers. Mirrors `ValidateClusterAffinity`, `ValidateClusterAffinities` and
# `ValidateOverflowAffinities` in Karmada's pkg/util/validation/validation.go. Like Karmada, it looks neither at label
# selectors nor at cluster names.

SELECTING = ("labelSelector", "fieldSelector", "clusterNames", "exclude")
FIELDS = ("provider", "region", "zone")

UNIQUE = "each affinity term in a policy must have a unique name"
OVERFLOW_UNIQUE = "overflow affinity name must be unique and must not duplicate the primary group's affinityName"
OVERFLOW_ALONE = "overflowAffinities can only be used together with the inline ClusterAffinity"


def cluster_affinity(field: Field) -> list[Cause]:
    """What is wrong with one selection of clusters; only the first fault of its field selector is told."""
    selector = field["fieldSelector"]
    for requirement in selector["matchExpressions"].items():
        if detail := _unsupported(requirement):
            return [causes.invalid(selector.path, go_structs.shown(selector, wire.FieldSelector), detail)]
    return []


def affinity_terms(field: Field) -> list[Cause]:
    """What is wrong with a list of terms; a name that is no label key is reported at its term."""
    found: list[Cause] = []
    seen: set[str] = set()
    for term in field.items():
        name = term["affinityName"].text()
        found += names.invalid(term.path, name, names.label_key(name))
        if name in seen:
            found.append(causes.invalid(field.path, go_structs.listed(field, wire.ClusterAffinityTerm), UNIQUE))
        seen.add(name)
        found += cluster_affinity(term)
        found += _overflow(term)
    return found


def selects(field: Field) -> bool:
    """Whether the affinity narrows anything down; one that does not selects every cluster."""
    pointers = field["labelSelector"].present or field["fieldSelector"].present
    return pointers or bool(field["clusterNames"].items() or field["exclude"].items())


def _overflow(term: Field) -> list[Cause]:
    tiers = term["overflowAffinities"]
    found: list[Cause] = []
    if tiers.present and not selects(term):
        shown = go_structs.listed(tiers, wire.OverflowClusterAffinity)
        found.append(causes.invalid(tiers.path, shown, OVERFLOW_ALONE))
    seen = {term["affinityName"].text()}
    for tier in tiers.items():
        path, name = tier["affinityName"].path, tier["affinityName"].text()
        found += names.invalid(path, name, names.label_key(name))
        if name in seen:
            found.append(causes.invalid(path, go_text.quoted(name), OVERFLOW_UNIQUE))
        seen.add(name)
        found += cluster_affinity(tier)
    return found


def _unsupported(requirement: Field) -> str:
    key, operator = requirement["key"].text(), requirement["operator"].text()
    if key not in FIELDS:
        return f"unsupported key {go_text.quoted(key)}, must be provider, region, or zone"
    if operator not in (model_labels.IN, model_labels.NOT_IN):
        return f"unsupported operator {go_text.quoted(operator)}, must be In or NotIn"
    return ""


# RF merged from validating.spread_constraints: Spread constraints of a placement. Mirrors `ValidateSpreadConstraint`
# in Karmada's pkg/util/validation/validation.go. Judges what was written: the field and the minimum that Karmada's
# mutating webhook fills in do not count here, as they do not in the recorded answers.

CLUSTER = "cluster"

FIELD_AND_LABEL = "spreadByLabel should not co-exist with spreadByField"
NEGATIVE_MIN = "minGroups lower than 0 is not allowed"
NEGATIVE_MAX = "maxGroups lower than 0 is not allowed"
MAX_BELOW_MIN = "maxGroups lower than minGroups is not allowed"
NO_CLUSTER = (
    "the cluster spread constraint must be enabled in one of the constraints in case of SpreadByField is enabled"
)


def spread_causes(constraints: Field) -> list[Cause]:
    """What is wrong with each constraint, and with all of them together."""
    found: list[Cause] = []
    for constraint in constraints.items():
        shown = go_structs.shown(constraint, wire.WireSpreadConstraint)
        found += [causes.invalid(constraint.path, shown, detail) for detail in _alone(constraint)]
    for detail in _together(constraints):
        found.append(
            causes.invalid(constraints.path, go_structs.listed(constraints, wire.WireSpreadConstraint), detail)
        )
    return found


def _alone(constraint: Field) -> Iterator[str]:
    fewest, most = constraint["minGroups"].number(), constraint["maxGroups"].number()
    if constraint["spreadByField"].text() and constraint["spreadByLabel"].text():
        yield FIELD_AND_LABEL
    if fewest < 0:
        yield NEGATIVE_MIN
    if most < 0:
        yield NEGATIVE_MAX
    if 0 < most < fewest:
        yield MAX_BELOW_MIN


def _together(constraints: Field) -> Iterator[str]:
    by_field = [constraint["spreadByField"].text() for constraint in constraints.items()]
    used = dict.fromkeys(name for name in by_field if name)
    yield from (f"multiple {name} spread constraints are not allowed" for name in used if by_field.count(name) > 1)
    if used and CLUSTER not in used:
        yield NO_CLUSTER


# RF merged from validating.cluster_names: The clusters that an object names, each with its path. Knows nothing of
# which clusters there are.

FIELD = "clusterNames"
UNKNOWN = "no cluster of this name is in the input; it may join later"


def clusters_named(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """(path, name) of every entry of every `clusterNames` within."""
    if isinstance(value, dict):
        for key, item in value.items():
            inside = fields.child(path, key)
            yield from _entries(item, inside) if key == FIELD else clusters_named(item, inside)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from clusters_named(item, f"{path}[{place}]")


def _entries(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        yield from ((f"{path}[{place}]", name) for place, name in enumerate(value) if isinstance(name, str))
