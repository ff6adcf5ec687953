"""
Every change of the index, in order: caches read it to correct themselves, and undo reads it backwards.

Undo appends the opposite changes and removes none, so a cache that has read a change reads its reversal too. Knows
nothing of what the changes mean.
"""

from __future__ import annotations

import enum
from bisect import bisect_left
from collections.abc import Collection
from dataclasses import dataclass, field
from operator import itemgetter

import msgspec

from bayplan.caching import METER
from bayplan.indexing.classes import WorkloadClass
from bayplan.model.targets import Target
from bayplan.model.workloads import Workload

MIN_KEPT_CHANGES = 4096  # changes that stay readable; a cache that is further behind is rebuilt


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
    One change. `member_of` and `slots` are the class and the slots of the workload; the rest is what undo needs.

    `follows` marks a change that another one causes (a node is removed, and its pods with it): undo skips it.
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
        """Whether a target is no longer in a domain that it was in."""
        if self.type is ChangeType.TARGET_REMOVED:
            return True
        before, after = self.before, self.target
        if self.type is not ChangeType.TARGET_CHANGED or not isinstance(before, Target) or after is None:
            return False
        return (before.labels, before.further_labels) != (after.labels, after.further_labels)


class _Log(msgspec.Struct, frozen=True):
    """The changes from a position on. Replaced as a whole when old ones are dropped, so that readers may keep it."""

    start: int = 0
    changes: list[Change] = []


@dataclass(slots=True, eq=False)
class Journal:
    """
    The changes in order; positions are never reused.

    `settled` is the position up to which other threads may read: changes that belong together, or that may still be
    undone, are settled together with the last of them. Other threads may read; only the owner of the index appends.
    """

    settled: int = 0
    end: int = 0
    _log: _Log = field(default_factory=_Log)
    _but_workloads: list[tuple[int, Change]] = field(default_factory=list)  # few, and some caches follow only these
    _but_workloads_start: int = 0
    _n_holds: int = 0
    _meter_generation: int = field(default_factory=lambda: METER.generation)

    def append(self, change: Change) -> None:
        changes = self._log.changes
        changes.append(change)
        if change.workload is None:
            self._but_workloads.append((self.end, change))
        self.end += 1
        if not self._n_holds:
            self.settled = self.end
            is_long = len(changes) > 2 * MIN_KEPT_CHANGES or len(self._but_workloads) > 2 * MIN_KEPT_CHANGES
            if is_long or self._meter_generation != METER.generation:
                self._drop_old()

    def since(self, position: int) -> list[Change] | None:
        """The changes from a position on; None where they are no longer known."""
        log = self._log
        return None if position < log.start else log.changes[position - log.start :]

    def slots_since(self, position: int, most: int) -> Collection[int] | None:
        """The slots of the changes from a position on; None with more than `most` changes, or if they are not known."""
        log = self._log
        if position < log.start or self.end - position > most:
            return None
        changes = log.changes[position - log.start :]
        if len(changes) == 1:
            return changes[0].slots
        return {slot for change in changes for slot in change.slots}

    def but_workloads_since(self, position: int) -> list[Change] | None:
        """The changes of anything but workloads from a position on; None where they are no longer known."""
        if self._but_workloads_start > position:
            return None
        first = bisect_left(self._but_workloads, position, key=itemgetter(0))
        return [change for _, change in self._but_workloads[first:]]

    def settled_since(self, position: int) -> tuple[list[Change] | None, int]:
        """For other threads: the settled changes from a position on, and the position after them."""
        settled, log = self.settled, self._log  # in this order: what is settled now is in every later log or dropped
        changes = None if position < log.start else log.changes[position - log.start : settled - log.start]
        return changes, settled

    def hold(self) -> int:
        """Settle and drop nothing from here on, until `release`; returns the position."""
        self._n_holds += 1
        return self.end

    @property
    def is_held(self) -> bool:
        return self._n_holds > 0

    def release(self) -> None:
        self._n_holds -= 1
        if not self._n_holds:
            self.settled = self.end
            self._drop_old()

    def _drop_old(self) -> None:
        if self._meter_generation != METER.generation:  # what left the cluster lately is large
            self._meter_generation = METER.generation
            self._log = _Log(self.end)
        if len(self._log.changes) > 2 * MIN_KEPT_CHANGES:
            self._log = _Log(self.end - MIN_KEPT_CHANGES, self._log.changes[-MIN_KEPT_CHANGES:])
        if len(self._but_workloads) > 2 * MIN_KEPT_CHANGES:
            self._but_workloads_start = self._but_workloads[-MIN_KEPT_CHANGES][0]
            del self._but_workloads[:-MIN_KEPT_CHANGES]
