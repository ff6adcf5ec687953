"""
Run the filter half of the rules: which targets are feasible, and for the others the first rule that rejects them.

Knows nothing of scores.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from bayplan.engine.engine import Engine
from bayplan.engine.evaluations import RuleResult
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.reasons import Mask, Reason
from bayplan.model.workloads import Workload
from bayplan.rules.rule import AnyRule


class Verdicts(msgspec.Struct, frozen=True):
    """
    The results of all rules before scoring. Read it before the next change of the index.

    `pre_filter_rejection` is the rule that rejects every target before any is evaluated, with its reason.
    `excluded` are the targets that rules exclude beforehand, and `excluded_by` those rules.
    """

    results: tuple[RuleResult, ...]
    feasible: Mask
    pre_filter_rejection: tuple[AnyRule, Reason] | None = None
    excluded: Mask | None = None
    excluded_by: tuple[AnyRule, ...] = ()

    @property
    def exclusion(self) -> str:
        """The message for the targets that rules exclude beforehand, as kube-scheduler words it."""
        return f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(rule.name for rule in self.excluded_by))}]"


def run(workload: Workload, engine: Engine) -> Verdicts:
    """Which targets no rule rejects."""
    return verdicts_of(engine.evaluate(workload), engine.index)


def verdicts_of(results: Sequence[RuleResult], index: PlacementIndex) -> Verdicts:
    """The verdicts of all rules together, from the result of each."""
    results = tuple(results)
    candidates, by = None, []
    for one in results:
        only = one.pre_filter(index)
        if isinstance(only, Reason):
            return Verdicts(results, np.zeros(index.slots.capacity, np.bool_), (one.rule, only))
        if only is not None:
            candidates = only if candidates is None else candidates & only
            by.append(one.rule)
    feasible = index.slots.alive.copy() if candidates is None else index.slots.alive & candidates
    for one in results:
        rejected = one.rejected()
        if rejected is not None:
            feasible &= ~rejected
    excluded = None if candidates is None else index.slots.alive & ~candidates
    return Verdicts(results, feasible, excluded=excluded, excluded_by=tuple(by))
