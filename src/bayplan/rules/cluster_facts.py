"""Codes from what a Cluster object says of itself, for the rules that read nothing else."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import At
from bayplan.model.reasons import Codes
from bayplan.model.targets import ClusterFacts


def codes_by_facts(index: PlacementIndex, at: At, code: Callable[[ClusterFacts], int]) -> Codes:
    """A code per cluster from its facts; 0 for empty slots."""
    targets = index.slots.targets
    slots = range(index.slots.capacity) if isinstance(at, slice) else at.tolist()
    found = (targets[slot] for slot in slots)
    return np.fromiter((code(t.cluster) if t is not None and t.cluster else 0 for t in found), np.int64, len(slots))
