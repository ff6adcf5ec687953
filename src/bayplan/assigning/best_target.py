"""Pick the one target with the highest total; among equals the one whose seeded rank comes first."""

from __future__ import annotations

import numpy as np

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.reasons import Mask, Scores, Slots


def best(totals: Scores, feasible: Mask) -> Slots:
    """All feasible targets of the highest total."""
    highest = totals.max(where=feasible, initial=np.iinfo(np.int64).min)
    return np.flatnonzero(feasible & (totals == highest))


def pick(candidates: Slots, index: PlacementIndex) -> int:
    """The slot of the one that is taken."""
    return int(candidates[index.slots.rank[candidates].argmin()]) if len(candidates) > 1 else int(candidates[0])
