"""
A Karmada placement: cluster affinities, spread constraints, workload affinity and tolerations.

Mirrors `ValidatePlacement` and the functions that it calls in Karmada's pkg/util/validation/validation.go. Like
Karmada, it validates neither the label selectors nor the cluster names of an affinity. Spread constraints are validated
as written: the field and the minimum that Karmada's mutating webhook sets do not count, as in the recorded answers. The
terms of `workloadAffinity` and `workloadAntiAffinity` are Bayplan's own, in a placement or in the annotation. Tiers
other than `overflowAffinities` are validated in `tiers`.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bayplan.model import labels as model_labels
from bayplan.validating import affinity, go_text, names, pods, selectors
from bayplan.validating.fields import Cause, Field
from bayplan.wire import placements as wire

DUPLICATED, DIVIDED = "Duplicated", "Divided"
AGGREGATED, WEIGHTED = "Aggregated", "Weighted"
TOLERATION_OPERATORS = ("", pods.TOLERATION_EXISTS, pods.TOLERATION_EQUAL)
SELECTING_FIELDS = ("labelSelector", "fieldSelector", "clusterNames", "exclude")
CLUSTER_FIELDS = ("provider", "region", "zone")
SPREAD_BY_CLUSTER = "cluster"
WORKLOAD_AFFINITY, WORKLOAD_ANTI_AFFINITY = "workloadAffinity", "workloadAntiAffinity"

BOTH_AFFINITIES = "clusterAffinities cannot co-exist with clusterAffinity"
OVERFLOW_STRATEGY = "overflowAffinities can only be used together with dynamic weight or aggregated scheduling"
UNIQUE = "each affinity term in a policy must have a unique name"
OVERFLOW_UNIQUE = "overflow affinity name must be unique and must not duplicate the primary group's affinityName"
OVERFLOW_ALONE = "overflowAffinities can only be used together with the inline ClusterAffinity"
FIELD_AND_LABEL = "spreadByLabel should not co-exist with spreadByField"
NEGATIVE_MIN = "minGroups lower than 0 is not allowed"
NEGATIVE_MAX = "maxGroups lower than 0 is not allowed"
MAX_BELOW_MIN = "maxGroups lower than minGroups is not allowed"
NO_CLUSTER = (
    "the cluster spread constraint must be enabled in one of the constraints in case of SpreadByField is enabled"
)
SAME_KEY = "affinity and antiAffinity must not use the same groupByLabelKey"
TWO_WAYS = "cannot co-exist with affinityEnabled, which takes the keys that the scheduler is configured with"
UNKNOWN_CLUSTER = "no cluster of this name is in the input; it may join later"


class WorkloadTermFields(msgspec.Struct, frozen=True):
    """One workload affinity term and the list that it is in; `weighted` is None for required terms."""

    field: Field
    weighted: Field | None = None


def validate_placement(placement: Field) -> list[Cause]:
    """The causes for which Karmada rejects a placement."""
    found: list[Cause] = []
    if placement["clusterAffinity"].present and placement["clusterAffinities"].present:
        found.append(placement.invalid(BOTH_AFFINITIES, go_text.struct_json(placement.value, wire.WirePlacement)))
    strategy = scheduling_strategy(placement)
    by_free = strategy == (DIVIDED, AGGREGATED) or (strategy == (DIVIDED, WEIGHTED) and by_dynamic_weight(placement))
    for term in placement["clusterAffinities"].items():
        tiers = term["overflowAffinities"]
        if tiers.present and not by_free:
            found.append(tiers.invalid(OVERFLOW_STRATEGY, go_text.list_json(tiers.value, wire.OverflowClusterAffinity)))
    found += validate_cluster_affinity(placement["clusterAffinity"])
    found += validate_affinity_terms(placement["clusterAffinities"])
    found += validate_spread_constraints(placement["spreadConstraints"])
    found += _validate_workload_groups(placement["workloadAffinity"])
    for toleration in placement["clusterTolerations"].items():
        # Karmada rejects the operators that compare numbers and validates nothing else.
        if toleration["operator"].text() in pods.NUMERIC_OPERATORS:
            found.append(toleration["operator"].unsupported(TOLERATION_OPERATORS))
    return found


def scheduling_strategy(placement: Field) -> tuple[str, str]:
    """
    The replica scheduling type and, if replicas are divided, the division preference.

    An absent type and an absent preference are the defaults of the API server and of Karmada's mutating webhook.
    """
    written = placement["replicaScheduling"]
    if not written.present:
        return DUPLICATED, ""
    kind = written["replicaSchedulingType"].text() if written["replicaSchedulingType"].present else DIVIDED
    return kind, written["replicaDivisionPreference"].text() or (WEIGHTED if kind == DIVIDED else "")


def by_dynamic_weight(placement: Field) -> bool:
    """Whether weights, where replicas are divided by weight, follow the available replicas."""
    return bool(placement["replicaScheduling"]["weightPreference"]["dynamicWeight"].text())


def validate_cluster_affinity(affinity_field: Field) -> list[Cause]:
    """The causes for rejecting one cluster affinity; Karmada reports only the first error of its field selector."""
    selector = affinity_field["fieldSelector"]
    for requirement in selector["matchExpressions"].items():
        key, operator = requirement["key"].text(), requirement["operator"].text()
        if key not in CLUSTER_FIELDS:
            detail = f"unsupported key {go_text.quoted(key)}, must be provider, region, or zone"
        elif operator not in (model_labels.IN, model_labels.NOT_IN):
            detail = f"unsupported operator {go_text.quoted(operator)}, must be In or NotIn"
        else:
            continue
        return [selector.invalid(detail, go_text.struct_json(selector.value, wire.FieldSelector))]
    return []


def validate_affinity_terms(terms: Field) -> list[Cause]:
    """The causes for rejecting a list of affinity terms; an invalid name is reported at its term."""
    found: list[Cause] = []
    seen: set[str] = set()
    for term in terms.items():
        name = term["affinityName"].text()
        found += Field(term.path, name).check_text(names.label_key)
        if name in seen:
            found.append(terms.invalid(UNIQUE, go_text.list_json(terms.value, wire.ClusterAffinityTerm)))
        seen.add(name)
        found += validate_cluster_affinity(term)
        found += _validate_overflow(term)
    return found


def selects_clusters(affinity_field: Field) -> bool:
    """Whether the affinity restricts the clusters; one that does not selects every cluster."""
    pointers = affinity_field["labelSelector"].present or affinity_field["fieldSelector"].present
    return pointers or bool(affinity_field["clusterNames"].items() or affinity_field["exclude"].items())


def _validate_overflow(term: Field) -> list[Cause]:
    tiers = term["overflowAffinities"]
    found: list[Cause] = []
    if tiers.present and not selects_clusters(term):
        found.append(tiers.invalid(OVERFLOW_ALONE, go_text.list_json(tiers.value, wire.OverflowClusterAffinity)))
    seen = {term["affinityName"].text()}
    for tier in tiers.items():
        name = tier["affinityName"]
        found += name.check_text(names.label_key)
        if name.text() in seen:
            found.append(name.invalid(OVERFLOW_UNIQUE))
        seen.add(name.text())
        found += validate_cluster_affinity(tier)
    return found


def validate_spread_constraints(constraints: Field) -> list[Cause]:
    """The causes for rejecting each spread constraint, and for rejecting the list as a whole."""
    found: list[Cause] = []
    for constraint in constraints.items():
        fewest, most = constraint["minGroups"].number(), constraint["maxGroups"].number()
        broken = {
            FIELD_AND_LABEL: constraint["spreadByField"].text() and constraint["spreadByLabel"].text(),
            NEGATIVE_MIN: fewest < 0,
            NEGATIVE_MAX: most < 0,
            MAX_BELOW_MIN: 0 < most < fewest,
        }
        shown = go_text.struct_json(constraint.value, wire.WireSpreadConstraint)
        found += [constraint.invalid(detail, shown) for detail, is_broken in broken.items() if is_broken]
    by_field = [constraint["spreadByField"].text() for constraint in constraints.items()]
    used = dict.fromkeys(name for name in by_field if name)
    details = [f"multiple {name} spread constraints are not allowed" for name in used if by_field.count(name) > 1]
    if used and SPREAD_BY_CLUSTER not in used:
        details.append(NO_CLUSTER)
    shown = go_text.list_json(constraints.value, wire.WireSpreadConstraint) if details else ""
    return found + [constraints.invalid(detail, shown) for detail in details]


def _validate_workload_groups(groups: Field) -> list[Cause]:
    """The causes for rejecting Karmada's two groups, each of which is keyed by one label."""
    keys = [groups[kind]["groupByLabelKey"] for kind in ("affinity", "antiAffinity") if groups[kind].present]
    found = [cause for key in keys for cause in key.check_text(names.label_key)]
    if len(keys) == 2 and keys[0].text() == keys[1].text():
        found.append(groups.invalid(SAME_KEY, go_text.struct_json(groups.value, wire.WorkloadAffinity)))
    return found


def workload_terms(placement: Field) -> Iterator[WorkloadTermFields]:
    """All workload affinity terms below a placement, or below the annotation."""
    for kind in (WORKLOAD_AFFINITY, WORKLOAD_ANTI_AFFINITY):
        for required in (affinity.REQUIRED_DURING_EXECUTION, affinity.REQUIRED):
            yield from map(WorkloadTermFields, placement[kind][required].items())
        for item in placement[kind][affinity.PREFERRED].items():
            yield WorkloadTermFields(item["workloadAffinityTerm"], item)


def validate_workload_terms(placement: Field) -> list[Cause]:
    """The causes for rejecting the workload affinity terms below a placement, or below the annotation."""
    found: list[Cause] = []
    for listed in workload_terms(placement):
        term = listed.field
        if listed.weighted is not None:
            found += affinity.validate_weight(listed.weighted)
        if term["affinityEnabled"].is_true():
            peers = (term["labelSelector"], term["matchLabelKeys"])
            found += [field.forbidden(TWO_WAYS) for field in peers if field.present]
        found += selectors.validate_selector(term["labelSelector"])
        found += [cause for key in term["matchLabelKeys"].items() for cause in key.check_text(names.label_key)]
        # An empty topology key stands for the cluster itself.
        found += term["topologyKey"].check_text(names.label_key, optional=True)
        found += [cause for name in term["namespaces"].items() for cause in name.check_text(names.dns_label)]
        found += selectors.validate_selector(term["namespaceSelector"])
    return found


def named_clusters(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """(path, name) of every entry of every `clusterNames` within the value."""
    if isinstance(value, dict):
        for key, item in value.items():
            inner = f"{path}.{key}" if path else key
            if key != "clusterNames":
                yield from named_clusters(item, inner)
            elif isinstance(item, list):
                yield from ((f"{inner}[{place}]", name) for place, name in enumerate(item) if isinstance(name, str))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from named_clusters(item, f"{path}[{place}]")
