"""
Replicas for the clusters that were selected, by one of the four strategies; and tier by tier where a term has tiers.

`candidates` are in the order of the selection. Results are lists of (name, replicas) without zeros.
"""

from bayplan.assigning import go_sort
from reference.fleet import cluster_affinity, webster
from reference.fleet.failures import Failure, SchedulerError, Unschedulable
from reference.fleet.go_numbers import int32, sum_int32
from reference.fleet.objects import AGGREGATED, DUPLICATED, DYNAMIC_WEIGHT, STATIC_WEIGHT


def assign(attempt, candidates):
    if not candidates:
        raise SchedulerError("no clusters available to schedule")
    binding = attempt.binding
    if not binding.is_divisible:
        return [(candidate.name, 0) for candidate in candidates]
    if attempt.fills_tiers_in_order:
        return fill_tiers(binding, candidates)
    return divide(binding, candidates, binding.replicas)


def fill_tiers(binding, candidates):
    """Each tier takes the replicas that it has available, its previous ones included; the next takes what remains."""
    result, remaining = [], binding.replicas
    for tier in sorted({candidate.tier for candidate in candidates}):
        members = [candidate for candidate in candidates if candidate.tier == tier]
        share = min(remaining, sum(candidate.available for candidate in members))
        result += divide(binding, members, share)
        remaining -= share
        if remaining <= 0:
            return result
    raise Unschedulable("Clusters available replicas are not enough to schedule.")


def divide(binding, candidates, replicas):
    strategy = binding.strategy
    if strategy == DUPLICATED:
        result = [(candidate.name, replicas) for candidate in candidates]
    elif strategy == STATIC_WEIGHT:
        result = by_static_weight(binding, candidates, replicas)
    elif strategy in (DYNAMIC_WEIGHT, AGGREGATED):
        result = by_availability(binding, candidates, replicas)
    else:
        scheduling = binding.placement["replicaScheduling"]
        raise SchedulerError(
            "unsupported replica scheduling strategy, "
            f"replicaSchedulingType: {scheduling.get('replicaSchedulingType') or ''}, "
            f"replicaDivisionPreference: {scheduling.get('replicaDivisionPreference') or ''}, "
            "please try another scheduling strategy"
        )
    return [(name, number) for name, number in result if number > 0]


# By declared weights


def by_static_weight(binding, candidates, replicas):
    """The previous result does not matter."""
    preference = binding.placement["replicaScheduling"].get("weightPreference") or {}
    votes = {}
    for candidate in candidates:
        weight = declared_weight(candidate.cluster, preference.get("staticWeightList") or [])
        if weight > 0:
            votes[candidate.name] = weight
    if not votes:  # no rule matches any cluster, so all are equal
        votes = {candidate.name: 1 for candidate in candidates}
    return list(webster.seats(replicas, votes, binding.uid).items())


def declared_weight(cluster, rules):
    """The largest weight of the rules that match the cluster."""
    weights = [rule.get("weight") or 0 for rule in rules if cluster_affinity.matches(cluster, rule["targetCluster"])]
    return max([0, *weights])


# By what clusters can take


def by_availability(binding, candidates, replicas):
    names = {candidate.name for candidate in candidates}
    previous = [(name, number) for name, number in binding.clusters if name in names]
    assigned = sum_int32(number for _, number in previous)
    room = [(candidate.name, candidate.allocatable) for candidate in candidates]
    if binding.fresh:
        room = [(name, int32(free + sum(n for p, n in previous if p == name))) for name, free in room]
        return wrapped("failed to do fresh scale", binding, replicas, room, [])
    if assigned > replicas:  # in proportion to the previous result, whatever the capacity
        return wrapped("failed to scale down", binding, replicas, previous, [])
    if assigned < replicas:
        return wrapped("failed to scale up", binding, replicas - assigned, room, previous)
    return previous


def wrapped(step, binding, number, room, previous):
    try:
        return share_out(binding, number, room, previous)
    except Failure as failure:
        raise failure.during(step) from None


def share_out(binding, number, room, previous):
    """`number` more replicas by the available capacity, on top of the previous result."""
    room = [room[place] for place in go_sort.descending_order([free for _, free in room])]  # equal to Go's: a test
    total = sum_int32(free for _, free in room)
    if total < number:
        raise Unschedulable(f"Clusters available replicas {total} are not enough to schedule.")
    if binding.strategy == AGGREGATED:
        room = as_few_as_possible(number, room, previous)
    added = webster.seats(number, dict(room), binding.uid) if any(free for _, free in room) else {}
    return merged(previous, added)


def as_few_as_possible(number, room, previous):
    """The shortest run of clusters with enough capacity, those in use first."""
    in_use = {name for name, replicas in previous if replicas > 0}
    room = [entry for entry in room if entry[0] in in_use] + [entry for entry in room if entry[0] not in in_use]
    for length in range(1, len(room) + 1):
        if sum_int32(free for _, free in room[:length]) >= number:
            return room[:length]
    return room


def merged(previous, added):
    if not previous or not added:
        return previous or list(added.items())
    before = dict(previous)
    result = [(name, replicas + before.pop(name, 0)) for name, replicas in added.items()]
    return result + list(before.items())
