"""
Everything that stands against a workload on each target, put so that it can be asked again with others gone.

Rules that look at no workload say what they said; the others are allowances and nearness. Where a rule is none of
these, the target is entangled: only trying tells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.filtering import Judged
from bayplan.indexing.slots import ALL
from bayplan.model.decisions import Codes, Mask, Reason, Status
from bayplan.preempting import allowances, peers
from bayplan.preempting.allowances import Allowance, Amounts
from bayplan.preempting.case import Case
from bayplan.preempting.nearness import Nearness
from bayplan.rules import inter_pod_affinity
from bayplan.rules.inter_pod_affinity import InterPodAffinity
from bayplan.rules.node_ports import NodePorts
from bayplan.rules.resources_fit import ResourcesFit
from bayplan.rules.rule import Rule
from bayplan.rules.topology_spread import TopologySpread
from bayplan.rules.volume_binding import VolumeBinding
from bayplan.rules.volume_restrictions import VolumeRestrictions
from bayplan.rules.volume_zone import VolumeZone

DESCRIBED: dict[type[Rule], Callable[[Judged, int, Case], list[Allowance]]] = {
    NodePorts: allowances.of_ports,
    ResourcesFit: allowances.of_resources,
    VolumeRestrictions: allowances.of_claims,
    TopologySpread: peers.of_spread,
    InterPodAffinity: peers.of_peers,
}
UNMOVED = (VolumeBinding, VolumeZone)  # they look at volumes and not at who uses them


class Limits(msgspec.Struct):
    """`said` are the codes of rules that look at no workload, by their position; `entangled` has shape (capacity,)."""

    said: dict[int, Codes]
    allowances: list[Allowance]
    nearness: Nearness | None
    entangled: Mask


class Outcome(msgspec.Struct, frozen=True):
    """For each target the position of the first rule against it (-1: none is) and its code, both of shape (capacity,)."""

    first: NDArray[np.int64]
    code: NDArray[np.int64]


def limits_of(case: Case) -> Limits:
    """What each rule says of the workload, guests included."""
    limits = Limits({}, [], None, np.zeros(case.index.slots.capacity, np.bool_))
    for position, judged in enumerate(case.judged):
        rule, codes = judged.rule, judged.evaluation.codes
        if not rule.filters:
            continue
        if isinstance(rule, InterPodAffinity):
            _add_affinity(limits, position, judged, case)
        if type(rule) in DESCRIBED:
            limits.allowances += DESCRIBED[type(rule)](judged, position, case)
        elif codes is not None:
            limits.said[position] = codes
            if rule.follows_workloads and not isinstance(rule, UNMOVED):
                limits.entangled |= codes != 0
                limits.entangled[list(case.guests)] = True
    for allowance in limits.allowances:
        for slot, guests in case.guests.items():
            allowance.left[slot] -= sum(allowance.asked_by(guest, slot) for guest in guests)
    return limits


def _add_affinity(limits: Limits, position: int, judged: Judged, case: Case) -> None:
    """What of InterPodAffinity is no allowance: required affinity, and limits on others' anti-affinity."""
    plan: inter_pod_affinity.Plan = judged.plan
    if plan.near:
        limits.nearness = Nearness(position, plan, case)
        if limits.nearness.judged_apart:
            limits.entangled[list(case.guests)] = True
    limited = [one for one in plan.refusing if one.matches is not None]
    for neighbours in limited:
        refused = inter_pod_affinity.refuse(neighbours, ALL)
        limits.entangled |= refused
        limits.allowances.append(allowances.Fixed(position, peers.UNWELCOME, np.where(refused, -1, 0)))
    for slot, guests in case.guests.items():
        if limited or any(use.limit for guest in guests for use in peers.held_against(case, guest, slot)):
            limits.entangled[slot] = True


def outcome(limits: Limits, lefts: Sequence[Amounts], near: Sequence[Mask], n_rules: int) -> Outcome:
    """
    What would be said with so much left of each allowance.

    `near` has where required affinity holds when the rules are asked first, with guests, and when they are asked again
    without: both must hold.
    """
    codes = dict(limits.said)
    for allowance, left in zip(limits.allowances, lefts, strict=True):
        refused = left < 0
        before = codes.setdefault(allowance.position, np.zeros(len(left), np.int64))
        before[refused] = before[refused] | allowance.code if allowance.adds else allowance.code
    first = np.full(len(limits.entangled), -1, np.int64)
    code = np.zeros(len(limits.entangled), np.int64)
    position_of_near = -1 if limits.nearness is None else limits.nearness.position
    for position in range(n_rules):
        if position in codes or position == position_of_near:
            said = codes.get(position, np.zeros_like(code))
            if position == position_of_near:
                said = np.where(near[0], said, peers.NOT_NEAR)
            new = (first == -1) & (said != 0)
            first[new], code[new] = position, said[new]
    if position_of_near >= 0:
        new = (first == -1) & ~near[1]
        first[new], code[new] = position_of_near, peers.NOT_NEAR
    return Outcome(first, code)


def reasons(found: Outcome, slot: int, case: Case) -> tuple[Reason, ...]:
    """Why a target is refused."""
    judged = case.judged[int(found.first[slot])]
    return judged.rule.reasons(judged.plan, int(found.code[slot]))


def resolvable(found: Outcome, case: Case) -> Mask:
    """Which targets are refused for a reason that somebody's going may cure."""
    curable = np.zeros(len(found.first), np.bool_)
    for position, judged in enumerate(case.judged):
        here = found.first == position
        for code in np.unique(found.code[here]).tolist():
            if judged.rule.reasons(judged.plan, code)[0].status is Status.UNSCHEDULABLE:
                curable |= here & (found.code == code)
    return curable
