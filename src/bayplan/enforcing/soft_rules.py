"""
How far soft rules have what they ask for, in points: only differences mean something, and more is better.

A preferred term is worth its weight, as often as it counts when placing (`softTermsCountOnce`). What has no weight of
its own counts as much as the strongest wish: each pod too many under a soft spread constraint, each untolerated soft
taint, each group or tier further down. Reads counters; looks at workloads one by one only where asked about one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from bayplan.indexing.journal import Change
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ALL
from bayplan.indexing.term_table import OwnerRule, Reach, Role, TermEntry
from bayplan.model.bindings import Binding
from bayplan.model.labels import EVERYTHING
from bayplan.model.reasons import Mask
from bayplan.model.terms import TARGET, PeerTerm, TermPart
from bayplan.model.workloads import SpreadConstraint, Workload, WorkloadKey
from bayplan.rules import cluster_affinity, node_affinity, taint_toleration
from bayplan.rules.rule import Rule

MAX_WEIGHT = 100  # the highest weight that a wish can have
INTER_POD, SPREAD, NODES, TAINTS = "InterPodAffinity", "PodTopologySpread", "NodeAffinity", "TaintToleration"
WORKLOADS, CLUSTERS = "WorkloadAffinity", "ClusterAffinity"

Points = Mapping[str, int]  # by the name of the rule
Shares = tuple[tuple[str, int], ...]


class _Spread(msgspec.Struct, frozen=True):
    """A soft spread constraint of some workloads: whom it counts, and on which targets."""

    constraint: SpreadConstraint
    entry: TermEntry
    peers: Reach
    eligible: Mask


class PodPreferences:
    """What soft rules of pods have. Holds terms in the index until `release`; targets must not change meanwhile."""

    def __init__(self, index: PlacementIndex, rules: Sequence[Rule]) -> None:
        self._index = index
        self._peer_terms = PeerTermPoints(index)
        self._rules = {rule.name: rule for rule in rules if rule.weight}
        self._spreads = list(self._find_spreads()) if SPREAD in self._rules else []

    def release(self) -> None:
        for spread in self._spreads:
            self._index.peer_index.release(spread.entry)

    def shared(self) -> Points:
        """What depends on who stands beside whom."""
        return {
            INTER_POD: self._peer_terms.total() if INTER_POD in self._rules else 0,
            SPREAD: -MAX_WEIGHT * sum(self._too_many(spread) for spread in self._spreads),
        }

    def own(self, workload: Workload, shares: Shares) -> Points:
        """What depends on where the workload itself stands."""
        raw = {name: self._raw(self._rules.get(name), workload, shares) for name in (NODES, TAINTS)}
        return {NODES: raw[NODES], TAINTS: -MAX_WEIGHT * raw[TAINTS]}

    def improvable(self) -> set[WorkloadKey]:
        """Those whose going elsewhere might gain something: who misses, is too near, too many, or not liked."""
        found = set(improvable_by_peer_terms(self._index)) if INTER_POD in self._rules else set()
        for spread in self._spreads:
            if self._too_many(spread):
                found.update(self._index.peer_index.peers(spread.entry.term, np.flatnonzero(spread.eligible).tolist()))
        for key, record in self._index.records.items():
            if any(self._better_elsewhere(name, record.workload, record.shares) for name in (NODES, TAINTS)):
                found.add(key)
        return found

    def _raw(self, rule: Rule | None, workload: Workload, shares: Shares) -> int:
        raw = self._all_raw(rule, workload)
        known = self._index.slots.by_name
        return 0 if raw is None else sum(int(raw[known[name]]) for name, _ in shares if name in known)

    def _all_raw(self, rule: Rule | None, workload: Workload) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
        part = None if rule is None else rule.part(workload, self._index)
        if rule is None or part is None:
            return None
        return self._index.evaluations.get(rule, part, self._index).raw

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

    def _too_many(self, spread: _Spread) -> int:
        """How many stand in domains beyond what the emptiest one and the skew allow."""
        column = self._index.column(spread.constraint.topology_key)
        here = np.where(spread.eligible, spread.peers.counts(ALL), 0)
        counts = np.bincount(column.of_slot, weights=here, minlength=column.n_domains).astype(np.int64)
        domains = np.unique(column.of_slot[spread.eligible])
        if not len(domains):
            return 0
        most = int(counts[domains].min()) + spread.constraint.max_skew
        return int(np.maximum(counts[domains] - most, 0).sum())


class FleetPreferences:
    """What soft rules of bindings have: preferred workload terms, and groups and tiers as far up as can be."""

    def __init__(self, index: PlacementIndex) -> None:
        self._index = index
        self._peer_terms = PeerTermPoints(index)

    def shared(self) -> Points:
        return {WORKLOADS: self._peer_terms.total()}

    def own(self, workload: Workload, shares: Shares) -> Points:
        assert workload.binding is not None
        return {CLUSTERS: -self._below(workload.binding, shares)}

    def improvable(self) -> set[WorkloadKey]:
        records = self._index.records.items()
        below = {key for key, record in records if self._is_below(record.workload, record.shares)}
        return below | set(improvable_by_peer_terms(self._index))

    def _is_below(self, workload: Workload, shares: Shares) -> bool:
        return workload.binding is not None and self._below(workload.binding, shares) > 0

    def _below(self, binding: Binding, shares: Shares) -> int:
        """Points for every group and, on average over its replicas, every tier that it is further down."""
        groups = binding.placement.groups
        position = next((i for i, group in enumerate(groups) if group.name == binding.observed), 0)
        if not groups or not shares:
            return 0
        tiers = cluster_affinity.tier_by_target(groups[position].tiers, self._index)
        known = self._index.slots.by_name
        # A copy without replicas counts as one, and a cluster that no tier names is no tier's business.
        held = [(int(tiers[known[name]]), max(count, 1)) for name, count in shares if name in known]
        named = [(tier, count) for tier, count in held if tier != cluster_affinity.NO_TIER]
        total = sum(count for _, count in named)
        depth = MAX_WEIGHT * sum(tier * count for tier, count in named) // total if total else 0
        return MAX_WEIGHT * position + depth


# RF merged from enforcing.neighbour_wishes: What preferred terms about neighbours are worth to the workloads that
# hold them, and who is uneasy where it stands. Counted as when placing. The sum is kept from change to change: a
# workload that comes or goes touches the wishes that it holds and those that mean it, and only these are counted
# again.

SOFT = (Role.PREFERRED, Role.ANTI_PREFERRED)


class PeerTermPoints:
    """The worth of all wishes about neighbours."""

    def __init__(self, index: PlacementIndex) -> None:
        self._index = index
        self._position = -1
        self._total = 0
        self._worth: dict[OwnerRule, int] = {}
        # Those that a counter of matches belongs to. A counter that is gone may leave its number to another one: then
        # too many are counted again, never too few.
        self._meaning: defaultdict[int, set[OwnerRule]] = defaultdict(set)

    def total(self) -> int:
        """In points; less than nothing where more is too near than liked."""
        changes = self._index.journal.since(self._position) if self._position >= 0 else None
        if changes is None or any(change.workload is None for change in changes):
            self._worth.clear()
            self._meaning.clear()
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
            found.update(rule for rule in cls.owner_rules if rule.role in SOFT)
            for counter in cls.matched:
                found |= self._meaning.get(id(counter), set())
        return found

    def _count(self, rule: OwnerRule) -> None:
        worth = 0
        if rule.reach.occupied:  # nobody holds it any more: its term may be forgotten, and must not come back
            worth = _points_of(rule, self._index)
            counter = self._index.peer_index.match_reach(rule.entry, rule.reach.keys).counter
            self._meaning[id(counter)].add(rule)
        self._total += worth - self._worth.get(rule, 0)
        self._worth[rule] = worth


def improvable_by_peer_terms(index: PlacementIndex) -> Iterator[WorkloadKey]:
    """Owners of wishes that are not met as well as somewhere else, and whoever stands too near to one."""
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
    return [rule for rule in rules.values() if rule.role in SOFT]


def _points_of(rule: OwnerRule, index: PlacementIndex) -> int:
    owners, others = _owners_and_others(rule, index)
    if index.semantics.soft_terms_count_once:
        others = np.minimum(others, 1)
    sign = 1 if rule.role is Role.PREFERRED else -1
    return sign * rule.weight * int((owners * others).sum())


def _owners_and_others(
    rule: OwnerRule, index: PlacementIndex
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """For each domain, how many hold the rule there and how many others each of them sees."""
    matches = index.peer_index.match_reach(rule.entry, rule.reach.keys)
    if len(matches.columns) == 1:
        owners, seen = rule.reach.counter.array(), matches.counter.array()
    else:  # by target, each of which sees the union of its domains
        targets = rule.reach.counter.column
        owners, seen = targets.gather(rule.reach.counter.array(), ALL), matches.counts(ALL)
    return owners, np.maximum(seen - rule.self_matching, 0)
