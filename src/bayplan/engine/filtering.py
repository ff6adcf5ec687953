"""
Run the filter half of the rules: which targets are feasible, and for the others the first rule that rejects them.

Knows nothing of scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from bayplan.engine.engine import Engine
from bayplan.engine.evaluations import RuleResult
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.reasons import Mask, Reason, StatusCode
from bayplan.model.workloads import Workload
from bayplan.rules.rule import AnyRule

NO_COMMON_TARGET = Reason(
    "no-common-node", "node(s) didn't satisfy plugin(s) [<plugins>] simultaneously", StatusCode.UNRESOLVABLE
)


class Verdicts(msgspec.Struct, frozen=True):
    """
    The results of all rules before scoring. Read it before the next change of the index.

    `pre_filter_rejection` is the rule that rejects every target before any is evaluated, with its reason; no rule if
    several together leave none.
    `excluded` are the targets that rules exclude beforehand, and `excluded_by` those rules. `taken` has by slot the
    rule, and its reasons, that rejects a target because of the workloads nominated to it.
    """

    results: tuple[RuleResult, ...]
    feasible: Mask
    pre_filter_rejection: tuple[AnyRule | None, Reason] | None = None
    excluded: Mask | None = None
    excluded_by: tuple[AnyRule, ...] = ()
    taken: Mapping[int, tuple[str, tuple[Reason, ...]]] = {}

    @property
    def exclusion(self) -> str:
        """The message for the targets that rules exclude beforehand, as kube-scheduler words it."""
        return f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(rule.name for rule in self.excluded_by))}]"


def run(workload: Workload, engine: Engine, *, scored: bool = True) -> Verdicts:
    """Which targets no rule rejects; they are not `scored` afterwards where it is known that there are none."""
    return verdicts_of(engine.evaluate(workload, scored=scored), engine.index)


def verdicts_of(results: Sequence[RuleResult], index: PlacementIndex) -> Verdicts:
    """The verdicts of all rules together, from the result of each."""
    results = tuple(results)
    names: frozenset[str] | None = None
    by: list[AnyRule] = []
    for one in sorted((one for one in results if one.prefilters), key=lambda one: one.rule.pre_filter_order):
        only = one.pre_filter(index)
        if isinstance(only, Reason):
            return Verdicts(results, np.zeros(index.slots.capacity, np.bool_), (one.rule, only))
        if only is not None:
            names = only if names is None else names & only
            by.append(one.rule)
            if not names:
                conflict = NO_COMMON_TARGET.filled(plugins=" ".join(sorted(rule.name for rule in by)))
                return Verdicts(results, np.zeros(index.slots.capacity, np.bool_), (None, conflict))
    candidates = None if names is None else _mask_of(names, index)
    feasible = index.slots.alive.copy() if candidates is None else index.slots.alive & candidates
    for one in results:
        rejected = one.rejected()
        if rejected is not None:
            feasible &= ~rejected
    excluded = None if candidates is None else index.slots.alive & ~candidates
    return Verdicts(results, feasible, excluded=excluded, excluded_by=tuple(by))


def _mask_of(names: frozenset[str], index: PlacementIndex) -> Mask:
    mask = np.zeros(index.slots.capacity, np.bool_)
    mask[[index.slots.by_name[name] for name in names if name in index.slots.by_name]] = True
    return mask
