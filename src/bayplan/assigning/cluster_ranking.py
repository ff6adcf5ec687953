"""
Karmada's first two stages: which clusters fit a binding, and in what order it prefers them.

Most of the answer is cached, because many bindings differ only in what depends on peers. Bindings for which the rules
about clusters alone have equal parts, and whose affinity term has the same tiers, share one `ClusterFilter`; those that
also request the same share one `ClusterRanking`. If only the capacity of clusters changes, only the order is computed
again. What depends on peers, or on where the workload is already, is added for each binding.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.assigning import candidates, estimating
from bayplan.assigning.candidates import CandidateRows, Candidates
from bayplan.assigning.go_numbers import MAX_INT32
from bayplan.engine import filtering
from bayplan.engine.filtering import Verdicts
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.bindings import Binding
from bayplan.model.workloads import Workload
from bayplan.rules.cluster_affinity import tier_by_target
from bayplan.rules.rule import Rule

ASSIGNED_SCORE = 100  # of a cluster that holds the workload (Karmada: the ClusterLocality plugin)
MAX_CACHED_BYTES = 64 * 2**20  # of arrays; the least recently used rankings are dropped first
BYTES_PER_CLUSTER = 64  # that one ranking takes
MIN_CACHED_RANKINGS = 16

Rules = tuple[Rule, ...]


class ClusterFilter(msgspec.Struct, frozen=True):
    """The verdicts of the rules about clusters alone, and the tier of each cluster by slot, for one `generation`."""

    verdicts: Verdicts
    tiers: NDArray[np.int64]
    generation: int


class ClusterRanking(msgspec.Struct, frozen=True):
    """
    The clusters that pass the filter, in order.

    `allocatable` is by slot, shape (capacity,). `replicas` is the number of replicas that it is valid for, None if for
    any; `generation` is that of the cluster capacity that it was computed from.
    """

    filter: ClusterFilter
    allocatable: NDArray[np.int64]
    candidates: Candidates
    replicas: int | None
    generation: int


class FittingClusters(msgspec.Struct, frozen=True, gc=False):
    """The verdicts of all rules for one binding, and the cached ranking that they were taken from."""

    verdicts: Verdicts
    ranking: ClusterRanking


def find_clusters_that_fit(workload: Workload, index: PlacementIndex, rules: Sequence[Rule]) -> FittingClusters:
    """The verdicts of all rules on the clusters (karmada-scheduler: findClustersThatFit)."""
    assert workload.binding is not None
    about_clusters, about_peers = split_rules(tuple(rules))
    ranking = _cached_ranking(workload, index, about_clusters)
    if workload.binding.previous:  # clusters that hold the workload are exempt from some rules
        return FittingClusters(filtering.run(rules, workload, index), ranking)
    verdicts = ranking.filter.verdicts
    for result in filtering.evaluate_rules(about_peers, workload, index):
        rejected = result.rejected()
        feasible = verdicts.feasible if rejected is None else verdicts.feasible & ~rejected
        verdicts = msgspec.structs.replace(verdicts, results=(*verdicts.results, result), feasible=feasible)
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


@lru_cache(maxsize=64)
def split_rules(rules: Rules) -> tuple[Rules, Rules]:
    """The rules about clusters alone, which come first, and the rules about peers."""
    about_clusters = tuple(takewhile(lambda rule: not rule.follows_workloads, rules))
    about_peers = rules[len(about_clusters) :]
    for rule in about_peers:
        rejects_by_code = type(rule).pre_filter is Rule.pre_filter
        assert rejects_by_code, f"{rule.id} comes after rules about peers, so it must reject by codes"
    return about_clusters, about_peers


def _cached_ranking(workload: Workload, index: PlacementIndex, rules: Rules) -> ClusterRanking:
    """The ranking of the workload by the rules about clusters alone, as if it were placed nowhere."""
    binding = workload.binding
    assert binding is not None
    filter_key = (rules, tuple([rule.part(workload, index) for rule in rules]), binding.group.tiers)
    key = (filter_key, _counts_capacity(binding), binding.demand)
    cached: OrderedDict[Hashable, Any] = index.cluster_rankings
    ranking: ClusterRanking | None = cached.get(key)
    if (
        ranking is None
        or ranking.filter.generation != index.targets_generation
        or ranking.generation != index.cluster_capacity.generation
        or ranking.replicas not in (None, binding.replicas)
    ):
        found: ClusterFilter | None = cached.get(filter_key)
        if found is None or found.generation != index.targets_generation:
            results = filtering.evaluate_rules(rules, workload, index)
            results = [msgspec.structs.replace(result, exempt_slots=None) for result in results]
            tiers = tier_by_target(binding.group.tiers, index)
            found = ClusterFilter(filtering.verdicts_of(results, index), tiers, index.targets_generation)
            cached[filter_key] = found
        ranking = cached[key] = _ranking(found, binding, index)
        while len(cached) > max(MIN_CACHED_RANKINGS, MAX_CACHED_BYTES // (BYTES_PER_CLUSTER * index.slots.capacity)):
            cached.popitem(last=False)
    cached.move_to_end(key)
    return ranking


def _ranking(found: ClusterFilter, binding: Binding, index: PlacementIndex) -> ClusterRanking:
    """The clusters that pass the filter, ordered by the replicas of the binding that fit on them."""
    replicas = None
    if not _counts_capacity(binding):
        allocatable = np.full(index.slots.capacity, MAX_INT32, np.int64)
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
    return ClusterRanking(found, allocatable, ordered, replicas, index.cluster_capacity.generation)


def _counts_capacity(binding: Binding) -> bool:
    """Whether capacity matters; of a resource without replicas any number fits."""
    return bool(binding.replicas or binding.components)
