"""Numbers that are written as a whole number or as a percentage, such as maxSurge. Does not know what they limit."""

from __future__ import annotations

import re

_PERCENTAGE = re.compile(r"([0-9]{1,9})%", re.ASCII)


def scaled(written: int | str | None, total: int, *, up: bool) -> int:
    """
    The number, or the percentage of `total`, rounded up or down (apimachinery/pkg/util/intstr).

    None, text that is no percentage, and what is negative is 0: an API server admits neither of the last two.
    """
    if not isinstance(written, str):
        return max(0, written or 0)
    found = _PERCENTAGE.fullmatch(written)
    if found is None:
        return 0
    return (int(found[1]) * total + (99 if up else 0)) // 100
