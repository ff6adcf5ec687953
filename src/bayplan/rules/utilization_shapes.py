"""
Scores that depend on utilisation, as lines between points: the `shape` in the arguments of a plugin.

Does not know what is utilised.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from bayplan.rules.rule import MAX_SCORE
from bayplan.validating.fields import Cause, Field

Shape = tuple[tuple[int, int], ...]  # (utilisation, score), both 0..100

MAX_SHAPE_SCORE = 10  # in a configuration (kube-scheduler: MaxCustomPriorityScore)


def validate(points: Field) -> list[Cause]:
    """The function from utilization to score: points in increasing order, each within its range."""
    items = points.items()
    if not items:
        return [points.required("at least one point must be specified")]
    found: list[Cause] = []
    for before, after in itertools.pairwise(point["utilization"] for point in items):
        if before.number() >= after.number():
            found.append(after.invalid("values must be sorted in increasing order", str(after.number())))
            break
    for point in items:
        found += point["utilization"].check_integer(0, 100, "not in valid range [0, 100]")
        found += point["score"].check_integer(0, MAX_SHAPE_SCORE, f"not in valid range [0, {MAX_SHAPE_SCORE}]")
    return found


def read(points: Iterable[Mapping[str, Any]]) -> Shape:
    """The shape from valid points as written."""
    scale = MAX_SCORE // MAX_SHAPE_SCORE
    return tuple((point.get("utilization") or 0, (point.get("score") or 0) * scale) for point in points)


def scores(shape: Shape) -> list[int]:
    """The score at each utilisation from 0 to 100."""
    return [_score_at(shape, utilisation) for utilisation in range(101)]


def _score_at(shape: Shape, at: int) -> int:
    for i, (x, y) in enumerate(shape):
        if at <= x:
            if i == 0:
                return y
            x0, y0 = shape[i - 1]
            rise = (y - y0) * (at - x0)
            # Integer division as Go does it, towards zero.
            return y0 + (abs(rise) // (x - x0)) * (1 if rise >= 0 else -1)
    return shape[-1][1]
