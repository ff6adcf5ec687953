"""
What the schema of Karmada's policies refuses before any webhook is asked: enumerations, lengths, minimums.

Kept apart from `admission`, which answers as the webhook does. Mirrors the markers in Karmada's
pkg/apis/policy/v1alpha1/propagation_types.go; worded as apiextensions-apiserver words them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bayplan.validating import admission, causes, go_text, shapes, tiers
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.wire import placements as wire

Rule = Callable[[Field], list[Cause]]
EACH = "[]"


def causes_of(obj: dict[str, object]) -> list[Cause]:
    """What the schema holds against a policy; nothing for any other object, and for one that cannot be decoded."""
    field = admission.placed(obj)
    if field is None or not field["kind"].text().endswith("Policy"):
        return []
    spec = field["spec"]
    if shapes.causes_of(spec, wire.PropagationSpec):
        return []
    return [cause for path, rule in _RULES for found in _at(spec, path.split()) for cause in rule(found)]


def _at(field: Field, names: list[str]) -> Iterator[Field]:
    """The fields that a path leads to; an absent parent leads nowhere."""
    if not names:
        yield field
    elif field.present:
        for one in field.items() if names[0] == EACH else [field[names[0]]]:
            yield from _at(one, names[1:])


def _one_of(*values: str) -> Rule:
    def check(field: Field) -> list[Cause]:
        if not field.present or field.text() in values:
            return []
        return [causes.unsupported(field.path, go_text.quoted(field.text()), values)]

    return check


def _at_least_one(field: Field) -> list[Cause]:
    if field.number(1) >= 1:
        return []
    detail = f"{field.path} in body should be greater than or equal to 1"
    return [causes.invalid(field.path, str(field.number()), detail)]


def _not_empty(field: Field) -> list[Cause]:
    if not field.present:
        return [causes.required(field.path)]
    if field.items():
        return []
    return [causes.invalid(field.path, "0", f"{field.path} in body should have at least 1 items")]


def _written(field: Field) -> list[Cause]:
    return [] if field.present else [causes.required(field.path)]


_TERM = "placement clusterAffinities []"
_SCHEDULING = "placement replicaScheduling"
_STATE = "statePreservation rules"
_RULES: tuple[tuple[str, Rule], ...] = (
    ("resourceSelectors", _not_empty),
    ("resourceSelectors [] apiVersion", _written),
    ("resourceSelectors [] kind", _written),
    (f"{_TERM} affinityName", _written),
    (f"{_TERM} affinityName", tiers.name_length),
    (f"{_TERM} overflowAffinities [] affinityName", _written),
    (f"{_TERM} overflowAffinities [] affinityName", tiers.name_length),
    ("placement spreadConstraints [] spreadByField", _one_of("cluster", "region", "zone", "provider")),
    (f"{_SCHEDULING} replicaSchedulingType", _one_of("Duplicated", "Divided")),
    (f"{_SCHEDULING} replicaDivisionPreference", _one_of("Aggregated", "Weighted")),
    (f"{_SCHEDULING} weightPreference dynamicWeight", _one_of("AvailableReplicas")),
    (f"{_SCHEDULING} weightPreference staticWeightList [] targetCluster", _written),
    (f"{_SCHEDULING} weightPreference staticWeightList [] weight", _written),
    (f"{_SCHEDULING} weightPreference staticWeightList [] weight", _at_least_one),
    ("placement workloadAffinity affinity groupByLabelKey", _written),
    ("placement workloadAffinity antiAffinity groupByLabelKey", _written),
    ("preemption", _one_of("Always", "Never")),
    ("conflictResolution", _one_of("Abort", "Overwrite")),
    ("activationPreference", _one_of("Lazy")),
    ("failover application decisionConditions", _written),
    ("failover application purgeMode", _one_of("Directly", "Gracefully", "Never", "Immediately", "Graciously")),
    (f"failover application {_STATE}", _written),
    (f"failover application {_STATE} [] aliasLabelName", _written),
    (f"failover application {_STATE} [] jsonPath", _written),
    ("failover cluster purgeMode", _one_of("Directly", "Gracefully")),
    (f"failover cluster {_STATE}", _written),
    (f"failover cluster {_STATE} [] aliasLabelName", _written),
    (f"failover cluster {_STATE} [] jsonPath", _written),
    ("schedulePriority priorityClassSource", _written),
    ("schedulePriority priorityClassSource", _one_of("KubePriorityClass")),
    ("schedulePriority priorityClassName", _written),
)
