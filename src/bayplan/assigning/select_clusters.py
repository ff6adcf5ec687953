"""
Select clusters: which candidates get replicas, by spread constraints.

Karmada spreads by cluster and by region. It declares zone, provider and label constraints too, but ignores them; the
switch `spreadByEveryField` honors them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.assigning import component_sets, divide_replicas
from bayplan.assigning.candidates import CandidateRows, Candidates, Unassignable
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ABSENT
from bayplan.model.bindings import Binding
from bayplan.model.placements import DUPLICATED, Placement, SpreadField
from bayplan.model.targets import CLUSTER, FIELD_KEYS, PROVIDER, REGION, ZONE
from bayplan.model.terms import TARGET

ANY_CAPACITY = -1  # in place of the replicas needed: capacity does not matter
WEIGHT_UNIT = 1000  # of a region: one replica, or one cluster, outweighs any score


def select_clusters(binding: Binding, candidates: Candidates, index: PlacementIndex) -> Candidates:
    """The clusters that get replicas, in the order that breaks later ties (karmada-scheduler: selectClusters)."""
    if not divide_replicas.uses_first_tier_alone(binding, index.semantics):
        need = 1 if component_sets.counts_sets(binding, index.semantics) else binding.replicas
        need = need if binding.placement.division.counts_capacity else ANY_CAPACITY
        return _choose(binding, candidates, need, index)
    tiers = candidates.by_tier
    ordered = candidates if len(tiers) <= 1 else candidates.only(np.argsort(candidates.rows.tiers, kind="stable"))
    for end in itertools.accumulate(map(len, tiers)):
        try:
            chosen = _choose(binding, ordered.only(slice(end)), ANY_CAPACITY, index)
        except Unassignable:
            continue
        if len(chosen):
            return chosen
    return _choose(binding, candidates, ANY_CAPACITY, index)


def _choose(binding: Binding, candidates: Candidates, need: int, index: PlacementIndex) -> Candidates:
    """The candidates that the spread constraints select; by cluster, with capacity for `need` replicas."""
    placement = binding.placement
    if not placement.spread or not placement.division.honors_spread:
        return candidates
    if index.semantics.spread_by_every_field and has_other_fields(placement):
        return choose_by_every_field(placement, candidates, index)
    by_region, by_cluster = placement.by_region, placement.by_cluster
    if by_region is not None:
        return choose_by_region(binding, candidates, by_region, by_cluster or SpreadField(), index)
    if by_cluster is not None:
        return _by_cluster(candidates, by_cluster, need)
    raise Unassignable("just support cluster and region spread constraint")


def _by_cluster(candidates: Candidates, constraint: SpreadField, need: int) -> Candidates:
    if len(candidates) < constraint.min_groups:
        raise Unassignable("the number of feasible clusters is less than spreadConstraint.MinGroups")
    count = min(len(candidates), constraint.max_groups)
    if need == ANY_CAPACITY or (count and int(candidates.rows.available[:count].sum()) >= need):
        return candidates.only(slice(count))
    chosen = _with_capacity(candidates.rows.available.tolist(), count, need)
    if not chosen:
        raise Unassignable(f"no enough resource when selecting {count} clusters")
    return candidates.only(np.array(chosen, np.intp))


def _with_capacity(available: list[int], count: int, need: int) -> list[int]:
    """
    The positions of the first `count` candidates, with replacements until they have capacity for `need` replicas.

    From the last position on, each is replaced by the one with the most capacity among the rest. Empty if `need`
    cannot be met.
    """
    places = list(range(len(available)))
    chosen, rest = places[:count], places[count:]
    total = sum(available[:count])
    for place in range(count - 1, -1, -1):
        if total >= need:
            break
        if not rest:
            continue
        where = max(range(len(rest)), key=lambda i: (available[rest[i]], -i))  # the first of equals
        gained = available[rest[where]] - available[chosen[place]]
        if gained > 0:
            total += gained
            chosen[place], rest[where] = rest[where], chosen[place]
    return chosen if total >= need else []


# By region: first the regions, then the best cluster of each, then the best of the rest


class Region(msgspec.Struct, frozen=True):
    """`members` are the positions of its clusters among the candidates, in order."""

    name: str
    members: NDArray[np.intp]
    weight: int

    @property
    def size(self) -> int:
        return len(self.members)


def choose_by_region(
    binding: Binding, candidates: Candidates, constraint: SpreadField, by_cluster: SpreadField, index: PlacementIndex
) -> Candidates:
    """One cluster of each chosen region, then more of them in the order of the candidates."""
    column = index.column(FIELD_KEYS[REGION])
    domains = column.of_slot[candidates.rows.slots]
    regions = []
    for domain in np.unique(domains[domains != ABSENT]).tolist():
        members = np.flatnonzero(domains == domain)
        weight = _region_weight(candidates.rows.at(members), binding, constraint.min_groups, by_cluster.min_groups)
        regions.append(Region(str(column.values[domain]), members, weight))
    if len(regions) < constraint.min_groups:
        raise Unassignable("the number of feasible region is less than spreadConstraint.MinGroups")
    best = _best_combination(regions, constraint, by_cluster.min_groups)
    if not best:
        raise Unassignable("the number of clusters is less than the cluster spreadConstraint.MinGroups")
    firsts = [int(region.members[0]) for region in best]
    rest = np.sort(np.concatenate([region.members[1:] for region in best]))
    count = min(len(firsts) + len(rest), by_cluster.max_groups)
    return candidates.only(np.concatenate((firsts, rest[: max(0, count - len(firsts))])))


def _region_weight(members: CandidateRows, binding: Binding, min_regions: int, min_clusters: int) -> int:
    """The weight of a region from its clusters and from the `minGroups` of regions and of clusters."""
    if binding.placement.division.strategy == DUPLICATED:
        sufficient = members.scores[members.available >= binding.replicas]
        return WEIGHT_UNIT * len(sufficient) + (int(sufficient.sum()) // len(sufficient) if len(sufficient) else 0)
    # Without minGroups Karmada divides by zero; the result counts as a weight of 0.
    target = -(-binding.replicas // min_regions) if min_regions else None
    available = members.available.cumsum()
    enough = np.arange(1, len(available) + 1) >= max(min_clusters, min_regions)
    if target is not None:
        enough &= available >= target
    n_counted = int(enough.argmax()) + 1 if enough.any() else len(available)
    scores = int(members.scores[:n_counted].sum())
    if target is not None and available[n_counted - 1] < target:
        return WEIGHT_UNIT * int(available[n_counted - 1]) + scores // len(available)
    return WEIGHT_UNIT * (target or 0) + scores // n_counted


def _best_combination(regions: list[Region], constraint: SpreadField, clusters_needed: int) -> list[Region]:
    """The combination of the highest weight, or a shorter one that it begins with."""
    found = _combinations(regions, constraint, clusters_needed)
    if not found:
        return []
    ordered = [sorted(path, key=lambda region: (-region.weight, region.name)) for path in found]
    # A stable sort: among equals the one found first comes first.
    ordered.sort(key=lambda path: (-sum(r.weight for r in path), -sum(r.size for r in path)))
    best = ordered[0]
    for path in ordered[1:]:
        if len(path) < len(best) and [r.name for r in best[: len(path)]] == [r.name for r in path]:
            best = path
    return best


def _combinations(regions: list[Region], constraint: SpreadField, clusters_needed: int) -> list[list[Region]]:
    """The combinations with enough clusters, in the order in which Karmada's search finds them; none is extended."""
    regions = sorted(regions, key=lambda region: (region.size, -region.weight, region.name))
    least, most = constraint.min_groups, constraint.max_groups
    found: list[list[Region]] = []

    def extend(path: list[Region], size: int, begin: int) -> None:
        if size >= clusters_needed and least <= len(path) <= most:
            found.append(path)
            return
        if len(path) >= most:
            return
        for position in range(begin, len(regions)):
            extend([*path, regions[position]], size + regions[position].size, position + 1)
            if len(regions) == least:  # all regions are needed
                return

    extend([], 0, 0)
    return found


# By every constrained field and label (switch `spreadByEveryField`)
#
# The chosen clusters span at least `minGroups` and at most `maxGroups` (unset: any number of) values of each. Of all
# such sets the smallest is chosen, of equal ones the one whose clusters come first; then every further cluster is
# added, in order, that exceeds no maximum. Capacity does not matter, as in Karmada's choice of regions.


class SpanLimit(msgspec.Struct, frozen=True):
    """How many values of one key the chosen clusters may span, and which each candidate has."""

    least: int
    most: float
    values: tuple[frozenset[int], ...]


def has_other_fields(placement: Placement) -> bool:
    """Whether there is a constraint that Karmada ignores."""
    return any(constraint.label or constraint.field in (ZONE, PROVIDER) for constraint in placement.spread)


def choose_by_every_field(placement: Placement, candidates: Candidates, index: PlacementIndex) -> Candidates:
    """The smallest set of candidates that meets every constraint, and those that can be added to it."""
    by_key = {constraint.field or constraint.label or CLUSTER: constraint for constraint in placement.spread}
    limits = []
    for key, constraint in by_key.items():
        column = index.column(TARGET if key == CLUSTER else FIELD_KEYS.get(key, key))
        values = tuple(frozenset(column.domains(slot)) for slot in candidates.rows.slots.tolist())
        limits.append(SpanLimit(constraint.min_groups, constraint.max_groups or math.inf, values))
    for size in range(1, len(candidates) + 1):
        chosen = next(_sets(size, (), 0, limits, len(candidates)), None)
        if chosen is not None:
            for i in range(len(candidates)):
                if i not in chosen and _within((*chosen, i), limits):
                    chosen = (*chosen, i)
            return candidates.only(np.array(sorted(chosen), np.intp))
    raise Unassignable("no set of feasible clusters meets the spread constraints")


def _sets(
    size: int, chosen: tuple[int, ...], begin: int, limits: list[SpanLimit], n_candidates: int
) -> Iterator[tuple[int, ...]]:
    """Sets of `size` candidates that meet every limit, in order."""
    if not _within(chosen, limits):
        return
    if len(chosen) == size:
        if all(len(_span(chosen, limit)) >= limit.least for limit in limits):
            yield chosen
        return
    tried = set()
    for i in range(begin, n_candidates - (size - len(chosen)) + 1):
        # Candidates with the same values are interchangeable: if no set contains the first, none contains another.
        values = tuple(limit.values[i] for limit in limits)
        if values not in tried:
            tried.add(values)
            yield from _sets(size, (*chosen, i), i + 1, limits, n_candidates)


def _within(chosen: tuple[int, ...], limits: list[SpanLimit]) -> bool:
    return all(len(_span(chosen, limit)) <= limit.most for limit in limits)


def _span(chosen: tuple[int, ...], limit: SpanLimit) -> frozenset[int]:
    return frozenset().union(*(limit.values[i] for i in chosen))
