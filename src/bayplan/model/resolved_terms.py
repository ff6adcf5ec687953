"""
A workload's terms with namespaces, topology keys and semantics settled: what the index counts and the rules compare.

A term is resolved in one of two roles, because upstream reads it differently: as the incoming workload's own, or as
one that a placed workload holds against newcomers.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from bayplan.model.labels import EVERYTHING
from bayplan.model.semantics import Semantics
from bayplan.model.terms import AffinityTerms, PeerTerm, PodTerm, TermPart, scope, topology_keys


class Use(msgspec.Struct, frozen=True):
    """One term in use: who is meant, in which topologies, how much it weighs, how many are allowed."""

    term: PeerTerm
    keys: tuple[str, ...]
    source: PodTerm

    @property
    def weight(self) -> int:
        return self.source.weight

    @property
    def limit(self) -> int:
        return self.source.limit


class ResolvedTerms(msgspec.Struct, frozen=True):
    """`conjunction` selects the peers that meet all required terms at once; None without required terms."""

    required: tuple[Use, ...] = ()
    conjunction: PeerTerm | None = None
    anti_required: tuple[Use, ...] = ()
    preferred: tuple[Use, ...] = ()
    anti_preferred: tuple[Use, ...] = ()


@lru_cache(maxsize=16384)
def resolve(affinity: AffinityTerms, namespace: str, semantics: Semantics, *, incoming: bool) -> ResolvedTerms:
    """The terms of a workload in `namespace`, as it asks on its way in or as it holds them once placed."""

    def use(term: PodTerm, keys: tuple[str, ...] | None = None, *, hard_anti: bool = False) -> Use:
        part = scope(term, namespace, semantics, excluding=semantics.daemon_namespaces if hard_anti else ())
        if incoming and semantics.negative_namespace_selector_matches_all:
            part = _as_seen_by_kube_scheduler(part)
        lasting = not hard_anti and not semantics.terminating_peers_satisfy
        return Use(PeerTerm((part,), counts_terminating=not lasting), keys or topology_keys(term, semantics), term)

    required = tuple(use(term) for term in affinity.required)
    # Pods of daemon namespaces neither block nor are blocked, so their own hard anti-affinity says nothing either.
    anti_required = () if namespace in semantics.daemon_namespaces else affinity.anti_required
    return ResolvedTerms(
        required=required,
        conjunction=PeerTerm(tuple(part for u in required for part in u.term.parts)) if required else None,
        anti_required=tuple(
            # A term over several topologies is broken in any of them, as if it were written once for each.
            use(term, (key,), hard_anti=True)
            for term in anti_required
            for key in topology_keys(term, semantics)
        ),
        preferred=tuple(use(term) for term in affinity.preferred),
        anti_preferred=tuple(use(term) for term in affinity.anti_preferred),
    )


def _as_seen_by_kube_scheduler(part: TermPart) -> TermPart:
    # 1.34 to 1.36 match the selector against no labels at all, so one of only negative requirements matches anywhere.
    if part.namespace_selector is None or not part.namespace_selector.matches({}):
        return part
    return TermPart(part.selector, None, EVERYTHING, part.excluded_namespaces)
