"""NodeResourcesBalancedAllocation: nodes whose resources fill up evenly are liked better."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.evaluations import Touched
from bayplan.indexing.journal import Change, ChangeType
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import At
from bayplan.model.reasons import Scores
from bayplan.model.workloads import Workload
from bayplan.rules.resources_fit import NATIVE
from bayplan.rules.rule import MAX_SCORE, Rule

Amounts = tuple[tuple[str, int], ...]
Plan = tuple[tuple[int, int], ...]  # (row of the index's capacity, amount)
Fractions = NDArray[np.float64]


class BalancedAllocation(Rule):
    name = "NodeResourcesBalancedAllocation"
    id = "balanced-allocation"

    def __init__(self, resources: tuple[str, ...] = ("cpu", "memory")) -> None:
        self.resources = resources

    def part(self, workload: Workload, index: PlacementIndex) -> Amounts | None:
        """What it asks of the balanced resources that count for it; None if it asks for none of them."""
        del index
        asked = dict(workload.needs.requests.amounts)
        if not any(asked.get(resource) for resource in self.resources):
            return None
        return tuple((r, asked.get(r, 0)) for r in self.resources if r in NATIVE or asked.get(r))

    def prepare(self, part: Amounts, index: PlacementIndex) -> Plan:
        return tuple((index.capacity.row(resource), amount) for resource, amount in part)

    def score(self, state: Plan, index: PlacementIndex, at: At) -> Scores:
        """kube-scheduler 1.36: how the balance changes with the pod, 75 being no change at all."""
        capacity = index.capacity
        rows = [row for row, _ in state]
        offered = capacity.allocatable[rows][:, at]
        taken = capacity.requested[rows][:, at]
        asked = np.array([amount for _, amount in state], np.int64)[:, None]
        before, after = _balance(taken, offered), _balance(taken + asked, offered)
        return 50 + (50 + after - before) // 2

    def at_one(self, state: Plan, index: PlacementIndex, slot: int) -> tuple[int, int]:
        offered, requested = index.capacity.allocatable_at, index.capacity.requested_at
        before, after = [], []
        for row, amount in state:
            whole = offered[row][slot]
            if whole > 0:
                taken = requested[row][slot]
                before.append(taken / whole if taken < whole else 1.0)
                after.append((taken + amount) / whole if taken + amount < whole else 1.0)
        return 0, 50 + (50 + _evenness_of_one(after) - _evenness_of_one(before)) // 2

    def touched(self, state: Plan, change: Change, index: PlacementIndex) -> Touched:
        if change.type in (ChangeType.WORKLOAD_ADDED, ChangeType.WORKLOAD_REMOVED):
            return change.slots
        return super().touched(state, change, index)


def _balance(taken: NDArray[np.int64], offered: NDArray[np.int64]) -> NDArray[np.int64]:
    """How even the shares are, 0..100, over the resources that each node has; shape (n_resources, n) in, (n,) out."""
    present = offered > 0
    if present.all():
        return _evenness(taken, offered)
    balance = np.empty(taken.shape[1], np.int64)
    patterns = (present * (1 << np.arange(len(present)))[:, None]).sum(axis=0)
    for pattern in np.flatnonzero(np.bincount(patterns)).tolist():
        here = np.flatnonzero(patterns == pattern)
        rows = np.flatnonzero([bool(pattern >> row & 1) for row in range(len(present))])
        balance[here] = _evenness(taken[np.ix_(rows, here)], offered[np.ix_(rows, here)])
    return balance


def _evenness_of_one(shares: list[float]) -> int:
    """The same for one node: what is taken of each resource that it has."""
    n = len(shares)
    if n < 2:
        return MAX_SCORE
    if n == 2:
        return int((1 - abs((shares[0] - shares[1]) / 2)) * MAX_SCORE)
    mean = sum(shares[1:], start=shares[0]) / n
    squares = 0.0
    for share in shares:
        squares += (share - mean) * (share - mean)
    return int((1 - math.sqrt(squares / n)) * MAX_SCORE)


def _evenness(taken: NDArray[np.int64], offered: NDArray[np.int64]) -> NDArray[np.int64]:
    shares = np.minimum(taken / offered, 1.0)
    return ((1 - _deviation(shares)) * MAX_SCORE).astype(np.int64)


def _deviation(shares: Fractions) -> Fractions:
    """The standard deviation along the first axis, in kube-scheduler's order of operations."""
    n = len(shares)
    if n == 2:
        return np.asarray(np.abs((shares[0] - shares[1]) / 2))
    if n < 2:
        return np.zeros(shares.shape[1])
    total = shares[0].copy()
    for share in shares[1:]:
        total += share
    mean, squares = total / n, np.zeros(shares.shape[1])
    for share in shares:
        squares += (share - mean) * (share - mean)
    return np.asarray(np.sqrt(squares / n))
