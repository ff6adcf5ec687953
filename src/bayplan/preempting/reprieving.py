"""
Who must really go: of all that may, as many as possible stay, the most important first.

Mirrors `SelectVictimsOnNode` in kube-scheduler's pkg/scheduler/framework/plugins/defaultpreemption, for many targets at
once: the most important workload of every target is tried in one step, then the second of every target, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.pod_table import PodTable, Rows
from bayplan.model.reasons import Mask, Slots
from bayplan.preempting.capacity_constraints import Amounts, CapacityConstraint
from bayplan.preempting.disruption_budgets import DisruptionBudgets

ABOVE_ALL_NEGATIVES = 1 << 31  # added to every priority, so that more victims never sum up to less


class PotentialVictims(msgspec.Struct, frozen=True):
    """
    Who may have to go for which target: `rows[i]` for `slots[groups[i]]`, in order of importance within each group.

    `breaks[i]`: its going would break a budget. Groups come one after another, none is empty.
    """

    slots: Slots
    groups: NDArray[np.intp]
    rows: Rows
    breaks: Mask


class PreemptionCost(msgspec.Struct, frozen=True, order=True):
    """What targets are compared by, the smallest first, in kube-scheduler's order."""

    n_violations: int
    highest_priority: int
    sum_of_priorities: int
    n_victims: int
    youth: int  # of the oldest among the most important victims, negated: the later it started the better
    rank: int


def grouped(slots: Slots, rows: Rows, pod_table: PodTable, budgets: DisruptionBudgets) -> PotentialVictims:
    """Pairs of target and row, given target by target in order of importance."""
    firsts = np.r_[True, slots[1:] != slots[:-1]] if len(slots) else np.zeros(0, np.bool_)
    groups = firsts.cumsum() - 1
    return PotentialVictims(slots[firsts], groups, rows, budgets.breaking(groups, rows, pod_table))


def reprieve(
    pairs: PotentialVictims, scarce: Sequence[tuple[CapacityConstraint, Amounts]], pod_table: PodTable
) -> Mask:
    """
    Which of the pairs are victims, shape (n_pairs,).

    `scarce` is everything that somebody may have to go for, with what workloads take of it, by row of the roster.
    """
    takes = _taken(pairs, scarce, pod_table)
    left = np.zeros((len(scarce), len(pairs.slots)), np.int64)  # shape (n_scarce, n_groups)
    for i, (allowance, _) in enumerate(scarce):
        left[i] = allowance.left[pairs.slots]
        np.add.at(left[i], pairs.groups, takes[i])  # all have gone, for a start
    found = np.zeros(len(pairs.rows), np.bool_)
    order = np.lexsort((~pairs.breaks, pairs.groups)) if pairs.breaks.any() else np.arange(len(pairs.rows))
    sizes = np.bincount(pairs.groups, minlength=len(pairs.slots))
    firsts = sizes.cumsum() - sizes
    for nth in range(int(sizes.max(initial=0))):
        groups = np.flatnonzero(sizes > nth)
        tried = order[firsts[groups] + nth]
        after = left[:, groups] - takes[:, tried]
        stays = (after >= 0).all(axis=0)
        left[:, groups[stays]] = after[:, stays]
        found[tried[~stays]] = True
    return found


def _taken(
    pairs: PotentialVictims, scarce: Sequence[tuple[CapacityConstraint, Amounts]], pod_table: PodTable
) -> Amounts:
    """What each workload takes of each allowance on the target it is paired with, shape (n_scarce, n_pairs)."""
    where, there = pod_table.slot[pairs.rows], pairs.slots[pairs.groups]
    on_target = where == there
    found = np.zeros((len(scarce), len(pairs.rows)), np.int64)
    for i, (allowance, amounts) in enumerate(scarce):
        near = on_target
        if allowance.column is not None:
            near = on_target | (allowance.column.of_slot[where] == allowance.column.of_slot[there])
        found[i] = np.where(near, amounts[pairs.rows], 0)
    return found


def costs(
    pairs: PotentialVictims, chosen: Mask, pod_table: PodTable, ranks: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """The fields of `Cost` for every group, each of shape (n_groups,); `ranks` has the rank of every group's target."""
    n_groups, groups, rows = len(pairs.slots), pairs.groups[chosen], pairs.rows[chosen]
    priority = pod_table.priority[rows]
    highest = np.full(n_groups, np.iinfo(np.int64).min)
    np.maximum.at(highest, groups, priority)
    sums = np.zeros(n_groups, np.int64)
    np.add.at(sums, groups, priority + ABOVE_ALL_NEGATIVES)
    oldest = np.full(n_groups, np.iinfo(np.int64).max)
    top = priority == highest[groups]
    np.minimum.at(oldest, groups[top], pod_table.started[rows[top]])
    n_violations = np.bincount(groups[pairs.breaks[chosen]], minlength=n_groups)
    n_victims = np.bincount(groups, minlength=n_groups)
    return [n_violations, highest, sums, n_victims, -oldest, ranks]


def cheapest(fields: list[NDArray[np.int64]]) -> tuple[int, PreemptionCost] | None:
    """The group of the lowest cost and that cost; None if no group has a victim."""
    left = np.flatnonzero(fields[3] > 0)
    if not len(left):
        return None
    for field in fields:
        values = field[left]
        left = left[values == values.min()]
    group = int(left[0])
    return group, PreemptionCost(*(int(field[group]) for field in fields))
