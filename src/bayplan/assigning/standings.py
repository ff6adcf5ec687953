"""
How clusters stand for a kind of workload, before peers are looked at: which are let through, and in what order.

Workloads that no rule about clusters alone tells apart, that ask for the same and prefer the same tiers, share one
standing, which holds until a cluster changes. If only the room of clusters changes, only their order is found anew.
What depends on peers, or on where the workload is already, is added for each workload.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import takewhile

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan import filtering
from bayplan.assigning import candidates, estimating
from bayplan.assigning.candidates import Candidates, Rows
from bayplan.assigning.go_numbers import MAX_INT32
from bayplan.filtering import Verdicts
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.bindings import Binding
from bayplan.model.decisions import Scores
from bayplan.model.workloads import Workload
from bayplan.rules.cluster_affinity import tier_by_target
from bayplan.rules.rule import Rule

ALREADY_THERE = 100  # the score of a cluster that holds the workload
MEMORY = 64 * 2**20  # bytes of arrays kept; the least recently used standings go first
BYTES = 64  # that one cluster takes in one standing

Rules = tuple[Rule, ...]


class Standing(msgspec.Struct, frozen=True):
    """
    What the rules about clusters alone say, and the clusters that they let through as candidates.

    `tiers` and `allocatable` are by slot, shape (capacity,). `replicas` is the number that it holds for, None where it
    holds for any; `targets_generation` and `room_generation` are those of the index that it holds for.
    """

    verdicts: Verdicts
    tiers: NDArray[np.int64]
    allocatable: NDArray[np.int64]
    candidates: Candidates
    replicas: int | None
    targets_generation: int
    room_generation: int


def of(workload: Workload, index: PlacementIndex, rules: Sequence[Rule]) -> Standing:
    """How clusters stand for the workload, its peers and its places aside."""
    binding = workload.binding
    assert binding is not None
    leading, _ = split(tuple(rules))
    counts_room = bool(binding.replicas or binding.components)  # else any number fits
    parts = tuple([rule.part(workload, index) for rule in leading])
    key = (leading, parts, binding.group.tiers, counts_room, binding.demand)
    kept: OrderedDict[Hashable, Standing] = index.standings
    found = kept.pop(key, None)
    if found is None or found.targets_generation != index.targets_generation:
        found = _standing(
            _allowed(leading, workload, index), tier_by_target(binding.group.tiers, index), binding, index
        )
    elif found.room_generation != index.cluster_room.generation or found.replicas not in (None, binding.replicas):
        found = _standing(found.verdicts, found.tiers, binding, index)
    kept[key] = found  # the latest comes last
    while len(kept) > max(16, MEMORY // (BYTES * index.slots.capacity)):
        kept.popitem(last=False)
    return found


@lru_cache(maxsize=64)
def split(rules: Rules) -> tuple[Rules, Rules]:
    """The rules about clusters alone, which come first, and those after them."""
    leading = tuple(takewhile(lambda rule: not rule.follows_workloads, rules))
    following = rules[len(leading) :]
    for rule in following:
        by_codes = type(rule).refuse is Rule.refuse and type(rule).candidates is Rule.candidates
        assert by_codes, f"{rule.id} comes after rules about peers, so it must say by codes what it refuses"
    return leading, following


def _allowed(leading: Rules, workload: Workload, index: PlacementIndex) -> Verdicts:
    """What the rules about clusters alone say of clusters that do not have the workload yet."""
    judged = filtering.judge(leading, workload, index)
    return filtering.verdicts_of([msgspec.structs.replace(one, spared=None) for one in judged], index)


def _standing(verdicts: Verdicts, tiers: NDArray[np.int64], binding: Binding, index: PlacementIndex) -> Standing:
    allocatable, replicas = _room(binding, index)
    slots = np.flatnonzero(verdicts.feasible)
    room = allocatable[slots]
    rows = Rows(slots, tiers[slots], np.zeros(len(slots), np.int64), room, room)
    return Standing(
        verdicts,
        tiers,
        allocatable,
        candidates.in_order(index.slots, rows),
        replicas,
        index.targets_generation,
        index.cluster_room.generation,
    )


def _room(binding: Binding, index: PlacementIndex) -> tuple[NDArray[np.int64], int | None]:
    """The replicas that fit beside everything present by slot, and for how many replicas wanted that is so."""
    if not binding.replicas and not binding.components:
        return np.full(index.slots.capacity, MAX_INT32, np.int64), None
    estimate = estimating.allocatable(binding.demand, index)
    # "No limit known" and "cannot tell" mean that what is wanted fits.
    unknown = (estimate == MAX_INT32) | (estimate == -1)
    if unknown.any():
        return np.where(unknown, binding.replicas, estimate), binding.replicas
    return estimate, None


# For one workload


def verdicts(standing: Standing, workload: Workload, index: PlacementIndex, rules: Sequence[Rule]) -> Verdicts:
    """What all rules say of the clusters for this workload."""
    assert workload.binding is not None
    if workload.binding.previous:  # rules spare the clusters that have it already
        return filtering.run(rules, workload, index)
    found = standing.verdicts
    for one in filtering.judge(split(tuple(rules))[1], workload, index):
        refused = one.refused()
        feasible = found.feasible if refused is None else found.feasible & ~refused
        found = msgspec.structs.replace(found, judged=(*found.judged, one), feasible=feasible)
    return found


def ranked(standing: Standing, workload: Workload, verdicts: Verdicts, index: PlacementIndex) -> Candidates:
    """The clusters that all rules let through, in the order in which the workload prefers them."""
    binding = workload.binding
    assert binding is not None
    wishes = _wishes(verdicts)
    if wishes is None and not binding.previous:
        if verdicts.feasible is standing.verdicts.feasible:
            return standing.candidates
        return standing.candidates.only(verdicts.feasible[standing.candidates.rows.slots])
    slots = np.flatnonzero(verdicts.feasible)
    allocatable = standing.allocatable[slots]
    scores = np.zeros(len(slots), np.int64) if wishes is None else wishes[slots]
    available = allocatable.copy()
    for name, replicas in binding.assigned.items():
        here = slots == index.slots.by_name.get(name, -1)
        available[here] += replicas
        scores[here] += ALREADY_THERE
    return candidates.in_order(index.slots, Rows(slots, standing.tiers[slots], scores, allocatable, available))


def _wishes(verdicts: Verdicts) -> Scores | None:
    """What rules give each cluster, added up; None if none gives anything."""
    given = [one.evaluation.raw for one in verdicts.judged if one.evaluation.raw is not None]
    return sum(given[1:], start=given[0]) if given else None
