"""
The constraints that reject a workload on each target, in a form that can be evaluated again without some workloads.

The codes of rules that do not depend on workloads stay; the other rules become capacity constraints and required
affinity. A target needs a dry run where a rule is neither, and where an eviction may also make a rule fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.engine.evaluations import RuleResult
from bayplan.model.reasons import Codes, Mask, StatusCode
from bayplan.preempting import capacity_constraints, peer_constraints
from bayplan.preempting.capacity_constraints import Amounts, CapacityConstraint
from bayplan.preempting.peer_constraints import AffinityConstraint
from bayplan.preempting.preemption_case import PreemptionCase
from bayplan.rules import volume_limits
from bayplan.rules.inter_pod_affinity import InterPodAffinity
from bayplan.rules.node_ports import NodePorts
from bayplan.rules.resources_fit import ResourcesFit
from bayplan.rules.rule import AnyRule
from bayplan.rules.topology_spread import TopologySpread
from bayplan.rules.volume_binding import VolumeBinding
from bayplan.rules.volume_limits import VolumeLimits
from bayplan.rules.volume_restrictions import VolumeRestrictions
from bayplan.rules.volume_zone import VolumeZone

CONSTRAINTS_BY_RULE: dict[type[AnyRule], Callable[[RuleResult, int, PreemptionCase], list[CapacityConstraint]]] = {
    NodePorts: capacity_constraints.port_constraints,
    ResourcesFit: capacity_constraints.resource_constraints,
    VolumeRestrictions: capacity_constraints.claim_constraints,
    TopologySpread: peer_constraints.spread_constraints,
    InterPodAffinity: peer_constraints.inter_pod_constraints,
}
IGNORES_PODS = (VolumeBinding, VolumeZone)  # they depend on volumes, not on the pods that use them


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


class PlacementConstraints(msgspec.Struct):
    """
    `fixed_codes` are the codes of rules that are no capacity constraints, by position; `affinity` is required affinity.

    `needs_dry_run` has shape (capacity,). All is valid for the index `as_of` a position in the journal.
    """

    case: PreemptionCase
    fixed_codes: dict[int, Codes]
    capacity_constraints: list[CapacityConstraint]
    affinity: AffinityConstraint | None
    needs_dry_run: Mask
    as_of: int

    def current(self) -> PlacementConstraints:
        """The same for the index as it is now: a dry run invalidates constraints although it is undone."""
        case = self.case
        if case.index.journal.end == self.as_of:
            return self
        results = tuple(case.engine.evaluate(case.workload))
        return constraints_of(msgspec.structs.replace(case, results=results))

    def affinity_now(self) -> tuple[Mask, Mask]:
        """Where required affinity holds, with nominated pods and without."""
        anywhere, affinity = self.case.index.slots.alive, self.affinity
        return (anywhere, anywhere) if affinity is None else (affinity.now | affinity.by_nominated, affinity.now)

    def outcome(self, remaining: Sequence[Amounts], affinity_holds: tuple[Mask, Mask]) -> ConstraintOutcome:
        """
        The outcome of the rules with these amounts remaining of each capacity constraint.

        As in kube-scheduler, a target must pass with its nominated pods and also without: `affinity_holds` says where
        required affinity holds with them and without.
        """
        with_nominated, without_nominated = affinity_holds
        capacity = len(with_nominated)
        codes = dict(self.fixed_codes)
        for constraint, left in zip(self.capacity_constraints, remaining, strict=True):
            exceeded = left < 0
            found = codes.setdefault(constraint.position, np.zeros(capacity, np.int64))
            found[exceeded] = found[exceeded] | constraint.code if constraint.adds else constraint.code
        position_of_affinity = -1 if self.affinity is None else self.affinity.position
        if position_of_affinity >= 0:
            found = codes.get(position_of_affinity, np.zeros(capacity, np.int64))
            codes[position_of_affinity] = np.where(with_nominated, found, peer_constraints.AFFINITY_CODE)
        first, code = np.full(capacity, -1, np.int64), np.zeros(capacity, np.int64)
        for position in sorted(codes):
            new = (first == -1) & (codes[position] != 0)
            first[new], code[new] = position, codes[position][new]
        fails = (first == -1) & ~without_nominated
        first[fails], code[fails] = position_of_affinity, peer_constraints.AFFINITY_CODE
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


def constraints_of(case: PreemptionCase) -> PlacementConstraints:
    """The constraints of all rules on the workload, nominated pods included."""
    nowhere = np.zeros(case.index.slots.capacity, np.bool_)
    constraints = PlacementConstraints(case, {}, [], None, nowhere, case.index.journal.end)
    for position, result in enumerate(case.results):
        rule, codes = result.rule, result.evaluation.codes
        if not rule.filters:
            continue
        if isinstance(rule, InterPodAffinity):
            _add_affinity(constraints, position, result)
        if type(rule) in CONSTRAINTS_BY_RULE:
            constraints.capacity_constraints += CONSTRAINTS_BY_RULE[type(rule)](result, position, case)
        elif codes is not None:
            constraints.fixed_codes[position] = codes
            if rule.follows_workloads and not isinstance(rule, IGNORES_PODS):
                constraints.needs_dry_run |= codes != 0
                constraints.needs_dry_run[list(case.nominated_pods)] = True
            if isinstance(rule, VolumeLimits):
                constraints.needs_dry_run[volume_limits.slots_sharing_volumes(result.evaluation.state, case.index)] = (
                    True
                )
    for constraint in constraints.capacity_constraints:
        if constraint.needs_dry_run:
            constraints.needs_dry_run |= constraint.remaining < 0
        for slot, nominated_pods in case.nominated_pods.items():
            constraint.remaining[slot] -= sum(constraint.amount_of(nominated, slot) for nominated in nominated_pods)
    return constraints


def _add_affinity(constraints: PlacementConstraints, position: int, result: RuleResult) -> None:
    """Add what InterPodAffinity requires beyond capacity constraints."""
    state, case = result.evaluation.state, constraints.case
    if state.required_affinity:
        constraints.affinity = AffinityConstraint(position, state, case)
        constraints.needs_dry_run[constraints.affinity.partly_met] = True
    compares = any(one.matches is not None for one in state.existing_anti_affinity)
    compares = compares or (constraints.affinity is not None and constraints.affinity.first_pod_per_term)
    for slot, nominated_pods in case.nominated_pods.items():
        if compares or any(
            use.limit
            for nominated in nominated_pods
            for use in peer_constraints.anti_affinity_against(case, nominated, slot)
        ):
            constraints.needs_dry_run[slot] = True
