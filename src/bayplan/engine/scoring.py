"""Run the score halves of the rules: what each feasible target is worth."""

from __future__ import annotations

import msgspec
import numpy as np

from bayplan.engine.filtering import Verdicts
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.reasons import Scores


class Ranking(msgspec.Struct, frozen=True):
    """Weighted totals per target and what each rule gave; both mean something for feasible targets only."""

    totals: Scores
    by_rule: dict[str, Scores]


def run(verdicts: Verdicts, index: PlacementIndex) -> Ranking:
    """Normalise each rule's raw scores over the feasible targets, weight them and add them up."""
    totals = np.zeros(index.slots.capacity, np.int64)
    by_rule = {}
    for one in verdicts.judged:
        raw = one.evaluation.raw
        if raw is None or not one.rule.weight:
            continue
        weighted = one.rule.normalise(one.state, raw, verdicts.feasible, index) * one.rule.weight
        by_rule[one.rule.name] = weighted
        totals += weighted
    return Ranking(totals, by_rule)
