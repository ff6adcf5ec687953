"""
The fewest moves that improve soft rules most, within a budget of disruption.

A move removes a workload and has the engine place it again, as an eviction would: the target is chosen by the
scheduler, not by the plan. Every move is tried on the index and undone. Few workloads are searched exactly; among many,
the move that gains most is taken repeatedly, and moves that turn out to gain nothing are then left out. Does not know
how workloads are placed or how preferences are counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import msgspec

from bayplan.enforcing.eviction_limits import EvictionBudgets
from bayplan.enforcing.soft_rules import Points, Shares
from bayplan.engine import equivalence
from bayplan.indexing.classes import PlacedWorkload
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.workloads import Workload, WorkloadKey

MAX_EXACT_TRIES = 2000  # moves tried before an exact search is given up


class Preferences(Protocol):
    """
    How well soft rules are met, in points: `shared` between workloads, and a workload's `own`.

    `without_consent` are those of the shared points for whose sake the workload may not be moved.
    """

    def shared(self) -> Points: ...
    def without_consent(self, key: WorkloadKey, /) -> Points: ...
    def own(self, workload: Workload, shares: Shares) -> Points: ...
    def improvable(self) -> set[WorkloadKey]: ...


class DisruptionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of disruption: the number of moves, the workloads that may move, and disruption budgets."""

    max_moves: int
    movable: Callable[[Workload], bool]
    budgets: Sequence[DisruptionBudget] = ()


class WorkloadMove(msgspec.Struct, frozen=True):
    """The move of one workload to where the engine places it, and its gain after the moves before it."""

    workload: WorkloadKey
    before: Shares
    after: Shares
    gain: Points


class Rebalancing(msgspec.Struct, frozen=True):
    """
    Moves in the order in which to make them; none if nothing can be gained.

    `exact`: no moves within the limits gain more, and no fewer moves gain as much. `n_tried` counts the moves tried.
    """

    moves: tuple[WorkloadMove, ...]
    exact: bool
    n_tried: int

    @property
    def gain(self) -> int:
        return sum(sum(move.gain.values()) for move in self.moves)

    @property
    def gain_by_rule(self) -> dict[str, int]:
        rules = dict.fromkeys(rule for move in self.moves for rule in move.gain)
        return {rule: sum(move.gain.get(rule, 0) for move in self.moves) for rule in rules}


# Moves a workload to where the scheduler would place it now; returns nothing if it fits nowhere.
PlaceWorkload = Callable[[Workload], Shares]


def plan_moves(
    index: PlacementIndex,
    place: PlaceWorkload,
    preferences: Preferences,
    limits: DisruptionLimits,
    *,
    recreated: Callable[[PlacedWorkload], Workload] = lambda placed: placed.workload,
) -> Rebalancing:
    """The moves to make; `recreated` gives a workload as `place` places it. The index is left unchanged."""
    search = _MoveSearch(index, place, preferences, limits, recreated)
    exact = search.search_exactly()
    if not exact:
        search.search_greedily()
    return Rebalancing(search.best, exact, search.n_tried)


def gains_of_moves(
    index: PlacementIndex, place: PlaceWorkload, preferences: Preferences, keys: Sequence[WorkloadKey]
) -> tuple[int, ...]:
    """The gain of moving these one after another to where `place` puts each. The index is left unchanged."""
    limits = DisruptionLimits(max_moves=len(keys), movable=lambda _workload: True)
    return tuple(_MoveSearch(index, place, preferences, limits, lambda placed: placed.workload).gains(keys))


class _TooManyTriesError(Exception):
    """An exact search would need more than `MAX_EXACT_TRIES`."""


class _MoveSearch:
    """A search for moves. `best` are the moves that gain most so far."""

    def __init__(
        self,
        index: PlacementIndex,
        place: PlaceWorkload,
        preferences: Preferences,
        limits: DisruptionLimits,
        recreated: Callable[[PlacedWorkload], Workload],
    ) -> None:
        self._index, self._place, self._preferences, self._limits = index, place, preferences, limits
        self._as_recreated = recreated
        self._recreated: dict[WorkloadKey, Workload] = {}  # of the workloads that are where they were
        self.best: tuple[WorkloadMove, ...] = ()
        self.n_tried = 0
        self._tried: set[Hashable] = set()

    # Exact search

    def search_exactly(self) -> bool:
        """Try all sequences of moves within the limits; false if there are too many."""
        movable = self._movable(self._index.records)
        n_signatures = len(self._representatives(movable, ()))
        # A lower bound of the sequences: sets of moves, regardless of their order.
        if sum(math.comb(n_signatures, size) for size in range(self._limits.max_moves + 1)) > MAX_EXACT_TRIES:
            return False
        try:
            self._deepen((), self._preferences.shared(), movable)
        except _TooManyTriesError:
            return False
        return True

    def _deepen(self, moves: tuple[WorkloadMove, ...], points: Points, keys: Sequence[WorkloadKey]) -> None:
        if len(moves) == self._limits.max_moves:
            return
        for key in self._representatives(keys, moves):
            if self.n_tried >= MAX_EXACT_TRIES:
                raise _TooManyTriesError
            with self._trying(key, moves, points) as tried:
                if tried is None:
                    continue
                further, after = tried
                state = frozenset((move.workload, move.after) for move in further)
                if state not in self._tried:
                    self._tried.add(state)
                    self.best = max(self.best, further, key=_merit)
                    self._deepen(further, after, keys)

    # Greedy search

    def search_greedily(self) -> None:
        """Take the best move repeatedly, then leave out moves that were not needed."""
        before = self.best
        moves: tuple[WorkloadMove, ...] = ()
        with self._index.tentatively():
            points = self._preferences.shared()
            while len(moves) < self._limits.max_moves:
                found = self._best_move(moves, points)
                if found is None:
                    break
                made = self._move(found, moves, points)
                assert made is not None, "it was possible a moment ago"
                moves, points = made
        moves = self._needed(moves)
        self.best = max(before, moves, key=_merit)

    def _best_move(self, moves: tuple[WorkloadMove, ...], points: Points) -> WorkloadKey | None:
        best, most = None, 0
        for key in self._representatives(self._movable(sorted(self._preferences.improvable())), moves):
            with self._trying(key, moves, points) as tried:
                gain = 0 if tried is None else sum(tried[0][-1].gain.values())
            if gain > most:
                best, most = key, gain
        return best

    def _needed(self, moves: tuple[WorkloadMove, ...]) -> tuple[WorkloadMove, ...]:
        """Without moves that others made unnecessary: each is left out in turn, and all others are made again."""
        position = 0
        while position < len(moves):
            fewer = self._again([move.workload for i, move in enumerate(moves) if i != position])
            if fewer is not None and _gain(fewer) >= _gain(moves):
                moves = fewer
            else:
                position += 1
        return moves

    def _again(self, keys: Sequence[WorkloadKey]) -> tuple[WorkloadMove, ...] | None:
        """The moves of these workloads one after another; None if one of them can then not be moved."""
        made = [move for move in self._in_turn(keys) if move is not None]
        return tuple(made) if len(made) == len(keys) else None

    # Gains of given moves

    def gains(self, keys: Sequence[WorkloadKey]) -> list[int]:
        """The gain of each move in turn; 0 for a workload that returns to where it was."""
        return [0 if move is None else _gain((move,)) for move in self._in_turn(keys)]

    # Moving

    def _in_turn(self, keys: Sequence[WorkloadKey]) -> list[WorkloadMove | None]:
        """The moves of these workloads one after another, all undone in the end; None where one cannot be made."""
        found: list[WorkloadMove | None] = []
        moves: tuple[WorkloadMove, ...] = ()
        with self._index.tentatively():
            points = self._preferences.shared()
            for key in keys:
                made = self._move(key, moves, points)
                if made is not None:
                    moves, points = made
                found.append(None if made is None else moves[-1])
        return found

    @contextmanager
    def _trying(
        self, key: WorkloadKey, moves: tuple[WorkloadMove, ...], points: Points
    ) -> Iterator[tuple[tuple[WorkloadMove, ...], Points] | None]:
        """The moves with one more, made while the context lasts; None if it cannot be moved or would return."""
        with self._index.tentatively():
            yield self._move(key, moves, points)

    def _move(
        self, key: WorkloadKey, moves: tuple[WorkloadMove, ...], points: Points
    ) -> tuple[tuple[WorkloadMove, ...], Points] | None:
        self.n_tried += 1
        before = self._index.records[key].shares
        workload = self._index.records[key].workload
        mark = self._index.mark()
        left = _difference(self._preferences.own(workload, before), self._preferences.without_consent(key))
        after = self._place(workload)
        if not after or sorted(after) == sorted(before):
            self._index.undo_to(mark)
            return None
        self._index.forget(mark)
        now = self._preferences.shared()
        arrived = self._preferences.own(self._index.records[key].workload, after)
        reached = _sum(now, _difference(arrived, self._preferences.without_consent(key)))
        gain = _difference(reached, _sum(points, left))
        return (*moves, WorkloadMove(key, before, after, gain)), now

    # Candidates

    def _movable(self, keys: Iterable[WorkloadKey]) -> list[WorkloadKey]:
        """The workloads that may be moved, the lowest priority and youngest first."""
        placed = (self._index.records[key] for key in keys if key in self._index.records)
        known = (record.workload for record in placed if record.slots)
        found = [workload for workload in known if not workload.terminating and self._limits.movable(workload)]
        found.sort(key=lambda w: w.key)
        found.sort(key=lambda w: w.started or w.created or "9999", reverse=True)
        found.sort(key=lambda w: w.priority)
        return [workload.key for workload in found]

    def _representatives(self, keys: Sequence[WorkloadKey], moves: tuple[WorkloadMove, ...]) -> list[WorkloadKey]:
        """Of the workloads that are not moved yet and that no budget protects, one per equivalence class and target."""
        moved = {move.workload for move in moves}
        budgets = EvictionBudgets(self._limits.budgets)
        for key in moved:
            budgets.charge(self._index.records[key].workload)
        first: dict[Hashable, WorkloadKey] = {}
        for key in keys:
            record = self._index.records[key]
            if key not in moved and not budgets.rejection(record.workload):
                first.setdefault(self._equals(record), key)
        return list(first.values())

    def _equals(self, placed: PlacedWorkload) -> Hashable:
        """What workloads have in common whose moves have the same effect: budgets read more than any rule does."""
        if self._limits.budgets:
            return placed.key
        recreated = self._recreated.get(placed.key)
        if recreated is None:
            recreated = self._recreated[placed.key] = self._as_recreated(placed)
        leaving, arriving = (equivalence.signature(one, self._index) for one in (placed.workload, recreated))
        return leaving, arriving, placed.shares, placed.workload.namespace


def _gain(moves: tuple[WorkloadMove, ...]) -> int:
    return sum(sum(move.gain.values()) for move in moves)


def _merit(moves: tuple[WorkloadMove, ...]) -> tuple[int, int]:
    """More points, then fewer moves; of equals the first found is kept."""
    return _gain(moves), -len(moves)


def _difference(one: Points, other: Points) -> Points:
    return _sum(one, {rule: -points for rule, points in other.items()})


def _sum(one: Points, other: Points) -> Points:
    return {rule: one.get(rule, 0) + other.get(rule, 0) for rule in dict.fromkeys((*one, *other))}
