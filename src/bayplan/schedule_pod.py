"""
Where one workload goes: the whole line on one screen.

    read → model → index → filter → score → assign → write          explain, on demand, from the same index
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan.assigning import best_target
from bayplan.engine import filtering, ranking, scoring
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


def choose(workload: Workload, index: PlacementIndex, rules: Sequence[Rule]) -> tuple[int, int]:
    """
    The slot that `schedule` would choose and its total, (-1, 0) for nowhere.

    The same answer without the arrays that explain it, from a ranking that all workloads of the kind share.
    """
    equivalence_class = filtering.equivalence_class_of(rules, workload, index)
    ranked = None if equivalence_class.needs_a_closer_look(index) else ranking.ranking_of(equivalence_class, index)
    if ranked is not None:
        return ranked.best()
    decision = schedule(workload, index, rules)
    return decision.slot, 0 if decision.ranking is None else int(decision.ranking.totals[decision.slot])
