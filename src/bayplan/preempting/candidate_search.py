"""
The search for the target whose victims cost the least.

Sums over all targets first give the targets where preemption can help at all, and a lower bound for the priority of the
most important victim there. Victims are then selected target by target in the order of these bounds, until no remaining
target can be cheaper than the best one found.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.pod_table import Rows
from bayplan.indexing.slots import ALL
from bayplan.model.reasons import Mask, Slots
from bayplan.model.workloads import WorkloadKey
from bayplan.preempting import dry_run, reprieving
from bayplan.preempting.constraints import ConstraintOutcome, PlacementConstraints
from bayplan.preempting.disruption_budgets import DisruptionBudgets
from bayplan.preempting.dry_run import Forgetting, Reasons
from bayplan.preempting.reprieving import PotentialVictims, PreemptionCost
from bayplan.rules.evictions import Amounts, CapacityConstraint

MAX_PRIORITY_STEPS = 32  # in which sums are computed: more priorities than that share steps
NO_PRIORITY = np.iinfo(np.int64).max  # the bound of a target that evicting all potential victims does not free


class PreemptionCandidate(msgspec.Struct, frozen=True):
    """A target with the victims that make the workload fit, in order of importance."""

    slot: int
    cost: PreemptionCost
    victims: tuple[WorkloadKey, ...]


class SearchResult(msgspec.Struct, frozen=True):
    """
    `best` is None if preemption does not help anywhere; then the rest gives the reasons.

    `outcome` is the outcome of the rules without all potential victims, `dry_runs` the reasons where it took a dry run;
    `has_victims` are the targets with potential victims.
    """

    best: PreemptionCandidate | None
    outcome: ConstraintOutcome
    dry_runs: dict[int, Reasons]
    has_victims: Mask


class CandidateSearch:
    """
    `where` are the targets to consider, `evictable` the workloads of lower priority by row of the pod table.

    `across_nodes`: workloads on other targets of the same domain may be victims too.
    """

    def __init__(self, constraints: PlacementConstraints, where: Mask, evictable: Mask, *, across_nodes: bool) -> None:
        self.constraints, self.where, self.evictable = constraints, where, evictable
        self.case, self.index = constraints.case, constraints.case.index
        self.pod_table = self.index.pod_table
        self.across_nodes = across_nodes
        self.amounts: dict[CapacityConstraint, Amounts] = {}  # of the constraints that are exceeded somewhere
        for constraint in constraints.capacity_constraints:
            amounts = constraint.amounts() if (where & (constraint.remaining < 0)).any() else None
            if amounts is not None:
                self.amounts[constraint] = amounts
        disturbs = across_nodes and self._disturbs_peers()
        self.needs_dry_run = where & (constraints.needs_dry_run | self._may_end_requirement() | disturbs)
        self.counted = [
            constraint
            for constraint in constraints.capacity_constraints
            if not constraint.needs_dry_run and not (disturbs and constraint.compares_domains)
        ]
        self.step_ends: dict[int, int] = {}  # the lowest priority of a step → its highest

    def run(self, budgets: DisruptionBudgets) -> SearchResult:
        """The cheapest target with its victims, from sums where they suffice and from dry runs elsewhere."""
        after, lowest = self._without_victims()
        requirements = self.constraints.requirements
        holding = {one: one.after(self.evictable) for one in requirements if not one.needs_dry_run}
        outcome = self.constraints.outcome(after, holding)
        has_victims = self._has_victims()
        free = self.where & has_victims & (outcome.first == -1) & ~self.needs_dry_run
        best = self._best_by_sums(free, lowest, budgets)
        best, dry_runs = self._best_by_dry_run(has_victims & self.needs_dry_run, lowest, budgets, best)
        return SearchResult(best, outcome, dry_runs, has_victims)

    # Sums without all potential victims

    def _without_victims(self) -> tuple[dict[CapacityConstraint, Amounts], NDArray[np.int64]]:
        """
        What remains of each constraint without all potential victims, and the lowest priority that suffices.

        Victims below that priority alone do not free the target. It has shape (capacity,), `NO_PRIORITY` where all
        potential victims are not enough.
        """
        pod_table = self.pod_table
        rows = np.flatnonzero(self.evictable if self.across_nodes else self.evictable & pod_table.on(self.where))
        priority = pod_table.priority[rows]
        after = {constraint: constraint.remaining.copy() for constraint in self.counted}
        lowest = np.full(self.index.slots.capacity, NO_PRIORITY)
        steps = np.unique(priority)
        for step in np.array_split(steps, min(MAX_PRIORITY_STEPS, len(steps))) if len(steps) else ():
            self.step_ends[int(step[0])] = int(step[-1])
            here = rows[(priority >= step[0]) & (priority <= step[-1])]
            enough = self.where.copy()
            for constraint in self.counted:
                if constraint in self.amounts:
                    after[constraint] += self._freed(constraint, here)
                enough &= after[constraint] >= 0
            lowest[enough & (lowest == NO_PRIORITY)] = step[0]
        return after, lowest

    def _freed(self, constraint: CapacityConstraint, rows: Rows) -> Amounts:
        """What evicting these workloads frees on each target, shape (capacity,)."""
        slots, amounts = self.pod_table.slot[rows], self.amounts[constraint]
        if self.across_nodes and constraint.column is not None:
            by_domain = np.zeros(constraint.column.n_domains, np.int64)
            np.add.at(by_domain, constraint.column.of_slot[slots], amounts[rows])
            return constraint.column.gather(by_domain, ALL)
        freed = np.zeros(self.index.slots.capacity, np.int64)
        np.add.at(freed, slots, amounts[rows])
        return freed

    def _may_end_requirement(self) -> Mask:
        """Where an eviction may change a requirement in a way that no sum shows."""
        found = np.zeros(len(self.where), np.bool_)
        for requirement in self.constraints.requirements:
            if requirement.needs_dry_run:
                found[self.pod_table.slot[self.evictable & requirement.related()]] = True
        return found

    def _disturbs_peers(self) -> bool:
        """Whether potential victims on other targets count for a requirement or in a comparison of domains."""
        others = np.zeros(len(self.pod_table), np.bool_)
        for constraint, amounts in self.amounts.items():
            if constraint.column is not None:
                others |= self.evictable & (amounts > 0)
        if any(bool((others & requirement.related()).any()) for requirement in self.constraints.requirements):
            return True
        comparing = (one.amounts() for one in self.constraints.capacity_constraints if one.compares_domains)
        return any(amounts is not None and bool((others & (amounts > 0)).any()) for amounts in comparing)

    def _has_victims(self) -> Mask:
        """The targets with potential victims, shape (capacity,)."""
        found = np.zeros(len(self.where), np.bool_)
        found[self.pod_table.slot[np.flatnonzero(self.evictable & self.pod_table.on(self.where))]] = True
        if self.across_nodes:
            for constraint in self.amounts:
                if constraint.column is not None:
                    found |= (constraint.remaining < 0) & (self._freed(constraint, np.flatnonzero(self.evictable)) > 0)
        return found

    # Selecting victims by sums

    def _best_by_sums(
        self, free: Mask, lowest: NDArray[np.int64], budgets: DisruptionBudgets
    ) -> PreemptionCandidate | None:
        best: PreemptionCandidate | None = None
        scarce = [(constraint, self.amounts[constraint]) for constraint in self.counted if constraint in self.amounts]
        for bound in np.unique(lowest[free]).tolist():
            if _cannot_improve(bound, best):
                break
            potential = self._potential_victims(free & (lowest == bound), budgets, self.step_ends[bound])
            chosen = reprieving.reprieve(potential, scarce, self.pod_table)
            ranks = self.index.slots.rank[potential.slots]
            cheapest = reprieving.cheapest(reprieving.costs(potential, chosen, self.pod_table, ranks))
            if cheapest is not None and (best is None or cheapest[1] < best.cost):
                group, cost = cheapest
                rows = potential.rows[chosen & (potential.groups == group)].tolist()
                victims = tuple(self.pod_table.at(row).workload.key for row in rows)
                best = PreemptionCandidate(int(potential.slots[group]), cost, victims)
        return best

    def _potential_victims(
        self, targets: Mask, budgets: DisruptionBudgets, enough: int = NO_PRIORITY
    ) -> PotentialVictims:
        """The potential victims for these targets; evicting all up to the priority `enough` suffices."""
        rows, evictable = self.pod_table.in_order(), self.evictable & self.pod_table.on(targets)
        if not budgets and not self.across_nodes:
            evictable &= self.pod_table.priority <= enough  # the others are reprieved first, and all of them
        rows = rows[evictable[rows]]
        slots = self.pod_table.slot[rows].astype(np.intp)
        if self.across_nodes:
            slots, rows = self._with_others(targets, slots, rows)
        return reprieving.grouped(slots, rows, self.pod_table, budgets)

    def _with_others(self, targets: Mask, slots: Slots, rows: Rows) -> tuple[Slots, Rows]:
        """The given pairs of target and row, and those of conflicting workloads on other targets, each once."""
        keys = [slots * len(self.pod_table) + rows]
        for constraint, amounts in self.amounts.items():
            column = constraint.column
            if column is not None:
                takers = np.flatnonzero(self.evictable & (amounts > 0))
                short = np.flatnonzero(targets & (constraint.remaining < 0))
                for domain in np.unique(column.of_slot[short]).tolist():
                    here = short[column.of_slot[short] == domain]
                    there = takers[column.of_slot[self.pod_table.slot[takers]] == domain]
                    keys.append((here[:, None] * len(self.pod_table) + there).ravel())
        together = np.unique(np.concatenate(keys))
        slots, rows = together // len(self.pod_table), together % len(self.pod_table)
        order = self.pod_table.importance_order(slots, rows)
        return slots[order], rows[order]

    # Dry runs

    def _best_by_dry_run(
        self, targets: Mask, lowest: NDArray[np.int64], budgets: DisruptionBudgets, best: PreemptionCandidate | None
    ) -> tuple[PreemptionCandidate | None, dict[int, Reasons]]:
        """The best of these targets and `best`, and for each target tried the reasons against it without victims."""
        dry_runs: dict[int, Reasons] = {}
        potential = self._potential_victims(targets, budgets)
        # Keys instead of rows, because a dry run changes the rows of the pod table.
        keys = [self.pod_table.at(row).workload.key for row in potential.rows.tolist()]
        named = list(zip(keys, potential.violates_budget.tolist(), strict=True))
        forgotten = self._forgotten(potential)
        firsts = np.searchsorted(potential.groups, np.arange(len(potential.slots) + 1)).tolist()
        slots = potential.slots.tolist()
        for group in sorted(range(len(slots)), key=lambda group: (lowest[slots[group]], slots[group])):
            slot, victims = slots[group], named[firsts[group] : firsts[group + 1]]
            if _cannot_improve(int(lowest[slot]), best):
                break
            here = keys[firsts[group] : firsts[group + 1]]
            forgetting = [
                Forgetting(position, int(one.remaining[slot]), dict(zip(here, takes[firsts[group] :], strict=False)))
                for position, one, takes in forgotten
            ]
            result = dry_run.dry_run(self.case, slot, victims, forgetting)
            dry_runs[slot] = result.reasons
            if result.victims:
                cost = self._cost(slot, result.victims, dict(victims))
                if best is None or cost < best.cost:
                    best = PreemptionCandidate(slot, cost, result.victims)
        return best, dry_runs

    def _forgotten(self, potential: PotentialVictims) -> list[tuple[int, CapacityConstraint, list[int]]]:
        """The constraints that hold more often than their rules say, with what each potential victim takes of them."""
        there = self.pod_table.slot[potential.rows] == potential.slots[potential.groups]
        return [
            (position, one, np.where(there, self.amounts[one][potential.rows], 0).tolist())
            for position, effect in self.constraints.effects.items()
            for one in effect.capacity_constraints
            if one.forgets and one in self.amounts
        ]

    def _cost(
        self, slot: int, victims: tuple[WorkloadKey, ...], violates_budget: dict[WorkloadKey, bool]
    ) -> PreemptionCost:
        rows = np.array([self.index.records[key].row for key in victims], np.intp)
        one = np.zeros(len(rows), np.intp)
        potential = PotentialVictims(np.array([slot]), one, rows, np.array([violates_budget[key] for key in victims]))
        fields = reprieving.costs(
            potential, np.ones(len(rows), np.bool_), self.pod_table, self.index.slots.rank[[slot]]
        )
        cheapest = reprieving.cheapest(fields)
        assert cheapest is not None, "called only with victims"
        return cheapest[1]


def _cannot_improve(bound: int, best: PreemptionCandidate | None) -> bool:
    """Whether no target whose most important victim has at least that priority can be cheaper."""
    if best is None:
        return False
    return bound == NO_PRIORITY or (best.cost.n_violations == 0 and bound > best.cost.highest_priority)
