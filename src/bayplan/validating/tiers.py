"""
Tiers of clusters: the four forms that Bayplan adds to Karmada's `overflowAffinities`. A placement may use one form.

A placement and the annotation that adds to it are validated alike; what both contain together is passed in. Karmada has
none of these rules.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.validating import go_text, placements, selectors
from bayplan.validating.fields import Cause, Field

SINGLE, TERMS, PREFERRED = "clusterAffinity", "clusterAffinities", "preferredClusterAffinities"
STRATEGY, SUPPLEMENTS, OVERFLOW = "affinityStrategy", "supplements", "overflowAffinities"
EXCLUSIVE, INHERITED = "Exclusive", "Inherited"
MAX_NAME_BYTES = 32

NESTED = "a supplement cannot have supplements of its own"
MISPLACED = "may be set on clusterAffinity and on a term of clusterAffinities only"
NO_PRIMARY = "supplements can only be used together with the inline ClusterAffinity"
NO_FIRST_TIER = "the first tier must select clusters by label, field or name"
NO_TERMS = "can only be used together with clusterAffinities"
NOT_BESIDE = "preferredClusterAffinities cannot co-exist with clusterAffinity or clusterAffinities"


def validate_tiers(source: Field) -> list[Cause]:
    """The causes for rejecting the tiers of a placement or of an annotation, independent of the other one."""
    found: list[Cause] = []
    mode = source[STRATEGY]["mode"]
    if mode.text() not in ("", EXCLUSIVE, INHERITED):
        found.append(mode.unsupported((EXCLUSIVE, INHERITED), go_text.quoted(mode.text())))
    for holder in (source[SINGLE], *source[TERMS].items(), *source[PREFERRED].items()):
        for supplement in holder[SUPPLEMENTS].items():
            found += placements.validate_cluster_affinity(supplement)
            found += selectors.validate_selector(supplement["labelSelector"])
            if supplement[SUPPLEMENTS].present:
                found.append(supplement[SUPPLEMENTS].forbidden(NESTED))
    found += placements.validate_affinity_terms(source[PREFERRED])
    for term in source[PREFERRED].items():
        found += selectors.validate_selector(term["labelSelector"])
        found += validate_name_length(term["affinityName"])
    weights = source["replicaScheduling"]["weightPreference"]["staticWeightList"].items()
    without_tiers = [tier for term in source[TERMS].items() for tier in term[OVERFLOW].items()]
    without_tiers += [weight["targetCluster"] for weight in weights]
    return found + [one[SUPPLEMENTS].forbidden(MISPLACED) for one in without_tiers if one[SUPPLEMENTS].present]


def validate_one_form(sources: list[Field]) -> list[Cause]:
    """Whether all sources together use at most one form of tiers."""
    used = [form for source in sources for form in _forms(source)]
    return [
        field.forbidden(f"one form of tiers per placement: {used[0][1].path} is one already")
        for form, field in used
        if form != used[0][0]
    ]


def validate_tier_bases(sources: list[Field], whole: Field) -> list[Cause]:
    """Whether the tiers have the affinity that they depend on; `whole` is the placement of all sources together."""
    return [cause for source in sources for cause in (*_without_primary(source, whole), *_without_list(source, whole))]


def validate_name_length(name: Field) -> list[Cause]:
    """Whether the name of a term is within the length of Karmada's schema."""
    return [] if go_text.n_bytes(name.text()) <= MAX_NAME_BYTES else [name.too_long(MAX_NAME_BYTES)]


def _forms(source: Field) -> Iterator[tuple[str, Field]]:
    """Each form that is used, and the first field that uses it; supplements of terms are another form."""
    if source[SINGLE][SUPPLEMENTS].items():
        yield SINGLE, source[SINGLE][SUPPLEMENTS]
    if source[PREFERRED].items():
        yield PREFERRED, source[PREFERRED]
    listed = [*source[TERMS].items(), *source[PREFERRED].items()]
    for form in (SUPPLEMENTS, OVERFLOW):
        yield from [(form, term[form]) for term in listed if term[form].present][:1]
    if source[STRATEGY]["mode"].text() == INHERITED:
        yield STRATEGY, source[STRATEGY]["mode"]


def _without_primary(source: Field, whole: Field) -> Iterator[Cause]:
    """Supplements of an affinity that selects every cluster, which leaves no cluster for them."""
    if source[SINGLE][SUPPLEMENTS].items() and not placements.selects_clusters(whole[SINGLE]):
        yield source[SINGLE].required(NO_PRIMARY)
    selecting = {term["affinityName"].text() for term in whole[TERMS].items() if placements.selects_clusters(term)}
    for term in source[TERMS].items():
        if term[SUPPLEMENTS].items() and term["affinityName"].text() not in selecting:
            yield term.required(NO_PRIMARY)


def _without_list(source: Field, whole: Field) -> Iterator[Cause]:
    """Tiers that are the terms of a list: the list must exist and be the only one, and its first term must select."""
    mode, preferred = source[STRATEGY]["mode"], source[PREFERRED]
    if mode.text() == INHERITED:
        terms = whole[TERMS].items()
        if not terms:
            yield mode.invalid(NO_TERMS)
        elif not placements.selects_clusters(terms[0]):
            yield mode.invalid(NO_FIRST_TIER)
    if preferred.items():
        if whole[SINGLE].present or whole[TERMS].present:
            yield preferred.forbidden(NOT_BESIDE)
        if not placements.selects_clusters(preferred.items()[0]):
            yield preferred.items()[0].required(NO_FIRST_TIER)
