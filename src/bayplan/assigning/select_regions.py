"""Spread by region: first the regions, then the best cluster of each, then the best of the rest."""

from __future__ import annotations

from itertools import groupby

import msgspec

from bayplan.assigning.candidates import Candidate
from bayplan.assigning.failing import Unassignable
from bayplan.model.bindings import Binding
from bayplan.model.placements import DUPLICATED, SpreadField

UNIT = 1000  # one replica, or one cluster, outweighs any score


class Region(msgspec.Struct, frozen=True):
    name: str
    members: tuple[Candidate, ...]
    weight: int

    @property
    def size(self) -> int:
        return len(self.members)


def select(
    binding: Binding, candidates: list[Candidate], constraint: SpreadField, by_cluster: SpreadField
) -> list[Candidate]:
    """One cluster of each chosen region, then more of them in the order of the candidates."""
    regions = _regions(binding, candidates, constraint.min_groups, by_cluster.min_groups)
    if len(regions) < constraint.min_groups:
        raise Unassignable("the number of feasible region is less than spreadConstraint.MinGroups")
    best = _best_combination(regions, constraint, by_cluster.min_groups)
    if not best:
        raise Unassignable("the number of clusters is less than the cluster spreadConstraint.MinGroups")
    chosen = [region.members[0] for region in best]
    taken = {region.name for region in best}
    firsts = {candidate.slot for candidate in chosen}
    rest = [c for c in candidates if c.region in taken and c.slot not in firsts]
    count = min(len(chosen) + len(rest), by_cluster.max_groups)
    return chosen + rest[: max(0, count - len(chosen))]


def _regions(binding: Binding, candidates: list[Candidate], least: int, least_clusters: int) -> list[Region]:
    # Sorting is stable, so members keep the order of the candidates.
    named = sorted((c for c in candidates if c.region), key=lambda c: c.region)
    found = []
    for name, members in groupby(named, key=lambda c: c.region):
        group = tuple(members)
        found.append(Region(name, group, _weight(binding, group, least, least_clusters)))
    return found


def _weight(binding: Binding, members: tuple[Candidate, ...], least: int, least_clusters: int) -> int:
    if binding.placement.division.strategy == DUPLICATED:
        roomy = [member for member in members if member.available >= binding.replicas]
        return UNIT * len(roomy) + _average(roomy)
    # Without minGroups Karmada divides by zero; what comes out weighs nothing.
    target = -(-binding.replicas // least) if least else None
    walked, room = 0, 0
    for member in members:
        walked += 1
        room += member.available
        if walked >= max(least_clusters, least) and (target is None or room >= target):
            break
    scores = sum(member.score for member in members[:walked])
    if target is not None and room < target:
        return UNIT * room + scores // len(members)
    return UNIT * (target or 0) + scores // walked


def _average(members: list[Candidate]) -> int:
    return sum(member.score for member in members) // len(members) if members else 0


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
