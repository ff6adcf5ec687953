"""
Which target is cheapest to free, and who must go for it.

Sums over all targets say first where it can be done at all, and how important the most important victim must be at
least. Targets are then looked at closely in that order, and no further than the best one found.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.pod_table import Rows
from bayplan.indexing.slots import ALL
from bayplan.model.reasons import Mask, Slots
from bayplan.model.workloads import WorkloadKey
from bayplan.preempting import dry_run, reprieving
from bayplan.preempting.capacity_constraints import Amounts, CapacityConstraint
from bayplan.preempting.constraints import ConstraintOutcome, PlacementConstraints
from bayplan.preempting.disruption_budgets import DisruptionBudgets
from bayplan.preempting.dry_run import Reasons
from bayplan.preempting.peer_constraints import SkewConstraint
from bayplan.preempting.reprieving import PotentialVictims, PreemptionCost

MAX_PRIORITY_STEPS = 32  # of priority, at most: more of them are taken together
NO_PRIORITY = np.iinfo(np.int64).max


class PreemptionCandidate(msgspec.Struct, frozen=True):
    """A target that can be freed; the victims are in order of importance."""

    slot: int
    cost: PreemptionCost
    victims: tuple[WorkloadKey, ...]


class SearchResult(msgspec.Struct, frozen=True):
    """
    What came of a search. `best` is None if nothing helps; then the rest says why.

    `outcome` is what the rules say once all that may go have gone, `tried` the same where it had to be tried;
    `has_victims` says where anybody may go at all.
    """

    best: PreemptionCandidate | None
    outcome: ConstraintOutcome
    tried: dict[int, Reasons]
    has_victims: Mask


class CandidateSearch:
    """
    One search. `where` are the targets that may be freed, `lower` the workloads that may go, by row of the roster.

    `across`: those on other targets may go too, if their domain is what keeps the workload off.
    """

    def __init__(self, limits: PlacementConstraints, where: Mask, lower: Mask, *, across: bool) -> None:
        self.limits, self.where, self.lower = limits, where, lower
        self.case, self.index, self.pod_table = limits.case, limits.case.index, limits.case.index.pod_table
        self.across = across
        self.amounts = {a: amounts for a in limits.capacity_constraints if (amounts := self._amounts(a)) is not None}
        disturbed = across and self._disturbs(self._others())
        self.entangled = where & (limits.entangled | self._uncertain() | disturbed)
        self.counted = [
            a
            for a in limits.capacity_constraints
            if not a.entangles and not (disturbed and isinstance(a, SkewConstraint))
        ]
        self.ends: dict[int, int] = {}  # the lowest priority of a step → its highest

    def run(self, budgets: DisruptionBudgets) -> SearchResult:
        after, lowest = self._survey()
        lefts = [after.get(allowance, allowance.left) for allowance in self.limits.capacity_constraints]
        outcome = self.limits.outcome(lefts, self._near_after())
        has_victims = self._has_victims()
        free = self.where & has_victims & (outcome.first == -1) & ~self.entangled
        best = self._best_of_sums(free, lowest, budgets)
        best, tried = self._best_of_trying(has_victims & self.entangled, lowest, budgets, best)
        return SearchResult(best, outcome, tried, has_victims)

    # What is left when all have gone

    def _amounts(self, allowance: CapacityConstraint) -> Amounts | None:
        """What workloads take of it, as far as that matters: where it is not used up, nobody has to go for it."""
        return allowance.amounts() if (self.where & (allowance.left < 0)).any() else None

    def _survey(self) -> tuple[dict[CapacityConstraint, Amounts], NDArray[np.int64]]:
        """
        What is left of each allowance with all gone, and a bound: less important victims alone cannot free the target.

        The bound has shape (capacity,), `NEVER` where even all of them are not enough.
        """
        pod_table = self.pod_table
        rows = np.flatnonzero(self.lower if self.across else self.lower & pod_table.on(self.where))
        priority = pod_table.priority[rows]
        after = {allowance: allowance.left.copy() for allowance in self.counted}
        lowest = np.full(self.index.slots.capacity, NO_PRIORITY)
        steps = np.unique(priority)
        for step in np.array_split(steps, min(MAX_PRIORITY_STEPS, len(steps))) if len(steps) else ():
            self.ends[int(step[0])] = int(step[-1])
            here = rows[(priority >= step[0]) & (priority <= step[-1])]
            enough = self.where.copy()
            for allowance in self.counted:
                if allowance in self.amounts:
                    after[allowance] += self._freed(allowance, here)
                enough &= after[allowance] >= 0
            lowest[enough & (lowest == NO_PRIORITY)] = step[0]
        return after, lowest

    def _freed(self, allowance: CapacityConstraint, rows: Rows) -> Amounts:
        """What each target gets back of it when these workloads go, shape (capacity,)."""
        slots, amounts = self.pod_table.slot[rows], self.amounts[allowance]
        if self.across and allowance.column is not None:
            by_domain = np.zeros(allowance.column.n_domains, np.int64)
            np.add.at(by_domain, allowance.column.of_slot[slots], amounts[rows])
            return allowance.column.gather(by_domain, ALL)
        freed = np.zeros(self.index.slots.capacity, np.int64)
        np.add.at(freed, slots, amounts[rows])
        return freed

    def _near_after(self) -> tuple[Mask, Mask]:
        """Where required affinity holds once all have gone, with guests and without."""
        nearness = self.limits.nearness
        if nearness is None or nearness.judged_apart:
            return self.limits.near_now()
        after = nearness.after(self.lower)
        return after | nearness.by_nominated, after

    def _uncertain(self) -> Mask:
        """Where somebody may go by whom the workload is judged to be the first of its set: no sum tells what then."""
        nearness, found = self.limits.nearness, np.zeros(len(self.where), np.bool_)
        if nearness is not None and nearness.judged_apart:
            found[self.pod_table.slot[self.lower & nearness.judged_by()]] = True
        return found

    def _others(self) -> Mask:
        """Those who may have to go from other targets, by row of the roster."""
        found = np.zeros(len(self.pod_table), np.bool_)
        for allowance, amounts in self.amounts.items():
            if allowance.column is not None:
                found |= self.lower & (amounts > 0)
        return found

    def _disturbs(self, others: Mask) -> bool:
        """Whether somebody may go from elsewhere whom the workload must be near, or level with."""
        nearness = self.limits.nearness
        if nearness is not None and (others & nearness.judged_by()).any():
            return True
        skews = (allowance for allowance in self.limits.capacity_constraints if isinstance(allowance, SkewConstraint))
        return any(bool((others & (skew.amounts() > 0)).any()) for skew in skews)

    def _has_victims(self) -> Mask:
        found = np.zeros(len(self.where), np.bool_)
        found[self.pod_table.slot[np.flatnonzero(self.lower & self.pod_table.on(self.where))]] = True
        if self.across:
            for allowance in self.amounts:
                if allowance.column is not None:
                    found |= (allowance.left < 0) & (self._freed(allowance, np.flatnonzero(self.lower)) > 0)
        return found

    # Looking closely

    def _best_of_sums(
        self, free: Mask, lowest: NDArray[np.int64], budgets: DisruptionBudgets
    ) -> PreemptionCandidate | None:
        best: PreemptionCandidate | None = None
        scarce = [(allowance, self.amounts[allowance]) for allowance in self.counted if allowance in self.amounts]
        for bound in np.unique(lowest[free]).tolist():
            if _beaten(bound, best):
                break
            pairs = self._pairs(free & (lowest == bound), budgets, self.ends[bound])
            chosen = reprieving.reprieve(pairs, scarce, self.pod_table)
            ranks = self.index.slots.rank[pairs.slots]
            cheapest = reprieving.cheapest(reprieving.costs(pairs, chosen, self.pod_table, ranks))
            if cheapest is not None and (best is None or cheapest[1] < best.cost):
                group, cost = cheapest
                rows = pairs.rows[chosen & (pairs.groups == group)].tolist()
                victims = tuple(self.pod_table.at(row).workload.key for row in rows)
                best = PreemptionCandidate(int(pairs.slots[group]), cost, victims)
        return best

    def _pairs(self, targets: Mask, budgets: DisruptionBudgets, enough: int = NO_PRIORITY) -> PotentialVictims:
        """Who may have to go for these targets; if all up to the priority `enough` went, that would do."""
        rows, may_go = self.pod_table.in_order(), self.lower & self.pod_table.on(targets)
        if not budgets and not self.across:
            may_go &= self.pod_table.priority <= enough  # the others are asked first whether they fit, and do
        rows = rows[may_go[rows]]
        slots = self.pod_table.slot[rows].astype(np.intp)
        if self.across:
            slots, rows = self._with_others(targets, slots, rows)
        return reprieving.grouped(slots, rows, self.pod_table, budgets)

    def _with_others(self, targets: Mask, slots: Slots, rows: Rows) -> tuple[Slots, Rows]:
        """The pairs and those of workloads on other targets that are in the way, each once."""
        keys = [slots * len(self.pod_table) + rows]
        for allowance, amounts in self.amounts.items():
            column = allowance.column
            if column is not None:
                takers = np.flatnonzero(self.lower & (amounts > 0))
                short = np.flatnonzero(targets & (allowance.left < 0))
                for domain in np.unique(column.of_slot[short]).tolist():
                    here = short[column.of_slot[short] == domain]
                    there = takers[column.of_slot[self.pod_table.slot[takers]] == domain]
                    keys.append((here[:, None] * len(self.pod_table) + there).ravel())
        together = np.unique(np.concatenate(keys))
        slots, rows = together // len(self.pod_table), together % len(self.pod_table)
        order = self.pod_table.importance_order(slots, rows)
        return slots[order], rows[order]

    # Trying

    def _best_of_trying(
        self, targets: Mask, lowest: NDArray[np.int64], budgets: DisruptionBudgets, best: PreemptionCandidate | None
    ) -> tuple[PreemptionCandidate | None, dict[int, Reasons]]:
        tried: dict[int, Reasons] = {}
        # All of them by now, because trying changes the rows of the roster.
        for slot, may_go in sorted(self._to_try(targets, budgets), key=lambda one: (lowest[one[0]], one[0])):
            if _beaten(int(lowest[slot]), best):
                break
            rehearsal = dry_run.dry_run(self.case, slot, may_go)
            tried[slot] = rehearsal.against
            if rehearsal.victims:
                cost = self._cost(slot, rehearsal.victims, dict(may_go))
                if best is None or cost < best.cost:
                    best = PreemptionCandidate(slot, cost, rehearsal.victims)
        return best, tried

    def _to_try(
        self, targets: Mask, budgets: DisruptionBudgets
    ) -> Iterator[tuple[int, list[tuple[WorkloadKey, bool]]]]:
        pairs = self._pairs(targets, budgets)
        keys = [self.pod_table.at(row).workload.key for row in pairs.rows.tolist()]
        named = list(zip(keys, pairs.breaks.tolist(), strict=True))
        firsts = np.searchsorted(pairs.groups, np.arange(len(pairs.slots) + 1)).tolist()
        for group, slot in enumerate(pairs.slots.tolist()):
            yield slot, named[firsts[group] : firsts[group + 1]]

    def _cost(self, slot: int, victims: tuple[WorkloadKey, ...], breaks: dict[WorkloadKey, bool]) -> PreemptionCost:
        rows = np.array([self.index.records[key].row for key in victims], np.intp)
        one = np.zeros(len(rows), np.intp)
        pairs = PotentialVictims(np.array([slot]), one, rows, np.array([breaks[key] for key in victims]))
        fields = reprieving.costs(pairs, np.ones(len(rows), np.bool_), self.pod_table, self.index.slots.rank[[slot]])
        cheapest = reprieving.cheapest(fields)
        assert cheapest is not None, "asked only with victims"
        return cheapest[1]


def _beaten(bound: int, best: PreemptionCandidate | None) -> bool:
    """Whether no target whose victims are at least that important can be cheaper."""
    if best is None:
        return False
    return bound == NO_PRIORITY or (best.cost.n_violations == 0 and bound > best.cost.highest_priority)
