"""Run the score half of the rules: the total of each feasible target, and the targets of the highest one."""

from __future__ import annotations

import msgspec
import numpy as np

from bayplan.engine.filtering import Verdicts
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.reasons import Mask, Scores, Slots


class Ranking(msgspec.Struct, frozen=True):
    """The weighted total of each target and the part of it that each rule gives; valid for feasible targets only."""

    totals: Scores
    by_rule: dict[str, Scores]

    def best(self, feasible: Mask, index: PlacementIndex) -> Slots:
        """The feasible targets of the highest total, in the order of their seeded ranks: the first one is chosen."""
        highest = self.totals.max(where=feasible, initial=np.iinfo(np.int64).min)
        candidates = np.flatnonzero(feasible & (self.totals == highest))
        return candidates[index.slots.rank[candidates].argsort(kind="stable")]


def run(verdicts: Verdicts, index: PlacementIndex) -> Ranking:
    """Normalise the raw scores of each rule over the feasible targets, weight them and add them up."""
    totals = np.zeros(index.slots.capacity, np.int64)
    by_rule = {}
    for one in verdicts.results:
        raw = one.evaluation.raw
        if raw is None or not one.rule.weight or not one.rule.has_scores(one.evaluation.state):
            continue
        weighted = one.rule.normalise(one.evaluation.state, raw, verdicts.feasible, index) * one.rule.weight
        by_rule[one.rule.name] = weighted
        totals += weighted
    return Ranking(totals, by_rule)
