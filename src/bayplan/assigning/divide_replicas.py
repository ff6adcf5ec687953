"""How many replicas each selected cluster gets: by one of four strategies, tier by tier where a group has tiers."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bayplan.assigning.candidates import Candidates, Unassignable, Unschedulable
from bayplan.assigning.go_numbers import MAX_INT32, int32, sum_int32
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.bindings import Binding
from bayplan.model.placements import AGGREGATED, DUPLICATED, DYNAMIC_WEIGHT, PLAIN, SEED, STATIC_WEIGHT
from bayplan.model.semantics import Semantics
from bayplan.rules import cluster_affinity

Shares = list[tuple[str, int]]


def assign_replicas(binding: Binding, selected: Candidates, index: PlacementIndex) -> Shares:
    """(cluster, replicas), none with zero; things that cannot be divided go whole to every cluster, as 0 replicas."""
    if not len(selected):
        raise Unassignable("no clusters available to schedule")
    if not binding.is_divisible:
        return [(name, 0) for name in selected.names]
    if fills_tiers_in_order(binding, index.semantics):
        return _tier_by_tier(binding, selected, index)
    return _by_strategy(binding, selected, binding.replicas, index)


def _tier_by_tier(binding: Binding, selected: Candidates, index: PlacementIndex) -> Shares:
    """Each tier takes what it has room for, its own earlier replicas included; the next one takes what remains."""
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
        shares = _by_room(binding, candidates, replicas)
    else:
        raise Unassignable(
            f"unsupported replica scheduling strategy, replicaSchedulingType: {division.type}, "
            f"replicaDivisionPreference: {division.preference}, please try another scheduling strategy"
        )
    return [share for share in shares if share[1] > 0]


# By declared weights


def _by_weight(binding: Binding, candidates: Candidates, replicas: int, index: PlacementIndex) -> Shares:
    """The largest weight of the rules that name a cluster is its own. What was assigned before plays no part."""
    rules = [rule for rule in binding.placement.division.weights or () if rule[1] > 0]
    weights = [1, *sorted({weight for _, weight in rules})]
    level = np.zeros(len(candidates), np.int64)
    for affinity, weight in sorted(rules, key=lambda rule: rule[1]):
        named = cluster_affinity.matching(affinity, index)[candidates.rows.slots]
        level[named] = weights.index(weight, 1)
    if level.any():  # else nobody is named, so all are equal
        named_at = np.flatnonzero(level)
        candidates, level = candidates.only(named_at), level[named_at]
    order = np.argsort(-level, kind="stable")
    chosen = order[_most_entitled(level[order], candidates.name_order[order], replicas, binding.uid)]
    votes = {name: weights[i] for name, i in zip(candidates.only(chosen).names, level[chosen].tolist(), strict=True)}
    return sorted(webster_seats(replicas, votes, binding.uid).items())


# By the room that there is


def _by_room(binding: Binding, candidates: Candidates, replicas: int) -> Shares:
    """By what clusters can take, keeping what is there unless a rebalance was asked for."""
    places = [candidates.place_of(name) for name, _ in binding.previous]
    previous = [share for share, place in zip(binding.previous, places, strict=True) if place is not None]
    if binding.fresh:
        room = candidates.rows.allocatable.copy()
        for place, (_, number) in zip(places, binding.previous, strict=True):
            if place is not None:
                room[place] += number
        room = room.astype(np.int32).astype(np.int64)  # which wraps as `int32` does
        return _step("failed to do fresh scale", binding, replicas, candidates.with_room(room), [])
    assigned = sum_int32(number for _, number in previous)
    if assigned > replicas:  # in proportion to what is there, whatever room there is
        return _added(binding, replicas, sorted(previous, key=lambda share: -share[1]), [])
    if assigned < replicas:
        return _step("failed to scale up", binding, replicas - assigned, candidates, previous)
    return previous


def _step(step: str, binding: Binding, number: int, offered: Candidates, previous: Shares) -> Shares:
    """`number` more replicas by the room that is offered, on top of the previous ones."""
    offered = offered.by_room
    total = int32(int(offered.room_up_to[-1]))
    if total < number:
        raise Unschedulable(f"{step}: Clusters available replicas {total} are not enough to schedule.")
    asked = offered.only(_in_question(binding, number, offered, previous))
    return _added(binding, number, list(zip(asked.names, asked.rows.allocatable.tolist(), strict=True)), previous)


def _in_question(binding: Binding, number: int, offered: Candidates, previous: Shares) -> slice | NDArray[np.intp]:
    """The clusters that may get any of `number` replicas; no other can change who gets how many."""
    if offered.room_up_to[-1] > MAX_INT32 or offered.rows.allocatable[-1] < 0:
        return slice(None)  # sums wrap on the way, and each cluster may turn them
    if binding.placement.division.strategy != AGGREGATED:
        return _most_entitled(offered.rows.allocatable, offered.name_order, number, binding.uid)
    enough = int(np.searchsorted(offered.room_up_to, number)) + 1
    in_use = [place for name, _ in previous if (place := offered.place_of(name)) is not None]
    return np.array(sorted({*in_use, *range(enough)}), np.intp) if in_use else slice(enough)


def _added(binding: Binding, number: int, room: Shares, previous: Shares) -> Shares:
    if binding.placement.division.strategy == AGGREGATED:
        room = _as_few_as_possible(number, room, previous)
    return _merged(previous, webster_seats(number, dict(room), binding.uid))


def _as_few_as_possible(number: int, room: Shares, previous: Shares) -> Shares:
    """The shortest run of clusters with enough room, those in use first."""
    in_use = {name for name, replicas in previous if replicas > 0}
    room = [e for e in room if e[0] in in_use] + [e for e in room if e[0] not in in_use]
    total = 0
    for length, (_, free) in enumerate(room, 1):
        total = int32(total + free)
        if total >= number:
            return room[:length]
    return room


def _merged(previous: Shares, added: dict[str, int]) -> Shares:
    if not previous or not added:
        return previous or sorted(added.items())
    before = dict(previous)
    result = [(name, replicas + before.pop(name, 0)) for name, replicas in sorted(added.items())]
    return result + list(before.items())


def _most_entitled(claims: NDArray[np.int64], names: NDArray[np.int64], seats: int, uid: str) -> NDArray[np.intp]:
    """
    Which of these clusters can get any of so many seats: as many of those with the most votes, largest first given.

    While seats are left, one of them has none yet, and so a better claim than any cluster with fewer votes.
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


# RF merged from assigning.webster: Seats by votes after Webster: every replica goes to the cluster with the largest
# claim. Knows nothing of clusters.


def webster_seats(number: int, votes: Mapping[str, int], uid: str) -> dict[str, int]:
    """
    Seats by name. Fewer seats win a tie, then the name, whose direction is drawn from the template's uid.

    Claims are compared as floats, like Karmada's: claims that round to the same float are equal.
    """
    won = dict.fromkeys(votes, 0)
    if not votes or number <= 0:
        return won
    if len(votes) == 1:
        return dict.fromkeys(votes, number)
    names = sorted(votes, reverse=reverses_names(uid))
    heap = [(-float(votes[name]), 0, rank, name) for rank, name in enumerate(names)]
    heapq.heapify(heap)
    for _ in range(number):
        _, taken, rank, name = heap[0]
        won[name] = taken + 1
        heapq.heapreplace(heap, (-(votes[name] / (2 * taken + 3)), taken + 1, rank, name))
    return won


def reverses_names(uid: str) -> bool:
    """Whether names are taken from the last on where all else is equal."""
    return bool(uid) and _fnv1a(uid.encode()) & 1 == 1


def _fnv1a(data: bytes) -> int:
    """The 32-bit hash of that name."""
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


# RF merged from assigning.tiers: What tiers mean to a workload: filled in order, or the first one alone. Workloads
# that clusters take by their room fill tiers in order, whatever the form. Those that are copied whole or split by
# fixed weights fill Karmada's own form too, although its webhook refuses that; by the seed they take the first tier
# that can hold them alone.


def fills_tiers_in_order(binding: Binding, semantics: Semantics) -> bool:
    return binding.group.form != PLAIN and not _by_the_seed(binding, semantics)


def uses_first_tier_alone(binding: Binding, semantics: Semantics) -> bool:
    return binding.group.form != PLAIN and _by_the_seed(binding, semantics)


def _by_the_seed(binding: Binding, semantics: Semantics) -> bool:
    copied = not binding.is_divisible or binding.placement.division.strategy not in (DYNAMIC_WEIGHT, AGGREGATED)
    return copied and (binding.group.form == SEED or semantics.first_tier_alone)
