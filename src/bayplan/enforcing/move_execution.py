"""
The execution of a plan of moves: which moves still gain, which may be made now, which wait, and what replaced the pods.

Evaluated again before every move with a fresh view of the cluster, so that a stale plan is never carried out. Only
workloads of the agreed plan are ever moved. A controller gives new pods other names, so replacements are recognised as
pods of the same controller that did not exist before. Pure: the time is an argument.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

import msgspec

from bayplan.enforcing.eviction_limits import MINUTE, EvictionBudgets, EvictionRateLimit
from bayplan.enforcing.rebalancing import DisruptionLimits, Rebalancing, WorkloadMove
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.workloads import Workload, WorkloadKey

GONE = "it no longer exists"
TERMINATING = "it is terminating already"
ORPHANED = "it has no controller any more that would recreate it"
NO_GAIN = "moving it gains nothing any more"
ONLY_TOGETHER = "what may be moved now gains nothing without the rest"


# Replacements


class SeenPod(msgspec.Struct, frozen=True):
    """A pod now. `controller` is a uid; `target` is empty without a node; `inactive`: terminating or finished."""

    key: WorkloadKey
    uid: str
    controller: str
    target: str = ""
    inactive: bool = False


class Replacement(msgspec.Struct, frozen=True):
    """The replacement of an evicted pod. `new` is None while there is none; `gone`: the old pod no longer exists."""

    old: SeenPod
    new: SeenPod | None
    gone: bool

    @property
    def is_over(self) -> bool:
        """Whether the old pod is gone and the new one has a node."""
        return self.gone and self.new is not None and bool(self.new.target)

    @property
    def missing(self) -> str:
        """What is still missing; empty if nothing is."""
        if self.new is None:
            return "no replacement was created"
        if not self.new.target:
            return f"its replacement {self.new.key} has no node"
        return "" if self.gone else "it has not terminated"


def find_replacements(
    evicted: Sequence[SeenPod], before: AbstractSet[str], seen: Iterable[SeenPod]
) -> tuple[Replacement, ...]:
    """The replacement of each evicted pod; `before` are the uids of all pods that existed when it was evicted."""
    present = list(seen)
    uids = {pod.uid for pod in present}
    fresh: dict[str, list[SeenPod]] = {}
    # Pods with a node first: of several new pods of one controller, any may count as the replacement.
    for pod in sorted(present, key=lambda pod: (not pod.target, pod.key)):
        if pod.uid not in before and not pod.inactive:
            fresh.setdefault(pod.controller, []).append(pod)
    found = []
    for old in evicted:
        waiting = fresh.get(old.controller)
        found.append(Replacement(old, waiting.pop(0) if waiting else None, old.uid not in uids))
    return tuple(found)


# Execution


class MoveView(Protocol):
    """The cluster now."""

    @property
    def budgets(self) -> Sequence[DisruptionBudget]: ...

    def workload(self, key: WorkloadKey) -> Workload | None: ...

    def is_recreated(self, key: WorkloadKey) -> bool:
        """Whether a controller would recreate the workload."""
        ...

    def plan(self, limits: DisruptionLimits) -> Rebalancing: ...


class MoveSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of moves. `timeout` is how long to wait for a replacement or a budget; times in seconds."""

    per_minute: int = 30
    at_once: int = 1
    retry_after: float = 30.0
    timeout: float = 300.0


class MoveDropped(msgspec.Struct, frozen=True):
    """A planned move that is not made, and why not."""

    workload: WorkloadKey
    why: str


class MoveStep(msgspec.Struct, frozen=True):
    """
    What to do now: evict these, or wait for the reason in `waiting` until the time `until`, or, if neither, end.

    `dropped` are the moves given up in this step. `in_time`: waiting alone is enough to continue.
    """

    evict: tuple[WorkloadMove, ...] = ()
    dropped: tuple[MoveDropped, ...] = ()
    waiting: str = ""
    until: float = math.inf
    in_time: bool = False


class MoveExecution:
    """The state of one plan: which moves are left, and when evictions were started or rejected."""

    def __init__(self, plan: Rebalancing, uids: Mapping[WorkloadKey, str], settings: MoveSettings) -> None:
        self.settings = settings
        self._left = {move.workload: uids[move.workload] for move in plan.moves}
        self._started: list[float] = []
        self._rejected: dict[WorkloadKey, tuple[float, str]] = {}

    @property
    def left(self) -> tuple[WorkloadKey, ...]:
        """The moves that are neither made nor dropped, in no particular order."""
        return tuple(self._left)

    def evicted(self, key: WorkloadKey, now: float) -> None:
        """The eviction was accepted: the move is made, except that the scheduler has yet to place the replacement."""
        self._started = [start for start in self._started if start > now - MINUTE] + [now]
        del self._left[key]

    def rejected(self, key: WorkloadKey, why: str, now: float) -> None:
        """The eviction was rejected now; it may be accepted later."""
        self._rejected[key] = now + self.settings.retry_after, why

    def drop(self, key: WorkloadKey) -> None:
        """The move will not be made."""
        del self._left[key]

    def step(self, view: MoveView, now: float) -> MoveStep:
        """What to do next. Moves that no longer gain anything are dropped."""
        dropped = [*self._drop_changed(view), *self._drop_useless(view)]
        if not self._left:
            return MoveStep(dropped=tuple(dropped))
        limit = EvictionRateLimit(
            now, per_minute=self.settings.per_minute, at_once=self.settings.at_once, started=self._started
        )
        if not limit.open:
            return MoveStep(dropped=tuple(dropped), waiting=limit.why, until=limit.until, in_time=True)
        allowed = [key for key in self._left if self._rejected.get(key, (-math.inf, ""))[0] <= now]
        possible = view.plan(self._limits(allowed, view.budgets)).moves
        if not possible:
            until = now + self.settings.retry_after
            return MoveStep(dropped=tuple(dropped), waiting=self._obstacle(view, now), until=until)
        evict = []
        for move in possible:
            if not limit.open:
                break
            limit.take()
            evict.append(move)
        return MoveStep(tuple(evict), tuple(dropped))

    def _drop_changed(self, view: MoveView) -> Iterable[MoveDropped]:
        """Drop moves of workloads that changed: a pod recreated under the same name is not part of the plan."""
        for key, uid in list(self._left.items()):
            workload = view.workload(key)
            if workload is None or workload.uid != uid:
                why = GONE
            elif workload.terminating:
                why = TERMINATING
            else:
                why = "" if view.is_recreated(key) else ORPHANED
            if why:
                del self._left[key]
                yield MoveDropped(key, why)

    def _drop_useless(self, view: MoveView) -> Iterable[MoveDropped]:
        """Drop moves that would not gain even if every budget allowed them: budgets change, and are waited for."""
        useful = {move.workload for move in view.plan(self._limits(self._left)).moves}
        for key in [key for key in self._left if key not in useful]:
            del self._left[key]
            yield MoveDropped(key, NO_GAIN)

    def _limits(self, keys: Iterable[WorkloadKey], budgets: Sequence[DisruptionBudget] = ()) -> DisruptionLimits:
        among = frozenset(keys)
        return DisruptionLimits(
            max_moves=max(len(among), 1), movable=lambda workload: workload.key in among, budgets=tuple(budgets)
        )

    def _obstacle(self, view: MoveView, now: float) -> str:
        """Why none of the remaining moves can be made now."""
        budgets = EvictionBudgets(view.budgets)
        for key in self._left:
            until, why = self._rejected.get(key, (-math.inf, ""))
            workload = view.workload(key)
            reason = why if until > now else budgets.rejection(workload) if workload is not None else ""
            if reason:
                return f"{key} cannot be evicted now: {reason}"
        return ONLY_TOGETHER


# Progress and outcome


class EvictionStarted(msgspec.Struct, frozen=True):
    """A pod is being evicted: the `number`-th of the `planned` moves."""

    move: WorkloadMove
    number: int
    planned: int


class EvictionRejected(msgspec.Struct, frozen=True):
    """The API server rejected an eviction now."""

    workload: WorkloadKey
    why: str


class MoveWaiting(msgspec.Struct, frozen=True):
    """No move can be made for this many seconds."""

    why: str
    seconds: float


class MoveCompleted(msgspec.Struct, frozen=True):
    """A move that was made: the replacement, and what the move gained."""

    move: WorkloadMove
    replacement: Replacement
    gain: int = 0

    @property
    def target(self) -> str:
        """The node of the replacement; empty if it has none."""
        return self.replacement.new.target if self.replacement.new is not None else ""

    @property
    def as_planned(self) -> bool:
        return (self.target, 1) in self.move.after


MoveEvent = EvictionStarted | EvictionRejected | MoveWaiting | MoveCompleted | MoveDropped


class MovesOutcome(msgspec.Struct, kw_only=True):
    """
    The outcome of a plan. `left` are its moves that were neither made nor dropped. `stopped` says why it ended with
    moves left, or with an incomplete move; it is empty if the plan was completed.
    """

    plan: Rebalancing
    made: list[MoveCompleted] = []
    dropped: list[MoveDropped] = []
    left: tuple[WorkloadKey, ...] = ()
    stopped: str = ""
    interrupted: bool = False

    @property
    def gain(self) -> int:
        return sum(made.gain for made in self.made)

    @property
    def is_complete(self) -> bool:
        """Whether all moves that still gained were made."""
        return not self.left and not self.stopped
