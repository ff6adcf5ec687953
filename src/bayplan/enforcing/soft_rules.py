"""
How well soft rules are met, in points: only differences are meaningful, and more is better.

A preferred term is worth its weight, as often as it counts in scoring (`softTermsCountOnce`). Rules without a weight
count as much as the highest weight: each excess pod under a soft spread constraint, each untolerated soft taint, each
affinity group or tier further down. Reads counters; reads single workloads only in queries about one.

The points of preferred pod terms are kept from change to change: a workload that is added or removed affects the terms
that it owns and those that match it, and only these are counted again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec
import numpy as np

from bayplan.enforcing.consent import EvictionConsent
from bayplan.engine.engine import Engine
from bayplan.indexing.classes import PlacedWorkload, WorkloadClass
from bayplan.indexing.journal import Change
from bayplan.indexing.owner_rules import OwnerRule, Role
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ALL
from bayplan.indexing.term_table import Reach, TermEntry
from bayplan.model import namespace_reach
from bayplan.model.bindings import Binding
from bayplan.model.labels import EVERYTHING
from bayplan.model.reasons import Mask
from bayplan.model.terms import TARGET, PeerTerm, TermPart
from bayplan.model.workloads import SpreadConstraint, Workload, WorkloadKey
from bayplan.rules import cluster_affinity, node_affinity, taint_toleration
from bayplan.rules.cluster_affinity import ClusterAffinityRule
from bayplan.rules.inter_pod_affinity import InterPodAffinity
from bayplan.rules.node_affinity import NodeAffinityRule
from bayplan.rules.rule import AnyRule
from bayplan.rules.taint_toleration import TaintToleration
from bayplan.rules.topology_spread import TopologySpread
from bayplan.rules.workload_groups import WorkloadGroupAffinity

MAX_WEIGHT = 100  # of a preferred term
PREFERRED_ROLES = (Role.PREFERRED, Role.ANTI_PREFERRED)
INTER_POD, SPREAD = InterPodAffinity.name, TopologySpread.name
NODES, TAINTS = NodeAffinityRule.name, TaintToleration.name
WORKLOADS, CLUSTERS = WorkloadGroupAffinity.name, ClusterAffinityRule.name

Points = Mapping[str, int]  # by the name of the rule
Shares = tuple[tuple[str, int], ...]


class _Spread(msgspec.Struct, frozen=True):
    """A soft spread constraint of some workloads: the pods it counts, and the eligible targets."""

    constraint: SpreadConstraint
    entry: TermEntry
    peers: Reach
    eligible: Mask


class PodPreferences:
    """
    The points of soft rules of pods. Holds terms in the index until `release`; targets must not change meanwhile.

    Terms of pods of the `granted` namespaces may move pods of every namespace.
    """

    def __init__(self, engine: Engine, granted: AbstractSet[str] = frozenset()) -> None:
        self._engine, self._index = engine, engine.index
        self._foreign = ForeignTermPoints(engine.index, granted)
        self._peer_terms = PeerTermPoints(engine.index)
        self._rules = {rule.name: rule for rule in engine.rules if rule.weight}
        self._spreads = list(self._find_spreads()) if SPREAD in self._rules else []

    def release(self) -> None:
        for spread in self._spreads:
            self._index.peer_index.release(spread.entry)

    def shared(self) -> Points:
        """The points that depend on which pods share a domain."""
        return {
            INTER_POD: self._peer_terms.total() if INTER_POD in self._rules else 0,
            SPREAD: -MAX_WEIGHT * sum(self._excess(spread) for spread in self._spreads),
        }

    def own(self, workload: Workload, shares: Shares) -> Points:
        """The points that depend only on the workload's own target."""
        raw = {name: self._raw(self._rules.get(name), workload, shares) for name in (NODES, TAINTS)}
        return {NODES: raw[NODES], TAINTS: -MAX_WEIGHT * raw[TAINTS]}

    def without_consent(self, key: WorkloadKey) -> Points:
        """The points of a placed pod, where it is, by terms of pods of other namespaces that may not move it."""
        return {INTER_POD: self._foreign.of_workload(key) if INTER_POD in self._rules else 0}

    def improvable(self) -> set[WorkloadKey]:
        """The workloads whose move might gain points."""
        found = set(improvable_by_peer_terms(self._index)) if INTER_POD in self._rules else set()
        for spread in self._spreads:
            if self._excess(spread):
                found.update(self._index.peer_index.peers(spread.entry.term, np.flatnonzero(spread.eligible).tolist()))
        for key, record in self._index.records.items():
            if any(self._better_elsewhere(name, record.workload, record.shares) for name in (NODES, TAINTS)):
                found.add(key)
        return found

    def _raw(self, rule: AnyRule | None, workload: Workload, shares: Shares) -> int:
        raw = self._all_raw(rule, workload)
        known = self._index.slots.by_name
        return 0 if raw is None else sum(int(raw[known[name]]) for name, _ in shares if name in known)

    def _all_raw(self, rule: AnyRule | None, workload: Workload) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
        part = None if rule is None else rule.part(workload, self._index)
        if rule is None or part is None:
            return None
        return self._engine.evaluations.get(rule, part).raw

    def _better_elsewhere(self, name: str, workload: Workload, shares: Shares) -> bool:
        raw = self._all_raw(self._rules.get(name), workload)
        if raw is None:
            return False
        here, alive = self._raw(self._rules[name], workload, shares), raw[self._index.slots.alive]
        return bool((alive < here).any() if name == TAINTS else (alive > here).any())

    # Spreading

    def _find_spreads(self) -> Iterator[_Spread]:
        seen = set()
        for record in self._index.records.values():
            needs, namespace = record.workload.needs, record.workload.namespace
            soft = [c for c in needs.spread.constraints if not c.hard and c.selector not in (None, EVERYTHING)]
            for constraint in soft:
                required = msgspec.structs.replace(needs.node_affinity, preferred=None)
                whose = (
                    namespace,
                    constraint,
                    required if constraint.honors_affinity else None,
                    needs.tolerations if constraint.honors_taints else None,
                )
                if whose not in seen:
                    seen.add(whose)
                    yield self._spread(constraint, record.workload)

    def _spread(self, constraint: SpreadConstraint, workload: Workload) -> _Spread:
        index, needs = self._index, workload.needs
        eligible = index.slots.alive & index.column(constraint.topology_key).present(ALL)
        if constraint.honors_affinity:
            eligible &= node_affinity.matching(needs.node_affinity, index)
        if constraint.honors_taints:
            eligible &= taint_toleration.tolerated_mask(needs.tolerations, index)
        part = TermPart(constraint.selector, (workload.namespace,))
        entry = index.peer_index.hold(PeerTerm((part,), counts_terminating=False))
        return _Spread(constraint, entry, index.peer_index.match_reach(entry, (TARGET,)), eligible)

    def _excess(self, spread: _Spread) -> int:
        """How many pods exceed what the emptiest domain and the maxSkew allow."""
        column = self._index.column(spread.constraint.topology_key)
        here = np.where(spread.eligible, spread.peers.counts(ALL), 0)
        counts = np.bincount(column.of_slot, weights=here, minlength=column.n_domains).astype(np.int64)
        domains = np.unique(column.of_slot[spread.eligible])
        if not len(domains):
            return 0
        most = int(counts[domains].min()) + spread.constraint.max_skew
        return int(np.maximum(counts[domains] - most, 0).sum())


class FleetPreferences:
    """The points of soft rules of bindings: preferred workload terms, and the rank of affinity groups and tiers."""

    def __init__(self, index: PlacementIndex) -> None:
        self._index = index
        self._peer_terms = PeerTermPoints(index)

    def shared(self) -> Points:
        return {WORKLOADS: self._peer_terms.total()}

    def without_consent(self, _key: WorkloadKey) -> Points:
        return {}  # nothing is moved in a fleet

    def own(self, workload: Workload, shares: Shares) -> Points:
        assert workload.binding is not None
        return {CLUSTERS: -self._below(workload.binding, shares)}

    def improvable(self) -> set[WorkloadKey]:
        below = {
            key
            for key, record in self._index.records.items()
            if record.workload.binding is not None and self._below(record.workload.binding, record.shares) > 0
        }
        return below | set(improvable_by_peer_terms(self._index))

    def _below(self, binding: Binding, shares: Shares) -> int:
        """The points lost: `MAX_WEIGHT` per affinity group and, averaged over replicas, per tier below the first."""
        groups = binding.placement.groups
        position = next((i for i, group in enumerate(groups) if group.name == binding.observed), 0)
        if not groups or not shares:
            return 0
        tiers = cluster_affinity.tier_by_target(groups[position].tiers, self._index)
        known = self._index.slots.by_name
        # A cluster without replicas counts as one replica, and a cluster in no tier is ignored.
        held = [(int(tiers[known[name]]), max(count, 1)) for name, count in shares if name in known]
        named = [(tier, count) for tier, count in held if tier != cluster_affinity.NO_TIER]
        total = sum(count for _, count in named)
        depth = MAX_WEIGHT * sum(tier * count for tier, count in named) // total if total else 0
        return MAX_WEIGHT * position + depth


class PeerTermPoints:
    """The points of all preferred pod terms."""

    def __init__(self, index: PlacementIndex) -> None:
        self._index = index
        self._position = -1
        self._total = 0
        self._points: dict[OwnerRule, int] = {}
        # The rules of a counter of matches, by the id of the counter. The id of a deleted counter may be reused: then
        # too many rules are counted again, never too few.
        self._rules_by_counter: defaultdict[int, set[OwnerRule]] = defaultdict(set)

    def total(self) -> int:
        """The sum of the points; negative where anti-affinity outweighs affinity."""
        changes = self._index.journal.since(self._position) if self._position >= 0 else None
        if changes is None or any(change.workload is None for change in changes):
            self._points.clear()
            self._rules_by_counter.clear()
            self._total = 0
            touched = set(_preferred_terms(self._index))
        else:
            touched = self._touched(changes)
        for rule in touched:
            self._count(rule)
        self._position = self._index.journal.end
        return self._total

    def _touched(self, changes: Sequence[Change]) -> set[OwnerRule]:
        found: set[OwnerRule] = set()
        for cls in {change.member_of for change in changes if change.member_of is not None}:
            found.update(rule for rule in cls.owner_rules if rule.role in PREFERRED_ROLES)
            for counter in cls.matched:
                found |= self._rules_by_counter.get(id(counter), set())
        return found

    def _count(self, rule: OwnerRule) -> None:
        points = 0
        if rule.reach.occupied:  # without owners its term may be released, and must not be held again
            points = _points_of(rule, self._index)
            counter = self._index.peer_index.match_reach(rule.entry, rule.reach.keys).counter
            self._rules_by_counter[id(counter)].add(rule)
        self._total += points - self._points.get(rule, 0)
        self._points[rule] = points


class ForeignTermPoints:
    """The points that a pod has by the preferred terms of pods of other namespaces, which it has not consented to."""

    def __init__(self, index: PlacementIndex, granted: AbstractSet[str]) -> None:
        self._index = index
        self._consent = EvictionConsent(index.semantics.evict_across_namespaces, granted, index.peer_index.namespaces)
        # Moves create no terms, so without any that reach other namespaces there is nothing to count.
        self._none = self._consent.everywhere or not any(
            namespace_reach.reaches_others(part, cls.namespace)
            for cls in index.peer_index.classes.by_id.values()
            for rule in cls.owner_rules
            if rule.role in PREFERRED_ROLES
            for part in rule.entry.term.parts
        )

    def of_workload(self, key: WorkloadKey) -> int:
        if self._none:
            return 0
        index, record = self._index, self._index.records[key]
        peer_index, workload = index.peer_index, record.workload
        allowed: dict[str, bool] = {}
        points = 0
        for cls in peer_index.classes.by_id.values():
            if cls.namespace not in allowed:
                allowed[cls.namespace] = self._consent.allows(cls.namespace, workload.namespace)
            for rule in () if allowed[cls.namespace] else cls.owner_rules:
                if rule.role in PREFERRED_ROLES and peer_index.matches(
                    rule.entry.term, workload.labels, workload.namespace, terminating=workload.terminating
                ):
                    points += self._points_by(rule, cls, record)
        return points

    def _points_by(self, rule: OwnerRule, cls: WorkloadClass, record: PlacedWorkload) -> int:
        """The points by one rule of the pods of one class, near the pod."""
        near = {int(slot) for own in record.slots for slot in rule.reach.slots_sharing_domains(own)}
        n_owners = sum(len(members) for slot, members in cls.members.items() if slot in near)
        if n_owners and self._index.semantics.soft_terms_count_once:
            n_owners *= len(self._index.peer_index.peers(rule.entry.term, near)) == 1
        return rule.weight * n_owners * (1 if rule.role is Role.PREFERRED else -1)


def improvable_by_peer_terms(index: PlacementIndex) -> Iterator[WorkloadKey]:
    """The owners of preferred terms that are better met elsewhere, and the pods that match a term nearby."""
    peer_index = index.peer_index
    for rule in _preferred_terms(index):
        owners, others = _owners_and_others(rule, index)
        single = len(rule.reach.columns) == 1
        if rule.role is Role.ANTI_PREFERRED:
            bad = np.flatnonzero((owners > 0) & (others > 0))
        else:
            best = 1 if index.semantics.soft_terms_count_once else int(others.max(initial=0))
            bad = np.flatnonzero((owners > 0) & (others < best))
        column = rule.reach.counter.column
        slots = [int(s) for d in bad for s in (column.slots_in(int(d)) if single else (d,))]
        yield from peer_index.owners(rule, slots)
        yield from peer_index.peers(rule.entry.term, slots)


def _preferred_terms(index: PlacementIndex) -> Iterable[OwnerRule]:
    rules = {id(rule): rule for cls in index.peer_index.classes.by_id.values() for rule in cls.owner_rules}
    return [rule for rule in rules.values() if rule.role in PREFERRED_ROLES]


def _points_of(rule: OwnerRule, index: PlacementIndex) -> int:
    owners, others = _owners_and_others(rule, index)
    if index.semantics.soft_terms_count_once:
        others = np.minimum(others, 1)
    sign = 1 if rule.role is Role.PREFERRED else -1
    return sign * rule.weight * int((owners * others).sum())


def _owners_and_others(
    rule: OwnerRule, index: PlacementIndex
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """For each domain, how many own the rule there and how many other pods each of them matches."""
    matches = index.peer_index.match_reach(rule.entry, rule.reach.keys)
    if len(matches.columns) == 1:
        owners, seen = rule.reach.counter.array(), matches.counter.array()
    else:  # by target, which counts the union of its domains
        targets = rule.reach.counter.column
        owners, seen = targets.gather(rule.reach.counter.array(), ALL), matches.counts(ALL)
    return owners, np.maximum(seen - rule.self_matching, 0)
