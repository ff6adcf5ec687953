"""
The rules that must hold while a workload runs, and each rule as it is tracked in the index.

An `ExecutionRule` says which peers it matches, in which domains, and how many of them are allowed. A pod's rules are
its terms that are required during execution. For a binding they are all required terms and Karmada's groups, of which
only the terms that are required during execution are enforced; the others are reported.

A `TrackedRule` has the owners of one rule by domain, and for which of them it is broken. It reads counters by domain,
never workloads. All owners of a rule in a domain are evaluated by the same count, so a domain is evaluated again only
when its count crosses a level that matters (`_level`).
"""

from __future__ import annotations

import enum
from collections.abc import Hashable

import msgspec

from bayplan.caching import memoised
from bayplan.indexing.classes import PlacedWorkload
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ValueColumn, values_of
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
from bayplan.rules.inter_pod_affinity import show_term


class RuleType(enum.Enum):
    """What a rule requires of the peers it matches."""

    AFFINITY = "affinity"  # at least one of them in the domain
    ANTI_AFFINITY = "anti-affinity"  # at most `limit` of them in the domain
    GROUP_AFFINITY = "affinity group"  # all of them on the same target


class MatchingSet(msgspec.Struct, frozen=True):
    """The workloads that match a term, on targets that have one of the keys, or anywhere if `keys` is empty."""

    term: PeerTerm
    keys: tuple[str, ...] = ()


class ExecutionRule(msgspec.Struct, frozen=True):
    """
    One rule of its owners. `path` and `shown` are for messages. Evictions are only for rules that are `enforced`.

    `lone_member_sets` are for the first-pod rule: an affinity that matches its owner is not violated while the owner is
    the only member. That is the case if in one of these lists the owner, and no other workload, matches all terms.
    """

    rule_type: RuleType
    term: PeerTerm
    keys: tuple[str, ...]
    limit: int = 0
    path: str = ""
    shown: str = ""
    lone_member_sets: tuple[tuple[MatchingSet, ...], ...] = ()
    enforced: bool = True


def execution_rules_of(workload: Workload, semantics: Semantics) -> tuple[ExecutionRule, ...]:
    """The rules of this workload while it runs; none if it is terminating."""
    if workload.terminating:
        return ()
    affinity, binding = workload.needs.affinity, workload.binding
    if binding is None:
        return _rules_of_terms(_during_execution(affinity), affinity, workload.namespace, semantics) if affinity else ()
    group, anti_group = workload.labels.get(AFFINITY_GROUP), workload.labels.get(ANTI_AFFINITY_GROUP)
    terms = _rules_of_terms(affinity, affinity, workload.namespace, semantics) if affinity else ()
    return (*terms, *_rules_of_groups(group, anti_group, binding.namespace)) if group or anti_group else terms


@memoised(16384)
def _during_execution(affinity: AffinityTerms) -> AffinityTerms:
    """The required terms that must also hold during execution."""
    return AffinityTerms(
        required=tuple(term for term in affinity.required if term.during_execution),
        anti_required=tuple(term for term in affinity.anti_required if term.during_execution),
    )


@memoised(16384)
def _rules_of_terms(
    execution_terms: AffinityTerms, written: AffinityTerms, namespace: str, semantics: Semantics
) -> tuple[ExecutionRule, ...]:
    execution_terms = AffinityTerms(
        required=_with_topology(execution_terms.required, semantics),
        anti_required=_with_topology(execution_terms.anti_required, semantics),
    )
    if execution_terms == NO_TERMS:
        return ()
    # Affinity and anti-affinity as they were resolved for placing, so that a new placement is never a violation.
    affinity = resolve(AffinityTerms(required=execution_terms.required), namespace, semantics, incoming=True)
    anti_affinity = resolve(
        AffinityTerms(anti_required=execution_terms.anti_required), namespace, semantics, incoming=False
    )
    all_affinity = resolve(AffinityTerms(required=written.required), namespace, semantics, incoming=True)
    return (
        *(_affinity_rule(one, affinity, all_affinity, semantics) for one in affinity.required),
        *map(_anti_affinity_rule, anti_affinity.anti_required),
    )


def _with_topology(terms: tuple[PodTerm, ...], semantics: Semantics) -> tuple[PodTerm, ...]:
    """Without terms whose empty topology key has no meaning: these are rejected at placing and evict no pod."""
    return tuple(term for term in terms if term.topology_key or semantics.empty_topology_key_means_any)


def _affinity_rule(
    one: ResolvedTerm, affinity: ResolvedTerms, all_affinity: ResolvedTerms, semantics: Semantics
) -> ExecutionRule:
    if semantics.first_pod_per_term:
        sets: tuple[tuple[MatchingSet, ...], ...] = ((MatchingSet(one.term),),)
    else:
        # A pod placed as the first of its set is evaluated by all of its terms, so it must not violate any here.
        lists = (
            tuple(MatchingSet(_met_by(term, resolved, semantics), term.keys) for term in resolved.required)
            for resolved in (affinity, all_affinity)
        )
        sets = tuple(dict.fromkeys(lists))
    met_by = _met_by(one, affinity, semantics)
    shown = show_term(one.source)
    if len(met_by.parts) > 1:
        shown = f"{' and '.join(dict.fromkeys(show_term(each.source) for each in affinity.required))}, all in one pod"
    return ExecutionRule(
        RuleType.AFFINITY,
        met_by,
        one.keys,
        path=one.source.path,
        shown=shown,
        lone_member_sets=sets,
        enforced=one.source.during_execution,
    )


def _met_by(one: ResolvedTerm, resolved: ResolvedTerms, semantics: Semantics) -> PeerTerm:
    """The peers that meet the term: upstream requires one peer that meets all terms."""
    return one.term if semantics.affinity_terms_met_apart or resolved.conjunction is None else resolved.conjunction


def _anti_affinity_rule(one: ResolvedTerm) -> ExecutionRule:
    # A terminating pod resolves the conflict without an eviction.
    term = msgspec.structs.replace(one.term, counts_terminating=False)
    return ExecutionRule(
        RuleType.ANTI_AFFINITY,
        term,
        one.keys,
        one.limit,
        one.source.path,
        show_term(one.source),
        enforced=one.source.during_execution,
    )


@memoised(4096)
def _rules_of_groups(
    affinity_group: str | None, anti_affinity_group: str | None, namespace: str
) -> tuple[ExecutionRule, ...]:
    """The rules of Karmada's groups, whose scope is the namespace of the template."""
    return tuple(
        ExecutionRule(
            rule_type,
            PeerTerm((TermPart(equals({label: group}), (namespace,)),), counts_terminating=False),
            (TARGET,),
            path=f"workloadAffinityGroups.{field}",
            shown=group,
            enforced=False,
        )
        for rule_type, label, group, field in (
            (RuleType.GROUP_AFFINITY, AFFINITY_GROUP, affinity_group, "affinityGroup"),
            (RuleType.ANTI_AFFINITY, ANTI_AFFINITY_GROUP, anti_affinity_group, "antiAffinityGroup"),
        )
        if group
    )


# Rules tracked in the index

Domain = tuple[str, Hashable]  # topology key and value; ids of domains are reused for other values


class RuleBreach(msgspec.Struct, frozen=True):
    """Where a rule is broken for an owner: the slot, and the domains with too many peers or with none."""

    slot: int
    domains: tuple[Domain, ...]


class TrackedSet(msgspec.Struct, frozen=True):
    """A `MatchingSet` with its counter in the index."""

    matching_set: MatchingSet
    counter: Counter

    def has_other_members(self, record: PlacedWorkload) -> bool:
        """Whether the set has a member other than the owner, which is one."""
        if not self.matching_set.keys:
            return self.counter.anywhere > 1
        column = self.counter.column
        own = {domain for slot in record.slots for domain in column.domains(slot)}
        return any(count > (domain in own) for domain, count in self.counter.by_domain.items())

    def members(self, index: PlacementIndex) -> tuple[WorkloadKey, ...]:
        """All members, the owner included."""
        term, column = self.matching_set.term, self.counter.column
        if not self.matching_set.keys and index.lost_targets_count:
            return index.peer_index.all_peers(term)
        slots = index.slots.by_name.values()
        return index.peer_index.peers(term, [s for s in slots if not self.matching_set.keys or column.domains(s)])

    def state(self) -> Hashable:
        """A value that changes whenever the answer of `has_other_members` does, for any owner."""
        if not self.matching_set.keys:
            return min(self.counter.anywhere, 2)
        widest = 1 + max(map(len, self.counter.column.further.values()), default=0)
        if len(self.counter.by_domain) > widest:
            return None  # more domains than one owner can be in: another member is in one of them
        return frozenset((domain, min(count, 2)) for domain, count in self.counter.by_domain.items())


class TrackedRule:
    """
    One rule with its owners. `unmet` are the owners of an affinity that have no peer in their domain, lone members
    included.
    """

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
        """Release the terms held in the index."""
        for entry in (self.entry, *self.set_entries):
            self._index.peer_index.release(entry)

    # Owners

    def add_owner(self, key: WorkloadKey, domains: tuple[Domain, ...]) -> None:
        self.owners.add(key)
        for domain in domains:
            owners = self.owners_by_domain.get(domain)
            if owners is None:
                self.owners_by_domain[domain] = {key}
                self._levels[domain] = self._level(domain)
            else:
                owners.add(key)

    def remove_owner(self, key: WorkloadKey, domains: tuple[Domain, ...]) -> None:
        self.owners.discard(key)
        self.unmet.discard(key)
        for domain in domains:
            self.owners_by_domain[domain].discard(key)
            if not self.owners_by_domain[domain]:
                del self.owners_by_domain[domain], self._levels[domain]

    def domains_of(self, target: Target) -> list[Domain]:
        """The target's domains by the keys of the rule."""
        return [(column.key, value) for column in self._columns for value in values_of(column.key, target)]

    def level_changed(self, domain: Domain) -> bool:
        """Whether the count of a domain with owners has crossed a level since the last call."""
        before, self._levels[domain] = self._levels[domain], self._level(domain)
        return before != self._levels[domain]

    def refresh(self) -> None:
        """Record all levels and set states as they are now."""
        for domain in self._levels:
            self._levels[domain] = self._level(domain)
        self._set_states = self._current_set_states()

    def sets_changed(self) -> bool:
        """Whether an owner may have become, or ceased to be, the lone member of a set since the last call."""
        before, self._set_states = self._set_states, self._current_set_states()
        return before != self._set_states

    def _current_set_states(self) -> Hashable:
        return tuple(one.state() for sets in self._sets for one in sets)

    # Judging

    def breaches(self, record: PlacedWorkload) -> list[RuleBreach]:
        """Where the rule is broken for one owner."""
        match self.rule.rule_type:
            case RuleType.ANTI_AFFINITY:
                found = [RuleBreach(slot, self._overfull_domains(slot, record)) for slot in record.slots]
                return [breach for breach in found if breach.domains]
            case RuleType.GROUP_AFFINITY:
                missing = [slot for slot in record.slots if self._count_on(slot) < self.counters[0].anywhere]
                return [RuleBreach(slot, self._domains_at(slot)) for slot in missing]
            case RuleType.AFFINITY:
                return self._affinity_breaches(record)

    def _affinity_breaches(self, record: PlacedWorkload) -> list[RuleBreach]:
        without_peer = [slot for slot in record.slots if not self._has_peer(slot, record)]
        if not without_peer:
            self.unmet.discard(record.workload.key)
            return []
        self.unmet.add(record.workload.key)
        if self._is_lone_member(record):
            return []
        return [RuleBreach(slot, self._domains_at(slot)) for slot in without_peer]

    def n_named(self, breach: RuleBreach) -> int:
        """How many peers a violation names, give or take its owner; they are counted, not looked up."""
        if self.rule.rule_type is not RuleType.ANTI_AFFINITY:
            return self.counters[0].anywhere
        (counter,) = self.counters
        return sum(counter.by_domain.get(counter.column.by_value[value], 0) for _, value in breach.domains)

    def _has_peer(self, slot: int, record: PlacedWorkload) -> bool:
        own = self.matches_itself(record)
        return any(
            counter.by_domain.get(domain, 0) > own
            for counter in self.counters
            for domain in counter.column.domains(slot)
        )

    def _overfull_domains(self, slot: int, record: PlacedWorkload) -> tuple[Domain, ...]:
        (counter,), own = self.counters, self.matches_itself(record)
        column = counter.column
        return tuple(
            (column.key, column.values[domain])
            for domain in column.domains(slot)
            if counter.by_domain.get(domain, 0) - own > self.rule.limit
        )

    def _is_lone_member(self, record: PlacedWorkload) -> bool:
        return any(not any(one.has_other_members(record) for one in sets) for sets in self.own_sets(record))

    def own_sets(self, record: PlacedWorkload) -> list[tuple[TrackedSet, ...]]:
        """The lists of sets that the owner is a member of; the lone member of one list violates nothing."""
        return [sets for sets in self._sets if all(self._matches(one.matching_set.term, record) for one in sets)]

    def matches_itself(self, record: PlacedWorkload) -> bool:
        """Whether the rule matches its owner."""
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
        """The excess of peers, from 0 to 2: at 2, even an owner that the rule matches itself has too many."""
        key, value = domain
        counter = next(counter for counter in self.counters if counter.column.key == key)
        count = counter.by_domain.get(counter.column.by_value.get(value, -1), 0)
        return max(0, min(count - self.rule.limit, 2))

    def _track_set(self, matching_set: MatchingSet) -> TrackedSet:
        peer_index = self._index.peer_index
        entry = peer_index.hold(matching_set.term)
        self.set_entries.append(entry)
        return TrackedSet(matching_set, peer_index.match_reach(entry, matching_set.keys or self.rule.keys).counter)
