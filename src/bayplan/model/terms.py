"""
Terms: which peers a workload wants near or far, and in which topology.

`PodTerm` is a term as its owner wrote it. `PeerTerm` is what is left once the owner's namespace and the semantics are
known: who is selected, without the topology key, so that terms differing only in topology share one set of matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from bayplan.model import labels
from bayplan.model.labels import EVERYTHING, Labels, Selector
from bayplan.model.semantics import Semantics

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
TARGET = "\0target"  # the topology in which every target is a domain of its own, label or not


class PodTerm(msgspec.Struct, frozen=True):
    """
    A term as written; `namespaces` None is absent and () is an empty list, which mean different things in the seed.

    `path` says where the owner wrote it, for people. `during_execution` marks terms that must hold while running too.
    """

    selector: Selector | None
    topology_key: str
    namespaces: tuple[str, ...] | None = None
    namespace_selector: Selector | None = None
    tolerate_namespaces: tuple[str, ...] = ()
    weight: int = 0
    limit: int = 0
    during_execution: bool = False
    path: str = ""


class AffinityTerms(msgspec.Struct, frozen=True, cache_hash=True):
    """All that a workload says of its peers."""

    required: tuple[PodTerm, ...] = ()
    anti_required: tuple[PodTerm, ...] = ()
    preferred: tuple[PodTerm, ...] = ()
    anti_preferred: tuple[PodTerm, ...] = ()

    @property
    def label_keys(self) -> frozenset[str]:
        """The label keys of peers that any of the terms looks at."""
        terms = (*self.required, *self.anti_required, *self.preferred, *self.anti_preferred)
        return frozenset().union(*(term.selector.keys for term in terms if term.selector is not None))

    def __bool__(self) -> bool:
        return bool(self.required or self.anti_required or self.preferred or self.anti_preferred)


NO_TERMS = AffinityTerms()


class PeerTerm(msgspec.Struct, frozen=True, cache_hash=True):
    """
    Which workloads a term selects.

    A workload counts if its labels match every selector, its namespace is listed or matches the namespace selector and
    is not excluded, and it is not terminating (unless those count). `namespaces` None means all of them. Several
    selectors make a conjunction: upstream wants one pod that meets all required affinity terms.
    """

    parts: tuple[TermPart, ...]
    counts_terminating: bool = True

    def matches(self, labels: Labels, namespace: str, namespace_labels: Labels, *, terminating: bool) -> bool:
        if terminating and not self.counts_terminating:
            return False
        return all(part.matches(labels, namespace, namespace_labels) for part in self.parts)


class TermPart(msgspec.Struct, frozen=True):
    selector: Selector | None
    namespaces: tuple[str, ...] | None
    namespace_selector: Selector | None = None
    excluded_namespaces: tuple[str, ...] = ()

    def matches(self, labels: Labels, namespace: str, namespace_labels: Labels) -> bool:
        if self.selector is None or not self.in_scope(namespace, namespace_labels):
            return False
        return self.selector.matches(labels)

    def in_scope(self, namespace: str, namespace_labels: Labels) -> bool:
        """Whether the term looks into this namespace at all."""
        if namespace in self.excluded_namespaces:
            return False
        if self.namespaces is None or namespace in self.namespaces:
            return True
        return self.namespace_selector is not None and self.namespace_selector.matches(namespace_labels)


def scope(term: PodTerm, namespace: str, semantics: Semantics, *, excluding: Sequence[str] = ()) -> TermPart:
    """The term's selector with its namespaces settled, for an owner in `namespace`."""
    excluded = tuple(sorted({*term.tolerate_namespaces, *excluding}))
    listed = term.namespaces
    if listed == () and term.namespace_selector is None and semantics.empty_namespaces_mean_all:
        return TermPart(term.selector, None, None, excluded)
    if not listed and term.namespace_selector is None:
        return TermPart(term.selector, (namespace,), None, excluded)
    if term.namespace_selector == EVERYTHING:
        return TermPart(term.selector, None, None, excluded)
    return TermPart(term.selector, tuple(sorted(set(listed or ()))), term.namespace_selector, excluded)


def topology_keys(term: PodTerm, semantics: Semantics) -> tuple[str, ...]:
    """The keys whose domains the term speaks of; an empty key means any of the configured ones in the seed."""
    if term.topology_key or not semantics.empty_topology_key_means_any:
        return (term.topology_key,)
    return semantics.default_topology_keys


# RF merged from model.resolved_terms: A workload's terms with namespaces, topology keys and semantics settled: what
# the index counts and the rules compare. A term is resolved in one of two roles, because upstream reads it
# differently: as the incoming workload's own, or as one that a placed workload holds against newcomers.


class ResolvedTerm(msgspec.Struct, frozen=True):
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

    required: tuple[ResolvedTerm, ...] = ()
    conjunction: PeerTerm | None = None
    anti_required: tuple[ResolvedTerm, ...] = ()
    preferred: tuple[ResolvedTerm, ...] = ()
    anti_preferred: tuple[ResolvedTerm, ...] = ()


@lru_cache(maxsize=16384)
def resolve(affinity: AffinityTerms, namespace: str, semantics: Semantics, *, incoming: bool) -> ResolvedTerms:
    """The terms of a workload in `namespace`, as it asks on its way in or as it holds them once placed."""

    def use(term: PodTerm, keys: tuple[str, ...] | None = None, *, hard_anti: bool = False) -> ResolvedTerm:
        part = scope(term, namespace, semantics, excluding=semantics.daemon_namespaces if hard_anti else ())
        if incoming and semantics.negative_namespace_selector_matches_all:
            part = _as_seen_by_kube_scheduler(part)
        lasting = not hard_anti and not semantics.terminating_peers_satisfy
        return ResolvedTerm(
            PeerTerm((part,), counts_terminating=not lasting), keys or topology_keys(term, semantics), term
        )

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


# RF merged from model.reaching_all: Terms that reach everybody: into every namespace, or at every pod. Knows nothing
# of who may use them.


# Every namespace has this label, put there by the API server, so asking for it asks for nothing.
_IN_EVERY_NAMESPACE = labels.Requirement("kubernetes.io/metadata.name", labels.EXISTS)


def covers_all_namespaces(part: TermPart) -> bool:
    """Whether the term looks into every namespace there is or will be, those it tolerates excepted."""
    if part.namespaces is None:
        return True
    selector = part.namespace_selector
    return selector is not None and all(asked == _IN_EVERY_NAMESPACE for asked in selector.requirements)


def covers_all_pods(part: TermPart) -> bool:
    """Whether the term means every pod of every namespace, those it tolerates excepted."""
    return part.selector == labels.EVERYTHING and covers_all_namespaces(part)
