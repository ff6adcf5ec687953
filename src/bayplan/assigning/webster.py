"""Seats by votes after Webster: every replica goes to the cluster with the largest claim. Knows nothing of clusters."""

from __future__ import annotations

import heapq
from collections.abc import Mapping


def seats(number: int, votes: Mapping[str, int], uid: str) -> dict[str, int]:
    """
    Seats by name. Fewer seats win a tie, then the name, whose direction is drawn from the template's uid.

    Claims are compared as floats, like Karmada's: claims that round to the same float are equal.
    """
    won = dict.fromkeys(votes, 0)
    if not votes or number <= 0:
        return won
    if len(votes) == 1:
        return dict.fromkeys(votes, number)
    names = sorted(votes, reverse=descending(uid))
    heap = [(-float(votes[name]), 0, rank, name) for rank, name in enumerate(names)]
    heapq.heapify(heap)
    for _ in range(number):
        _, taken, rank, name = heap[0]
        won[name] = taken + 1
        heapq.heapreplace(heap, (-(votes[name] / (2 * taken + 3)), taken + 1, rank, name))
    return won


def descending(uid: str) -> bool:
    """Whether names are taken from the last on where all else is equal."""
    return bool(uid) and _fnv1a(uid.encode()) & 1 == 1


def _fnv1a(data: bytes) -> int:
    """The 32-bit hash of that name."""
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value
