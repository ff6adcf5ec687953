"""How many evictions may be started now: so many in a minute, and so many under way at once. Knows not whose."""

from __future__ import annotations

import math
from collections.abc import Iterable

MINUTE = 60.0


class Gate:
    """Lets evictions pass, one by one, as far as the limits allow. `started` are the times of earlier ones."""

    def __init__(
        self, now: float, *, per_minute: int, at_once: int, started: Iterable[float] = (), under_way: int = 0
    ) -> None:
        self._now, self._per_minute, self._at_once = now, per_minute, at_once
        self._recent = sorted(start for start in started if start > now - MINUTE)
        self._under_way = under_way

    @property
    def open(self) -> bool:
        return not self.why

    @property
    def why(self) -> str:
        """What keeps it shut; empty if it is open."""
        if self._under_way >= self._at_once:
            return f"{self._under_way} evictions are under way, as many as may be at once"
        if len(self._recent) >= self._per_minute:
            return f"{len(self._recent)} evictions in the last minute, as many as may be"
        return ""

    @property
    def until(self) -> float:
        """When the oldest eviction that stands in the way is a minute old; not known where others must be gone."""
        if self._under_way >= self._at_once or not self._per_minute:
            return math.inf
        return self._recent[-self._per_minute] + MINUTE

    def pass_one(self) -> None:
        self._under_way += 1
        self._recent.append(self._now)
