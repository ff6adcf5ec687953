"""
From a plan of moves to the next evictions: what of the plan still gains, what may be done now, what has to wait.

Asked anew before every move with a fresh view of the cluster, so that a plan gone stale is never carried out blindly.
Only workloads of the plan that was agreed to are ever moved. Pure: the time is a number that comes from outside.
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

GONE = "it is no longer there"
ENDING = "it is ending already"
ORPHANED = "it has no controller any more, and nobody would make it again"
NO_GAIN = "moving it gains nothing any more"
ONLY_TOGETHER = "what may be moved now gains nothing without the rest"


class MoveView(Protocol):
    """The cluster as it is now."""

    @property
    def budgets(self) -> Sequence[DisruptionBudget]: ...

    def workload(self, key: WorkloadKey) -> Workload | None: ...

    def is_recreated(self, key: WorkloadKey) -> bool:
        """Whether somebody would make the workload again."""
        ...

    def plan(self, limits: DisruptionLimits) -> Rebalancing: ...


class MoveSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How moves are held back. `timeout` is how long to wait for a replacement or a budget; times in seconds."""

    per_minute: int = 30
    at_once: int = 1
    retry_after: float = 30.0
    timeout: float = 300.0


class Dropped(msgspec.Struct, frozen=True):
    """A planned move that is not made, and why not."""

    workload: WorkloadKey
    why: str


class MoveStep(msgspec.Struct, frozen=True):
    """
    What to do now: evict these, or wait for the reason in `waiting` until the time is `until`, or, if neither, end.

    `dropped` are the moves that are given up with this step. `in_time`: all it takes to go on is to wait.
    """

    evict: tuple[WorkloadMove, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    waiting: str = ""
    until: float = math.inf
    in_time: bool = False


class MoveExecution:
    """The books of one plan: which moves are still to be made, and when evictions were started or refused."""

    def __init__(self, plan: Rebalancing, uids: Mapping[WorkloadKey, str], settings: MoveSettings) -> None:
        self.settings = settings
        self._left = {move.workload: uids[move.workload] for move in plan.moves}
        self._started: list[float] = []
        self._refused: dict[WorkloadKey, tuple[float, str]] = {}

    @property
    def left(self) -> tuple[WorkloadKey, ...]:
        """The moves that are neither made nor dropped, in no order."""
        return tuple(self._left)

    def evicted(self, key: WorkloadKey, now: float) -> None:
        """The eviction was accepted: the move is made as far as it is ours to make."""
        self._started = [start for start in self._started if start > now - MINUTE] + [now]
        del self._left[key]

    def refused(self, key: WorkloadKey, why: str, now: float) -> None:
        """The eviction was not accepted now; it may be later."""
        self._refused[key] = now + self.settings.retry_after, why

    def drop(self, key: WorkloadKey) -> None:
        """The move will not be made."""
        del self._left[key]

    def step(self, view: MoveView, now: float) -> MoveStep:
        """What to do next, as the cluster is now. Moves that gain nothing any more are given up."""
        dropped = [*self._drop_changed(view), *self._drop_useless(view)]
        if not self._left:
            return MoveStep(dropped=tuple(dropped))
        gate = EvictionRateLimit(
            now, per_minute=self.settings.per_minute, at_once=self.settings.at_once, started=self._started
        )
        if not gate.open:
            return MoveStep(dropped=tuple(dropped), waiting=gate.why, until=gate.until, in_time=True)
        askable = [key for key in self._left if self._refused.get(key, (-math.inf, ""))[0] <= now]
        possible = view.plan(self._limits(askable, view.budgets)).moves
        if not possible:
            until = now + self.settings.retry_after
            return MoveStep(dropped=tuple(dropped), waiting=self._obstacle(view, now), until=until)
        return MoveStep(_passing(possible, gate), tuple(dropped))

    def _drop_changed(self, view: MoveView) -> Iterable[Dropped]:
        """Of workloads that are others by now: a pod made anew under the name was not agreed upon."""
        for key, uid in list(self._left.items()):
            workload = view.workload(key)
            if workload is None or workload.uid != uid:
                why = GONE
            elif workload.terminating:
                why = ENDING
            else:
                why = "" if view.is_recreated(key) else ORPHANED
            if why:
                del self._left[key]
                yield Dropped(key, why)

    def _drop_useless(self, view: MoveView) -> Iterable[Dropped]:
        """What would not gain even if every budget allowed it: budgets come and go, and are waited for."""
        useful = {move.workload for move in view.plan(self._limits(self._left)).moves}
        for key in [key for key in self._left if key not in useful]:
            del self._left[key]
            yield Dropped(key, NO_GAIN)

    def _limits(self, keys: Iterable[WorkloadKey], budgets: Sequence[DisruptionBudget] = ()) -> DisruptionLimits:
        among = frozenset(keys)
        return DisruptionLimits(
            max_moves=max(len(among), 1), movable=lambda workload: workload.key in among, budgets=tuple(budgets)
        )

    def _obstacle(self, view: MoveView, now: float) -> str:
        """Why none of the moves that gain can be made now."""
        books = EvictionBudgets(view.budgets)
        for key in self._left:
            until, why = self._refused.get(key, (-math.inf, ""))
            workload = view.workload(key)
            said = why if until > now else books.refusal(workload) if workload is not None else ""
            if said:
                return f"{key} cannot be evicted now: {said}"
        return ONLY_TOGETHER


def _passing(moves: Sequence[WorkloadMove], gate: EvictionRateLimit) -> tuple[WorkloadMove, ...]:
    """As many of the first ones as may go at once."""
    let_through = []
    for move in moves:
        if not gate.open:
            break
        gate.pass_one()
        let_through.append(move)
    return tuple(let_through)


# RF merged from enforcing.moves_made: What happens while a plan of moves is carried out, and what came of it, as
# values. Decides nothing.


class Evicting(msgspec.Struct, frozen=True):
    """A pod is asked to go: the so-many-th of the plan."""

    move: WorkloadMove
    number: int
    planned: int


class Refused(msgspec.Struct, frozen=True):
    """The API server did not let a pod be evicted now."""

    workload: WorkloadKey
    why: str


class MoveWaiting(msgspec.Struct, frozen=True):
    """Nothing can be done for so many seconds."""

    why: str
    seconds: float


class MoveCompleted(msgspec.Struct, frozen=True):
    """A move that was made: where the replacement went, if it has, and what that gained."""

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


MoveEvent = Evicting | Refused | MoveWaiting | MoveCompleted | Dropped


class MovesOutcome(msgspec.Struct, kw_only=True):
    """
    What became of a plan. `left` are its moves that were neither made nor dropped, and `stopped` says why it ended
    with them, or with a move that did not come to its end; empty if it ended by itself.
    """

    plan: Rebalancing
    made: list[MoveCompleted] = []
    dropped: list[Dropped] = []
    left: tuple[WorkloadKey, ...] = ()
    stopped: str = ""
    interrupted: bool = False

    @property
    def gain(self) -> int:
        return sum(made.gain for made in self.made)

    @property
    def is_complete(self) -> bool:
        """Whether all that still gained was moved."""
        return not self.left and not self.stopped


# RF merged from enforcing.replacements: Who came in the place of evicted pods: the new pods of the same controllers,
# once they have a node. A controller gives new pods other names, so they are told by what was not there before. Knows
# nothing of why the old ones went.


class SeenPod(msgspec.Struct, frozen=True):
    """A pod as it is now; `controller` is the uid of whoever made it, `target` empty while it has no node."""

    key: WorkloadKey
    uid: str
    controller: str
    target: str = ""
    ending: bool = False


class Replacement(msgspec.Struct, frozen=True):
    """What became of an evicted pod. `new` is who came for it, None if nobody has come yet; `gone`: the old one is."""

    old: SeenPod
    new: SeenPod | None
    gone: bool

    @property
    def is_over(self) -> bool:
        """Whether the old one is gone and the new one has a node."""
        return self.gone and self.new is not None and bool(self.new.target)

    @property
    def missing(self) -> str:
        """What is still to happen; empty if nothing is."""
        if self.new is None:
            return "no replacement was made"
        if not self.new.target:
            return f"its replacement {self.new.key} has no node"
        return "" if self.gone else "it has not ended"


def find_replacements(
    evicted: Sequence[SeenPod], before: AbstractSet[str], seen: Iterable[SeenPod]
) -> tuple[Replacement, ...]:
    """For each evicted pod what became of it; `before` are the uids of all pods there were when it was evicted."""
    present = list(seen)
    uids = {pod.uid for pod in present}
    fresh: dict[str, list[SeenPod]] = {}
    # Those with a node first: of several new pods of one controller it does not matter who came for whom.
    for pod in sorted(present, key=lambda pod: (not pod.target, pod.key)):
        if pod.uid not in before and not pod.ending:
            fresh.setdefault(pod.controller, []).append(pod)
    found = []
    for old in evicted:
        waiting = fresh.get(old.controller)
        found.append(Replacement(old, waiting.pop(0) if waiting else None, old.uid not in uids))
    return tuple(found)
