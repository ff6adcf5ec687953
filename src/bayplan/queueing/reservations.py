"""
Which unschedulable pods have waited long enough for a reservation, and which have one until when.

A reservation is a nomination without victims: it keeps the room of a node from pods of lower or equal priority until
enough of them have left. Tenants are not trusted, so there are few reservations at once, the highest priority and then
the longest wait comes first, and each ends after `DURATION_FACTOR` times the wait. Then the pod waits again, behind the
others. Knows nothing of nodes; `SchedulingQueue` tells it what becomes of pods.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Generic

import msgspec

from bayplan.model.workloads import WorkloadKey
from bayplan.queueing.pending_pod import Pending, QueueStage

DURATION_FACTOR = 10  # a reservation lasts at most this many times the wait for it
ROUND_SECONDS = 1.0  # at least, between two rounds over the pods that have waited


class WaitingPod(msgspec.Struct, Generic[Pending], frozen=True, eq=False):
    """An unschedulable pod that waits since then; `is_short` if it lacked nothing but resources at the time."""

    pending: Pending
    since: float
    is_short: bool


class Reservation(msgspec.Struct, Generic[Pending], frozen=True, eq=False):
    """The node that is reserved for a pod. Whether the node still is of use is checked at `check_at`."""

    pending: Pending
    node: str
    ends_at: float
    check_at: float


class Reservations(Generic[Pending]):
    """
    The pods that wait for a reservation and those that have one. `after` is the wait in seconds, 0 for no reservations
    at all; `most` is how many there are at once. What is passed as `now` never decreases.
    """

    def __init__(self, after: float, most: int) -> None:
        self.after = after
        self._most = most
        self._waiting: dict[WorkloadKey, WaitingPod[Pending]] = {}  # the longest wait first
        self._held: dict[WorkloadKey, Reservation[Pending]] = {}
        self._round: list[WaitingPod[Pending]] = []  # what is left of this round, the next one last
        self._next_round = 0.0

    def __len__(self) -> int:
        """How many nodes are reserved."""
        return len(self._held)

    def node_of(self, key: WorkloadKey) -> str:
        """The node that is reserved for a pod, empty if none."""
        found = self._held.get(key)
        return found.node if found else ""

    def wait(self, pending: Pending, now: float, *, is_short: bool) -> None:
        """Let a pod wait, unless it does so already and for the same reason."""
        known = self._waiting.get(pending.key)
        if self.after and pending.key not in self._held and (known is None or known.is_short != is_short):
            self._wait(pending, now, is_short=is_short)

    def wait_again(self, pending: Pending, now: float, *, is_short: bool) -> None:
        """Let a pod wait from now on, behind all others."""
        if pending.key in self._waiting:
            self._wait(pending, now, is_short=is_short)

    def hold(self, pending: Pending, node: str, now: float) -> None:
        """Note that a node is reserved for a pod that has waited."""
        del self._waiting[pending.key]
        self._held[pending.key] = Reservation(pending, node, now + DURATION_FACTOR * self.after, now + self.after)

    def keep(self, held: Reservation[Pending], now: float) -> None:
        """Note that a reservation was checked and is kept."""
        check_at = min(now + self.after, held.ends_at)
        self._held[held.pending.key] = msgspec.structs.replace(held, check_at=check_at)

    def release(self, key: WorkloadKey, now: float) -> None:
        """End the reservation of a pod, if it has one. It waits again."""
        held = self._held.pop(key, None)
        if held is not None:
            self._wait(held.pending, now, is_short=True)

    def forget(self, key: WorkloadKey) -> None:
        """Forget a pod that is placed, held back or gone."""
        self._waiting.pop(key, None)
        self._held.pop(key, None)

    def to_check(self, now: float) -> list[Reservation[Pending]]:
        """The reservations that are to be ended or kept."""
        return [held for held in self._held.values() if held.check_at <= now]

    def next_candidate(self, now: float) -> WaitingPod[Pending] | None:
        """The next unschedulable pod that has waited long enough, once in each round; None if there is none."""
        if len(self._held) >= self._most:
            self._round.clear()
            return None
        if not self._round and now >= self._next_round:
            waited = takewhile(lambda one: one.since + self.after <= now, self._waiting.values())
            self._round = sorted(waited, key=_turn)[::-1]
            self._next_round = now + ROUND_SECONDS
        while self._round:
            found = self._round.pop()
            if self._waiting.get(found.pending.key) is found and found.pending.stage is QueueStage.UNSCHEDULABLE:
                return found
        return None

    def next_at(self) -> float | None:
        """When there may be something to do; None if only a change of the pods can lead to it."""
        times = [held.check_at for held in self._held.values()]
        if self._waiting and len(self._held) < self._most:
            first = next(iter(self._waiting.values()))
            times.append(0.0 if self._round else max(first.since + self.after, self._next_round))
        return min(times, default=None)

    def _wait(self, pending: Pending, now: float, *, is_short: bool) -> None:
        self._waiting.pop(pending.key, None)
        self._waiting[pending.key] = WaitingPod(pending, now, is_short)


def _turn(one: WaitingPod[Pending]) -> tuple[int, float]:
    return -one.pending.workload.priority, one.since
