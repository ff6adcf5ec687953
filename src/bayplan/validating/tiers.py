"""
The seed's four forms of tiers, beside Karmada's `overflowAffinities`: a placement may use one of the five.

Looks at a placement and at the annotation that adds to it. What both say together is handed in; all of this is ours.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.validating import causes, go_text, placements, selectors
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field

SINGLE, TERMS, PREFERRED = "clusterAffinity", "clusterAffinities", "preferredClusterAffinities"
STRATEGY, SUPPLEMENTS, OVERFLOW = "affinityStrategy", "supplements", "overflowAffinities"
EXCLUSIVE, INHERITED = "Exclusive", "Inherited"
MAX_NAME = 32

NESTED = "a supplement cannot have supplements of its own"
MISPLACED = "may be set on clusterAffinity and on a term of clusterAffinities only"
NO_PRIMARY = "supplements can only be used together with the inline ClusterAffinity"
NO_FIRST_TIER = "the first tier must select clusters by label, field or name"
NO_TERMS = "can only be used together with clusterAffinities"
NOT_BESIDE = "preferredClusterAffinities cannot co-exist with clusterAffinity or clusterAffinities"


def alone(source: Field) -> list[Cause]:
    """What is wrong with the tiers of a placement or of an annotation, whatever the other one says."""
    found = _mode(source.under(STRATEGY, "mode"))
    for supplements in _supplements(source):
        for supplement in supplements.items():
            found += _tier(supplement)
            if supplement[SUPPLEMENTS].present:
                found.append(causes.forbidden(supplement[SUPPLEMENTS].path, NESTED))
    found += placements.affinity_terms(source[PREFERRED])
    for term in source[PREFERRED].items():
        found += selectors.selector(term["labelSelector"])
        found += name_length(term["affinityName"])
    return found + [causes.forbidden(field.path, MISPLACED) for field in _misplaced(source)]


def one_form(sources: list[Field]) -> list[Cause]:
    """Whether all of the sources use no more than one form of tiers between them."""
    used = [form for source in sources for form in _forms(source)]
    return [
        causes.forbidden(field.path, f"one form of tiers per placement: {used[0][1].path} is one already")
        for form, field in used
        if form != used[0][0]
    ]


def together(sources: list[Field], whole: Field) -> list[Cause]:
    """Whether the tiers have what they build on; `whole` is what all sources say as one placement."""
    return [cause for source in sources for cause in (*_primaries(source, whole), *_listed(source, whole))]


def name_length(name: Field) -> list[Cause]:
    """Whether the name of a term is as short as Karmada's schema wants it."""
    if go_text.n_bytes(name.text()) <= MAX_NAME:
        return []
    return [causes.too_long(name.path, f"may not be more than {MAX_NAME} bytes")]


def _forms(source: Field) -> Iterator[tuple[str, Field]]:
    """Each form that is used, and the first field that uses it; supplements differ by what they stand on."""
    if source[SINGLE][SUPPLEMENTS].items():
        yield SINGLE, source[SINGLE][SUPPLEMENTS]
    if source[PREFERRED].items():
        yield PREFERRED, source[PREFERRED]
    listed = [*source[TERMS].items(), *source[PREFERRED].items()]
    for form in (SUPPLEMENTS, OVERFLOW):
        yield from [(form, term[form]) for term in listed if term[form].present][:1]
    if source.under(STRATEGY, "mode").text() == INHERITED:
        yield STRATEGY, source.under(STRATEGY, "mode")


def _supplements(source: Field) -> list[Field]:
    terms = [*source[TERMS].items(), *source[PREFERRED].items()]
    return [source[SINGLE][SUPPLEMENTS], *(term[SUPPLEMENTS] for term in terms)]


def _misplaced(source: Field) -> Iterator[Field]:
    """The supplements of clusters that have no tiers."""
    for term in source[TERMS].items():
        yield from (tier[SUPPLEMENTS] for tier in term[OVERFLOW].items() if tier[SUPPLEMENTS].present)
    for weight in source.under("replicaScheduling", "weightPreference", "staticWeightList").items():
        if weight["targetCluster"][SUPPLEMENTS].present:
            yield weight["targetCluster"][SUPPLEMENTS]


def _tier(field: Field) -> list[Cause]:
    return [*placements.cluster_affinity(field), *selectors.selector(field["labelSelector"])]


def _mode(mode: Field) -> list[Cause]:
    if not mode.text() or mode.text() in (EXCLUSIVE, INHERITED):
        return []
    return [causes.unsupported(mode.path, go_text.quoted(mode.text()), (EXCLUSIVE, INHERITED))]


def _primaries(source: Field, whole: Field) -> Iterator[Cause]:
    """Supplements on an affinity that selects every cluster, which leaves them nothing."""
    if source[SINGLE][SUPPLEMENTS].items() and not placements.selects(whole[SINGLE]):
        yield causes.required(source[SINGLE].path, NO_PRIMARY)
    selecting = {term["affinityName"].text() for term in whole[TERMS].items() if placements.selects(term)}
    for term in source[TERMS].items():
        if term[SUPPLEMENTS].items() and term["affinityName"].text() not in selecting:
            yield causes.required(term.path, NO_PRIMARY)


def _listed(source: Field, whole: Field) -> Iterator[Cause]:
    """Tiers that are the terms of a list: whether the list is there, and alone, and its first term selects."""
    mode, preferred = source.under(STRATEGY, "mode"), source[PREFERRED]
    if mode.text() == INHERITED:
        terms = whole[TERMS].items()
        if not terms:
            yield causes.invalid(mode.path, go_text.quoted(INHERITED), NO_TERMS)
        elif not placements.selects(terms[0]):
            yield causes.invalid(mode.path, go_text.quoted(INHERITED), NO_FIRST_TIER)
    if preferred.items():
        if whole[SINGLE].present or whole[TERMS].present:
            yield causes.forbidden(preferred.path, NOT_BESIDE)
        if not placements.selects(preferred.items()[0]):
            yield causes.required(preferred.items()[0].path, NO_FIRST_TIER)
