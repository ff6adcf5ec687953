"""
Affinity terms: which peers a workload must or should be near to or away from, and in which topology.

`PodTerm` is a term as its owner wrote it. `PeerTerm` is what remains once the owner's namespace and the semantics are
applied: which workloads are selected, without the topology key, so that terms that differ only in topology share one
set of matches. `resolve` derives the second from the first, in one of two roles, because kube-scheduler reads them
differently: as terms of an incoming workload, or as terms that a placed workload holds against incoming ones.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bayplan.caching import memoised
from bayplan.model.groups import MEMBER_OF
from bayplan.model.labels import (
    DOES_NOT_EXIST,
    EVERYTHING,
    EXISTS,
    IN,
    NEGATIVE,
    Labels,
    Requirement,
    Selector,
    requirement,
)
from bayplan.model.semantics import Semantics

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
TARGET = "\0target"  # the topology in which every target is a domain of its own, with or without a label
# What a term may select by besides labels has keys of its own, so that it can be read like a label.
NAMESPACE = "\0namespace"  # the key whose value is the workload's namespace
NAMESPACE_LABEL = "\0namespace/"  # begins the keys of the labels of that namespace
NAME_LABEL = "kubernetes.io/metadata.name"  # every namespace has it, with its name
# The labels of a namespace that is created without any: the API server adds its name. This one is in no selector.
_NEW_NAMESPACE = {NAME_LABEL: "\0new"}


class PodTerm(msgspec.Struct, frozen=True):
    """
    A term as written. `namespaces` None is absent and () is an empty list, which differ under the `design` preset.

    `path` is where the owner wrote it, for messages. `during_execution` marks terms that must also hold while running.
    `possible` selects what the term may select if that depends on labels of the owner that are not known.
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
    possible: Selector | None = None


def selects_members(term: PodTerm) -> bool:
    """Whether the term is a rule of a group: it selects members of groups."""
    return term.selector is not None and any(one.key == MEMBER_OF for one in term.selector.requirements)


class AffinityTerms(msgspec.Struct, frozen=True, cache_hash=True):
    """
    All terms of a workload.

    `group_required` are the required affinity terms that its group has. Other than for `required`, another pod may meet
    each of them, and the first-pod exception applies to each by itself.
    """

    required: tuple[PodTerm, ...] = ()
    anti_required: tuple[PodTerm, ...] = ()
    preferred: tuple[PodTerm, ...] = ()
    anti_preferred: tuple[PodTerm, ...] = ()
    group_required: tuple[PodTerm, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.required or self.anti_required or self.preferred or self.anti_preferred or self.group_required)

    @property
    def has_empty_key(self) -> bool:
        """Whether a term has no topology key, so that its keys depend on the semantics and perhaps on the nodes."""
        terms = (self.required, self.anti_required, self.preferred, self.anti_preferred)  # groups always name theirs
        return any(not term.topology_key for some in terms for term in some)


NO_TERMS = AffinityTerms()


class TermPart(msgspec.Struct, frozen=True):
    """A selector with its namespaces. `namespaces` None means every namespace."""

    selector: Selector | None
    namespaces: tuple[str, ...] | None
    namespace_selector: Selector | None = None
    excluded_namespaces: tuple[str, ...] = ()

    def matches(self, labels: Labels, namespace: str, namespace_labels: Labels) -> bool:
        if self.selector is None or not self.in_scope(namespace, namespace_labels):
            return False
        return self.selector.matches(labels)

    @property
    def selects_unlabelled(self) -> bool:
        """Whether pods without labels are selected, and so all pods but those labelled to be left out."""
        return self.selector is not None and self.selector.matches({})

    def in_scope(self, namespace: str, namespace_labels: Labels) -> bool:
        """Whether the term selects workloads of this namespace at all."""
        if namespace in self.excluded_namespaces:
            return False
        if self.namespaces is None or namespace in self.namespaces:
            return True
        return self.namespace_selector is not None and self.namespace_selector.matches(namespace_labels)


class PeerTerm(msgspec.Struct, frozen=True, cache_hash=True):
    """
    Which workloads a term selects.

    A workload counts if its labels match every selector, its namespace is listed or matches the namespace selector and
    is not excluded, and it is not terminating (unless terminating workloads count). Several parts form a conjunction:
    kube-scheduler requires one pod that meets all required affinity terms. At least one of `any_of` must hold too, if
    there are any; those whose key begins with `NAMESPACE_LABEL` are about the labels of the namespace.
    """

    parts: tuple[TermPart, ...]
    counts_terminating: bool = True
    any_of: tuple[Requirement, ...] = ()

    def matches(self, labels: Labels, namespace: str, namespace_labels: Labels, *, terminating: bool) -> bool:
        if terminating and not self.counts_terminating:
            return False
        for part in self.parts:  # a loop, because a generator costs more than most matches
            if not part.matches(labels, namespace, namespace_labels):
                return False
        return not self.any_of or any(_is_met(one, labels, namespace_labels) for one in self.any_of)


class ResolvedTerm(msgspec.Struct, frozen=True):
    """One term in use: the peers it selects, the topology keys, and the weight and limit of its `source`."""

    term: PeerTerm
    keys: tuple[str, ...]
    source: PodTerm
    weight: int
    limit: int


class ResolvedTerms(msgspec.Struct, frozen=True):
    """`conjunction` selects the peers that meet all `required` terms at once; None without any."""

    required: tuple[ResolvedTerm, ...] = ()
    conjunction: PeerTerm | None = None
    anti_required: tuple[ResolvedTerm, ...] = ()
    preferred: tuple[ResolvedTerm, ...] = ()
    anti_preferred: tuple[ResolvedTerm, ...] = ()
    group_required: tuple[ResolvedTerm, ...] = ()


@memoised(16384)
def resolve(affinity: AffinityTerms, namespace: str, semantics: Semantics, *, incoming: bool) -> ResolvedTerms:
    """The terms of a workload in `namespace`, for the time it is scheduled (`incoming`) or once it is placed."""

    def resolved(term: PodTerm, keys: tuple[str, ...] | None = None, *, hard_anti: bool = False) -> ResolvedTerm:
        daemons = semantics.daemon_namespaces if hard_anti else ()
        part = _selected_by(term, namespace, semantics, excluded={*term.tolerate_namespaces, *daemons})
        # kube-scheduler 1.34 to 1.36 matches the namespace selector of an incoming pod's term against no labels at all,
        # so a selector of only negative requirements matches every namespace.
        selector = part.namespace_selector if incoming and semantics.negative_namespace_selector_matches_all else None
        if selector is not None and selector.matches({}):
            part = TermPart(part.selector, None, EVERYTHING, part.excluded_namespaces)
        peers = PeerTerm((part,), counts_terminating=hard_anti or semantics.terminating_peers_satisfy)
        return ResolvedTerm(peers, keys or topology_keys(term, semantics), term, term.weight, term.limit)

    required = tuple(resolved(term) for term in affinity.required)
    # Pods of daemon namespaces neither block nor are blocked, so their own hard anti-affinity does not apply either.
    anti_required = () if namespace in semantics.daemon_namespaces else affinity.anti_required
    return ResolvedTerms(
        required=required,
        # Each part once: terms often differ in their topology key alone.
        conjunction=PeerTerm(tuple(dict.fromkeys([part for r in required for part in r.term.parts])))
        if required
        else None,
        anti_required=tuple(
            # A term over several topologies is violated in any of them, as if it were written once for each.
            resolved(term, (key,), hard_anti=True)
            for term in anti_required
            for key in topology_keys(term, semantics)
        ),
        preferred=tuple(resolved(term) for term in affinity.preferred),
        anti_preferred=tuple(resolved(term) for term in affinity.anti_preferred),
        group_required=tuple(resolved(term) for term in affinity.group_required),
    )


def _selected_by(term: PodTerm, namespace: str, semantics: Semantics, *, excluded: set[str]) -> TermPart:
    """The term's selector with the namespaces it means for an owner in `namespace`."""
    listed, selector = term.namespaces, term.namespace_selector
    means_all = listed == () and selector is None and semantics.empty_namespaces_mean_all
    excluded_namespaces = tuple(sorted(excluded))
    if means_all or selector == EVERYTHING:
        return TermPart(term.selector, None, None, excluded_namespaces)
    if not listed and selector is None:
        return TermPart(term.selector, (namespace,), None, excluded_namespaces)
    return TermPart(term.selector, tuple(sorted(set(listed or ()))), selector, excluded_namespaces)


def _is_met(one: Requirement, labels: Labels, namespace_labels: Labels) -> bool:
    if one.key.startswith(NAMESPACE_LABEL):
        one = msgspec.structs.replace(one, key=one.key.removeprefix(NAMESPACE_LABEL))
        return one.matches(namespace_labels)
    return one.matches(labels)


class ExcludedValues(msgspec.Struct, frozen=True):
    """
    What a term with `NotIn` and `DoesNotExist` requirements excludes.

    `base` is the term without these requirements. It matches what the term matches, and what `complement` matches.
    """

    base: PeerTerm
    complement: PeerTerm

    @property
    def labels(self) -> Iterator[tuple[str, str | None]]:
        """The labels of which each is enough to be excluded, with their values; None for any value."""
        return (
            (one.key, value)
            for one in self.complement.any_of
            for value in ((None,) if one.operator == EXISTS else one.values)
        )


@memoised(16384)
def excluded_values(term: PeerTerm) -> ExcludedValues | None:
    """
    What the term excludes by labels of workloads and of namespaces; None if it excludes nothing.

    A term that lists namespaces beside a selector of others keeps what the selector excludes, because the listed ones
    are in its scope all the same.
    """
    excluded: list[tuple[str, Requirement]] = []
    parts = []
    for part in term.parts:
        selector, namespaces, of_namespace = part.selector, part.namespaces, part.namespace_selector
        if selector is not None:
            excluded += [(one.key, one) for one in selector.requirements if one.operator in NEGATIVE]
            selector = _positive(selector)
        if of_namespace is not None and namespaces == ():
            negative = [one for one in of_namespace.requirements if one.operator in NEGATIVE]
            excluded += [(NAMESPACE_LABEL + one.key, one) for one in negative]
            of_namespace = _positive(of_namespace)
            if not of_namespace.requirements:  # as it is written where all namespaces are meant
                namespaces = of_namespace = None
        parts.append(TermPart(selector, namespaces, of_namespace, part.excluded_namespaces))
    if not excluded or term.any_of:
        return None
    base = PeerTerm(tuple(parts), term.counts_terminating)
    return ExcludedValues(base, msgspec.structs.replace(base, any_of=_any_of(excluded)))


def _positive(selector: Selector) -> Selector:
    others = tuple([one for one in selector.requirements if one.operator not in NEGATIVE])
    return selector if len(others) == len(selector.requirements) else Selector(others)


def _any_of(excluded: list[tuple[str, Requirement]]) -> tuple[Requirement, ...]:
    """The requirements of which the excluded workloads meet at least one, at most one for each key."""
    absent = {key for key, one in excluded if one.operator == DOES_NOT_EXIST}
    values: dict[str, set[str]] = {}
    for key, one in excluded:
        if key not in absent:
            values.setdefault(key, set()).update(one.values)
    found = [requirement(key, EXISTS) for key in absent]
    return tuple(sorted([*found, *(requirement(key, IN, some) for key, some in values.items())]))


def topology_keys(term: PodTerm, semantics: Semantics) -> tuple[str, ...]:
    """
    The keys whose domains the term is about; under the `design` preset an empty key means the default ones.

    Where no node is known, there may be no default key. The empty key remains, which no node has.
    """
    if term.topology_key or not semantics.empty_topology_key_means_any:
        return (term.topology_key,)
    return semantics.default_topology_keys or (term.topology_key,)


def covers_all_namespaces(part: TermPart) -> bool:
    """
    Whether the term selects workloads of every namespace that could be created, except those it tolerates.

    A namespace that is named or labelled to be left out may be excepted: an author who excludes a label that nothing
    has, or a name that nobody uses, excludes nothing.
    """
    if part.namespaces is None:
        return True
    return part.namespace_selector is not None and part.namespace_selector.matches(_NEW_NAMESPACE)


def covers_all_pods(part: TermPart) -> bool:
    """Whether the term selects every pod of every namespace, except those it tolerates and those labelled for it."""
    return part.selects_unlabelled and covers_all_namespaces(part)
