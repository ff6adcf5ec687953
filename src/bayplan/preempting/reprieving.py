"""
Select the victims: as many potential victims as possible are reprieved, the most important first.

Mirrors `SelectVictimsOnNode` in kube-scheduler's pkg/scheduler/framework/plugins/defaultpreemption, for many targets at
once: the most important workload of every target is reprieved in one step, then the second of every target, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.pod_table import PodTable, Rows
from bayplan.model.reasons import Mask, Slots
from bayplan.preempting.disruption_budgets import DisruptionBudgets
from bayplan.rules.evictions import Amounts, CapacityConstraint

ABOVE_ALL_NEGATIVES = 1 << 31  # added to every priority, so that more victims never sum up to less


class PotentialVictims(msgspec.Struct, frozen=True):
    """
    The potential victims per target: `rows[i]` for `slots[groups[i]]`, in order of importance within each group.

    `violates_budget[i]`: evicting it would violate a budget. Groups come one after another, none is empty.
    """

    slots: Slots
    groups: NDArray[np.intp]
    rows: Rows
    violates_budget: Mask


class PreemptionCost(msgspec.Struct, frozen=True, order=True):
    """The criteria by which targets are compared, the lowest first, in kube-scheduler's order."""

    n_violations: int
    highest_priority: int
    sum_of_priorities: int
    n_victims: int
    negated_start: int  # of the oldest among the most important victims: the later it started the better
    rank: int


def grouped(slots: Slots, rows: Rows, pod_table: PodTable, budgets: DisruptionBudgets) -> PotentialVictims:
    """Potential victims from pairs of target and row, given target by target in order of importance."""
    firsts = np.r_[True, slots[1:] != slots[:-1]] if len(slots) else np.zeros(0, np.bool_)
    groups = firsts.cumsum() - 1
    return PotentialVictims(slots[firsts], groups, rows, budgets.violations(groups, rows, pod_table))


def reprieve(
    potential: PotentialVictims, scarce: Sequence[tuple[CapacityConstraint, Amounts]], pod_table: PodTable
) -> Mask:
    """
    Which potential victims are not reprieved, shape (n_pairs,).

    `scarce` are the constraints that are exceeded somewhere, with the amounts of workloads by row of the pod table.
    """
    takes = _amounts_taken(potential, scarce, pod_table)
    remaining = np.zeros((len(scarce), len(potential.slots)), np.int64)  # shape (n_scarce, n_groups)
    for i, (constraint, _) in enumerate(scarce):
        remaining[i] = constraint.remaining[potential.slots]
        np.add.at(remaining[i], potential.groups, takes[i])  # at first all are evicted
    found = np.zeros(len(potential.rows), np.bool_)
    order = (
        np.lexsort((~potential.violates_budget, potential.groups))
        if potential.violates_budget.any()
        else np.arange(len(potential.rows))
    )
    sizes = np.bincount(potential.groups, minlength=len(potential.slots))
    firsts = sizes.cumsum() - sizes
    for nth in range(int(sizes.max(initial=0))):
        groups = np.flatnonzero(sizes > nth)
        nth_of_group = order[firsts[groups] + nth]
        after = remaining[:, groups] - takes[:, nth_of_group]
        reprieved = (after >= 0).all(axis=0)
        remaining[:, groups[reprieved]] = after[:, reprieved]
        found[nth_of_group[~reprieved]] = True
    return found


def _amounts_taken(
    potential: PotentialVictims, scarce: Sequence[tuple[CapacityConstraint, Amounts]], pod_table: PodTable
) -> Amounts:
    """The amount of each constraint that each workload takes on its paired target, shape (n_scarce, n_pairs)."""
    where, there = pod_table.slot[potential.rows], potential.slots[potential.groups]
    on_target = where == there
    found = np.zeros((len(scarce), len(potential.rows)), np.int64)
    for i, (constraint, amounts) in enumerate(scarce):
        counts = on_target
        if constraint.column is not None:
            counts = on_target | (constraint.column.of_slot[where] == constraint.column.of_slot[there])
        found[i] = np.where(counts, amounts[potential.rows], 0)
    return found


def costs(
    potential: PotentialVictims, chosen: Mask, pod_table: PodTable, ranks: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """The fields of `PreemptionCost` per group, each of shape (n_groups,); `ranks` are those of the groups' targets."""
    n_groups, groups, rows = len(potential.slots), potential.groups[chosen], potential.rows[chosen]
    priority = pod_table.priority[rows]
    highest = np.full(n_groups, np.iinfo(np.int64).min)
    np.maximum.at(highest, groups, priority)
    sums = np.zeros(n_groups, np.int64)
    np.add.at(sums, groups, priority + ABOVE_ALL_NEGATIVES)
    oldest = np.full(n_groups, np.iinfo(np.int64).max)
    top = priority == highest[groups]
    np.minimum.at(oldest, groups[top], pod_table.started[rows[top]])
    n_violations = np.bincount(groups[potential.violates_budget[chosen]], minlength=n_groups)
    n_victims = np.bincount(groups, minlength=n_groups)
    return [n_violations, highest, sums, n_victims, -oldest, ranks]


def cheapest(fields: list[NDArray[np.int64]]) -> tuple[int, PreemptionCost] | None:
    """The group of the lowest cost and that cost; None if no group has a victim."""
    remaining = np.flatnonzero(fields[3] > 0)
    if not len(remaining):
        return None
    for field in fields:
        values = field[remaining]
        remaining = remaining[values == values.min()]
    group = int(remaining[0])
    return group, PreemptionCost(*(int(field[group]) for field in fields))
