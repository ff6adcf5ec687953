"""
Select clusters: which of the feasible clusters get replicas, by Karmada's spread constraints on clusters and regions.

Candidates are always sorted: earlier tier, higher score, more available replicas (its own included), name.
"""

from reference.fleet import every_field_spread, regions
from reference.fleet.failures import Failure, SchedulerError
from reference.fleet.objects import AGGREGATED, DYNAMIC_WEIGHT, STATIC_WEIGHT

ANY_CAPACITY = -1


class Candidate:
    def __init__(self, cluster, tier, score, allocatable, assigned):
        self.cluster = cluster
        self.name = cluster.name
        self.tier = tier
        self.score = score
        self.allocatable = allocatable
        self.available = allocatable + assigned


def rank(candidate):
    return (candidate.tier, -candidate.score, -candidate.available, candidate.name)


def select(attempt, candidates):
    if not attempt.first_tier_alone:
        return choose(attempt, candidates, needed(attempt))
    for tier in sorted({candidate.tier for candidate in candidates}):
        try:
            chosen = choose(attempt, [each for each in candidates if each.tier <= tier], ANY_CAPACITY)
        except Failure:
            continue
        if chosen:
            return chosen
    return choose(attempt, candidates, ANY_CAPACITY)


def needed(attempt):
    """The replicas that the selected clusters must have available together."""
    binding = attempt.binding
    scheduling = binding.placement.get("replicaScheduling")
    if scheduling is None or scheduling.get("replicaSchedulingType") == "Duplicated":
        return ANY_CAPACITY
    return 1 if attempt.counts_sets else binding.replicas


def choose(attempt, candidates, need):
    constraints = attempt.binding.spread_constraints
    if not constraints or ignores_constraints(attempt.binding):
        return candidates
    by_field = {constraint.get("spreadByField") or "": constraint for constraint in constraints}
    if attempt.fleet.semantics["spreadByEveryField"] and every_field_spread.concerns(constraints):
        return every_field_spread.choose(constraints, candidates)
    if "region" in by_field:
        return regions.choose(attempt.binding, candidates, by_field["region"], by_field.get("cluster") or {})
    if "cluster" in by_field:
        return by_cluster(candidates, by_field["cluster"], need)
    raise SchedulerError("just support cluster and region spread constraint")


def ignores_constraints(binding):
    """Whether the constraints do not apply: with static weights, unless the weight list exists and is empty."""
    if binding.strategy != STATIC_WEIGHT:
        return False
    preference = binding.placement["replicaScheduling"].get("weightPreference")
    return preference is None or bool(preference.get("staticWeightList"))


def by_cluster(candidates, constraint, need):
    if len(candidates) < (constraint.get("minGroups") or 0):
        raise SchedulerError("the number of feasible clusters is less than spreadConstraint.MinGroups")
    count = min(len(candidates), constraint.get("maxGroups") or 0)
    if need == ANY_CAPACITY:
        return candidates[:count]
    chosen = with_room(candidates, count, need)
    if not chosen:
        raise SchedulerError(f"no enough resource when selecting {count} clusters")
    return chosen


def with_room(candidates, count, need):
    """The first `count`; from the last on, each is replaced by the one with the most capacity until it suffices."""
    chosen, rest = candidates[:count], candidates[count:]
    for place in reversed(range(count)):
        if room(chosen) >= need:
            break
        roomier = [other for other in rest if other.available > chosen[place].available]
        if roomier:
            best = max(roomier, key=lambda other: other.available)  # the first of equals
            where = rest.index(best)
            chosen[place], rest[where] = best, chosen[place]
    return chosen if room(chosen) >= need else []


def room(candidates):
    return sum(candidate.available for candidate in candidates)


def is_copied_whole(binding):
    """Whether clusters get the workload whatever their capacity."""
    return not binding.is_divisible or binding.strategy not in (DYNAMIC_WEIGHT, AGGREGATED)
