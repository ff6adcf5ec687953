"""Which candidates take part, by spread constraints on clusters and regions as Karmada knows them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from bayplan.assigning import select_regions, select_spread, tiers
from bayplan.assigning.candidates import Candidate, Candidates
from bayplan.assigning.failing import Unassignable
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.bindings import Binding
from bayplan.model.placements import SpreadField

ANY_CAPACITY = -1


def select(binding: Binding, candidates: Candidates, index: PlacementIndex) -> Sequence[Candidate]:
    """The clusters that get a share, in the order that later ties follow."""
    if not tiers.first_alone(binding, index.semantics):
        need = binding.replicas if binding.placement.division.counts_capacity else ANY_CAPACITY
        return _choose(binding, candidates, need, index)
    for _, members in groupby(candidates, key=lambda candidate: candidate.tier):  # candidates are in order of tiers
        try:
            chosen = _choose(binding, list(members), ANY_CAPACITY, index)
        except Unassignable:
            continue
        if chosen:
            return chosen
    return _choose(binding, candidates, ANY_CAPACITY, index)


def _choose(binding: Binding, candidates: Sequence[Candidate], need: int, index: PlacementIndex) -> Sequence[Candidate]:
    placement = binding.placement
    if not placement.spread or not placement.division.heeds_spread:
        return candidates
    if index.semantics.spread_by_every_field and select_spread.concerns(placement):
        return select_spread.select(placement, list(candidates), index)
    if placement.by_region is not None:
        return select_regions.select(
            binding, list(candidates), placement.by_region, placement.by_cluster or SpreadField()
        )
    if placement.by_cluster is not None:
        return _by_cluster(candidates, placement.by_cluster, need)
    raise Unassignable("just support cluster and region spread constraint")


def _by_cluster(candidates: Sequence[Candidate], constraint: SpreadField, need: int) -> Sequence[Candidate]:
    if len(candidates) < constraint.min_groups:
        raise Unassignable("the number of feasible clusters is less than spreadConstraint.MinGroups")
    count = min(len(candidates), constraint.max_groups)
    if need == ANY_CAPACITY:
        return candidates[:count]
    chosen = _with_room(candidates, count, need)
    if not chosen:
        raise Unassignable(f"no enough resource when selecting {count} clusters")
    return chosen


def _with_room(candidates: Sequence[Candidate], count: int, need: int) -> list[Candidate]:
    """The first `count`; from the last place on, each is exchanged for the roomiest of the rest while room lacks."""
    chosen = list(candidates[:count])
    if sum(candidate.available for candidate in chosen) >= need:
        return chosen
    rest = list(candidates[count:])
    room = sum(candidate.available for candidate in chosen)
    for place in range(count - 1, -1, -1):
        if room >= need:
            break
        if not rest:
            continue
        where = max(range(len(rest)), key=lambda i: (rest[i].available, -i))  # the first of equals
        if rest[where].available > chosen[place].available:
            room += rest[where].available - chosen[place].available
            chosen[place], rest[where] = rest[where], chosen[place]
    return chosen if room >= need else []
