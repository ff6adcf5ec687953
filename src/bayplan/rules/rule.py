"""
What a rule is: one file, one subclass, overriding what it needs.

`part` picks the hashable piece of the workload that the rule reads, so that workloads equal in it share one evaluation.
`prepare` turns a part into a plan: counters and columns of the index, looked up once. Everything after works on plans.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from typing import Any, ClassVar

import msgspec
import numpy as np

from bayplan.indexing.evaluations import Touched
from bayplan.indexing.journal import Change, ChangeType
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import At, ValueColumn
from bayplan.model.reasons import Codes, Mask, Reason, Scores, Slots
from bayplan.model.workloads import Workload

MAX_SCORE = 100  # the top of a normalised score
MAX_REMEMBERED_CLASSES = 1024  # classes that a plan remembers something of: they come and go for as long as it lives


class Failure(msgspec.Struct, frozen=True):
    """Why a rule refuses one target, with names: evidence for people."""

    rule: str
    reason: str
    detail: str = ""
    term: str = ""
    domain: str = ""
    peers: tuple[str, ...] = ()


class Scaling(enum.Enum):
    """What a rule's normalised score of a target depends on beside its raw score."""

    NONE = enum.auto()  # nothing: raw scores are in range already
    BY_EXTREMES = enum.auto()  # the lowest and the highest raw score of feasible targets
    BY_ALL = enum.auto()  # more than that: the rule overrides `normalise`


class Rule(ABC):
    """`name` is kube-scheduler's, `id` ours. `weight` multiplies its normalised score, `filters` lets it refuse."""

    name: ClassVar[str]
    id: ClassVar[str]
    weight: int = 0
    filters: bool = True
    scaling: ClassVar[Scaling] = Scaling.NONE
    follows_workloads: ClassVar[bool] = True  # False: only targets matter, whoever runs on them
    silent: ClassVar[bool] = False  # left out of the sentence that counts reasons

    @abstractmethod
    def part(self, workload: Workload, index: PlacementIndex) -> Hashable | None:
        """The piece of the workload this rule reads; None if it has nothing to say about this workload."""

    def prepare(self, part: Any, index: PlacementIndex) -> Any:
        """The part with everything looked up that does not change from target to target."""
        del index
        return part

    def stale(self, state: Any, index: PlacementIndex) -> bool:
        """Whether the plan must be prepared anew, beyond what `touched` reports."""
        del state, index
        return False

    def release(self, state: Any, index: PlacementIndex) -> None:
        """Let go of what `prepare` took hold of."""
        del state, index

    def exempt_slots(self, workload: Workload, index: PlacementIndex) -> Slots | None:
        """Targets that pass for this workload whatever the rule says; None if there are none."""
        del workload, index
        return None

    def refuse(self, state: Any, index: PlacementIndex) -> Reason | None:
        """A reason against every target at once, found before any is looked at."""
        del state, index
        return None

    def candidates(self, state: Any, index: PlacementIndex) -> Mask | None:
        """The only targets worth looking at, shape (capacity,); None for all."""
        del state, index
        return None

    def judges_by(self, state: Any, index: PlacementIndex) -> ValueColumn | None:
        """The column whose domains get one code and one score as wholes; None if each target is judged by itself."""
        del state, index
        return None

    def reject(self, state: Any, index: PlacementIndex, at: At) -> Codes | None:
        """A code per target, 0 where the rule has nothing against it; None if it never rejects."""
        del state, index, at
        return None

    def reasons(self, state: Any, code: int) -> tuple[Reason, ...]:
        """What a code stands for; only called with codes that `reject` gave."""
        del state, code
        raise AssertionError(f"{self.name} refuses nothing")

    def score(self, state: Any, index: PlacementIndex, at: At) -> Scores | None:
        """The raw score per target, shape (..., n); None if the rule does not score this workload."""
        del state, index, at
        return None

    def scaled(self, raw: Any, lowest: int, highest: int) -> Any:
        """A raw score, or an array of them, brought to 0..100; asked only if the rule is scaled `BY_EXTREMES`."""
        del lowest, highest
        return raw

    def normalise(self, state: Any, raw: Scores, feasible: Mask, index: PlacementIndex) -> Scores:
        """Raw scores brought to 0..100 by looking at the feasible targets; what it says of others means nothing."""
        del state, index
        if self.scaling is Scaling.NONE:
            return raw
        values = raw[feasible]
        scores: Scores = self.scaled(raw, int(values.min()), int(values.max()))
        return scores

    def touched(self, state: Any, change: Change, index: PlacementIndex) -> Touched:
        """Where a change may alter codes or raw scores. The default: on the changed target only."""
        del state, index
        if change.type in (ChangeType.TARGET_ADDED, ChangeType.TARGET_REMOVED, ChangeType.TARGET_CHANGED):
            return change.slots
        return None

    def at_one(self, state: Any, index: PlacementIndex, slot: int) -> tuple[int, int] | None:
        """Code and raw score of a single target, the same as `reject` and `score` give; None to have them asked."""
        del state, index, slot
        return None

    def evidence(self, state: Any, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        """Why this target is refused, one entry per thing in the way; only called where `reject` gave a code."""
        del state, workload, slot, index
        raise AssertionError(f"{self.name} refuses nothing")


def common_column(columns: Iterable[ValueColumn], index: PlacementIndex) -> ValueColumn | None:
    """The one column that all of a rule's reasons hang on, if judging its domains is less work than its targets."""
    first, *others = {id(column): column for column in columns}.values() or (None,)
    if first is None or others or first.further or first.n_domains > len(index.slots):
        return None
    return first


def assigned_slots(workload: Workload, index: PlacementIndex) -> Slots | None:
    """Where the workload is already: what must hold while scheduling may fail while it runs."""
    if workload.binding is None or not workload.binding.previous:
        return None
    known = index.slots.by_name
    slots = [known[name] for name, _ in workload.binding.previous if name in known]
    return np.array(slots, np.intp) if slots else None


def share_of_highest(raw: Any, highest: int) -> Any:
    """Scores as shares of the highest one (upstream: DefaultNormalizeScore)."""
    return raw * MAX_SCORE // highest if highest else raw


def short_of_highest(raw: Any, highest: int) -> Any:
    """The less the better: what is missing to the highest one."""
    return MAX_SCORE - raw * MAX_SCORE // highest if highest else raw * 0 + MAX_SCORE
