"""Karmada counts replicas in 32 bits, and sums of them wrap; so do ours, where its decisions depend on it."""

from __future__ import annotations

from collections.abc import Iterable

MAX_INT32 = 2**31 - 1


def int32(value: int) -> int:
    """The value as 32 bits hold it."""
    return (value + 2**31) % 2**32 - 2**31


def sum_int32(values: Iterable[int]) -> int:
    return int32(sum(values))
