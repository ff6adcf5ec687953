"""
Which clusters a placement selects: `clusterAffinity`, the terms of `clusterAffinities`, their overflow tiers.

Mirrors `ValidateClusterAffinity`, `ValidateClusterAffinities` and `ValidateOverflowAffinities` in Karmada's
pkg/util/validation/validation.go. Like Karmada, it looks neither at label selectors nor at cluster names.
"""

from __future__ import annotations

from bayplan.model import labels as model_labels
from bayplan.validating import causes, go_structs, go_text, names
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.wire import placements as wire

SELECTING = ("labelSelector", "fieldSelector", "clusterNames", "exclude")
FIELDS = ("provider", "region", "zone")

UNIQUE = "each affinity term in a policy must have a unique name"
OVERFLOW_UNIQUE = "overflow affinity name must be unique and must not duplicate the primary group's affinityName"
OVERFLOW_ALONE = "overflowAffinities can only be used together with the inline ClusterAffinity"


def affinity(field: Field) -> list[Cause]:
    """What is wrong with one selection of clusters; only the first fault of its field selector is told."""
    selector = field["fieldSelector"]
    for requirement in selector["matchExpressions"].items():
        if detail := _unsupported(requirement):
            return [causes.invalid(selector.path, go_structs.shown(selector, wire.FieldSelector), detail)]
    return []


def terms(field: Field) -> list[Cause]:
    """What is wrong with a list of terms; a name that is no label key is reported at its term."""
    found: list[Cause] = []
    seen: set[str] = set()
    for term in field.items():
        name = term["affinityName"].text()
        found += names.invalid(term.path, name, names.label_key(name))
        if name in seen:
            found.append(causes.invalid(field.path, go_structs.listed(field, wire.ClusterAffinityTerm), UNIQUE))
        seen.add(name)
        found += affinity(term)
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
        found += affinity(tier)
    return found


def _unsupported(requirement: Field) -> str:
    key, operator = requirement["key"].text(), requirement["operator"].text()
    if key not in FIELDS:
        return f"unsupported key {go_text.quoted(key)}, must be provider, region, or zone"
    if operator not in (model_labels.IN, model_labels.NOT_IN):
        return f"unsupported operator {go_text.quoted(operator)}, must be In or NotIn"
    return ""
