"""
Workload affinity and anti-affinity: Karmada's groups by one label, and the seed's terms.

Knows nothing of where the terms stand: a placement and the annotation hand over the same shape. The groups mirror
`ValidateWorkloadAffinity` in Karmada's pkg/util/validation/validation.go; the terms are ours.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bayplan.validating import causes, go_structs, names, pod_affinity, selectors
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.wire import placements as wire

AFFINITY, ANTI_AFFINITY = "workloadAffinity", "workloadAntiAffinity"
REQUIRED, PREFERRED = pod_affinity.REQUIRED, pod_affinity.PREFERRED

SAME_KEY = "affinity and antiAffinity must not use the same groupByLabelKey"
TWO_WAYS = "cannot co-exist with affinityEnabled, which takes the keys that the scheduler is configured with"


class Term(msgspec.Struct, frozen=True):
    """One of the seed's terms and what the list it stands in says of it; `weighted` is None for required terms."""

    field: Field
    anti: bool
    weighted: Field | None = None


def groups(affinity: Field) -> list[Cause]:
    """What is wrong with Karmada's two groups."""
    found: list[Cause] = []
    keys = [affinity[sign]["groupByLabelKey"] for sign in ("affinity", "antiAffinity") if affinity[sign].present]
    for key in keys:
        found += selectors.label_key(key)
    if len(keys) == 2 and keys[0].text() == keys[1].text():
        found.append(causes.invalid(affinity.path, go_structs.shown(affinity, wire.WorkloadAffinity), SAME_KEY))
    return found


def terms(placement: Field) -> Iterator[Term]:
    """All of the seed's terms below the placement, or below the annotation."""
    for sign in (AFFINITY, ANTI_AFFINITY):
        for item in placement[sign][REQUIRED].items():
            yield Term(item, sign == ANTI_AFFINITY)
        for item in placement[sign][PREFERRED].items():
            yield Term(item["workloadAffinityTerm"], sign == ANTI_AFFINITY, item)


def terms_causes(placement: Field) -> list[Cause]:
    """What is wrong with the seed's terms."""
    found: list[Cause] = []
    for term in terms(placement):
        if term.weighted is not None:
            found += pod_affinity.weight(term.weighted)
        found += _term(term.field)
    return found


def _term(term: Field) -> list[Cause]:
    return [
        *_one_way(term),
        *selectors.selector(term["labelSelector"]),
        *(cause for key in term["matchLabelKeys"].items() for cause in selectors.label_key(key)),
        # An empty key stands for the cluster itself.
        *(selectors.label_key(term["topologyKey"]) if term["topologyKey"].text() else []),
        *_namespaces(term["namespaces"]),
        *selectors.selector(term["namespaceSelector"]),
    ]


def _one_way(term: Field) -> list[Cause]:
    """Whether the term chooses its peers in one of the seed's two ways only."""
    if not term["affinityEnabled"].flag():
        return []
    chosen = (term["labelSelector"], term["matchLabelKeys"])
    return [causes.forbidden(field.path, TWO_WAYS) for field in chosen if field.present]


def _namespaces(listed: Field) -> list[Cause]:
    found: list[Cause] = []
    for item in listed.items():
        found += names.invalid(item.path, item.text(), names.dns_label(item.text()))
    return found
