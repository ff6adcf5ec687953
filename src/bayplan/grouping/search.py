"""
Search for a plan: greedily, then with repairs, then by an exact solver if there is one.

Greedy: the most constrained unit first, in the domain that it fits best. Repair: a unit that fits nowhere takes the
place of others, and these are placed again; units that had to be repaired often are moved last. Each stage asks the
engine a bounded number of times, so that the answer does not depend on how fast the machine is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager

import msgspec
import numpy as np

from bayplan.engine.filtering import Verdicts
from bayplan.grouping import units
from bayplan.grouping.attempts import (
    Attempts,
    BudgetSpentError,
    in_time,
    n_lacking,
    requested_by,
    without_required_affinity,
)
from bayplan.grouping.problem import Answer, ExactSolver, GroupPlan, GroupProblem, Solved, Undecided
from bayplan.grouping.units import Unit
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import rank_of
from bayplan.model.groups import MEMBER_OF
from bayplan.model.reasons import Mask
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.rules.rule import LiftedBy

GREEDY, REPAIR = "greedy", "repair"
RESTARTS_SHARE = 3  # the part of all attempts in which everything is placed anew
MAX_OPTIONS = 8  # of targets for one pod that are tried, the cheapest first
SPENT = "no plan was found in {} attempts"


class SearchLimits(msgspec.Struct, frozen=True):
    """
    How often the engine is asked: for each pod, and at least. Without `repairs`, the search is greedy.

    It also ends when it is `out_of_time`, which makes the answer depend on how fast the machine is.
    """

    steps_per_pod: int = 50
    min_steps: int = 2000
    repairs: bool = True
    out_of_time: Callable[[], bool] = in_time

    def most(self, n_pods: int) -> int:
        return max(self.min_steps, self.steps_per_pod * n_pods)


def solve(problem: GroupProblem, limits: SearchLimits | None = None, exact: ExactSolver | None = None) -> Answer:
    """A plan for the problem, a proof that there is none, or neither; the index is as it was before."""
    limits = limits or SearchLimits()
    found = _search(problem, limits)
    if exact is not None and isinstance(found, Undecided) and found.reason:  # else there is no plan, as counting shows
        return exact(problem, found.best)
    return found


def _search(problem: GroupProblem, limits: SearchLimits) -> Solved | Undecided:
    with problem.index.tentatively():
        search = _Search(problem, limits)
        try:
            return search.run()
        except BudgetSpentError:
            n_steps = search.attempts.n_steps
            return Undecided(search.best, SPENT.format(n_steps), n_steps)


class _Search:
    """One search. `waiting` are units without a place; `weights` counts how often a unit had to be repaired."""

    def __init__(self, problem: GroupProblem, limits: SearchLimits) -> None:
        self.attempts = Attempts(problem, limits.most(len(problem.pods)), limits.out_of_time)
        self.best = GroupPlan()
        self._index, self._repairs = problem.index, limits.repairs
        self._units = units.units_of(problem)
        self._unit_of = {pod.key: unit for unit in self._units for pod in unit.pods}
        self._topology = {group.key: group.topology_key for group in problem.groups}
        self._weights = Counter[str]()
        self._scarcity: dict[str, tuple[float, float, str]] = {}

    def run(self) -> Solved | Undecided:
        attempts = self.attempts
        self._scarcity = {unit.name: self._scarcity_of(unit) for unit in self._units}
        if self._lacks_room():
            return Undecided(self.best, n_steps=attempts.n_steps)
        waiting: list[Unit] = []
        for attempts.packs in (False, True):
            waiting = self._place_anew()
            if not waiting:
                return self._solved(GREEDY)
        if not self._repairs:
            return Undecided(self.best, SPENT.format(attempts.n_steps), attempts.n_steps)
        while waiting and attempts.n_steps < attempts.max_steps // RESTARTS_SHARE:
            self._weights.update(unit.name for unit in waiting)
            waiting = self._place_anew()
        while waiting:
            waiting = self._repair(waiting)
        return self._solved(REPAIR)

    def _place_anew(self) -> list[Unit]:
        """Place everything anew, first what had no place most often."""
        for unit in self._units:
            self.attempts.take(unit.pods)
        return self._place_all(self._units)

    def _lacks_room(self) -> bool:
        """Whether counting alone shows that more pods have no place than their groups can do without."""
        semantics, attempts = self._index.semantics, self.attempts
        pods = list(attempts.workloads.values())
        # Other pods can make a target feasible only by these rules, and by required affinity, which is not counted.
        if semantics.neighbours_reject_when_satisfied or any(
            constraint.hard for pod in pods for constraint in pod.needs.spread.constraints
        ):
            return False
        n_dispensable = sum(max(0, n) for n in attempts.dispensable.values())
        if n_lacking(attempts.room(Unit(tuple(pods))), self._index.slots.alive) > n_dispensable:
            return True
        return any(
            # Only the rule of a group demands one domain; pods with affinity to each other may be in several.
            unit.key
            and all(self._topology.get(pod.labels.get(MEMBER_OF, "")) == unit.key for pod in unit.pods)
            and not attempts.ranked_domains(unit, unit.key, self._index.slots.alive)
            for unit in self._units
        )

    def _solved(self, stage: str) -> Solved:
        """Place members that were left out, as far as they fit by now."""
        for pod in list(self.attempts.left_out.values()):
            self.attempts.take([pod])
            unit = Unit((pod,))
            if not self.attempts.place(unit):
                self.attempts.leave_out([pod])
        return Solved(self.attempts.plan(), stage, self.attempts.n_steps)

    def _place_all(self, some: Sequence[Unit]) -> list[Unit]:
        """Place units, the most constrained first; returns those that could not be, or are not right in the end."""
        order = sorted(some, key=lambda unit: (-self._weights[unit.name], self._scarcity[unit.name]))
        waiting = [unit for unit in order if not self.attempts.place(unit) and not self.attempts.leave_out(unit.pods)]
        self._note_best()
        return waiting or self._take_wrong()

    def _take_wrong(self) -> list[Unit]:
        """Take the units that others, which came later or left, have made wrong."""
        wrong: dict[str, Unit] = {}
        for key in list(self.attempts.slot_of):
            if not self.attempts.fits_where_it_is(self.attempts.workloads[key]):
                unit = self._unit_of[key]
                wrong[unit.name] = unit
        for unit in wrong.values():
            self.attempts.take(unit.pods)
        return list(wrong.values())

    def _note_best(self) -> None:
        if len(self.attempts.slot_of) > len(self.best.nodes):
            self.best = self.attempts.plan()

    def _scarcity_of(self, unit: Unit) -> tuple[float, float, str]:
        """Fewest places first: domains that have room for the unit, or targets; then the largest first."""
        room, alive = self.attempts.room(unit), self._index.slots.alive
        if unit.key:
            n_places = len(self.attempts.ranked_domains(unit, unit.key, alive))
        else:
            n_places = int(sum((one.counts > 0).sum() for one in room) / len(room))
        return n_places, -self.attempts.size(unit), unit.name

    # Repair

    def _repair(self, waiting: list[Unit]) -> list[Unit]:
        """Place the first unit, if need be in the place of others; returns what waits then."""
        unit, *others = waiting
        if self.attempts.place(unit):
            return others or self._checked()
        if unit.preferred and len(unit.pods) > 1 and not unit.key:
            parts = [Unit((pod,)) for pod in unit.pods]  # it cannot be as preferred
            self._enter(parts)
            return [*parts, *others]
        self._weights[unit.name] += 1
        evicted = self._evict_for(unit)
        if evicted is None:
            return [*others, unit] if others else self._place_anew()
        self._note_best()
        return [*others, *evicted] or self._checked()

    def _checked(self) -> list[Unit]:
        """What is wrong although everything is placed; those units count as repaired."""
        self._note_best()
        wrong = self._take_wrong()
        self._weights.update(unit.name for unit in wrong)
        return wrong

    def _enter(self, parts: Sequence[Unit]) -> None:
        self._unit_of.update((pod.key, part) for part in parts for pod in part.pods)
        for part in parts:
            self._scarcity[part.name] = self._scarcity_of(part)
        left = [unit for unit in self._units if self._unit_of[unit.pods[0].key] is unit]
        self._units = [*left, *parts]

    def _evict_for(self, unit: Unit) -> list[Unit] | None:
        """Place a unit where the fewest others, and those that were seldom repaired, have to leave; None if nowhere."""
        if len(unit.pods) == 1 or (unit.key and self._index.column(unit.key).n_domains > len(self._index.slots)):
            return self._evict_from_target(unit)
        best: tuple[tuple[int, float], list[Unit], Mask] | None = None
        for mask in self.attempts.domains(unit, unit.key, self._index.slots.alive, fitting=False):
            with self._tentatively():
                evicted = self._clear(unit, mask)
            if evicted is not None:
                cost = self._cost(evicted)
                if best is None or cost < best[0]:
                    best = cost, evicted, mask
        if best is None:
            return None
        _, evicted, mask = best
        for one in evicted:
            self.attempts.take(one.pods)
        if not self.attempts.place(unit, mask):
            return None
        return evicted

    def _clear(self, unit: Unit, mask: Mask) -> list[Unit] | None:
        """The units that leave some targets so that this one fits there, as those do that make most room."""
        evicted: list[Unit] = []
        while not self.attempts.place(unit, mask):
            blocking = self._blocking(unit, mask)
            if not blocking:
                return None
            gains = []
            for one in blocking:
                with self._tentatively():
                    self.attempts.take(one.pods)
                    lacking = n_lacking(self.attempts.room(unit), mask)
                gains.append((self._weights[one.name] + lacking, lacking, one.name, one))
            _, _, _, chosen = min(gains, key=lambda gain: gain[:3])
            self.attempts.take(chosen.pods)
            evicted.append(chosen)
        return evicted

    def _blocking(self, unit: Unit, mask: Mask) -> list[Unit]:
        """The placed units on some targets, and those elsewhere that reject the unit there."""
        found: dict[str, Unit] = {}
        for key, slot in self.attempts.slot_of.items():
            if mask[slot]:
                one = self._unit_of[key]
                found[one.name] = one
        verdicts = self.attempts.feasible(without_required_affinity(unit.pods[0]))
        for slot in np.flatnonzero(mask)[:1].tolist():
            for one in self._peers_rejecting(unit.pods[0], slot, verdicts):
                found[one.name] = one
        found.pop(unit.name, None)
        return list(found.values())

    def _peers_rejecting(self, pod: Workload, slot: int, verdicts: Verdicts) -> list[Unit]:
        """The units of which rules name pods as the reason why a target is rejected."""
        found: dict[str, Unit] = {}
        for result in verdicts.results:
            rejected = result.rejected()
            if rejected is None or not rejected[slot]:
                continue
            for failure in result.rule.evidence(result.evaluation.state, pod, slot, self._index):
                for key in failure.peers:
                    unit = self._unit_of.get(WorkloadKey(key))
                    if unit is not None and key in self.attempts.slot_of:
                        found[unit.name] = unit
        return list(found.values())

    def _evict_from_target(self, unit: Unit) -> list[Unit] | None:
        """The same for a unit that is on one target, target by target."""
        options = []
        on_slot = defaultdict[int, list[Workload]](list)
        for key, slot in self.attempts.slot_of.items():
            on_slot[slot].append(self.attempts.workloads[key])
        movable = self._index.slots.alive.copy()
        examples = []
        for pod in _examples(unit):
            verdicts = self.attempts.feasible(without_required_affinity(pod))
            at, by_peers = self._reachable(verdicts)
            movable &= at
            examples.append((pod, verdicts, by_peers))
        for slot in np.flatnonzero(movable).tolist():
            peers: list[Unit] = []
            for pod, found, by_peers in examples:
                if by_peers[slot]:
                    rejecting = self._peers_rejecting(pod, slot, found)
                    if not rejecting:
                        break
                    peers += rejecting
            else:
                chosen = self._room_made(unit, slot, on_slot[slot], peers)
                if chosen is not None:
                    turn = _rank(self._index, slot, self._weights[unit.name])
                    options.append((self._cost(chosen), turn, slot, chosen))
        options.sort(key=lambda option: option[:2])
        for *_, slot, chosen in options[:MAX_OPTIONS]:
            mask = np.zeros(self._index.slots.capacity, np.bool_)
            mask[slot] = True
            with self._tentatively() as keep:
                for one in chosen:
                    self.attempts.take(one.pods)
                if self.attempts.place(unit, mask):
                    keep()
                    return chosen
        return None

    def _reachable(self, verdicts: Verdicts) -> tuple[Mask, Mask]:
        """The targets that pods of the problem may make feasible by leaving, and those that their terms reject."""
        n = self._index.slots.capacity
        movable, by_peers = self._index.slots.alive.copy(), np.zeros(n, np.bool_)
        if verdicts.pre_filter_rejection is not None:
            return by_peers, by_peers
        if verdicts.excluded is not None:
            movable &= ~verdicts.excluded
        for result in verdicts.results:
            rejected = result.rejected()
            if rejected is None or result.rule.lifted_by is LiftedBy.RESOURCES:
                continue
            if result.rule.lifted_by is LiftedBy.TARGET:
                movable &= ~rejected
            else:
                by_peers |= rejected
        return movable, by_peers

    def _cost(self, evicted: Sequence[Unit]) -> tuple[int, float]:
        """How often units that leave were repaired, and their size: small ones find another place soonest."""
        return sum(1 + self._weights[one.name] for one in evicted), sum(map(self.attempts.size, evicted))

    def _room_made(self, unit: Unit, slot: int, there: list[Workload], peers: list[Unit]) -> list[Unit] | None:
        """The units that leave so that this one has room on a target: one if one is enough, else the smallest ones."""
        chosen = {one.name: one for one in peers}
        capacity, lacking = self._index.capacity, {}
        leaving = {key for one in chosen.values() for key in (each.key for each in one.pods)}
        for resource, amount in requested_by(unit).items():
            row = capacity.row(resource)
            n = int(capacity.requested_at[row][slot]) + amount - int(capacity.allocatable_at[row][slot])
            lacking[resource] = n - sum(_amount(one, resource) for one in there if one.key in leaving)
        staying = [one for one in there if one.key not in leaving]
        while any(n > 0 for n in lacking.values()):
            enough = [one for one in staying if all(_amount(one, name) >= n for name, n in lacking.items())]
            if not (enough or staying):
                return None
            # One that is enough, and leaves as little unused as possible; else a large one.
            next_one = min(
                enough or staying,
                key=lambda one: (
                    self._weights[self._unit_of[one.key].name],
                    sum(_amount(one, name) for name in lacking) * (1 if enough else -1),
                    one.key,
                ),
            )
            leaving_too = self._unit_of[next_one.key]
            chosen[leaving_too.name] = leaving_too
            for resource in lacking:
                lacking[resource] -= sum(
                    _amount(one, resource) for one in staying if self._unit_of[one.key] is leaving_too
                )
            staying = [one for one in staying if self._unit_of[one.key] is not leaving_too]
        return list(chosen.values())

    @contextmanager
    def _tentatively(self) -> Iterator[Callable[[], None]]:
        """Undo what the body places and takes, unless it calls what it is given."""
        attempts, index = self.attempts, self._index
        before = dict(attempts.slot_of), attempts.dispensable.copy(), dict(attempts.left_out)
        mark, kept = index.mark(), False

        def keep() -> None:
            nonlocal kept
            kept = True

        try:
            yield keep
        finally:
            if kept:
                index.forget(mark)
            else:
                index.undo_to(mark)
                attempts.slot_of, attempts.dispensable, attempts.left_out = before


def _amount(pod: Workload, resource: str) -> int:
    if resource == "pods":
        return 1
    return next((amount for name, amount in pod.needs.requests.amounts if name == resource), 0)


def _examples(unit: Unit) -> list[Workload]:
    """One pod of each class of a unit."""
    found: dict[Hashable, Workload] = {}
    for pod in unit.pods:
        found.setdefault((pod.needs, tuple(sorted(pod.labels.items()))), pod)
    return list(found.values())


def _rank(index: PlacementIndex, slot: int, turn: int) -> int:
    """An order of the targets that is another one in each turn, and the same in each run."""
    return rank_of(str(turn), index.slots.at(slot).name)
