"""Spread by region: first the regions, then the best cluster of each, then the best of the rest."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.assigning.candidates import Candidates, Rows
from bayplan.assigning.failing import Unassignable
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.value_columns import ABSENT
from bayplan.model.bindings import Binding
from bayplan.model.clusters import FIELD_KEYS, REGION
from bayplan.model.placements import DUPLICATED, SpreadField

UNIT = 1000  # one replica, or one cluster, outweighs any score


class Region(msgspec.Struct, frozen=True):
    """`members` are the places of its clusters among the candidates, in order."""

    name: str
    members: NDArray[np.intp]
    weight: int

    @property
    def size(self) -> int:
        return len(self.members)


class Weighing(msgspec.Struct, frozen=True):
    """What the weight of a region hangs on beside its clusters: the least number of regions, and of clusters."""

    binding: Binding
    least: int
    least_clusters: int


def select(
    binding: Binding, candidates: Candidates, constraint: SpreadField, by_cluster: SpreadField, index: PlacementIndex
) -> Candidates:
    """One cluster of each chosen region, then more of them in the order of the candidates."""
    regions = _regions(candidates, index, Weighing(binding, constraint.min_groups, by_cluster.min_groups))
    if len(regions) < constraint.min_groups:
        raise Unassignable("the number of feasible region is less than spreadConstraint.MinGroups")
    best = _best_combination(regions, constraint, by_cluster.min_groups)
    if not best:
        raise Unassignable("the number of clusters is less than the cluster spreadConstraint.MinGroups")
    firsts = [int(region.members[0]) for region in best]
    rest = np.sort(np.concatenate([region.members[1:] for region in best]))
    count = min(len(firsts) + len(rest), by_cluster.max_groups)
    return candidates.only(np.concatenate((firsts, rest[: max(0, count - len(firsts))])))


def _regions(candidates: Candidates, index: PlacementIndex, weighing: Weighing) -> list[Region]:
    column = index.column(FIELD_KEYS[REGION])
    domains = column.of_slot[candidates.rows.slots]
    found = []
    for domain in np.unique(domains[domains != ABSENT]).tolist():
        members = np.flatnonzero(domains == domain)
        found.append(Region(str(column.values[domain]), members, _weight(candidates.rows.at(members), weighing)))
    return found


def _weight(members: Rows, weighing: Weighing) -> int:
    binding, least = weighing.binding, weighing.least
    if binding.placement.division.strategy == DUPLICATED:
        roomy = members.scores[members.available >= binding.replicas]
        return UNIT * len(roomy) + (int(roomy.sum()) // len(roomy) if len(roomy) else 0)
    # Without minGroups Karmada divides by zero; what comes out weighs nothing.
    target = -(-binding.replicas // least) if least else None
    room = members.available.cumsum()
    enough = np.arange(1, len(room) + 1) >= max(weighing.least_clusters, least)
    if target is not None:
        enough &= room >= target
    walked = int(enough.argmax()) + 1 if enough.any() else len(room)
    scores = int(members.scores[:walked].sum())
    if target is not None and room[walked - 1] < target:
        return UNIT * int(room[walked - 1]) + scores // len(room)
    return UNIT * (target or 0) + scores // walked


def _best_combination(regions: list[Region], constraint: SpreadField, clusters_needed: int) -> list[Region]:
    """The heaviest combination; but a shorter one that starts the same way is enough."""
    found = _combinations(regions, constraint, clusters_needed)
    if not found:
        return []
    ordered = [sorted(path, key=lambda region: (-region.weight, region.name)) for path in found]
    # Stable, so that among equals the one found first comes first.
    ordered.sort(key=lambda path: (-sum(r.weight for r in path), -sum(r.size for r in path)))
    best = ordered[0]
    for path in ordered[1:]:
        if len(path) < len(best) and [r.name for r in best[: len(path)]] == [r.name for r in path]:
            best = path
    return best


def _combinations(regions: list[Region], constraint: SpreadField, clusters_needed: int) -> list[list[Region]]:
    """Those with enough clusters, in the order in which Karmada's search finds them; none is extended needlessly."""
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
            if len(regions) == least:  # only all of them will do
                return

    extend([], 0, 0)
    return found
