"""Pending pods in the order of a key that can be removed from anywhere. Knows nothing of stages or clocks."""

from __future__ import annotations

import heapq
from itertools import count
from typing import Generic, TypeVar

from bayplan.queueing.pending_pod import Pending

Order = TypeVar("Order", float, tuple[int, float])


class PodHeap(Generic[Order, Pending]):
    """Pods by their key, equals in the order of arrival. A pod is in it at most once."""

    def __init__(self) -> None:
        self._entries: list[tuple[Order, int, Pending]] = []
        self._tickets = count()  # orders equals by arrival, so that pods are never compared
        self._ticket_of: dict[Pending, int] = {}  # the ticket of a pod's one valid entry

    def __contains__(self, pending: Pending) -> bool:
        return pending in self._ticket_of

    def push(self, pending: Pending, order: Order) -> None:
        """Add a pod that is not in the heap."""
        assert pending not in self._ticket_of, "a pod is in a heap once"
        ticket = self._ticket_of[pending] = next(self._tickets)
        heapq.heappush(self._entries, (order, ticket, pending))

    def discard(self, pending: Pending) -> None:
        """Remove a pod if it is in the heap."""
        self._ticket_of.pop(pending, None)

    def least(self) -> Order | None:
        """The lowest key; None if the heap is empty."""
        while self._entries and self._ticket_of.get(self._entries[0][2]) != self._entries[0][1]:
            heapq.heappop(self._entries)
        return self._entries[0][0] if self._entries else None

    def pop(self) -> Pending | None:
        """Remove and return the pod with the lowest key; None if the heap is empty."""
        if self.least() is None:
            return None
        pending = heapq.heappop(self._entries)[2]
        del self._ticket_of[pending]
        return pending
