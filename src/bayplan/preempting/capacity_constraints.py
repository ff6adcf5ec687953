"""
Capacity constraints: what remains on each target with the workload there, in numbers: resources, ports, claims, peers.

Nearly every rule that depends on workloads rejects a target because something there is used up, and what a workload
takes of it is a number. So victims are selected by arithmetic over all targets at once. Knows nothing of priorities.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayplan.engine.evaluations import RuleResult
from bayplan.indexing.capacity import PODS
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ValueColumn
from bayplan.model.workloads import Workload
from bayplan.preempting.preemption_case import PreemptionCase
from bayplan.rules import node_ports, resources_fit, volume_restrictions

Amounts = NDArray[np.int64]
MAX_AMOUNT = 1 << 62  # of any resource: beyond this, differences do not fit into 64 bits


class CapacityConstraint:
    """
    Something of which each target has a limited amount, and which only an eviction frees.

    `remaining`, shape (capacity,), is what the workload and the placed ones leave of it; where it is negative, the
    `position`-th rule rejects the target with `code`. `adds`: the code is added to the rule's other codes instead of
    replacing them. `column` is set if all workloads of the target's domain take of it, not only those on the target.
    `needs_dry_run`: sums do not show whether an eviction frees enough.
    """

    adds = False
    needs_dry_run = False
    column: ValueColumn | None = None

    def __init__(self, position: int, code: int, remaining: Amounts) -> None:
        self.position = position
        self.code = code
        self.remaining = remaining

    def amounts(self) -> Amounts | None:
        """What workloads take of it, by row of the pod table; None if none takes any."""
        return None

    def amount_of(self, nominated: Workload, slot: int) -> int:
        """What a workload that is nominated for a target will take of it."""
        del nominated, slot
        return 0


class FixedConstraint(CapacityConstraint):
    """A target lacks something that no eviction frees."""


class TargetTooSmall(FixedConstraint):
    """The whole target has less than the workload requests."""

    adds = True


class ResourceConstraint(CapacityConstraint):
    """One resource."""

    adds = True

    def __init__(self, position: int, code: int, requested: tuple[str, int], index: PlacementIndex) -> None:
        self.index = index
        self.resource, amount = requested
        self.row = index.capacity.row(self.resource)
        free = index.capacity.allocatable[self.row] - index.capacity.requested[self.row]
        super().__init__(position, code, np.maximum(free, -MAX_AMOUNT) - min(amount, MAX_AMOUNT))

    def amounts(self) -> Amounts | None:
        held = self.index.pod_table.amounts
        return held[self.row] if self.row < len(held) else None  # else no placed workload has any

    def amount_of(self, nominated: Workload, slot: int) -> int:
        del slot
        return 1 if self.resource == PODS else dict(nominated.needs.requests.amounts).get(self.resource, 0)


class PortConstraint(CapacityConstraint):
    """No other workload of the target may use the host ports of the workload."""

    def __init__(self, position: int, result: RuleResult, index: PlacementIndex) -> None:
        super().__init__(position, 1, np.zeros(index.slots.capacity, np.int64))
        self.requested, self.index = result.evaluation.state, index
        pod_table = index.pod_table
        rejected = result.rejected()
        self.taken = np.zeros(len(pod_table), np.int64)
        if rejected is not None and rejected.any():
            for row in np.flatnonzero(pod_table.has_ports & pod_table.on(rejected)).tolist():
                self.taken[row] = self.amount_of(pod_table.at(row).workload, 0)
            np.subtract.at(self.remaining, pod_table.slot, self.taken)

    def amounts(self) -> Amounts:
        return self.taken

    def amount_of(self, nominated: Workload, slot: int) -> int:
        del slot
        held = nominated.needs.host_ports
        return int(any(node_ports.ports_conflict(requested, port) for requested in self.requested for port in held))


class ClaimConstraint(CapacityConstraint):
    """A ReadWriteOncePod claim has no other user, on any target."""

    def __init__(self, position: int, claim: str, index: PlacementIndex) -> None:
        self.claim, self.index = claim, index
        n_users = len(index.claim_users.users(claim))
        super().__init__(position, 1, np.full(index.slots.capacity, -n_users, np.int64))

    def amounts(self) -> Amounts:
        taken = np.zeros(len(self.index.pod_table), np.int64)
        taken[[self.index.records[key].row for key in self.index.claim_users.users(self.claim)]] = 1
        return taken

    def amount_of(self, nominated: Workload, slot: int) -> int:
        del slot
        return int(self.claim in (f"{nominated.namespace}/{name}" for name in nominated.needs.claims.names))


def resource_constraints(result: RuleResult, position: int, case: PreemptionCase) -> list[CapacityConstraint]:
    """NodeResourcesFit: the number of pods, and each requested resource."""
    assert isinstance(result.rule, resources_fit.ResourcesFit)
    found: list[CapacityConstraint] = [ResourceConstraint(position, 1, (PODS, 1), case.index)]
    for i, (resource, amount) in enumerate(result.evaluation.state.amounts):
        if amount and not result.rule.is_ignored(resource):
            free = ResourceConstraint(position, 2 << i, (resource, amount), case.index)
            whole = case.index.capacity.allocatable[free.row] - amount
            found += [free, TargetTooSmall(position, resources_fit.UNRESOLVABLE_BIT, whole)]
    return found


def port_constraints(result: RuleResult, position: int, case: PreemptionCase) -> list[CapacityConstraint]:
    """NodePorts: a host port has one user per node."""
    return [PortConstraint(position, result, case.index)]


def claim_constraints(result: RuleResult, position: int, case: PreemptionCase) -> list[CapacityConstraint]:
    """VolumeRestrictions: a ReadWriteOncePod claim has one user."""
    claims = dict.fromkeys(result.evaluation.state.claims())
    index = case.index
    return [
        ClaimConstraint(position, claim, index) for claim in claims if volume_restrictions.serves_one_pod(claim, index)
    ]
