"""How long to wait before the next try. Waits grow, and no two clients wait alike."""

from __future__ import annotations

from random import Random


class Backoff:
    """Doubles from `first` to `most` seconds; each wait is between half and the whole of its step."""

    def __init__(self, random: Random, first: float = 1.0, most: float = 30.0) -> None:
        self._random, self._first, self._most = random, first, most
        self._step = first

    def next(self) -> float:
        step = self._step
        self._step = min(self._most, step * 2)
        return step * self._random.uniform(0.5, 1.0)

    def reset(self) -> None:
        self._step = self._first
