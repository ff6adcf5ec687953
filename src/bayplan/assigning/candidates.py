"""The feasible clusters in the order in which they are preferred. Knows nothing of constraints or division."""

from __future__ import annotations

import msgspec
import numpy as np

from bayplan.assigning import estimating
from bayplan.filtering import Verdicts
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.decisions import Scores
from bayplan.model.workloads import Workload
from bayplan.rules.cluster_affinity import tier_by_target

ALREADY_THERE = 100


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """`allocatable` is the room beside everything; `available` includes what the workload has there already."""

    slot: int
    name: str
    region: str
    tier: int
    score: int
    allocatable: int
    available: int


def ranked(workload: Workload, verdicts: Verdicts, index: PlacementIndex) -> list[Candidate]:
    """Earlier tier, higher score, more room, name."""
    binding = workload.binding
    assert binding is not None
    slots = np.flatnonzero(verdicts.feasible)
    room = estimating.allocatable(workload, index)
    tiers = tier_by_target(binding.group.tiers, index)
    assigned, wishes = binding.assigned, _wishes(verdicts)
    found = []
    for slot, tier, free in zip(slots.tolist(), tiers[slots].tolist(), room[slots].tolist(), strict=True):
        target = index.slots.at(slot)
        here = assigned.get(target.name)
        score = (0 if here is None else ALREADY_THERE) + (0 if wishes is None else int(wishes[slot]))
        region = target.cluster.region if target.cluster else ""
        found.append(Candidate(slot, target.name, region, tier, score, free, free + (here or 0)))
    found.sort(key=lambda c: (c.tier, -c.score, -c.available, c.name))
    return found


def _wishes(verdicts: Verdicts) -> Scores | None:
    """What rules give each cluster, added up; None if none gives anything."""
    given = [one.evaluation.raw for one in verdicts.judged if one.evaluation.raw is not None]
    return sum(given[1:], start=given[0]) if given else None
