"""
How far soft rules have what they ask for, in points: only differences mean something, and more is better.

A preferred term is worth its weight, as often as it counts when placing (`softTermsCountOnce`). What has no weight of
its own counts as much as the strongest wish: each pod too many under a soft spread constraint, each untolerated soft
taint, each group or tier further down. Reads counters; looks at workloads one by one only where asked about one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from bayplan.enforcing import neighbour_wishes
from bayplan.enforcing.neighbour_wishes import NeighbourPoints
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.reach import Reach
from bayplan.indexing.slots import ALL
from bayplan.indexing.term_table import TermEntry
from bayplan.model.bindings import Binding
from bayplan.model.decisions import Mask
from bayplan.model.labels import EVERYTHING
from bayplan.model.terms import TARGET, PeerTerm, TermPart
from bayplan.model.workloads import SpreadConstraint, Workload, WorkloadKey
from bayplan.rules import cluster_affinity, node_affinity, taint_toleration
from bayplan.rules.rule import Rule

STRONGEST = 100  # the highest weight that a wish can have
NEIGHBOURS, SPREAD, NODES, TAINTS = "InterPodAffinity", "PodTopologySpread", "NodeAffinity", "TaintToleration"
WORKLOADS, CLUSTERS = "WorkloadAffinity", "ClusterAffinity"

Points = Mapping[str, int]  # by the name of the rule
Shares = tuple[tuple[str, int], ...]


class _Spread(msgspec.Struct, frozen=True):
    """A soft spread constraint of some workloads: whom it counts, and on which targets."""

    constraint: SpreadConstraint
    entry: TermEntry
    peers: Reach
    eligible: Mask


class PodWishes:
    """What soft rules of pods have. Holds terms in the index until `release`; targets must not change meanwhile."""

    def __init__(self, index: PlacementIndex, rules: Sequence[Rule]) -> None:
        self._index = index
        self._neighbours = NeighbourPoints(index)
        self._rules = {rule.name: rule for rule in rules if rule.weight}
        self._spreads = list(self._find_spreads()) if SPREAD in self._rules else []

    def release(self) -> None:
        for spread in self._spreads:
            self._index.census.release(spread.entry)

    def shared(self) -> Points:
        """What depends on who stands beside whom."""
        return {
            NEIGHBOURS: self._neighbours.total() if NEIGHBOURS in self._rules else 0,
            SPREAD: -STRONGEST * sum(self._too_many(spread) for spread in self._spreads),
        }

    def own(self, workload: Workload, shares: Shares) -> Points:
        """What depends on where the workload itself stands."""
        raw = {name: self._raw(self._rules.get(name), workload, shares) for name in (NODES, TAINTS)}
        return {NODES: raw[NODES], TAINTS: -STRONGEST * raw[TAINTS]}

    def unhappy(self) -> set[WorkloadKey]:
        """Those whose going elsewhere might gain something: who misses, is too near, too many, or not liked."""
        found = set(neighbour_wishes.uneasy(self._index)) if NEIGHBOURS in self._rules else set()
        for spread in self._spreads:
            if self._too_many(spread):
                found.update(self._index.census.peers(spread.entry.term, np.flatnonzero(spread.eligible).tolist()))
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
        entry = index.census.hold(PeerTerm((part,), counts_terminating=False))
        return _Spread(constraint, entry, index.census.match_reach(entry, (TARGET,)), eligible)

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


class FleetWishes:
    """What soft rules of bindings have: preferred workload terms, and groups and tiers as far up as can be."""

    def __init__(self, index: PlacementIndex) -> None:
        self._index = index
        self._neighbours = NeighbourPoints(index)

    def shared(self) -> Points:
        return {WORKLOADS: self._neighbours.total()}

    def own(self, workload: Workload, shares: Shares) -> Points:
        assert workload.binding is not None
        return {CLUSTERS: -self._below(workload.binding, shares)}

    def unhappy(self) -> set[WorkloadKey]:
        records = self._index.records.items()
        below = {key for key, record in records if self._is_below(record.workload, record.shares)}
        return below | set(neighbour_wishes.uneasy(self._index))

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
        named = [(tier, count) for tier, count in held if tier != cluster_affinity.NOWHERE]
        total = sum(count for _, count in named)
        depth = STRONGEST * sum(tier * count for tier, count in named) // total if total else 0
        return STRONGEST * position + depth
