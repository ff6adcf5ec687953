"""Choose the one target with the highest total; ties break by the seeded rank."""

from __future__ import annotations

import numpy as np

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.reasons import Mask, Scores, Slots


def best(totals: Scores, feasible: Mask, index: PlacementIndex) -> Slots:
    """The feasible targets of the highest total, in the order of their ranks: the first one is chosen."""
    highest = totals.max(where=feasible, initial=np.iinfo(np.int64).min)
    candidates = np.flatnonzero(feasible & (totals == highest))
    return candidates[index.slots.rank[candidates].argsort(kind="stable")]
