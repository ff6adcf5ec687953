"""
Where one workload goes: the whole line on one screen.

    read → model → index → filter → score → assign → write          explain, on demand, from the same index
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan import filtering, scoring
from bayplan.assigning import best_target
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload
from bayplan.rules.rule import Rule


class Decision(msgspec.Struct, frozen=True):
    """
    Where a workload goes, or that it goes nowhere, with the arrays that say why.

    The arrays belong to the index's caches: ask `explaining` before the next change of the index.
    """

    verdicts: filtering.Verdicts
    ranking: scoring.Ranking | None = None
    slot: int = -1

    @property
    def placed(self) -> bool:
        return self.slot >= 0


def schedule(workload: Workload, index: PlacementIndex, rules: Sequence[Rule]) -> Decision:
    """Decide where one workload goes. Reads the index, places nothing."""
    verdicts = filtering.run(rules, workload, index)
    if not verdicts.feasible.any():
        return Decision(verdicts)
    ranking = scoring.run(verdicts, index)
    candidates = best_target.best(ranking.totals, verdicts.feasible)
    return Decision(verdicts, ranking, best_target.pick(candidates, index))
