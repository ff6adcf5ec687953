"""
Decide where one workload is placed: the whole line on one screen.

    read → model → index → filter → score → assign → write          explain, on demand, from the same index
"""

from __future__ import annotations

import msgspec

from bayplan.engine import domain_choice, filtering, ranking, scoring
from bayplan.engine.engine import Engine
from bayplan.model.workloads import Workload

MAX_CHOICES_BY_DOMAIN = 3  # workloads of a class that find their target without a ranking, which later ones share


class Decision(msgspec.Struct, frozen=True):
    """
    The slot chosen for a workload, -1 if no target is feasible, with the arrays that the choice is made from.

    The arrays belong to the caches of the engine: call `explaining` before the next change of the index.
    """

    verdicts: filtering.Verdicts
    ranking: scoring.Ranking | None = None
    slot: int = -1

    @property
    def placed(self) -> bool:
        return self.slot >= 0


def schedule(workload: Workload, engine: Engine) -> Decision:
    """Decide where one workload is placed. Reads the index, places nothing."""
    verdicts = filtering.run(workload, engine)
    if not verdicts.feasible.any():
        return Decision(verdicts)
    ranking = scoring.run(verdicts, engine.index)
    return Decision(verdicts, ranking, int(ranking.best(verdicts.feasible, engine.index)[0]))


def choose(workload: Workload, engine: Engine, *, ranked: bool = True) -> tuple[int, int]:
    """
    The slot that `schedule` chooses and its total, (-1, 0) if no target is feasible.

    The same answer without the arrays that explain it. `ranked`: from a ranking that the whole equivalence class
    shares, which pays for all but the smallest classes.
    """
    if ranked:
        equivalence_class = engine.class_of(workload)
        if equivalence_class.is_rankable():
            equivalence_class.n_choices += 1
            if equivalence_class.n_choices <= MAX_CHOICES_BY_DOMAIN:
                found = domain_choice.best(equivalence_class.order, equivalence_class.by_peers, engine.index)
                if found is not None:
                    return found
            equivalence_class.complete(engine.evaluations)
            return ranking.ranking_of(equivalence_class, engine.index).best()
    decision = schedule(workload, engine)
    return decision.slot, 0 if decision.ranking is None else int(decision.ranking.totals[decision.slot])
