"""
Whose turn it is among the groups that wait: which are due, from when, and which have waited too long.

By priority; then namespaces take turns, and in each the group comes first that was tried longest ago. What it costs to
find the next one does not depend on how many groups wait, only on how many namespaces have one that is due: tenants
may have as many groups as pods. Knows nothing of members.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

_Entry = tuple[int, float, str]  # priority, the highest first; when it was tried; key


class WaitingGroup(Protocol):
    """
    What is read of a group, in seconds of one clock: it is not tried before `not_before`, and again at `retry_at`.

    `timeout_at` is when it has waited too long.
    """

    key: str
    priority: int
    tried: float
    not_before: float
    retry_at: float
    timeout_at: float

    @property
    def namespace(self) -> str: ...


Group = TypeVar("Group", bound=WaitingGroup)


class GroupTurns(Generic[Group]):
    """
    The groups that wait. `rearm` must be called after any of their times has changed.

    A group is due, and `_ready` once `not_before` has passed; `_timers` wake those for which something is to be done at
    a later time. Entries of the heaps may be outdated: `_armed` has the time of the current timer of each group.
    """

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self._due: set[str] = set()
        self._ready: dict[str, list[_Entry]] = {}
        self._is_ready: set[str] = set()
        self._timers: list[tuple[float, str]] = []
        self._armed: dict[str, float] = {}
        self._turns: dict[str, int] = {}  # the last turn of each namespace
        self._n_turns = 0

    def add(self, group: Group) -> None:
        self.groups[group.key] = group

    def remove(self, key: str) -> None:
        self.groups.pop(key, None)
        self._due.discard(key)
        self._is_ready.discard(key)
        self._armed.pop(key, None)
        if not self.groups:
            self._turns.clear()
            self._ready.clear()
            self._timers.clear()

    def mark_due(self, key: str) -> None:
        """Let a group be tried as soon as its `not_before` has passed."""
        if key not in self._due:
            self._due.add(key)
            self.rearm(self.groups[key])

    def next_due(self, now: float) -> Group | None:
        """The group whose turn it is, which is then no longer due."""
        self._wake(now)
        while (namespace := min(self._namespaces(now), key=self._order, default=None)) is not None:
            _, _, key = heapq.heappop(self._ready[namespace])
            self._is_ready.discard(key)
            self._due.discard(key)
            self._turns[namespace] = self._n_turns = self._n_turns + 1
            return self.groups[key]
        return None

    def timed_out(self, now: float) -> list[Group]:
        """The groups that have waited too long; the caller moves their `timeout_at` on."""
        return [group for group in self._wake(now) if group.timeout_at <= now]

    def next_at(self) -> float:
        """When something is to be done, infinite if only a change can lead to it; it may be too early."""
        if self._is_ready:
            return 0.0
        return self._timers[0][0] if self._timers else math.inf

    def rearm(self, group: Group) -> None:
        """Note the times of a group."""
        key = group.key
        if key not in self.groups:
            return
        waits = key in self._due and key not in self._is_ready
        at = min(group.not_before if waits else math.inf, group.retry_at, group.timeout_at)
        if at < self._armed.get(key, math.inf):
            self._armed[key] = at
            heapq.heappush(self._timers, (at, key))

    def _wake(self, now: float) -> list[Group]:
        """Make ready what is due by now; returns the groups whose timers have ended."""
        woken = []
        while self._timers and self._timers[0][0] <= now:
            at, key = heapq.heappop(self._timers)
            if self._armed.get(key) != at:
                continue
            del self._armed[key]
            group = self.groups[key]
            woken.append(group)
            if group.retry_at <= now:
                group.retry_at = math.inf
                self._due.add(key)
            if key in self._due and group.not_before <= now:
                self._make_ready(group)
        for group in woken:
            self.rearm(group)
        return woken

    def _make_ready(self, group: Group) -> None:
        if group.key not in self._is_ready:
            self._is_ready.add(group.key)
            entry = (-group.priority, group.tried, group.key)
            heapq.heappush(self._ready.setdefault(group.namespace, []), entry)

    def _namespaces(self, now: float) -> Iterator[str]:
        """The namespaces with a group that is ready, which is then the first one of their heap."""
        for namespace, heap in [*self._ready.items()]:
            while heap and not self._is_current(heap[0], now):
                heapq.heappop(heap)
            if heap:
                yield namespace
            else:
                del self._ready[namespace]

    def _is_current(self, entry: _Entry, now: float) -> bool:
        """Whether a group is still ready with this entry; if it has another one by now, it gets that."""
        priority, tried, key = entry
        group = self.groups.get(key)
        if group is None or key not in self._is_ready:
            return False
        if group.not_before <= now and (priority, tried) == (-group.priority, group.tried):
            return True
        self._is_ready.discard(key)
        if group.not_before <= now:
            self._make_ready(group)
        else:
            self.rearm(group)
        return False

    def _order(self, namespace: str) -> tuple[int, int, float, str]:
        priority, tried, key = self._ready[namespace][0]
        return priority, self._turns.get(namespace, 0), tried, key
