"""
A violation: a broken rule with the names of its owner, its domain and the conflicting peers.

Made from the breaches that `tracking` finds, for messages and for choosing victims.
"""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import msgspec

from bayplan.enforcing.consent import EvictionConsent, namespace_of
from bayplan.enforcing.execution_rules import Domain, ExecutionRule, RuleBreach, RuleType, TrackedRule, TrackedSet
from bayplan.indexing.classes import PlacedWorkload
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.targets import CLUSTER
from bayplan.model.terms import TARGET
from bayplan.model.workloads import WorkloadKey

Names = tuple[WorkloadKey, ...]


class ViolationId(msgspec.Struct, frozen=True, order=True):
    """Identifies a broken rule of one workload on one target, whichever peers break it."""

    owner: WorkloadKey
    uid: str
    term: str
    topology_key: str
    target: str


class Violation(msgspec.Struct, frozen=True):
    """
    `peers` are the conflicting workloads. For anti-affinity they are in the domain. For affinity they are elsewhere:
    the workloads that the rule matches, if any; for a group, those that are missing on the target.

    `lone_member_without`: the rule matches its owner, and without all other members of any of these sets the owner
    would be the lone member, which is no violation. The sets may contain the owner.

    `protected` contains the peers that the rule may not evict, because their namespace has not consented. A rule that
    is not `enforced` is reported, and evicts nothing.
    """

    owner: WorkloadKey
    uid: str
    rule_type: RuleType
    term: str
    shown: str
    topology_key: str
    domain: str
    target: str
    peers: tuple[WorkloadKey, ...] = ()
    limit: int = 0
    lone_member_without: tuple[frozenset[WorkloadKey], ...] = ()
    protected: frozenset[WorkloadKey] = frozenset()
    enforced: bool = True

    @property
    def id(self) -> ViolationId:
        return ViolationId(self.owner, self.uid, self.term, self.topology_key, self.target)

    def resolved_without(self, gone: Collection[WorkloadKey]) -> bool:
        """Whether the rule is met once these workloads are gone."""
        if self.owner in gone:
            return True
        if self.rule_type is RuleType.ANTI_AFFINITY:
            return len(self.peers) - len(gone) <= self.limit and sum(p not in gone for p in self.peers) <= self.limit
        # An eviction brings no peer into the domain, but it may make the owner the lone member.
        return any(all(key in gone or key == self.owner for key in others) for others in self.lone_member_without)


def involved(violations: Iterable[Violation]) -> set[WorkloadKey]:
    """The owners and peers of all of them."""
    found: set[WorkloadKey] = set()
    for violation in violations:
        found.add(violation.owner)
        found.update(violation.peers)
    return found


class OwnedBreach(NamedTuple):
    """A rule that is broken for its owner, before the names of the peers are looked up."""

    record: PlacedWorkload
    tracked: TrackedRule
    breach: RuleBreach


def violations_of(found: Iterable[OwnedBreach], index: PlacementIndex, consent: EvictionConsent) -> Iterator[Violation]:
    """The violations, with what they name, in the order of the broken rules."""
    builder = _ViolationBuilder(index, consent)
    return (builder.violation(broken.tracked, broken.breach, broken.record) for broken in found)


def ids_of(found: Iterable[OwnedBreach], index: PlacementIndex) -> Iterator[ViolationId]:
    """The ids of the violations."""
    for record, tracked, breach in found:
        workload, rule = record.workload, tracked.rule
        target = index.slots.at(breach.slot).name
        yield ViolationId(workload.key, workload.uid, rule.path, _shown_keys(rule), target)


class _ViolationBuilder:
    """Looks names up once: they are the same for all owners of a rule in a domain, and for all members of a set."""

    def __init__(self, index: PlacementIndex, consent: EvictionConsent) -> None:
        self._index, self._consent = index, consent
        self._peers: dict[tuple[TrackedRule, tuple[Domain, ...]], Names] = {}
        self._protected: dict[tuple[TrackedRule, tuple[Domain, ...], str], frozenset[WorkloadKey]] = {}
        self._sets: dict[tuple[TrackedSet, ...], frozenset[WorkloadKey]] = {}

    def violation(self, tracked: TrackedRule, breach: RuleBreach, record: PlacedWorkload) -> Violation:
        rule, workload = tracked.rule, record.workload
        peers = self._peers_of(tracked, breach)
        return Violation(
            owner=workload.key,
            uid=workload.uid,
            rule_type=rule.rule_type,
            term=rule.path,
            shown=rule.shown,
            topology_key=_shown_keys(rule),
            domain=", ".join(f"{_plain(key)}={value}" for key, value in breach.domains),
            target=self._index.slots.at(breach.slot).name,
            peers=_without(peers, workload.key),
            limit=rule.limit,
            lone_member_without=self._lone_member_without(tracked, record, peers),
            protected=self._protected_among(peers, tracked, breach, workload.namespace),
            enforced=rule.enforced,
        )

    def _protected_among(
        self, peers: Names, tracked: TrackedRule, breach: RuleBreach, namespace: str
    ) -> frozenset[WorkloadKey]:
        if self._consent.everywhere or tracked.rule.rule_type is not RuleType.ANTI_AFFINITY:
            return frozenset()  # only anti-affinity evicts other pods than the owner of the rule
        known = self._protected.get((tracked, breach.domains, namespace))
        if known is None:
            allowed = {other: self._consent.allows(namespace, other) for other in set(map(namespace_of, peers))}
            known = frozenset(peer for peer in peers if not allowed[namespace_of(peer)])
            self._protected[tracked, breach.domains, namespace] = known
        return known

    def _lone_member_without(
        self, tracked: TrackedRule, record: PlacedWorkload, peers: Names
    ) -> tuple[frozenset[WorkloadKey], ...]:
        if tracked.rule.rule_type is RuleType.GROUP_AFFINITY:
            return (frozenset(peers),)
        return tuple(map(self._members, tracked.own_sets(record)))

    def _members(self, sets: tuple[TrackedSet, ...]) -> frozenset[WorkloadKey]:
        if sets not in self._sets:
            names = (key for one in sets for key in one.members(self._index))
            self._sets[sets] = frozenset(names)
        return self._sets[sets]

    def _peers_of(self, tracked: TrackedRule, breach: RuleBreach) -> Names:
        where = breach.domains if tracked.rule.rule_type is not RuleType.AFFINITY else ()
        if (tracked, where) not in self._peers:
            self._peers[tracked, where] = self._look_up(tracked, breach)
        return self._peers[tracked, where]

    def _look_up(self, tracked: TrackedRule, breach: RuleBreach) -> Names:
        peer_index, term = self._index.peer_index, tracked.rule.term
        match tracked.rule.rule_type:
            case RuleType.ANTI_AFFINITY:
                (counter,) = tracked.counters
                column = counter.column
                slots = {int(slot) for _, value in breach.domains for slot in column.slots_in(column.by_value[value])}
                return peer_index.peers(term, slots)
            case RuleType.GROUP_AFFINITY:
                here = set(peer_index.peers(term, (breach.slot,)))
                return tuple(peer for peer in peer_index.all_peers(term) if peer not in here)
            case RuleType.AFFINITY if self._index.lost_targets_count:
                return peer_index.all_peers(term)
            case RuleType.AFFINITY:
                return peer_index.peers(term, self._index.slots.by_name.values())


def _without(names: Names, key: WorkloadKey) -> Names:
    """The names, which are sorted, without one. Slices, because a thousand conflicting pods have a million peers."""
    position = bisect.bisect_left(names, key)
    return names[:position] + names[position + 1 :] if names[position : position + 1] == (key,) else names


def order(rule: ExecutionRule) -> tuple[str, str, tuple[str, ...]]:
    """A sort key for the rules of one owner."""
    return rule.rule_type.value, rule.path, rule.keys


def _shown_keys(rule: ExecutionRule) -> str:
    return ", ".join(_plain(key) for key in rule.keys)


def _plain(key: str) -> str:
    """A topology key as it is written in manifests."""
    return CLUSTER if key == TARGET else key.removeprefix("\0")
