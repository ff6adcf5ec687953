"""How many replicas each selected cluster gets: by one of four strategies, tier by tier where a group has tiers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from bayplan.assigning import tiers, webster
from bayplan.assigning.candidates import Candidate, Candidates
from bayplan.assigning.failing import Unassignable, Unschedulable
from bayplan.assigning.go_numbers import int32, sum_int32
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.bindings import Binding
from bayplan.model.placements import AGGREGATED, DUPLICATED, DYNAMIC_WEIGHT, STATIC_WEIGHT
from bayplan.rules import cluster_affinity

Shares = list[tuple[str, int]]


def divide(binding: Binding, selected: Sequence[Candidate], index: PlacementIndex) -> Shares:
    """(cluster, replicas), none with zero; things that cannot be divided go whole to every cluster, as 0 replicas."""
    if not selected:
        raise Unassignable("no clusters available to schedule")
    if not binding.is_divisible:
        return [(candidate.name, 0) for candidate in selected]
    if tiers.filled_in_order(binding, index.semantics):
        return _tier_by_tier(binding, selected, index)
    return _by_strategy(binding, selected, binding.replicas, index)


def _tier_by_tier(binding: Binding, selected: Sequence[Candidate], index: PlacementIndex) -> Shares:
    """Each tier takes what it has room for, its own earlier replicas included; the next one takes what remains."""
    result: Shares = []
    remaining = binding.replicas
    for tier in _tiers(selected):
        share = min(remaining, _room_of(tier))
        result += _by_strategy(binding, tier, share, index)
        remaining -= share
        if remaining <= 0:
            return result
    raise Unschedulable("Clusters available replicas are not enough to schedule.")


def _tiers(selected: Sequence[Candidate]) -> Iterator[Sequence[Candidate]]:
    if isinstance(selected, Candidates):
        yield from selected.by_tier()
        return
    by_tier = sorted(selected, key=lambda candidate: candidate.tier)
    for _, members in groupby(by_tier, key=lambda candidate: candidate.tier):
        yield list(members)


def _room_of(tier: Sequence[Candidate]) -> int:
    if isinstance(tier, Candidates):
        return int(tier.available.sum())
    return sum(candidate.available for candidate in tier)


def _by_strategy(binding: Binding, candidates: Sequence[Candidate], replicas: int, index: PlacementIndex) -> Shares:
    division = binding.placement.division
    if division.strategy == DUPLICATED:
        shares = [(candidate.name, replicas) for candidate in candidates]
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


def _by_weight(binding: Binding, candidates: Sequence[Candidate], replicas: int, index: PlacementIndex) -> Shares:
    """By declared weights: the largest of the rules that name a cluster. What was assigned before plays no part."""
    votes: dict[str, int] = {}
    for affinity, weight in binding.placement.division.weights or ():
        named = cluster_affinity.matching(affinity, index)
        for candidate in candidates:
            if named[candidate.slot] and weight > votes.get(candidate.name, 0):
                votes[candidate.name] = weight
    if not votes:  # nobody is named, so all are equal
        votes = {candidate.name: 1 for candidate in candidates}
    return list(webster.seats(replicas, votes, binding.uid).items())


def _by_room(binding: Binding, candidates: Sequence[Candidate], replicas: int) -> Shares:
    """By what clusters can take, keeping what is there unless a rebalance was asked for."""
    if isinstance(candidates, Candidates) and not binding.previous and replicas > 0:
        return _from_nothing(binding, candidates, replicas)
    names = {candidate.name for candidate in candidates}
    previous = [(name, number) for name, number in binding.previous if name in names]
    room = [(candidate.name, candidate.allocatable) for candidate in candidates]
    if binding.fresh:
        held: dict[str, int] = {}
        for name, number in previous:
            held[name] = held.get(name, 0) + number
        room = [(name, int32(free + held.get(name, 0))) for name, free in room]
        return _step("failed to do fresh scale", binding, replicas, room, [])
    assigned = sum_int32(number for _, number in previous)
    if assigned > replicas:  # in proportion to what is there, whatever room there is
        return _step("failed to scale down", binding, replicas, previous, [])
    if assigned < replicas:
        return _step("failed to scale up", binding, replicas - assigned, room, previous)
    return previous


def _from_nothing(binding: Binding, candidates: Candidates, replicas: int) -> Shares:
    """The same for a workload that is nowhere yet, without looking at candidates one by one."""
    candidates.in_order()
    total = sum_int32((int(candidates.allocatable.sum()),))
    if total < replicas:
        step = "failed to do fresh scale" if binding.fresh else "failed to scale up"
        raise Unschedulable(f"{step}: Clusters available replicas {total} are not enough to schedule.")
    order = np.argsort(-candidates.allocatable, kind="stable")
    if binding.placement.division.strategy == AGGREGATED:
        needed = int(np.searchsorted(candidates.allocatable[order].cumsum(), replicas)) + 1
        order = order[:needed]
    if len(order) > replicas:
        order = order[_most_entitled(candidates, order, replicas, binding.uid)]
    votes = {candidates.name(i): int(candidates.allocatable[i]) for i in order.tolist()}
    return sorted(webster.seats(replicas, votes, binding.uid).items())


def _most_entitled(candidates: Candidates, order: NDArray[np.intp], seats: int, uid: str) -> NDArray[np.intp]:
    """
    The clusters that can get any of so many seats: as many of those with the most votes.

    While seats are left, one of them has none yet, and so a better claim than any cluster with fewer votes.
    """
    names = candidates.name_order[order]
    return np.lexsort((-names if webster.descending(uid) else names, -candidates.allocatable[order]))[:seats]


def _step(step: str, binding: Binding, number: int, room: Shares, previous: Shares) -> Shares:
    try:
        return _share_out(binding, number, room, previous)
    except Unassignable as failure:
        raise failure.during(step) from None


def _share_out(binding: Binding, number: int, room: Shares, previous: Shares) -> Shares:
    """`number` more replicas by the room there is, on top of the previous ones."""
    room = sorted(room, key=lambda entry: -entry[1])  # stable: clusters of equal room keep their order
    total = sum_int32(free for _, free in room)
    if total < number:
        raise Unschedulable(f"Clusters available replicas {total} are not enough to schedule.")
    if binding.placement.division.strategy == AGGREGATED:
        room = _as_few_as_possible(number, room, previous)
    # With nothing wanted and no room anywhere nobody gets anything, not even a zero.
    added = webster.seats(number, dict(room), binding.uid) if any(free for _, free in room) else {}
    return _merged(previous, added)


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
