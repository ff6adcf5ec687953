"""
How clusters stand for a kind of workload, before peers are looked at: which are let through, and in what order.

Workloads that no rule about clusters alone tells apart and that prefer the same tiers have the same clusters in
question; those that also ask for the same share one standing. If only the room of clusters changes, only their order is
found anew. What depends on peers, or on where the workload is already, is added for each workload.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.assigning import candidates, estimating
from bayplan.assigning.candidates import CandidateRows, Candidates
from bayplan.assigning.go_numbers import MAX_INT32
from bayplan.engine import filtering
from bayplan.engine.filtering import Verdicts
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.bindings import Binding
from bayplan.model.reasons import Scores
from bayplan.model.workloads import Workload
from bayplan.rules.cluster_affinity import tier_by_target
from bayplan.rules.rule import Rule

ALREADY_THERE = 100  # the score of a cluster that holds the workload
MEMORY = 64 * 2**20  # bytes of arrays kept; the least recently used standings go first
BYTES = 64  # that one cluster takes in one standing

Rules = tuple[Rule, ...]


class InQuestion(msgspec.Struct, frozen=True):
    """What the rules about clusters alone say, and the tier of each cluster by slot. Holds for one `generation`."""

    verdicts: Verdicts
    tiers: NDArray[np.int64]
    generation: int


class ClusterRanking(msgspec.Struct, frozen=True):
    """
    The clusters in question that are let through, as candidates.

    `allocatable` is by slot, shape (capacity,). `replicas` is the number that it holds for, None where it holds for
    any; `generation` is that of the room it was made from.
    """

    in_question: InQuestion
    allocatable: NDArray[np.int64]
    candidates: Candidates
    replicas: int | None
    generation: int


def of(workload: Workload, index: PlacementIndex, rules: Sequence[Rule]) -> ClusterRanking:
    """How clusters stand for the workload, its peers and its places aside."""
    binding = workload.binding
    assert binding is not None
    leading, _ = split(tuple(rules))
    who = (leading, tuple([rule.part(workload, index) for rule in leading]), binding.group.tiers)
    key = (who, _counts_room(binding), binding.demand)
    kept: OrderedDict[Hashable, Any] = index.cluster_rankings
    found: ClusterRanking | None = kept.get(key)
    if found is None or not _holds(found, binding, index):
        among: InQuestion | None = kept.get(who)
        if among is None or among.generation != index.targets_generation:
            among = kept[who] = _in_question(leading, workload, index)
        found = kept[key] = _standing(among, binding, index)
        while len(kept) > max(16, MEMORY // (BYTES * index.slots.capacity)):
            kept.popitem(last=False)
    kept.move_to_end(key)
    return found


def _holds(standing: ClusterRanking, binding: Binding, index: PlacementIndex) -> bool:
    return (
        standing.in_question.generation == index.targets_generation
        and standing.generation == index.cluster_capacity.generation
        and standing.replicas in (None, binding.replicas)
    )


@lru_cache(maxsize=64)
def split(rules: Rules) -> tuple[Rules, Rules]:
    """The rules about clusters alone, which come first, and those after them."""
    leading = tuple(takewhile(lambda rule: not rule.follows_workloads, rules))
    following = rules[len(leading) :]
    for rule in following:
        by_codes = type(rule).pre_filter is Rule.pre_filter
        assert by_codes, f"{rule.id} comes after rules about peers, so it must say by codes what it refuses"
    return leading, following


def _counts_room(binding: Binding) -> bool:
    """Whether room matters at all; of things without replicas any number fits."""
    return bool(binding.replicas or binding.components)


def _in_question(leading: Rules, workload: Workload, index: PlacementIndex) -> InQuestion:
    """Of clusters that do not have the workload yet; rules spare those that have."""
    assert workload.binding is not None
    judged = [
        msgspec.structs.replace(one, exempt_slots=None) for one in filtering.evaluate_rules(leading, workload, index)
    ]
    tiers = tier_by_target(workload.binding.group.tiers, index)
    return InQuestion(filtering.verdicts_of(judged, index), tiers, index.targets_generation)


def _standing(among: InQuestion, binding: Binding, index: PlacementIndex) -> ClusterRanking:
    allocatable, replicas = _room(binding, index)
    slots = np.flatnonzero(among.verdicts.feasible)
    room = allocatable[slots]
    rows = CandidateRows(slots, among.tiers[slots], np.zeros(len(slots), np.int64), room, room)
    ordered = candidates.ordered_candidates(index.slots, rows)
    return ClusterRanking(among, allocatable, ordered, replicas, index.cluster_capacity.generation)


def _room(binding: Binding, index: PlacementIndex) -> tuple[NDArray[np.int64], int | None]:
    """The replicas that fit beside everything present by slot, and for how many replicas wanted that is so."""
    if not _counts_room(binding):
        return np.full(index.slots.capacity, MAX_INT32, np.int64), None
    estimate = estimating.estimate_replicas(binding.demand, index)
    # "No limit known" and "cannot tell" mean that what is wanted fits.
    unknown = (estimate == MAX_INT32) | (estimate == -1)
    if unknown.any():
        return np.where(unknown, binding.replicas, estimate), binding.replicas
    return estimate, None


# For one workload


def verdicts(standing: ClusterRanking, workload: Workload, index: PlacementIndex, rules: Sequence[Rule]) -> Verdicts:
    """What all rules say of the clusters for this workload."""
    assert workload.binding is not None
    if workload.binding.previous:
        return filtering.run(rules, workload, index)
    found = standing.in_question.verdicts
    for one in filtering.evaluate_rules(split(tuple(rules))[1], workload, index):
        refused = one.rejected()
        feasible = found.feasible if refused is None else found.feasible & ~refused
        found = msgspec.structs.replace(found, results=(*found.results, one), feasible=feasible)
    return found


def ranked(standing: ClusterRanking, workload: Workload, verdicts: Verdicts, index: PlacementIndex) -> Candidates:
    """The clusters that all rules let through, in the order in which the workload prefers them."""
    binding = workload.binding
    assert binding is not None
    wishes = _wishes(verdicts)
    if wishes is None and not binding.previous:
        if verdicts.feasible is standing.in_question.verdicts.feasible:
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
    rows = CandidateRows(slots, standing.in_question.tiers[slots], scores, allocatable, available)
    return candidates.ordered_candidates(index.slots, rows)


def _wishes(verdicts: Verdicts) -> Scores | None:
    """What rules give each cluster, added up; None if none gives anything."""
    given = [raw for one in verdicts.results if (raw := one.evaluation.raw) is not None]
    return sum(given[1:], start=given[0]) if given else None
