"""What happens while a plan of moves is carried out, and what came of it, as values. Decides nothing."""

from __future__ import annotations

import msgspec

from bayplan.enforcing.carrying_out import Dropped
from bayplan.enforcing.rebalancing import Move, Rebalancing
from bayplan.enforcing.replacements import Replacement
from bayplan.model.workloads import WorkloadKey


class Evicting(msgspec.Struct, frozen=True):
    """A pod is asked to go: the so-many-th of the plan."""

    move: Move
    number: int
    planned: int


class Refused(msgspec.Struct, frozen=True):
    """The API server did not let a pod be evicted now."""

    workload: WorkloadKey
    why: str


class Waiting(msgspec.Struct, frozen=True):
    """Nothing can be done for so many seconds."""

    why: str
    seconds: float


class Made(msgspec.Struct, frozen=True):
    """A move that was made: where the replacement went, if it has, and what that gained."""

    move: Move
    replacement: Replacement
    gain: int = 0

    @property
    def target(self) -> str:
        """The node of the replacement; empty if it has none."""
        return self.replacement.new.target if self.replacement.new is not None else ""

    @property
    def as_planned(self) -> bool:
        return (self.target, 1) in self.move.after


Happening = Evicting | Refused | Waiting | Made | Dropped


class Outcome(msgspec.Struct, kw_only=True):
    """
    What became of a plan. `left` are its moves that were neither made nor dropped, and `stopped` says why it ended
    with them, or with a move that did not come to its end; empty if it ended by itself.
    """

    plan: Rebalancing
    made: list[Made] = []
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
