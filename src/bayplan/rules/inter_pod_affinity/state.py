"""
The terms between a pod and the placed ones, in both directions, with their counters: what InterPodAffinity works on.

The questions here are asked by its filter, its evidence and its preemption alike.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.caching import BoundedCache
from bayplan.indexing import term_sums
from bayplan.indexing.classes import VisibleLabels
from bayplan.indexing.owner_rules import OwnerRule, Role
from bayplan.indexing.peer_index import PeerIndex
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ALL, At, ValueColumn
from bayplan.indexing.term_table import Counter, Reach, TermEntry, sum_by_domain
from bayplan.model.reasons import Mask
from bayplan.model.terms import AffinityTerms, PeerTerm, PodTerm, ResolvedTerm

MAX_FEW_DOMAINS = 128  # up to which integers of single domains are faster than arrays of all


class InterPodAffinityPart(msgspec.Struct, frozen=True):
    """What terms can see of the workload, and its own terms."""

    namespace: str
    labels: VisibleLabels
    affinity: AffinityTerms


class TermCounts(msgspec.Struct, eq=False):
    """Terms that are `held` from their first count on, each once, and each as a sum of what is counted."""

    _peer_index: PeerIndex
    held: dict[PeerTerm, TermEntry] = {}
    _summands: dict[PeerTerm, list[tuple[PeerTerm, int]]] = {}  # required terms share their conjunction

    def reach(self, term: PeerTerm, keys: tuple[str, ...]) -> Reach:
        """How many workloads the term matches in the domains of each target."""
        peer_index, summands = self._peer_index, self._summands.get(term)
        if summands is None:
            summands = self._summands[term] = term_sums.summands(term, peer_index.terms)
        found = peer_index.match_reach(self._hold(summands[0][0]), keys)
        if len(summands) > 1:
            counted = []
            for other, sign in summands[1:]:
                entry = self._hold(other)
                counter = entry.matches.get(found.counter.column.key)  # most of these are shared, and counted already
                counted.append((counter or peer_index.match_reach(entry, keys).counter, sign))
            found.others = tuple(counted)
        return found

    def _hold(self, term: PeerTerm) -> TermEntry:
        entry = self.held.get(term)
        if entry is None:
            entry = self.held[term] = self._peer_index.hold(term)
        return entry


class RequiredAffinity(msgspec.Struct, frozen=True):
    """
    A required affinity term: the target's domain must hold a pod that `term` selects.

    Upstream requires one pod that matches all required terms, so there `term` is their conjunction. `own_reach` counts
    the pods that match this term alone, where the first-pod exception applies per term: to terms of groups, and by some
    semantics to all. `first_needs_key`: the target of the first pod needs a topology key of the term.
    """

    use: ResolvedTerm
    term: PeerTerm
    reach: Reach
    self_matching: bool
    own_reach: Reach | None
    first_needs_key: bool


class CountedTerm(msgspec.Struct, frozen=True):
    """Another term of the pod's own, required anti-affinity or preferred, with its matches counted."""

    reach: Reach
    use: ResolvedTerm


class ExistingPodTerm(msgspec.Struct, frozen=True):
    """
    A term of placed workloads, its owners, and how many pods match it, where that makes a difference.

    It may stand for many terms that differ only in the values that they exclude; then the owners are those of all.
    `while_satisfied`: required anti-affinity rejects only while it is satisfied.
    """

    rule: OwnerRule
    owners: Reach
    matches: Reach | None
    while_satisfied: bool = False


class InterPodAffinityState(msgspec.Struct):
    """
    The terms in both directions with their counters.

    `needed_columns`: for each term of required anti-affinity the columns of which a target needs a value.
    `compares_matches`: the effect of a term of existing pods depends on how many pods match it. `one_by_one`: those
    terms are there one by one, and not summed. `default_keys` are what an empty topology key meant when the terms were
    resolved. `effects` maps a class id to the topology keys in whose domains its members count, `first_by_term` is the
    result of the function of that name when targets were last evaluated. Preferred terms are there once `is_scored` is
    set: no target may be left to score.
    """

    part: InterPodAffinityPart
    required_affinity: tuple[RequiredAffinity, ...]
    required_anti_affinity: tuple[CountedTerm, ...]
    needed_columns: tuple[tuple[ValueColumn, ...], ...]
    existing_anti_affinity: tuple[ExistingPodTerm, ...]
    existing_scores: tuple[ExistingPodTerm, ...]
    counts: TermCounts
    compares_matches: bool
    one_by_one: bool
    default_keys: tuple[str, ...]
    effects: BoundedCache[int, tuple[str, ...]]
    is_scored: bool
    preferred_affinity: tuple[CountedTerm, ...] = ()
    preferred_anti_affinity: tuple[CountedTerm, ...] = ()
    first_by_term: tuple[bool, ...] = ()


def meets_affinity(required: RequiredAffinity, at: At, *, first: bool) -> Mask:
    """Which targets have the topology key and a match in their domain; `first` pods need no match, or neither."""
    present = required.reach.present(at)
    if first:
        return present if required.first_needs_key else np.ones_like(present)
    return present & (required.reach.counts(at) > 0)


def first_by_term(state: InterPodAffinityState) -> tuple[bool, ...]:
    """For each required affinity term, whether the pod matches it itself and is the first to do so."""
    terms = state.required_affinity
    if not terms:
        return ()
    first = True
    for term in terms:
        if term.own_reach is None:
            first = first and term.self_matching and not term.reach.occupied
    return tuple([first if t.own_reach is None else t.self_matching and t.own_reach.anywhere == 0 for t in terms])


def has_needed_keys(state: InterPodAffinityState, at: At) -> Mask:
    """Which targets have a topology key of each term of required anti-affinity; for states that need any."""
    needed = [np.any([column.present(at) for column in columns], axis=0) for columns in state.needed_columns]
    found: Mask = np.all(needed, axis=0)
    return found


def terms_without_key(state: InterPodAffinityState, slot: int) -> list[PodTerm]:
    """The terms of required anti-affinity that reject the target because it has no topology key of theirs."""
    missing = {column.key for some in state.needed_columns if not any(c.at[slot] for c in some) for column in some}
    return list({one.use.source: None for one in state.required_anti_affinity if missing.issuperset(one.use.keys)})


def rejected_by_existing(existing: ExistingPodTerm, at: At) -> Mask:
    """Where the pod would give an owner of the anti-affinity term more matches than its limit allows."""
    rule = existing.rule
    if existing.matches is None:
        rejected: Mask = existing.owners.counts(at) > 0
        return rejected
    peers = existing.matches.counts(ALL) - rule.self_matching  # the owner itself is not counted
    exceeded = peers == rule.limit if existing.while_satisfied else peers >= rule.limit
    return existing.owners.counts(at, only=exceeded) > 0


def sum_of_counts(weighted: Iterable[tuple[Reach, int]], at: At) -> NDArray[np.int64]:
    """The counts of many counters for each target, each times its weight; they are added up by domain first."""
    total: NDArray[np.int64] = np.zeros((), np.int64)
    by_column: dict[str, tuple[ValueColumn, list[tuple[Counter, int]]]] = {}
    for reach, weight in weighted:
        if len(reach.columns) == 1 and not reach.columns[0].further:
            column = reach.columns[0]
            counters = by_column.setdefault(column.key, (column, []))[1]
            counters.append((reach.counter, weight))
            counters += [(counter, sign * weight) for counter, sign in reach.others]
        else:
            total = total + weight * reach.counts(at)
    for column, counters in by_column.values():
        total = total + column.gather(sum_by_domain(column.n_domains, counters), at)
    return total


def in_detail(state: InterPodAffinityState, index: PlacementIndex) -> InterPodAffinityState:
    """The state with every required anti-affinity term of placed workloads by itself, for evidence with names."""
    if all(one.owners is one.rule.reach for one in state.existing_anti_affinity):
        return state
    roles = (Role.ANTI_REQUIRED,)
    rules = index.peer_index.matching_owner_rules(dict(state.part.labels), state.part.namespace, roles)
    single = [one for one in state.existing_anti_affinity if one.owners is one.rule.reach]
    known = {id(one.rule) for one in single}
    single += [ExistingPodTerm(rule, rule.reach, None) for rule in rules if id(rule) not in known]
    return msgspec.structs.replace(state, existing_anti_affinity=tuple(single))


def rejecting_reaches_of(state: InterPodAffinityState) -> list[Reach]:
    """The counters that the codes depend on."""
    some = [term.reach for terms in (state.required_affinity, state.required_anti_affinity) for term in terms]
    for existing in state.existing_anti_affinity:
        some += [existing.owners] if existing.matches is None else [existing.owners, existing.matches]
    return some


def scoring_reaches_of(state: InterPodAffinityState) -> list[Reach]:
    """The counters that the scores depend on."""
    some = [term.reach for terms in (state.preferred_affinity, state.preferred_anti_affinity) for term in terms]
    for existing in state.existing_scores:
        some += [existing.owners] if existing.matches is None else [existing.owners, existing.matches]
    return some


def has_few_domains(reaches: Iterable[Reach]) -> bool:
    """Whether these counters count in few domains, each of one topology key."""
    n_domains = 0
    for reach in reaches:
        n_domains += len(reach.counter.by_domain)
        if reach.others:
            n_domains += sum([len(counter.by_domain) for counter, sign in reach.others if sign > 0])
        if n_domains > MAX_FEW_DOMAINS or len(reach.columns) > 1 or reach.columns[0].further:
            return False
    return True
