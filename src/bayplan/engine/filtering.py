"""
Run the filter half of the rules: which targets are feasible, and for the others the first rule that rejects them.

Knows nothing of scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.evaluations import Evaluation
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.reasons import Mask, Reason, Slots
from bayplan.model.workloads import Workload
from bayplan.rules.rule import Rule


class RuleResult(msgspec.Struct, frozen=True):
    """The evaluation of all targets by one rule for one workload; the rule does not reject `exempt_slots`."""

    rule: Rule
    evaluation: Evaluation
    exempt_slots: Slots | None = None

    @property
    def state(self) -> Any:
        return self.evaluation.state

    def rejected(self) -> Mask | None:
        """Which targets the rule rejects, shape (capacity,); None if it rejects no target of any index."""
        codes = self.evaluation.codes if self.rule.filters else None
        if codes is None:
            return None
        rejected: Mask = codes != 0
        if self.exempt_slots is not None:
            rejected[self.exempt_slots] = False
        return rejected


class Verdicts(msgspec.Struct, frozen=True):
    """
    The results of all rules before scoring. Read it before the next change of the index.

    `pre_filter_rejection` is the rule that rejects every target before any is evaluated, with its reason.
    `excluded` are the targets that rules exclude beforehand, and `excluded_by` the names of those rules.
    """

    results: tuple[RuleResult, ...]
    feasible: Mask
    pre_filter_rejection: tuple[Rule, Reason] | None = None
    excluded: Mask | None = None
    excluded_by: tuple[str, ...] = ()


def run(rules: Sequence[Rule], workload: Workload, index: PlacementIndex) -> Verdicts:
    """Which targets no rule rejects."""
    return verdicts_of(evaluate_rules(rules, workload, index), index)


def verdicts_of(results: Sequence[RuleResult], index: PlacementIndex) -> Verdicts:
    """The verdicts of all rules together, from the result of each."""
    results = tuple(results)
    candidates, by = None, []
    for one in results:
        if one.rule.filters:
            only = one.rule.pre_filter(one.state, index)
            if isinstance(only, Reason):
                return Verdicts(results, np.zeros(index.slots.capacity, np.bool_), (one.rule, only))
            if only is not None:
                candidates = only if candidates is None else candidates & only
                by.append(one.rule.name)
    feasible = index.slots.alive.copy() if candidates is None else index.slots.alive & candidates
    for one in results:
        rejected = one.rejected()
        if rejected is not None:
            feasible &= ~rejected
    excluded = None if candidates is None else index.slots.alive & ~candidates
    return Verdicts(results, feasible, excluded=excluded, excluded_by=tuple(by))


def evaluate_rules(rules: Sequence[Rule], workload: Workload, index: PlacementIndex) -> list[RuleResult]:
    """The result of each rule that applies to this workload, in the order of the rules."""
    results = []
    for rule in rules:
        part = rule.part(workload, index)
        if part is not None:
            evaluation = index.evaluations.get(rule, part, index)
            exempt = _assigned_slots(workload, index) if rule.exempts_assigned else None
            results.append(RuleResult(rule, evaluation, exempt))
    return results


def _assigned_slots(workload: Workload, index: PlacementIndex) -> Slots | None:
    """The clusters that hold the workload already: some rules apply only while scheduling, not while it runs."""
    if workload.binding is None or not workload.binding.previous:
        return None
    known = index.slots.by_name
    slots = [known[name] for name, _ in workload.binding.previous if name in known]
    return np.array(slots, np.intp) if slots else None


def first_failures(verdicts: Verdicts) -> NDArray[np.int64]:
    """For each target the position in `results` of the first rule that rejects it, -1 if none; shape (capacity,)."""
    first = np.full(len(verdicts.feasible), -1, np.int64)
    for position, one in enumerate(verdicts.results):
        rejected = one.rejected()
        if rejected is not None:
            first[(first == -1) & rejected] = position
    return first
