"""
What must hold while a workload stays where it is, clause by clause: who is meant, in which domains, how many may be.

A pod's clauses are its terms that are required during execution. Of a binding all required terms and Karmada's groups
are judged. Knows nothing of who is where.
"""

from __future__ import annotations

import enum
from functools import lru_cache

import msgspec

from bayplan.model.bindings import AFFINITY_GROUP, ANTI_AFFINITY_GROUP
from bayplan.model.labels import equals
from bayplan.model.resolved_terms import ResolvedTerms, Use, resolve
from bayplan.model.semantics import Semantics
from bayplan.model.terms import NO_TERMS, TARGET, AffinityTerms, PeerTerm, PodTerm, TermPart
from bayplan.model.workloads import Workload
from bayplan.rules.inter_pod_evidence import show_term


class Sign(enum.Enum):
    """What a clause asks of the peers it means."""

    NEAR = "affinity"  # one of them in the domain
    APART = "anti-affinity"  # no more than the limit in the domain
    WITH_ALL = "affinity group"  # every one of them on the same target


class Company(msgspec.Struct, frozen=True):
    """Others of the owner's own kind: on targets that have one of the keys, or anywhere if `keys` is empty."""

    term: PeerTerm
    keys: tuple[str, ...] = ()


class Clause(msgspec.Struct, frozen=True):
    """
    One rule as its owners hold it. `path` and `shown` are for people.

    `alone` says when the owner is the lone member of a set that wants to be together, which is no violation: if in one
    of these lists the owner matches every term and nobody else does.
    """

    sign: Sign
    term: PeerTerm
    keys: tuple[str, ...]
    limit: int = 0
    path: str = ""
    shown: str = ""
    alone: tuple[tuple[Company, ...], ...] = ()


def of(workload: Workload, semantics: Semantics) -> tuple[Clause, ...]:
    """What must hold for this workload while it runs; nothing for one that is on its way out."""
    if workload.terminating:
        return ()
    affinity, binding = workload.needs.affinity, workload.binding
    if binding is None:
        return _of_terms(_lasting(affinity), affinity, workload.namespace, semantics) if affinity else ()
    near, apart = workload.labels.get(AFFINITY_GROUP), workload.labels.get(ANTI_AFFINITY_GROUP)
    terms = _of_terms(affinity, affinity, workload.namespace, semantics) if affinity else ()
    return (*terms, *_of_groups(near, apart, binding.namespace)) if near or apart else terms


@lru_cache(maxsize=16384)
def _lasting(affinity: AffinityTerms) -> AffinityTerms:
    """The hard terms that must hold during execution too."""
    return AffinityTerms(
        required=tuple(term for term in affinity.required if term.during_execution),
        anti_required=tuple(term for term in affinity.anti_required if term.during_execution),
    )


@lru_cache(maxsize=16384)
def _of_terms(
    judged: AffinityTerms, written: AffinityTerms, namespace: str, semantics: Semantics
) -> tuple[Clause, ...]:
    judged = AffinityTerms(
        required=_with_topology(judged.required, semantics),
        anti_required=_with_topology(judged.anti_required, semantics),
    )
    if judged == NO_TERMS:
        return ()
    # Each sign as it was read when the workload was placed, so that nobody is in violation where he was just put.
    near = resolve(AffinityTerms(required=judged.required), namespace, semantics, incoming=True)
    apart = resolve(AffinityTerms(anti_required=judged.anti_required), namespace, semantics, incoming=False)
    whole = resolve(AffinityTerms(required=written.required), namespace, semantics, incoming=True)
    return (*(_near(use, near, whole, semantics) for use in near.required), *map(_apart, apart.anti_required))


def _with_topology(terms: tuple[PodTerm, ...], semantics: Semantics) -> tuple[PodTerm, ...]:
    """A term whose empty topology key means nothing is refused when placing; nobody is thrown out for it."""
    return tuple(term for term in terms if term.topology_key or semantics.empty_topology_key_means_any)


def _near(use: Use, near: ResolvedTerms, whole: ResolvedTerms, semantics: Semantics) -> Clause:
    if semantics.first_pod_per_term:
        alone: tuple[tuple[Company, ...], ...] = ((Company(use.term),),)
    else:
        # Placed as the first of its set, judged by all of its terms, it must not be in violation by some of them.
        lists = (tuple(Company(_met_by(u, r, semantics), u.keys) for u in r.required) for r in (near, whole))
        alone = tuple(dict.fromkeys(lists))
    term, source = _met_by(use, near, semantics), use.source
    return Clause(Sign.NEAR, term, use.keys, path=source.path, shown=show_term(source), alone=alone)


def _met_by(use: Use, resolved: ResolvedTerms, semantics: Semantics) -> PeerTerm:
    """Who meets the term: upstream wants one peer that meets all of them."""
    return use.term if semantics.affinity_terms_met_apart or resolved.conjunction is None else resolved.conjunction


def _apart(use: Use) -> Clause:
    # Whoever is on the way out ends the conflict by himself.
    term = msgspec.structs.replace(use.term, counts_terminating=False)
    return Clause(Sign.APART, term, use.keys, use.limit, use.source.path, show_term(use.source))


@lru_cache(maxsize=4096)
def _of_groups(near: str | None, apart: str | None, namespace: str) -> tuple[Clause, ...]:
    """Karmada's groups, which reach as far as the template's namespace."""
    return tuple(
        Clause(
            sign,
            PeerTerm((TermPart(equals({label: group}), (namespace,)),), counts_terminating=False),
            (TARGET,),
            path=f"workloadAffinityGroups.{field}",
            shown=group,
        )
        for sign, label, group, field in (
            (Sign.WITH_ALL, AFFINITY_GROUP, near, "affinityGroup"),
            (Sign.APART, ANTI_AFFINITY_GROUP, apart, "antiAffinityGroup"),
        )
        if group
    )
