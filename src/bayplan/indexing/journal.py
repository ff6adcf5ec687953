"""
Every change of the index, in order: what caches read to correct themselves, and what undo walks back.

Undoing appends the opposite changes rather than cutting the list, so a cache that has seen the change sees its
reversal too. Knows nothing of what the changes mean.
"""

from __future__ import annotations

import enum
from bisect import bisect_left
from operator import itemgetter

import msgspec

from bayplan.indexing.classes import WorkloadClass
from bayplan.model.targets import Target
from bayplan.model.workloads import Workload

MIN_KEPT_CHANGES = 4096  # changes remembered for caches; an older cache is rebuilt


class ChangeType(enum.Enum):
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

    type: ChangeType
    slots: tuple[int, ...] = ()
    member_of: WorkloadClass | None = None
    workload: Workload | None = None
    shares: tuple[tuple[str, int], ...] = ()
    target: Target | None = None
    name: str = ""
    before: object = None
    after: object = None
    table: str = ""
    follows: bool = False

    @property
    def moves_domains(self) -> bool:
        """Whether a target left domains it was in."""
        if self.type is ChangeType.TARGET_REMOVED:
            return True
        before, after = self.before, self.target
        if self.type is not ChangeType.TARGET_CHANGED or not isinstance(before, Target) or after is None:
            return False
        return (before.labels, before.further_labels) != (after.labels, after.further_labels)


class _Log:
    """Changes from a position on; replaced as a whole when old ones are dropped, so that readers may hold on to it."""

    __slots__ = ("changes", "start")

    def __init__(self, start: int, changes: list[Change]) -> None:
        self.start = start
        self.changes = changes

    def since(self, position: int, end: int) -> list[Change] | None:
        return None if position < self.start else self.changes[position - self.start : end - self.start]


class Journal:
    """
    The changes, in order; positions never repeat.

    `settled` is how far others may read: changes that belong together, or that may still be undone, are not settled
    until the last of them is in. Other threads may read; only the index's owner appends.
    """

    def __init__(self) -> None:
        self.settled = 0
        self.end = 0
        self._log = _Log(0, [])
        self._but_workloads: list[tuple[int, Change]] = []  # the others are few, and some caches follow only them
        self._forgotten = 0
        self._unsettled = 0

    def append(self, change: Change) -> None:
        self._log.changes.append(change)
        if change.workload is None:
            self._but_workloads.append((self.end, change))
        self.end += 1
        if not self._unsettled:
            self._settle()

    def since(self, position: int) -> list[Change] | None:
        """The changes from a position on; None where they are no longer known."""
        return self._log.since(position, self.end)

    def but_workloads_since(self, position: int) -> list[Change] | None:
        """The changes of anything but workloads from a position on; None where they are no longer known."""
        if self._forgotten > position:
            return None
        first = bisect_left(self._but_workloads, position, key=itemgetter(0))
        return [change for _, change in self._but_workloads[first:]]

    def settled_since(self, position: int) -> tuple[list[Change] | None, int]:
        """For other threads: the settled changes from a position on, and the position after them."""
        settled = self.settled  # read first: what is settled now stays so, whatever the owner does meanwhile
        return self._log.since(position, settled), settled

    def hold(self) -> int:
        """From here on nothing is settled, and everything stays known, until it is let go."""
        self._unsettled += 1
        return self.end

    def release(self) -> None:
        self._unsettled -= 1
        if not self._unsettled:
            self._settle()

    def _settle(self) -> None:
        self.settled = self.end
        if len(self._log.changes) > 2 * MIN_KEPT_CHANGES:
            self._log = _Log(self.end - MIN_KEPT_CHANGES, self._log.changes[-MIN_KEPT_CHANGES:])
        if len(self._but_workloads) > 2 * MIN_KEPT_CHANGES:
            self._forgotten = self._but_workloads[-MIN_KEPT_CHANGES][0]
            del self._but_workloads[:-MIN_KEPT_CHANGES]
