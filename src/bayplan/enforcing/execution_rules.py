"""
What must hold while a workload stays where it is, clause by clause: who is meant, in which domains, how many may be.

A pod's clauses are its terms that are required during execution. Of a binding all required terms and Karmada's groups
are judged. Knows nothing of who is where.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable
from functools import lru_cache

import msgspec

from bayplan.indexing.classes import PlacedWorkload
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ValueColumn
from bayplan.indexing.term_table import Counter, TermEntry
from bayplan.model.bindings import AFFINITY_GROUP, ANTI_AFFINITY_GROUP
from bayplan.model.labels import equals
from bayplan.model.semantics import Semantics
from bayplan.model.targets import Target
from bayplan.model.terms import (
    NO_TERMS,
    TARGET,
    AffinityTerms,
    PeerTerm,
    PodTerm,
    ResolvedTerm,
    ResolvedTerms,
    TermPart,
    resolve,
)
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.rules.inter_pod_evidence import show_term


class RuleType(enum.Enum):
    """What a clause asks of the peers it means."""

    AFFINITY = "affinity"  # one of them in the domain
    ANTI_AFFINITY = "anti-affinity"  # no more than the limit in the domain
    GROUP_AFFINITY = "affinity group"  # every one of them on the same target


class MatchingSet(msgspec.Struct, frozen=True):
    """Others of the owner's own kind: on targets that have one of the keys, or anywhere if `keys` is empty."""

    term: PeerTerm
    keys: tuple[str, ...] = ()


class ExecutionRule(msgspec.Struct, frozen=True):
    """
    One rule as its owners hold it. `path` and `shown` are for people.

    `lone_member_sets` says when the owner is the lone member of a set that wants to be together, which is no violation: if in one
    of these lists the owner matches every term and nobody else does.
    """

    rule_type: RuleType
    term: PeerTerm
    keys: tuple[str, ...]
    limit: int = 0
    path: str = ""
    shown: str = ""
    lone_member_sets: tuple[tuple[MatchingSet, ...], ...] = ()


def execution_rules_of(workload: Workload, semantics: Semantics) -> tuple[ExecutionRule, ...]:
    """What must hold for this workload while it runs; nothing for one that is on its way out."""
    if workload.terminating:
        return ()
    affinity, binding = workload.needs.affinity, workload.binding
    if binding is None:
        return _of_terms(_during_execution(affinity), affinity, workload.namespace, semantics) if affinity else ()
    near, apart = workload.labels.get(AFFINITY_GROUP), workload.labels.get(ANTI_AFFINITY_GROUP)
    terms = _of_terms(affinity, affinity, workload.namespace, semantics) if affinity else ()
    return (*terms, *_of_groups(near, apart, binding.namespace)) if near or apart else terms


@lru_cache(maxsize=16384)
def _during_execution(affinity: AffinityTerms) -> AffinityTerms:
    """The hard terms that must hold during execution too."""
    return AffinityTerms(
        required=tuple(term for term in affinity.required if term.during_execution),
        anti_required=tuple(term for term in affinity.anti_required if term.during_execution),
    )


@lru_cache(maxsize=16384)
def _of_terms(
    judged: AffinityTerms, written: AffinityTerms, namespace: str, semantics: Semantics
) -> tuple[ExecutionRule, ...]:
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
    return (
        *(_affinity_rule(use, near, whole, semantics) for use in near.required),
        *map(_anti_affinity_rule, apart.anti_required),
    )


def _with_topology(terms: tuple[PodTerm, ...], semantics: Semantics) -> tuple[PodTerm, ...]:
    """A term whose empty topology key means nothing is refused when placing; nobody is thrown out for it."""
    return tuple(term for term in terms if term.topology_key or semantics.empty_topology_key_means_any)


def _affinity_rule(use: ResolvedTerm, near: ResolvedTerms, whole: ResolvedTerms, semantics: Semantics) -> ExecutionRule:
    if semantics.first_pod_per_term:
        lone_member_sets: tuple[tuple[MatchingSet, ...], ...] = ((MatchingSet(use.term),),)
    else:
        # Placed as the first of its set, judged by all of its terms, it must not be in violation by some of them.
        lists = (tuple(MatchingSet(_met_by(u, r, semantics), u.keys) for u in r.required) for r in (near, whole))
        lone_member_sets = tuple(dict.fromkeys(lists))
    term, source = _met_by(use, near, semantics), use.source
    return ExecutionRule(
        RuleType.AFFINITY, term, use.keys, path=source.path, shown=show_term(source), lone_member_sets=lone_member_sets
    )


def _met_by(use: ResolvedTerm, resolved: ResolvedTerms, semantics: Semantics) -> PeerTerm:
    """Who meets the term: upstream wants one peer that meets all of them."""
    return use.term if semantics.affinity_terms_met_apart or resolved.conjunction is None else resolved.conjunction


def _anti_affinity_rule(use: ResolvedTerm) -> ExecutionRule:
    # Whoever is on the way out ends the conflict by himself.
    term = msgspec.structs.replace(use.term, counts_terminating=False)
    return ExecutionRule(RuleType.ANTI_AFFINITY, term, use.keys, use.limit, use.source.path, show_term(use.source))


@lru_cache(maxsize=4096)
def _of_groups(near: str | None, apart: str | None, namespace: str) -> tuple[ExecutionRule, ...]:
    """Karmada's groups, which reach as far as the template's namespace."""
    return tuple(
        ExecutionRule(
            rule_type,
            PeerTerm((TermPart(equals({label: group}), (namespace,)),), counts_terminating=False),
            (TARGET,),
            path=f"workloadAffinityGroups.{field}",
            shown=group,
        )
        for rule_type, label, group, field in (
            (RuleType.GROUP_AFFINITY, AFFINITY_GROUP, near, "affinityGroup"),
            (RuleType.ANTI_AFFINITY, ANTI_AFFINITY_GROUP, apart, "antiAffinityGroup"),
        )
        if group
    )


# RF merged from enforcing.duties: A clause at work in the index: who holds it in which domain, and for whom it is
# broken. Reads counters by domain, never workloads. Everybody who holds a clause in a domain is judged by the same
# count, so a domain is looked at again only when its count crosses what makes a difference (`level`).


Domain = tuple[str, Hashable]  # topology key and value: ids of domains are given to other values in time


class RuleBreach(msgspec.Struct, frozen=True):
    """Where a clause is broken for its owner: the slot, and the domains with too many peers or with none."""

    slot: int
    domains: tuple[Domain, ...]


class TrackedSet(msgspec.Struct, frozen=True):
    """A `Company` in the index."""

    matching_set: MatchingSet
    counter: Counter

    def has_other_members(self, record: PlacedWorkload) -> bool:
        """Whether anybody but the owner, who is one of them, is counted."""
        if not self.matching_set.keys:
            return self.counter.anywhere > 1
        column = self.counter.column
        own = {domain for slot in record.slots for domain in column.domains(slot)}
        return any(count > (domain in own) for domain, count in self.counter.by_domain.items())

    def names(self, index: PlacementIndex) -> tuple[WorkloadKey, ...]:
        """All who are counted, the owner included."""
        term, column = self.matching_set.term, self.counter.column
        if not self.matching_set.keys and index.lost_targets_count:
            return index.peer_index.all_peers(term)
        slots = index.slots.by_name.values()
        return index.peer_index.peers(term, [s for s in slots if not self.matching_set.keys or column.domains(s)])

    def state(self) -> Hashable:
        """Something that changes whenever the answer of `has_other_members` does, for whomever."""
        if not self.matching_set.keys:
            return min(self.counter.anywhere, 2)
        widest = 1 + max(map(len, self.counter.column.further.values()), default=0)
        if len(self.counter.by_domain) > widest:
            return None  # more domains than any one owner stands in: somebody else is in one of them
        return frozenset((domain, min(count, 2)) for domain, count in self.counter.by_domain.items())


class TrackedRule:
    """`owners_by_domain` has who holds the clause by domain, `unmet` those of an affinity with no peer near, alone or not."""

    def __init__(self, rule: ExecutionRule, index: PlacementIndex) -> None:
        self.rule = rule
        self._index = index
        peer_index = index.peer_index
        self.entry = peer_index.hold(rule.term)
        self.counters = [peer_index.match_reach(self.entry, (key,)).counter for key in rule.keys]
        self.owners_by_domain: dict[Domain, set[WorkloadKey]] = {}
        self.owners: set[WorkloadKey] = set()
        self.unmet: set[WorkloadKey] = set()
        self.set_entries: list[TermEntry] = []
        self._sets = tuple(tuple(map(self._track_set, sets)) for sets in rule.lone_member_sets)
        self._levels: dict[Domain, int] = {}
        self._set_states = self._current_set_states()

    def release(self) -> None:
        """Let go of the terms."""
        for entry in (self.entry, *self.set_entries):
            self._index.peer_index.release(entry)

    # Who holds it

    def add_owner(self, key: WorkloadKey, domains: tuple[Domain, ...]) -> None:
        self.owners.add(key)
        for domain in domains:
            owners_by_domain = self.owners_by_domain.get(domain)
            if owners_by_domain is None:
                self.owners_by_domain[domain] = {key}
                self._levels[domain] = self._level(domain)
            else:
                owners_by_domain.add(key)

    def remove_owner(self, key: WorkloadKey, domains: tuple[Domain, ...]) -> None:
        self.owners.discard(key)
        self.unmet.discard(key)
        for domain in domains:
            self.owners_by_domain[domain].discard(key)
            if not self.owners_by_domain[domain]:
                del self.owners_by_domain[domain], self._levels[domain]

    def domains_of(self, target: Target) -> list[Domain]:
        """The target's domains as the clause sees them."""
        return [(column.key, value) for column in self._columns for value in column.values_of(target)]

    def crossed(self, domain: Domain) -> bool:
        """Whether the count of a domain that has holders now means something else than when last asked."""
        before, self._levels[domain] = self._levels[domain], self._level(domain)
        return before != self._levels[domain]

    def refresh(self) -> None:
        """Take note of all counts as they are."""
        for domain in self._levels:
            self._levels[domain] = self._level(domain)
        self._set_states = self._current_set_states()

    def sets_changed(self) -> bool:
        """Whether somebody may have become the lone member of a set, or ceased to be, since last asked."""
        before, self._set_states = self._set_states, self._current_set_states()
        return before != self._set_states

    def _current_set_states(self) -> Hashable:
        return tuple(others.state() for sets in self._sets for others in sets)

    # For whom it is broken

    def breaches(self, record: PlacedWorkload) -> list[RuleBreach]:
        """Where the clause is broken for one owner."""
        match self.rule.rule_type:
            case RuleType.ANTI_AFFINITY:
                found = [RuleBreach(slot, self._crowded(slot, record)) for slot in record.slots]
                return [breach for breach in found if breach.domains]
            case RuleType.GROUP_AFFINITY:
                missing = [slot for slot in record.slots if self._count_on(slot) < self.counters[0].anywhere]
                return [RuleBreach(slot, self._domains_at(slot)) for slot in missing]
            case RuleType.AFFINITY:
                return self._far(record)

    def _far(self, record: PlacedWorkload) -> list[RuleBreach]:
        far = [slot for slot in record.slots if not self._has_peer(slot, record)]
        if not far:
            self.unmet.discard(record.workload.key)
            return []
        self.unmet.add(record.workload.key)
        return [] if self._is_lone_member(record) else [RuleBreach(slot, self._domains_at(slot)) for slot in far]

    def _has_peer(self, slot: int, record: PlacedWorkload) -> bool:
        own = self.matches_itself(record)
        return any(
            counter.by_domain.get(domain, 0) > own
            for counter in self.counters
            for domain in counter.column.domains(slot)
        )

    def _crowded(self, slot: int, record: PlacedWorkload) -> tuple[Domain, ...]:
        (counter,), own = self.counters, self.matches_itself(record)
        column = counter.column
        return tuple(
            (column.key, column.values[domain])
            for domain in column.domains(slot)
            if counter.by_domain.get(domain, 0) - own > self.rule.limit
        )

    def _is_lone_member(self, record: PlacedWorkload) -> bool:
        return any(not any(o.has_other_members(record) for o in sets) for sets in self.own_sets(record))

    def own_sets(self, record: PlacedWorkload) -> list[tuple[TrackedSet, ...]]:
        """The sets that the owner is a member of: the lone member of one is in no violation."""
        return [s for s in self._sets if all(self._matches(o.matching_set.term, record) for o in s)]

    def matches_itself(self, record: PlacedWorkload) -> bool:
        """Whether the owner is one of those whom its own clause means."""
        return self._matches(self.rule.term, record)

    def _matches(self, term: PeerTerm, record: PlacedWorkload) -> bool:
        return record.member_of is not None and self._index.peer_index.class_matches(term, record.member_of)

    # Counts

    @property
    def _columns(self) -> list[ValueColumn]:
        return [counter.column for counter in self.counters]

    def _domains_at(self, slot: int) -> tuple[Domain, ...]:
        return tuple((c.key, c.values[domain]) for c in self._columns for domain in c.domains(slot))

    def _count_on(self, slot: int) -> int:
        (counter,) = self.counters
        return max((counter.by_domain.get(domain, 0) for domain in counter.column.domains(slot)), default=0)

    def _level(self, domain: Domain) -> int:
        """How many more than allowed, as far as it matters: with two, also an owner who counts himself has too many."""
        key, value = domain
        counter = next(counter for counter in self.counters if counter.column.key == key)
        count = counter.by_domain.get(counter.column.by_value.get(value, -1), 0)
        return max(0, min(count - self.rule.limit, 2))

    def _track_set(self, matching_set: MatchingSet) -> TrackedSet:
        peer_index = self._index.peer_index
        entry = peer_index.hold(matching_set.term)
        self.set_entries.append(entry)
        return TrackedSet(matching_set, peer_index.match_reach(entry, matching_set.keys or self.rule.keys).counter)
