"""
Every change of the index, in order: what caches read to correct themselves, and what undo walks back.

Undoing appends the opposite changes rather than cutting the list, so a cache that has seen the change sees its
reversal too. Knows nothing of what the changes mean.
"""

from __future__ import annotations

import enum

import msgspec

from bayplan.indexing.classes import WorkloadClass
from bayplan.model.targets import Target
from bayplan.model.workloads import Workload

KEEP = 4096  # changes remembered for caches; an older cache is rebuilt


class Kind(enum.Enum):
    WORKLOAD_ADDED = enum.auto()
    WORKLOAD_REMOVED = enum.auto()
    TARGET_ADDED = enum.auto()
    TARGET_REMOVED = enum.auto()
    TARGET_CHANGED = enum.auto()
    NAMESPACE_CHANGED = enum.auto()
    STORAGE_CHANGED = enum.auto()


class Change(msgspec.Struct, frozen=True, gc=False):
    """
    What happened. `member_of` and `slots` say who came or went where; the rest is what undoing needs.

    `follows` marks a change that another one brings about (a node goes, and its pods with it): undo skips it.
    """

    kind: Kind
    slots: tuple[int, ...] = ()
    member_of: WorkloadClass | None = None
    workload: Workload | None = None
    shares: tuple[tuple[str, int], ...] = ()
    target: Target | None = None
    name: str = ""
    before: object = None
    follows: bool = False

    @property
    def moves_domains(self) -> bool:
        """Whether a target left domains it was in."""
        if self.kind is Kind.TARGET_REMOVED:
            return True
        before, after = self.before, self.target
        if self.kind is not Kind.TARGET_CHANGED or not isinstance(before, Target) or after is None:
            return False
        return (before.labels, before.further_labels) != (after.labels, after.further_labels)


class Journal:
    """The changes since `start`; positions never repeat."""

    def __init__(self) -> None:
        self.start = 0
        self._changes: list[Change] = []
        self._marks = 0

    @property
    def end(self) -> int:
        return self.start + len(self._changes)

    def append(self, change: Change) -> None:
        self._changes.append(change)
        if len(self._changes) > 2 * KEEP and not self._marks:
            self.start = self.end - KEEP
            del self._changes[:-KEEP]

    def since(self, position: int) -> list[Change] | None:
        """The changes from a position on; None where they are no longer known."""
        if position < self.start:
            return None
        return self._changes[position - self.start :]

    def hold(self) -> int:
        """A position that stays known until it is let go."""
        self._marks += 1
        return self.end

    def let_go(self) -> None:
        self._marks -= 1
