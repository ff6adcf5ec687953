"""
Assign replicas: how many each selected cluster gets, by one of four strategies, tier by tier where a group has tiers.

Replicas are divided by Webster's method: each is assigned to the cluster with the largest claim.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.assigning import go_sort
from bayplan.assigning.candidates import Candidates, Unassignable, Unschedulable
from bayplan.assigning.go_numbers import MAX_INT32, int32, sum_int32
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.bindings import Binding
from bayplan.model.placements import AGGREGATED, DESIGN, DUPLICATED, DYNAMIC_WEIGHT, PLAIN, STATIC_WEIGHT
from bayplan.model.semantics import Semantics
from bayplan.rules import cluster_affinity

Shares = list[tuple[str, int]]


def assign_replicas(binding: Binding, selected: Candidates, index: PlacementIndex) -> Shares:
    """
    (cluster, replicas) for each cluster that gets any (karmada-scheduler: assignReplicas).

    Resources that are not divisible are propagated to every selected cluster, with 0 replicas.
    """
    if not len(selected):
        raise Unassignable("no clusters available to schedule")
    if not binding.is_divisible:
        return [(name, 0) for name in selected.names]
    if fills_tiers_in_order(binding, index.semantics):
        return _tier_by_tier(binding, selected, index)
    return _by_strategy(binding, selected, binding.replicas, index)


def _tier_by_tier(binding: Binding, selected: Candidates, index: PlacementIndex) -> Shares:
    """Each tier takes the replicas that it has available, its previous ones included; the next takes what remains."""
    result: Shares = []
    remaining = binding.replicas
    for tier in selected.by_tier:
        share = min(remaining, int(tier.rows.available.sum()))
        result += _by_strategy(binding, tier, share, index)
        remaining -= share
        if remaining <= 0:
            return result
    raise Unschedulable("Clusters available replicas are not enough to schedule.")


def _by_strategy(binding: Binding, candidates: Candidates, replicas: int, index: PlacementIndex) -> Shares:
    division = binding.placement.division
    if division.strategy == DUPLICATED:
        shares = [(name, replicas) for name in candidates.names]
    elif division.strategy == STATIC_WEIGHT:
        shares = _by_weight(binding, candidates, replicas, index)
    elif division.strategy in (DYNAMIC_WEIGHT, AGGREGATED):
        shares = _by_capacity(binding, candidates, replicas)
    else:
        raise Unassignable(
            f"unsupported replica scheduling strategy, replicaSchedulingType: {division.type}, "
            f"replicaDivisionPreference: {division.preference}, please try another scheduling strategy"
        )
    return [share for share in shares if share[1] > 0]


# By declared weights


def _by_weight(binding: Binding, candidates: Candidates, replicas: int, index: PlacementIndex) -> Shares:
    """The weight of a cluster is the largest of the rules that match it. The previous result does not matter."""
    # Weights that are equal as floats are equal, as votes are.
    rules = [(one, int(float(weight))) for one, weight in binding.placement.division.weights or () if weight > 0]
    weights = [1, *sorted({weight for _, weight in rules})]
    level = np.zeros(len(candidates), np.int64)
    for affinity, weight in sorted(rules, key=lambda rule: rule[1]):
        matched = cluster_affinity.matching(affinity, index)[candidates.rows.slots]
        level[matched] = weights.index(weight, 1)
    if level.any():  # else no rule matches any cluster, so all have equal weight
        matched_at = np.flatnonzero(level)
        candidates, level = candidates.only(matched_at), level[matched_at]
    order = np.argsort(-level, kind="stable")
    chosen = order[_largest_claims(level[order], candidates.name_order[order], replicas, binding.uid)]
    votes = {name: weights[i] for name, i in zip(candidates.only(chosen).names, level[chosen].tolist(), strict=True)}
    return sorted(webster_seats(replicas, votes, binding.uid).items())


# By available capacity


def _by_capacity(binding: Binding, candidates: Candidates, replicas: int) -> Shares:
    """By what clusters can take, keeping the previous result unless a rebalance was requested."""
    places = [candidates.place_of(name) for name, _ in binding.previous]
    previous = [share for share, place in zip(binding.previous, places, strict=True) if place is not None]
    if binding.fresh:
        amounts = candidates.rows.allocatable.copy()
        for place, (_, number) in zip(places, binding.previous, strict=True):
            if place is not None:
                amounts[place] += number
        amounts = amounts.astype(np.int32).astype(np.int64)  # which wraps as `int32` does
        return _scale("failed to do fresh scale", binding, replicas, candidates.with_allocatable(amounts), [])
    assigned = sum_int32(number for _, number in previous)
    if assigned > replicas:  # scale down in proportion to the previous result, whatever the capacity
        order = go_sort.descending_order([number for _, number in previous])
        return _added(binding, replicas, [previous[place] for place in order], [])
    if assigned < replicas:
        return _scale("failed to scale up", binding, replicas - assigned, candidates, previous)
    return previous


def _scale(step: str, binding: Binding, number: int, offered: Candidates, previous: Shares) -> Shares:
    """`number` more replicas by the allocatable ones, on top of the previous result."""
    ordered = offered.by_allocatable
    total = int32(int(ordered.cumulative_allocatable[-1]))
    if total < number:
        raise Unschedulable(f"{step}: Clusters available replicas {total} are not enough to schedule.")
    amounts = ordered.only(_eligible(binding, number, ordered, previous)).amounts
    # Where equal clusters are in another order in Karmada's list, that matters only if some of them get replicas.
    if ordered is not offered and _divides_equals(binding, number, amounts, previous):
        amounts = offered.only(np.array(go_sort.descending_order(offered.rows.allocatable.tolist()))).amounts
    return _added(binding, number, amounts, previous)


def _eligible(binding: Binding, number: int, offered: Candidates, previous: Shares) -> slice | NDArray[np.intp]:
    """The clusters that may get any of `number` replicas; the others do not affect the result."""
    if offered.cumulative_allocatable[-1] > MAX_INT32 or offered.rows.allocatable[-1] < 0:
        return slice(None)  # sums wrap on the way, so each cluster may matter
    if binding.placement.division.strategy != AGGREGATED:
        return _largest_claims(offered.rows.allocatable, offered.name_order, number, binding.uid)
    enough = int(np.searchsorted(offered.cumulative_allocatable, number)) + 1
    in_use = [place for name, _ in previous if (place := offered.place_of(name)) is not None]
    if not in_use:
        return slice(enough + 1)
    beyond = min(enough + len(in_use) + 1, len(offered))  # one more that is not in use
    return np.array(sorted({*in_use, *range(beyond)}), np.intp)


def _added(binding: Binding, number: int, amounts: Shares, previous: Shares) -> Shares:
    """The previous result and `number` replicas divided by the amounts; aggregated ones on as few as possible."""
    if binding.placement.division.strategy == AGGREGATED:
        amounts = _fewest_clusters(number, amounts, previous)
    added = webster_seats(number, dict(amounts), binding.uid)
    if not previous or not added:
        return previous or sorted(added.items())
    before = dict(previous)
    result = [(name, replicas + before.pop(name, 0)) for name, replicas in sorted(added.items())]
    return result + list(before.items())


def _divides_equals(binding: Binding, number: int, amounts: Shares, previous: Shares) -> bool:
    """Whether the fewest clusters that take `number` replicas are some of those with equal amounts."""
    if binding.placement.division.strategy != AGGREGATED:
        return False
    in_use, others = _by_use(amounts, previous)
    length = _length_needed(number, in_use + others)
    listed = in_use + others if length > len(in_use) else in_use
    return length < len(listed) and listed[length - 1][1] == listed[length][1]


def _fewest_clusters(number: int, amounts: Shares, previous: Shares) -> Shares:
    """The shortest run of clusters that takes `number` replicas, those in use first."""
    in_use, others = _by_use(amounts, previous)
    return (in_use + others)[: _length_needed(number, in_use + others)]


def _by_use(amounts: Shares, previous: Shares) -> tuple[Shares, Shares]:
    names = {name for name, replicas in previous if replicas > 0}
    return [one for one in amounts if one[0] in names], [one for one in amounts if one[0] not in names]


def _length_needed(number: int, amounts: Shares) -> int:
    total = 0
    for length, (_, free) in enumerate(amounts, 1):
        total = int32(total + free)
        if total >= number:
            return length
    return len(amounts)


def _largest_claims(claims: NDArray[np.int64], names: NDArray[np.int64], seats: int, uid: str) -> NDArray[np.intp]:
    """
    Which clusters can get any of so many seats: the same number of clusters, those with the largest claims.

    `claims` are in descending order. While seats are left, one of these clusters has no seat yet, and so a larger
    claim than any other cluster.
    """
    if len(claims) <= seats:
        return np.arange(len(claims))
    if seats <= 0:
        return np.arange(0)
    rising = claims[::-1]
    above = len(claims) - int(np.searchsorted(rising, claims[seats - 1], side="right"))
    equal = len(claims) - int(np.searchsorted(rising, claims[seats - 1], side="left"))
    ties = above + names[above:equal].argsort()
    if reverses_names(uid):
        ties = ties[::-1]
    return np.concatenate((np.arange(above), ties[: seats - above]))


# Webster's method


def webster_seats(number: int, votes: Mapping[str, int], uid: str) -> dict[str, int]:
    """
    Seats by name. Of equal claims fewer seats win, then the name, in the direction that the template's uid gives.

    Votes are floats before they are divided, like Karmada's: claims that round to the same float are equal.
    """
    votes = {name: int(float(vote)) for name, vote in votes.items()}
    won = dict.fromkeys(votes, 0)
    if not votes or number <= 0:
        return won
    if len(votes) == 1:
        return dict.fromkeys(votes, number)
    names = sorted(votes, reverse=reverses_names(uid))
    if number > _SEATS_ONE_BY_ONE * len(votes):
        won = _certain_seats(number, votes, names)
    heap = [(-(votes[name] / (2 * won[name] + 1)), won[name], rank, name) for rank, name in enumerate(names)]
    heapq.heapify(heap)
    for _ in range(number - sum(won.values())):
        _, taken, rank, name = heap[0]
        won[name] = taken + 1
        heapq.heapreplace(heap, (-(votes[name] / (2 * taken + 3)), taken + 1, rank, name))
    return won


_SEATS_ONE_BY_ONE = 8


def _certain_seats(number: int, votes: Mapping[str, int], names: Sequence[str]) -> dict[str, int]:
    """
    Seats that are won in any case, all but a few for each name, so that two billion replicas take no longer than ten.

    A claim is the votes over 1, 3, 5 and so on. No more than `number` claims are above the total votes divided by
    twice the number less the names, so these all win. One seat less keeps them apart from others even when rounded.
    Without votes the seats go round; of negative votes the largest wins every seat, because its claim only rises.
    """
    total = sum(max(vote, 0) for vote in votes.values())
    if total:
        divisor = 2 * number - len(votes)
        return {name: max(0, (vote * divisor // total - 1) // 2 - 1) for name, vote in votes.items()}
    without_votes = [name for name in names if votes[name] == 0]
    if without_votes:
        return dict.fromkeys(votes, 0) | dict.fromkeys(without_votes, number // len(without_votes))
    return dict.fromkeys(votes, 0) | {max(names, key=lambda name: votes[name]): number}


def reverses_names(uid: str) -> bool:
    """Whether ties break by names in descending order."""
    return bool(uid) and _fnv1a(uid.encode()) & 1 == 1


def _fnv1a(data: bytes) -> int:
    """The 32-bit FNV-1a hash."""
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


# Tiers
#
# Workloads that are divided by capacity fill tiers in order, whatever the form. Those that are duplicated or divided by
# static weights do so for Karmada's own form too, although its webhook rejects that; by the design document
# they use only the first tier that can hold them.


def fills_tiers_in_order(binding: Binding, semantics: Semantics) -> bool:
    return binding.group.form != PLAIN and not _needs_one_tier(binding, semantics)


def uses_first_tier_alone(binding: Binding, semantics: Semantics) -> bool:
    return binding.group.form != PLAIN and _needs_one_tier(binding, semantics)


def _needs_one_tier(binding: Binding, semantics: Semantics) -> bool:
    """Whether the design document places the workload in one tier: it is not divided by capacity."""
    copied = not binding.is_divisible or binding.placement.division.strategy not in (DYNAMIC_WEIGHT, AGGREGATED)
    return copied and (binding.group.form == DESIGN or semantics.first_tier_alone)
