"""
Karmada's first two stages: which clusters fit a binding, and in what order it prefers them.

Most of the answer is cached, because many bindings differ only in what depends on peers. Bindings for which the rules
about clusters alone have equal parts, and whose affinity term has the same tiers, share one `ClusterFilter`; those that
also request the same share one `ClusterRanking`. If only the capacity of clusters changes, only the order is computed
again. What depends on peers, or on where the workload is already, is added for each binding.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import takewhile

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.assigning import candidates, component_sets, estimating
from bayplan.assigning.candidates import CandidateRows, Candidates
from bayplan.assigning.go_numbers import MAX_INT32
from bayplan.caching import BoundedCache
from bayplan.engine import filtering
from bayplan.engine.engine import Engine
from bayplan.engine.filtering import Verdicts
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import CLUSTER_FACTS
from bayplan.model.bindings import Binding
from bayplan.model.terms import TARGET
from bayplan.model.workloads import Workload
from bayplan.rules.cluster_affinity import tier_by_target
from bayplan.rules.rule import AnyRule, Rule

ASSIGNED_SCORE = 100  # of a cluster that holds the workload (Karmada: the ClusterLocality plugin)
MAX_CACHED_BYTES = (
    32 * 2**20
)  # of arrays, for filters and for rankings; the least recently used rankings are dropped first
BYTES_PER_CLUSTER = 64  # that one ranking takes
MIN_CACHED_RANKINGS = 16


class ClusterFilter(msgspec.Struct):
    """
    The verdicts of the rules about clusters alone, and the tier of each cluster by slot, for one `generation`.

    `used` is when it was last used, as a position in the journal.
    """

    verdicts: Verdicts
    tiers: NDArray[np.int64]
    generation: int
    used: int


class ClusterRanking(msgspec.Struct):
    """
    The clusters that pass the filter, in order.

    `allocatable` is by slot, shape (capacity,). `replicas` is the number of replicas that it is valid for, None if for
    any; `generation` is that of the cluster capacity that it was computed from, and `used` when it was last used.
    """

    filter: ClusterFilter
    allocatable: NDArray[np.int64]
    candidates: Candidates
    replicas: int | None
    generation: int
    used: int


class FleetEngine(Engine):
    """An engine whose targets are clusters, with the rankings that its bindings share."""

    def __init__(self, index: PlacementIndex, rules: Sequence[AnyRule]) -> None:
        """The rules about clusters alone come first, then those about peers, which must reject by codes."""
        super().__init__(index, rules)
        for key in (TARGET, CLUSTER_FACTS):  # by which groups are counted, and clusters filtered: no decision waits
            index.column(key)
        self.about_clusters = tuple(takewhile(lambda rule: not rule.follows_workloads, self.rules))
        self.about_peers = self.rules[len(self.about_clusters) :]
        for rule in self.about_peers:
            assert type(rule).pre_filter is Rule.pre_filter, f"{rule.id} comes after rules about peers"
        self._filters: BoundedCache[Hashable, ClusterFilter] = BoundedCache()
        self._rankings: BoundedCache[Hashable, ClusterRanking] = BoundedCache()

    def ranking_of(self, workload: Workload) -> ClusterRanking:
        """The ranking of a binding by the rules about clusters alone, as if it were placed nowhere."""
        binding, index = workload.binding, self.index
        assert binding is not None
        filter_key = (tuple([rule.part(workload, index) for rule in self.about_clusters]), binding.group.tiers)
        sets = binding.components if component_sets.counts_sets(binding, index.semantics) else ()
        key = (filter_key, _counts_capacity(binding), binding.demand, sets)
        ranking = self._rankings.get(key)
        if (
            ranking is None
            or ranking.filter.generation != index.targets_generation
            or ranking.generation != index.cluster_capacity.generation
            or ranking.replicas not in (None, binding.replicas)
        ):
            ranking = _ranking(self._filter_of(workload, filter_key), binding, index)
            self._rankings.put(key, ranking, self._max_cached())
        ranking.used = ranking.filter.used = index.journal.end
        return ranking

    def _filter_of(self, workload: Workload, key: Hashable) -> ClusterFilter:
        assert workload.binding is not None
        index, found = self.index, self._filters.get(key)
        if found is None or found.generation != index.targets_generation:
            results = self.evaluate(workload, self.about_clusters)
            results = [msgspec.structs.replace(result, exempt_slots=None) for result in results]
            tiers = tier_by_target(workload.binding.group.tiers, index)
            verdicts = filtering.verdicts_of(results, index)
            found = ClusterFilter(verdicts, tiers, index.targets_generation, index.journal.end)
            self._filters.put(key, found, self._max_cached())
        return found

    def _max_cached(self) -> int:
        return max(MIN_CACHED_RANKINGS, MAX_CACHED_BYTES // (BYTES_PER_CLUSTER * self.index.slots.capacity))

    def release(self) -> None:
        super().release()
        self._filters.clear()
        self._rankings.clear()


class FittingClusters(msgspec.Struct, frozen=True, gc=False):
    """The verdicts of all rules for one binding, and the cached ranking that they were taken from."""

    verdicts: Verdicts
    ranking: ClusterRanking


def find_clusters_that_fit(workload: Workload, engine: FleetEngine) -> FittingClusters:
    """The verdicts of all rules on the clusters (karmada-scheduler: findClustersThatFit)."""
    assert workload.binding is not None
    ranking = engine.ranking_of(workload)
    if workload.binding.previous:  # clusters that hold the workload are exempt from some rules
        return FittingClusters(filtering.run(workload, engine), ranking)
    verdicts = ranking.filter.verdicts
    about_peers = engine.evaluate(workload, engine.about_peers)
    if about_peers:
        feasible = verdicts.feasible
        for result in about_peers:
            rejected = result.rejected()
            feasible = feasible if rejected is None else feasible & ~rejected
        verdicts = msgspec.structs.replace(verdicts, results=(*verdicts.results, *about_peers), feasible=feasible)
    return FittingClusters(verdicts, ranking)


def prioritize_clusters(workload: Workload, fitting: FittingClusters, index: PlacementIndex) -> Candidates:
    """The feasible clusters in the order in which the binding prefers them (karmada-scheduler: prioritizeClusters)."""
    binding, verdicts, ranking = workload.binding, fitting.verdicts, fitting.ranking
    assert binding is not None
    raw = [raw for result in verdicts.results if (raw := result.evaluation.raw) is not None]
    if not raw and not binding.previous:
        if verdicts.feasible is ranking.filter.verdicts.feasible:
            return ranking.candidates
        return ranking.candidates.only(verdicts.feasible[ranking.candidates.rows.slots])
    slots = np.flatnonzero(verdicts.feasible)
    allocatable = ranking.allocatable[slots]
    scores = np.zeros(len(slots), np.int64)
    for one in raw:
        scores += one[slots]
    available = allocatable.copy()
    for name, replicas in binding.assigned.items():
        here = slots == index.slots.by_name.get(name, -1)
        available[here] += replicas
        scores[here] += ASSIGNED_SCORE
    rows = CandidateRows(slots, ranking.filter.tiers[slots], scores, allocatable, available)
    return candidates.ordered_candidates(index.slots, rows)


def _ranking(found: ClusterFilter, binding: Binding, index: PlacementIndex) -> ClusterRanking:
    """The clusters that pass the filter, ordered by the replicas of the binding that fit on them."""
    replicas = None
    if not _counts_capacity(binding):
        allocatable = np.full(index.slots.capacity, MAX_INT32, np.int64)
    else:
        if component_sets.counts_sets(binding, index.semantics):
            allocatable = component_sets.estimate_sets(binding.components, index)
        else:
            allocatable = estimating.estimate_replicas(binding.demand, index)
        # As in Karmada, "no limit known" and "unknown" mean that all requested replicas fit.
        unknown = (allocatable == MAX_INT32) | (allocatable == -1)
        if unknown.any():
            allocatable, replicas = np.where(unknown, binding.replicas, allocatable), binding.replicas
    slots = np.flatnonzero(found.verdicts.feasible)
    there = allocatable[slots]
    rows = CandidateRows(slots, found.tiers[slots], np.zeros(len(slots), np.int64), there, there)
    ordered = candidates.ordered_candidates(index.slots, rows)
    return ClusterRanking(found, allocatable, ordered, replicas, index.cluster_capacity.generation, index.journal.end)


def _counts_capacity(binding: Binding) -> bool:
    """Whether capacity matters; of a resource without replicas any number fits."""
    return bool(binding.replicas or binding.components)
