"""
Pod affinity and anti-affinity terms, Kubernetes' and the seed's.

Knows nothing of where the terms stand: `spec.affinity` and the annotation hand over the same shape. Mirrors
`validatePodAffinity` in pkg/apis/core/validation/validation.go; what it lacks is marked as ours.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bayplan.validating import causes, names, selectors
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field

AFFINITY, ANTI_AFFINITY = "podAffinity", "podAntiAffinity"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
REQUIRED_WHILE_RUNNING = "requiredDuringSchedulingRequiredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

WEIGHT_RANGE = "must be in the range 1-100"
ONLY_ON_ANTI = "may be set on required anti-affinity terms only"


class Rules(msgspec.Struct, frozen=True):
    """
    What depends on where the terms stand.

    `pod_labels` is None for a template, whose label keys nobody has merged yet. `empty_topology_key` admits the
    seed's empty key, which stands for any topology.
    """

    pod_labels: dict[str, str] | None = None
    empty_topology_key: bool = False


class PodTermFields(msgspec.Struct, frozen=True):
    """One term and what the list it stands in says of it; `weighted` is None for required terms."""

    field: Field
    anti: bool
    weighted: Field | None = None


def causes_of(affinity: Field, rules: Rules) -> list[Cause]:
    """What is wrong with the `podAffinity` and `podAntiAffinity` below this field."""
    found: list[Cause] = []
    for term in terms(affinity):
        if term.weighted is not None:
            found += weight(term.weighted)
        found += _term(term.field, rules)
        found += _ours(term)
    return found


def terms(affinity: Field) -> Iterator[PodTermFields]:
    """All terms below the field, in the order in which an API server looks at them."""
    for sign in (AFFINITY, ANTI_AFFINITY):
        for when in (REQUIRED_WHILE_RUNNING, REQUIRED):
            for item in affinity[sign][when].items():
                yield PodTermFields(item, sign == ANTI_AFFINITY)
        for item in affinity[sign][PREFERRED].items():
            yield PodTermFields(item["podAffinityTerm"], sign == ANTI_AFFINITY, item)


def weight(weighted: Field) -> list[Cause]:
    """Whether the weight of a preferred term, of pods or of nodes, is in range."""
    field = weighted["weight"]
    if 1 <= field.number() <= 100:
        return []
    return [causes.invalid(field.path, str(field.number()), WEIGHT_RANGE)]


def _term(term: Field, rules: Rules) -> list[Cause]:
    merged = selectors.merged(term, rules.pod_labels)
    return [
        *selectors.selector(merged),
        *selectors.selector(term["namespaceSelector"]),
        *_namespaces(term),
        *selectors.label_keys(term, merged),
        *_topology_key(term["topologyKey"], rules),
    ]


def _namespaces(term: Field) -> list[Cause]:
    # Upstream reports every entry at "namespace": singular, and without its index.
    path = term["namespace"].path
    return [cause for name in term["namespaces"].texts() for cause in names.invalid(path, name, names.dns_label(name))]


def _topology_key(field: Field, rules: Rules) -> list[Cause]:
    if field.text():
        return selectors.label_key(field)
    if rules.empty_topology_key:
        return []
    return [causes.required(field.path, "can not be empty"), *selectors.label_key(field)]


def _ours(term: PodTermFields) -> list[Cause]:
    """What is wrong with `limit` and `tolerateNamespaces`, which Kubernetes does not have."""
    limit, tolerated = term.field["limit"], term.field["tolerateNamespaces"]
    if term.weighted is not None or not term.anti:
        return [causes.forbidden(field.path, ONLY_ON_ANTI) for field in (limit, tolerated) if field.present]
    found: list[Cause] = []
    if limit.number() < 0:
        found.append(causes.invalid(limit.path, str(limit.number()), "must be greater than or equal to 0"))
    for item in tolerated.items():
        found += names.invalid(item.path, item.text(), names.dns_label(item.text()))
    return found
