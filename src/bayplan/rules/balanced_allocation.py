"""NodeResourcesBalancedAllocation: nodes whose resources fill up evenly score higher."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.capacity import UNOFFERED_ROW
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import At
from bayplan.model.reasons import Scores
from bayplan.model.workloads import Workload
from bayplan.rules.arguments import Arguments
from bayplan.rules.resources_fit import NATIVE
from bayplan.rules.rule import MAX_SCORE, Rule
from bayplan.validating.fields import Cause, Field
from bayplan.wire.scheduler_config import NodeResourcesBalancedAllocationArgs

Amounts = tuple[tuple[str, int], ...]
UNCHANGED = 75  # the score where the pod changes nothing about the balance
BalancedAllocationState = tuple[tuple[int, int], ...]  # (row of the index's capacity, amount)


class BalancedAllocationArguments(Arguments, frozen=True):
    """NodeResourcesBalancedAllocationArgs: the resources whose shares are compared."""

    written_type = NodeResourcesBalancedAllocationArgs
    resources: tuple[str, ...] = ("cpu", "memory")

    @classmethod
    def validate(cls, written: Field) -> list[Cause]:
        found: list[Cause] = []
        seen: set[str] = set()
        for resource in written["resources"].items():
            name = resource["name"]
            if name.text() in seen:
                found.append(name.duplicate())
            seen.add(name.text())
            if resource["weight"].number():  # 0 stands for the default, which is 1
                found += resource["weight"].check_integer(1, 1, "must be 1")
        return found

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Self:
        names = tuple(resource["name"] for resource in written.get("resources") or ())
        return cls(names) if names else cls()


class BalancedAllocation(Rule[Amounts, BalancedAllocationState]):
    name = "NodeResourcesBalancedAllocation"
    id = "balanced-allocation"
    extends = ("preScore", "score")
    default_weight = 1
    arguments_type = BalancedAllocationArguments
    arguments: BalancedAllocationArguments
    follows_requests = True
    reads_template_only = True

    def part(self, workload: Workload, index: PlacementIndex) -> Amounts | None:
        """What the pod requests of the balanced resources that count for it; None if it requests none of them."""
        # Unlike the fit, kube-scheduler's balance counts what the status of an incoming pod reports.
        requests = workload.needs.requests.on_node(index.semantics.kubernetes_version)
        requested, resources = dict(requests.amounts), self.arguments.resources
        if self.pre_scores and not any(requested.get(resource) for resource in resources):
            return None
        return tuple((r, requested.get(r, 0)) for r in resources if r in NATIVE or requested.get(r))

    def prepare(self, part: Amounts, index: PlacementIndex) -> BalancedAllocationState:
        return tuple((index.capacity.row(resource), amount) for resource, amount in part)

    def is_outdated(self, state: BalancedAllocationState, index: PlacementIndex) -> bool:
        del index
        return any(row == UNOFFERED_ROW for row, _ in state)

    def score(self, state: BalancedAllocationState, index: PlacementIndex, at: At) -> Scores:
        """kube-scheduler 1.36: how the balance changes with the pod, `UNCHANGED` if it does not."""
        capacity = index.capacity
        # Row by row: indexing with a list of rows first would copy them whole, to score a few nodes.
        offered = [capacity.allocatable[row, at] for row, _ in state]
        taken = [capacity.requested[row, at] for row, _ in state]
        with_pod = [row + amount for row, (_, amount) in zip(taken, state, strict=True)]
        present = [row > 0 for row in offered]
        complete, some = present[0], present[0]
        for row in present[1:]:
            complete, some = complete & row, some | row
        if (complete == some).all():
            offered = [np.maximum(row, 1) for row in offered]
            scores: Scores = 50 + (50 + _balance(with_pod, offered) - _balance(taken, offered)) // 2
            scores[~complete] = UNCHANGED  # slots without a node have no resources at all
            return scores
        # Each node is scored over the resources that it has.
        scores = np.empty(len(complete), np.int64)
        patterns = sum(
            (row.astype(np.int64) << bit for bit, row in enumerate(present)), np.zeros(len(complete), np.int64)
        )
        for pattern in np.flatnonzero(np.bincount(patterns)).tolist():
            here = np.flatnonzero(patterns == pattern)
            rows = [row for row in range(len(present)) if pattern >> row & 1]
            whole, before, after = ([of[row][here] for row in rows] for of in (offered, taken, with_pod))
            scores[here] = 50 + (50 + _balance(after, whole) - _balance(before, whole)) // 2 if rows else UNCHANGED
        return scores

    def evaluate_one(self, state: BalancedAllocationState, index: PlacementIndex, slot: int) -> tuple[int, int]:
        offered, requested = index.capacity.allocatable_at, index.capacity.requested_at
        before, after = [], []
        for row, amount in state:
            whole = offered[row][slot]
            if whole > 0:
                taken = requested[row][slot]
                before.append(taken / whole if taken < whole else 1.0)
                taken += amount
                after.append(taken / whole if taken < whole else 1.0)
        return 0, 50 + (50 + _balance_of_one(after) - _balance_of_one(before)) // 2


def _balance(taken: Sequence[NDArray[np.int64]], offered: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """100 less the standard deviation of the shares in percent; an array of shape (n,) per resource in, one out."""
    shares = []
    for one, whole in zip(taken, offered, strict=True):
        share = one / whole
        shares.append(np.minimum(share, 1.0, out=share))
    n = len(shares)
    if n < 2:
        return np.full(len(taken[0]), MAX_SCORE, np.int64)
    if n == 2:  # in place: new arrays of all nodes cost more than the arithmetic
        half = np.subtract(shares[0], shares[1], out=shares[0])
        half /= 2
        np.abs(half, out=half)
        np.subtract(1, half, out=half)
        half *= MAX_SCORE
        balance: NDArray[np.int64] = half.astype(np.int64)
        return balance
    # In kube-scheduler's order of operations, so that rounding is the same.
    total = shares[0].copy()
    for share in shares[1:]:
        total += share
    mean, squares = total / n, np.zeros(len(total))
    for share in shares:
        squares += (share - mean) * (share - mean)
    return ((1 - np.sqrt(squares / n)) * MAX_SCORE).astype(np.int64)


def _balance_of_one(shares: list[float]) -> int:
    """The same for one node."""
    n = len(shares)
    if n == 2:
        one, other = shares
        return int((1 - abs((one - other) / 2)) * MAX_SCORE)
    if n < 2:
        return MAX_SCORE
    mean = sum(shares[1:], start=shares[0]) / n
    squares = 0.0
    for share in shares:
        squares += (share - mean) * (share - mean)
    return int((1 - math.sqrt(squares / n)) * MAX_SCORE)
