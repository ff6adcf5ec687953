"""
The constraints that reject a workload on each target, in a form that can be evaluated again without some workloads.

Each rule says what evictions change about its codes; here that of all rules together becomes the outcome for a target.
A target needs a dry run where a rule says so, and where sums do not show what evictions change. Knows no rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.engine.evaluations import RuleResult
from bayplan.model.reasons import Codes, Mask, StatusCode
from bayplan.preempting.preemption_case import PreemptionCase
from bayplan.rules.evictions import Amounts, CapacityConstraint, EvictionEffect, PeerRequirement


class ConstraintOutcome(msgspec.Struct, frozen=True):
    """For each target the position of the first rule that rejects it (-1: none) and its code: shape (capacity,)."""

    first: NDArray[np.int64]
    code: NDArray[np.int64]

    def count(self, where: Mask, results: Sequence[RuleResult]) -> Counter[str]:
        """Reason text → how many of these targets are rejected for it."""
        counts: Counter[str] = Counter()
        for position, one in enumerate(results):
            codes, numbers = np.unique(self.code[where & (self.first == position)], return_counts=True)
            for code, n in zip(codes.tolist(), numbers.tolist(), strict=True):
                counts.update(dict.fromkeys((reason.text for reason in one.reasons(code)), n))
        return counts


class PlacementConstraints:
    """
    The constraints of all rules on the workload, nominated pods included.

    `effects` has what evictions change by position of the rule, `needs_dry_run` has shape (capacity,). All is valid for
    the index `as_of` a position in the journal.
    """

    def __init__(self, case: PreemptionCase) -> None:
        self.case, self.as_of = case, case.index.journal.end
        self.effects: dict[int, EvictionEffect] = {}
        self.needs_dry_run: Mask = np.zeros(case.index.slots.capacity, np.bool_)
        for position, result in enumerate(case.results):
            if result.rule.filters:
                effect = self.effects[position] = result.eviction_effect(case.preemptor)
                if effect.needs_dry_run is not None:
                    self.needs_dry_run |= effect.needs_dry_run
        self.capacity_constraints = [one for effect in self.effects.values() for one in effect.capacity_constraints]
        self.requirements = [effect.requirement for effect in self.effects.values() if effect.requirement is not None]
        for constraint in self.capacity_constraints:
            if constraint.needs_dry_run:
                self.needs_dry_run |= constraint.remaining < 0
            constraint.reserve(case.nominated_pods)

    def current(self) -> PlacementConstraints:
        """The same for the index as it is now: a dry run invalidates constraints although it is undone."""
        case = self.case
        if case.index.journal.end == self.as_of:
            return self
        results = tuple(case.engine.evaluate(case.workload))
        return PlacementConstraints(msgspec.structs.replace(case, results=results))

    def outcome(
        self,
        remaining: Mapping[CapacityConstraint, Amounts] | None = None,
        holding: Mapping[PeerRequirement, Mask] | None = None,
    ) -> ConstraintOutcome:
        """
        The outcome of the rules if this remains of constraints and requirements hold here; of the others what is now.

        As in kube-scheduler, a target must pass with its nominated pods and also without.
        """
        remaining, holding = remaining or {}, holding or {}
        capacity = len(self.needs_dry_run)
        first, code = np.full(capacity, -1, np.int64), np.zeros(capacity, np.int64)
        for position, effect in self.effects.items():
            codes = _codes(effect, remaining, holding)
            if codes is not None:
                new = (first == -1) & (codes != 0)
                first[new], code[new] = position, codes[new]
        for position, effect in self.effects.items():
            requirement = effect.requirement
            if requirement is not None:  # only such a rule can pass with nominated pods and fail without
                fails = (first == -1) & ~holding.get(requirement, requirement.now)
                first[fails], code[fails] = position, requirement.code
        return ConstraintOutcome(first, code)

    def resolvable(self, outcome: ConstraintOutcome) -> Mask:
        """Which targets are rejected for a reason that evictions may resolve."""
        found = np.zeros(len(outcome.first), np.bool_)
        for position, result in enumerate(self.case.results):
            here = outcome.first == position
            for code in np.unique(outcome.code[here]).tolist():
                if result.reasons(code)[0].status is StatusCode.UNSCHEDULABLE:
                    found |= here & (outcome.code == code)
        return found


def _codes(
    effect: EvictionEffect, remaining: Mapping[CapacityConstraint, Amounts], holding: Mapping[PeerRequirement, Mask]
) -> Codes | None:
    """The codes of one rule with nominated pods, shape (capacity,); None if it rejects no target."""
    codes, constraints, requirement = effect.fixed_codes, effect.capacity_constraints, effect.requirement
    if constraints:
        codes = np.zeros(len(constraints[0].remaining), np.int64) if codes is None else codes.copy()
        for constraint in constraints:
            exceeded = remaining.get(constraint, constraint.remaining) < 0
            codes[exceeded] = codes[exceeded] | constraint.code if constraint.adds else constraint.code
    if requirement is not None:
        holds = holding.get(requirement, requirement.now) | requirement.by_nominated
        codes = np.where(holds, 0 if codes is None else codes, requirement.code)
    return codes
