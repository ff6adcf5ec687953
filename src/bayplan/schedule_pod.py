"""
Decide where one workload is placed: the whole line on one screen.

    read → model → index → filter → score → assign → write          explain, on demand, from the same index
"""

from __future__ import annotations

import msgspec

from bayplan.engine import domain_choice, filtering, ranking, scoring
from bayplan.engine.engine import Engine
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.terms import REGION, ZONE
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
    return decide(filtering.run(workload, engine), engine.index)


def decide(verdicts: filtering.Verdicts, index: PlacementIndex) -> Decision:
    """The feasible target of the highest total."""
    if not verdicts.feasible.any():
        return Decision(verdicts)
    ranking = scoring.run(verdicts, index)
    return Decision(verdicts, ranking, int(ranking.best(verdicts.feasible, index)[0]))


def choose(workload: Workload, engine: Engine, *, ranked: bool = True) -> tuple[int, int]:
    """
    The slot that `schedule` chooses and its total, (-1, 0) if no target is feasible.

    The same answer without the arrays that explain it. `ranked`: from a ranking that the whole equivalence class
    shares, which pays for all but the smallest classes.
    """
    if not ranked:
        decision = schedule(workload, engine)
    else:
        equivalence_class, index = engine.class_of(workload), engine.index
        failure = equivalence_class.fit_failure
        if failure is not None and failure.position == index.journal.end:
            return -1, 0  # another workload of the class did not fit either, and nothing has changed since
        is_rankable = equivalence_class.is_rankable()
        equivalence_class.n_choices += 1
        if is_rankable and equivalence_class.n_choices <= MAX_CHOICES_BY_DOMAIN:
            found = domain_choice.best(equivalence_class.order, equivalence_class.by_peers, index)
            if found is not None:
                return found
        equivalence_class.complete(engine.evaluations)
        # Requests that no other class has are seldom those of a second pod, so its first one earns back no ranking.
        is_alone = equivalence_class.n_choices == 1 and equivalence_class.order.n_classes == 1
        if is_rankable and not is_alone:
            return ranking.ranking_of(equivalence_class, index).best()
        decision = decide(filtering.verdicts_of(equivalence_class.results, index), index)
    return decision.slot, 0 if decision.ranking is None else int(decision.ranking.totals[decision.slot])


def assume(index: PlacementIndex, workload: Workload, slot: int) -> str:
    """Add a workload to the target of a slot, as it is once bound; returns the name of the target."""
    target = index.slots.at(slot)
    # Since Kubernetes 1.35, a bound pod carries the zone and region labels of its node.
    copied = {key: target.labels[key] for key in (ZONE, REGION) if key in target.labels}
    if copied:
        workload = msgspec.structs.replace(workload, labels={**workload.labels, **copied})
    index.add(workload, target.name)
    return target.name
