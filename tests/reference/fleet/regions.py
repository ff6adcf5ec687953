"""Spread by region: first the regions, then the best cluster of each, then the best of the rest."""

import math

from reference.fleet.failures import SchedulerError
from reference.fleet.objects import DUPLICATED

UNIT = 1000  # one replica, or one cluster, outweighs any score


class Region:
    def __init__(self, name, members):
        self.name = name
        self.members = members
        self.size = len(members)
        self.weight = 0


def choose(binding, candidates, constraint, cluster_constraint):
    least = constraint.get("minGroups") or 0
    regions = grouped(candidates)
    if len(regions) < least:
        raise SchedulerError("the number of feasible region is less than spreadConstraint.MinGroups")
    for region in regions:
        region.weight = weigh(binding, region.members, least, cluster_constraint.get("minGroups") or 0)
    best = best_combination(regions, least, constraint.get("maxGroups") or 0, cluster_constraint.get("minGroups") or 0)
    if not best:
        raise SchedulerError("the number of clusters is less than the cluster spreadConstraint.MinGroups")
    chosen = [region.members[0] for region in best]
    rest = [member for region in best for member in region.members[1:]]
    count = min(len(chosen) + len(rest), cluster_constraint.get("maxGroups") or 0)
    rest = [candidate for candidate in candidates if candidate in rest]  # candidates are in order
    return chosen + rest[: max(0, count - len(chosen))]


def grouped(candidates):
    names = sorted({candidate.cluster.region for candidate in candidates if candidate.cluster.region})
    return [Region(name, [each for each in candidates if each.cluster.region == name]) for name in names]


# The weight of a region


def weigh(binding, members, least, least_clusters):
    if binding.strategy == DUPLICATED:
        roomy = [member for member in members if member.available >= binding.replicas]
        return UNIT * len(roomy) + average(roomy)
    walked, room = [], 0
    # Without minGroups Go divides by zero and gets the smallest number there is; times 1000 that overflows to 0.
    target = math.ceil(binding.replicas / least) if least else -math.inf
    for member in members:
        walked.append(member)
        room += member.available
        if len(walked) >= max(least_clusters, least) and room >= target:
            break
    if room < target:
        return UNIT * room + sum(member.score for member in walked) // len(members)
    return (UNIT * target if least else 0) + average(walked)


def average(members):
    return sum(member.score for member in members) // len(members) if members else 0


# The combination of regions


def best_combination(regions, least, most, clusters_needed):
    """The combination of the highest weight, or a shorter one that it begins with."""
    found = combinations(regions, least, most, clusters_needed)
    if not found:
        return []
    ordered = [sorted(path, key=lambda region: (-region.weight, region.name)) for path in found]
    ranked = sorted(
        enumerate(ordered),
        key=lambda entry: (-sum(r.weight for r in entry[1]), -sum(r.size for r in entry[1]), entry[0]),
    )
    best = ranked[0][1]
    for _, path in ranked[1:]:
        if len(path) < len(best) and best[: len(path)] == path:
            best = path
    return best


def combinations(regions, least, most, clusters_needed):
    """The combinations with enough clusters, in the order in which Karmada's search finds them; none is extended."""
    regions = sorted(regions, key=lambda region: (region.size, -region.weight, region.name))
    found = []

    def extend(path, begin):
        if sum(region.size for region in path) >= clusters_needed and least <= len(path) <= most:
            found.append(path)
            return
        if len(path) >= most:
            return
        for position in range(begin, len(regions)):
            extend([*path, regions[position]], position + 1)
            if len(regions) == least:  # all regions are needed
                return

    extend([], 0)
    return found
