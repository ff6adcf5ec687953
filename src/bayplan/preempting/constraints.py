"""
Everything that stands against a workload on each target, put so that it can be asked again with others gone.

Rules that look at no workload say what they said; the others are allowances and nearness. Where a rule is none of
these, the target is entangled: only trying tells. So it is where somebody's going may also do harm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.engine import filtering
from bayplan.engine.filtering import RuleResult
from bayplan.model.reasons import Codes, Mask, StatusCode
from bayplan.preempting import capacity_constraints, peer_constraints
from bayplan.preempting.capacity_constraints import Amounts, CapacityConstraint
from bayplan.preempting.peer_constraints import AffinityConstraint
from bayplan.preempting.preemption_case import PreemptionCase
from bayplan.rules import volume_limits
from bayplan.rules.inter_pod_affinity import InterPodAffinity
from bayplan.rules.node_filters import NodePorts
from bayplan.rules.resources_fit import ResourcesFit
from bayplan.rules.rule import Rule
from bayplan.rules.topology_spread import TopologySpread
from bayplan.rules.volume_binding import VolumeBinding
from bayplan.rules.volume_limits import VolumeLimits
from bayplan.rules.volume_restrictions import VolumeRestrictions
from bayplan.rules.volume_zone import VolumeZone

CONSTRAINTS_BY_RULE: dict[type[Rule], Callable[[RuleResult, int, PreemptionCase], list[CapacityConstraint]]] = {
    NodePorts: capacity_constraints.port_constraints,
    ResourcesFit: capacity_constraints.resource_constraints,
    VolumeRestrictions: capacity_constraints.claim_constraints,
    TopologySpread: peer_constraints.spread_constraints,
    InterPodAffinity: peer_constraints.inter_pod_constraints,
}
IGNORES_PODS = (VolumeBinding, VolumeZone)  # they look at volumes and not at who uses them


class ConstraintOutcome(msgspec.Struct, frozen=True):
    """For each target the position of the first rule against it (-1: none is) and its code: shape (capacity,)."""

    first: NDArray[np.int64]
    code: NDArray[np.int64]

    def tally(self, where: Mask, judged: Sequence[RuleResult]) -> Counter[str]:
        """Reason text → how many of these targets are refused for it."""
        counts: Counter[str] = Counter()
        for position, one in enumerate(judged):
            codes, numbers = np.unique(self.code[where & (self.first == position)], return_counts=True)
            for code, n in zip(codes.tolist(), numbers.tolist(), strict=True):
                counts.update(dict.fromkeys((reason.text for reason in one.rule.reasons(one.state, code)), n))
        return counts


class PlacementConstraints(msgspec.Struct):
    """`said` are the codes of rules that look at no workload, by their position; `entangled` has shape (capacity,)."""

    case: PreemptionCase
    said: dict[int, Codes]
    capacity_constraints: list[CapacityConstraint]
    nearness: AffinityConstraint | None
    entangled: Mask
    as_of: int

    def renewed(self) -> PlacementConstraints:
        """The same for the index as it is now: trying things out and undoing them leaves nothing of these valid."""
        case = self.case
        if case.index.journal.end == self.as_of:
            return self
        judged = tuple(filtering.evaluate_rules(case.rules, case.workload, case.index))
        return constraints_of(msgspec.structs.replace(case, judged=judged))

    def near_now(self) -> tuple[Mask, Mask]:
        """Where required affinity holds, with guests and without."""
        anywhere, nearness = self.case.index.slots.alive, self.nearness
        return (anywhere, anywhere) if nearness is None else (nearness.now | nearness.by_nominated, nearness.now)

    def outcome(self, lefts: Sequence[Amounts], near: tuple[Mask, Mask]) -> ConstraintOutcome:
        """
        What the rules would say with so much left of each allowance.

        They are asked with guests first, and where that passes without: `near` has where required affinity holds then.
        """
        codes = dict(self.said)
        for allowance, left in zip(self.capacity_constraints, lefts, strict=True):
            refused = left < 0
            said = codes.setdefault(allowance.position, np.zeros(len(left), np.int64))
            said[refused] = said[refused] | allowance.code if allowance.adds else allowance.code
        affinity = -1 if self.nearness is None else self.nearness.position
        if affinity >= 0:
            said = codes.get(affinity, np.zeros(len(near[0]), np.int64))
            codes[affinity] = np.where(near[0], said, peer_constraints.AFFINITY_CODE)
        first, code = np.full(len(near[0]), -1, np.int64), np.zeros(len(near[0]), np.int64)
        for position in sorted(codes):
            new = (first == -1) & (codes[position] != 0)
            first[new], code[new] = position, codes[position][new]
        lonely = (first == -1) & ~near[1]
        first[lonely], code[lonely] = affinity, peer_constraints.AFFINITY_CODE
        return ConstraintOutcome(first, code)

    def resolvable(self, outcome: ConstraintOutcome) -> Mask:
        """Which targets are refused for a reason that somebody's going may cure."""
        found = np.zeros(len(outcome.first), np.bool_)
        for position, judged in enumerate(self.case.judged):
            here = outcome.first == position
            for code in np.unique(outcome.code[here]).tolist():
                if judged.rule.reasons(judged.state, code)[0].status is StatusCode.UNSCHEDULABLE:
                    found |= here & (outcome.code == code)
        return found


def constraints_of(case: PreemptionCase) -> PlacementConstraints:
    """What each rule says of the workload, guests included."""
    nowhere = np.zeros(case.index.slots.capacity, np.bool_)
    limits = PlacementConstraints(case, {}, [], None, nowhere, case.index.journal.end)
    for position, judged in enumerate(case.judged):
        rule, codes = judged.rule, judged.evaluation.codes
        if not rule.filters:
            continue
        if isinstance(rule, InterPodAffinity):
            _add_affinity(limits, position, judged)
        if type(rule) in CONSTRAINTS_BY_RULE:
            limits.capacity_constraints += CONSTRAINTS_BY_RULE[type(rule)](judged, position, case)
        elif codes is not None:
            limits.said[position] = codes
            if rule.follows_workloads and not isinstance(rule, IGNORES_PODS):
                limits.entangled |= codes != 0
                limits.entangled[list(case.nominated_pods)] = True
            if isinstance(rule, VolumeLimits):
                limits.entangled[volume_limits.slots_sharing_volumes(judged.state, case.index)] = True
    for allowance in limits.capacity_constraints:
        if allowance.entangles:
            limits.entangled |= allowance.left < 0
        for slot, nominated_pods in case.nominated_pods.items():
            allowance.left[slot] -= sum(allowance.asked_by(nominated, slot) for nominated in nominated_pods)
    return limits


def _add_affinity(limits: PlacementConstraints, position: int, judged: RuleResult) -> None:
    """What of InterPodAffinity is no allowance."""
    state, case = judged.state, limits.case
    if state.required_affinity:
        limits.nearness = AffinityConstraint(position, state, case)
        limits.entangled[limits.nearness.half_met] = True
    unsure = any(one.matches is not None for one in state.existing_anti_affinity)
    unsure = unsure or (limits.nearness is not None and limits.nearness.judged_apart)
    for slot, nominated_pods in case.nominated_pods.items():
        if unsure or any(
            use.limit
            for nominated in nominated_pods
            for use in peer_constraints.anti_affinity_against(case, nominated, slot)
        ):
            limits.entangled[slot] = True
