"""
What is left on each target once the workload is there, in numbers: room, ports, claims, peers, skew.

Nearly every rule that looks at workloads refuses a target because something there is used up, and what a workload takes
of it is a number: so who must go is arithmetic over all targets at once. Knows nothing of priorities.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayplan.engine.filtering import RuleResult
from bayplan.indexing.capacity import PODS
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ValueColumn
from bayplan.model.workloads import Workload
from bayplan.preempting.preemption_case import PreemptionCase
from bayplan.rules import node_filters, resources_fit, volume_restrictions

Amounts = NDArray[np.int64]
MAX_AMOUNT = 1 << 62  # beyond this, of whatever resource, differences would no longer fit into 64 bits


class CapacityConstraint:
    """
    One thing of which each target has so much, and which no workload gives back except by going.

    `left`, shape (capacity,), is what the workload and those who are there leave of it; where it is negative, the
    `position`-th rule refuses with `code`. `adds`: the code joins the rule's others instead of taking their place.
    `column` is there if workloads of the target's whole domain take of it, and not only those on the target.
    `entangles`: whether enough is left when somebody goes is more than a sum.
    """

    adds = False
    entangles = False
    column: ValueColumn | None = None

    def __init__(self, position: int, code: int, left: Amounts) -> None:
        self.position = position
        self.code = code
        self.left = left

    def amounts(self) -> Amounts | None:
        """What workloads take of it, by row of the roster; None if nobody takes any."""
        return None

    def asked_by(self, nominated: Workload, slot: int) -> int:
        """What a workload that is to come to a target will take of it."""
        del nominated, slot
        return 0


class FixedConstraint(CapacityConstraint):
    """A target lacks something, whoever goes."""


class TargetTooSmall(FixedConstraint):
    """The whole target has less than the workload asks for."""

    adds = True


class ResourceConstraint(CapacityConstraint):
    """One resource."""

    adds = True

    def __init__(self, position: int, code: int, asked: tuple[str, int], index: PlacementIndex) -> None:
        self.index = index
        self.resource, amount = asked
        self.row = index.capacity.row(self.resource)
        free = index.capacity.allocatable[self.row] - index.capacity.requested[self.row]
        super().__init__(position, code, np.maximum(free, -MAX_AMOUNT) - min(amount, MAX_AMOUNT))

    def amounts(self) -> Amounts | None:
        held = self.index.pod_table.amounts
        return held[self.row] if self.row < len(held) else None  # else nobody who is there has any

    def asked_by(self, nominated: Workload, slot: int) -> int:
        del slot
        return 1 if self.resource == PODS else dict(nominated.needs.requests.amounts).get(self.resource, 0)


class PortConstraint(CapacityConstraint):
    """Nobody on the target may have one of the workload's ports."""

    def __init__(self, position: int, judged: RuleResult, index: PlacementIndex) -> None:
        super().__init__(position, 1, np.zeros(index.slots.capacity, np.int64))
        self.wanted, self.index = judged.state, index
        pod_table = index.pod_table
        refused = judged.rejected()
        self.taken = np.zeros(len(pod_table), np.int64)
        if refused is not None and refused.any():
            for row in np.flatnonzero(pod_table.has_ports & pod_table.on(refused)).tolist():
                self.taken[row] = self.asked_by(pod_table.at(row).workload, 0)
            np.subtract.at(self.left, pod_table.slot, self.taken)

    def amounts(self) -> Amounts:
        return self.taken

    def asked_by(self, nominated: Workload, slot: int) -> int:
        del slot
        held = nominated.needs.host_ports
        return int(any(node_filters.ports_conflict(wanted, port) for wanted in self.wanted for port in held))


class ClaimConstraint(CapacityConstraint):
    """A claim that serves one pod has no other user, on any target."""

    def __init__(self, position: int, claim: str, index: PlacementIndex) -> None:
        self.claim, self.index = claim, index
        n_users = len(index.claim_users.users(claim))
        super().__init__(position, 1, np.full(index.slots.capacity, -n_users, np.int64))

    def amounts(self) -> Amounts:
        taken = np.zeros(len(self.index.pod_table), np.int64)
        taken[[self.index.records[key].row for key in self.index.claim_users.users(self.claim)]] = 1
        return taken

    def asked_by(self, nominated: Workload, slot: int) -> int:
        del slot
        return int(self.claim in (f"{nominated.namespace}/{name}" for name in nominated.needs.claims.names))


def resource_constraints(judged: RuleResult, position: int, case: PreemptionCase) -> list[CapacityConstraint]:
    """NodeResourcesFit: how many more pods, and how much of each resource that is asked for."""
    assert isinstance(judged.rule, resources_fit.ResourcesFit)
    found: list[CapacityConstraint] = [ResourceConstraint(position, 1, (PODS, 1), case.index)]
    for i, (resource, amount) in enumerate(judged.state.amounts):
        if amount and not judged.rule.is_ignored(resource):
            room = ResourceConstraint(position, 2 << i, (resource, amount), case.index)
            whole = case.index.capacity.allocatable[room.row] - amount
            found += [room, TargetTooSmall(position, resources_fit.UNRESOLVABLE_BIT, whole)]
    return found


def port_constraints(judged: RuleResult, position: int, case: PreemptionCase) -> list[CapacityConstraint]:
    """NodePorts: no port has two users."""
    return [PortConstraint(position, judged, case.index)]


def claim_constraints(judged: RuleResult, position: int, case: PreemptionCase) -> list[CapacityConstraint]:
    """VolumeRestrictions: a ReadWriteOncePod claim has no two users."""
    claims = dict.fromkeys(judged.state.claims())
    index = case.index
    return [
        ClaimConstraint(position, claim, index) for claim in claims if volume_restrictions.serves_one_pod(claim, index)
    ]
