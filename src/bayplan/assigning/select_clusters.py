"""Which candidates take part, by spread constraints on clusters and regions as Karmada knows them."""

from __future__ import annotations

import numpy as np

from bayplan.assigning import select_regions, select_spread, tiers
from bayplan.assigning.candidates import Candidates
from bayplan.assigning.failing import Unassignable
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.bindings import Binding
from bayplan.model.placements import SpreadField

ANY_CAPACITY = -1


def select(binding: Binding, candidates: Candidates, index: PlacementIndex) -> Candidates:
    """The clusters that get a share, in the order that later ties follow."""
    if not tiers.first_alone(binding, index.semantics):
        need = binding.replicas if binding.placement.division.counts_capacity else ANY_CAPACITY
        return _choose(binding, candidates, need, index)
    for tier in candidates.by_tier:
        try:
            chosen = _choose(binding, tier, ANY_CAPACITY, index)
        except Unassignable:
            continue
        if len(chosen):
            return chosen
    return _choose(binding, candidates, ANY_CAPACITY, index)


def _choose(binding: Binding, candidates: Candidates, need: int, index: PlacementIndex) -> Candidates:
    placement = binding.placement
    if not placement.spread or not placement.division.heeds_spread:
        return candidates
    if index.semantics.spread_by_every_field and select_spread.concerns(placement):
        return select_spread.select(placement, candidates, index)
    by_region, by_cluster = placement.by_region, placement.by_cluster
    if by_region is not None:
        return select_regions.select(binding, candidates, by_region, by_cluster or SpreadField(), index)
    if by_cluster is not None:
        return _by_cluster(candidates, by_cluster, need)
    raise Unassignable("just support cluster and region spread constraint")


def _by_cluster(candidates: Candidates, constraint: SpreadField, need: int) -> Candidates:
    if len(candidates) < constraint.min_groups:
        raise Unassignable("the number of feasible clusters is less than spreadConstraint.MinGroups")
    count = min(len(candidates), constraint.max_groups)
    if need == ANY_CAPACITY or (count and int(candidates.rows.available[:count].sum()) >= need):
        return candidates.only(slice(count))
    chosen = _with_room(candidates.rows.available.tolist(), count, need)
    if not chosen:
        raise Unassignable(f"no enough resource when selecting {count} clusters")
    return candidates.only(np.array(chosen, np.intp))


def _with_room(available: list[int], count: int, need: int) -> list[int]:
    """The first `count`; from the last place on, each is exchanged for the roomiest of the rest while room lacks."""
    places = list(range(len(available)))
    chosen, rest = places[:count], places[count:]
    room = sum(available[:count])
    for place in range(count - 1, -1, -1):
        if room >= need:
            break
        if not rest:
            continue
        where = max(range(len(rest)), key=lambda i: (available[rest[i]], -i))  # the first of equals
        gained = available[rest[where]] - available[chosen[place]]
        if gained > 0:
            room += gained
            chosen[place], rest[where] = rest[where], chosen[place]
    return chosen if room >= need else []
