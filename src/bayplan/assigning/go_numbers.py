"""32-bit integers as in Go: Karmada's sums of replicas wrap, and so do ours where its decisions depend on that."""

from __future__ import annotations

from collections.abc import Iterable

MAX_INT32 = 2**31 - 1


def int32(value: int) -> int:
    """The value wrapped to 32 bits."""
    return (value + 2**31) % 2**32 - 2**31


def sum_int32(values: Iterable[int]) -> int:
    return int32(sum(values))
