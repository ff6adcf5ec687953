"""When to send the next request: exponential backoff with jitter, and a client-side rate limit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random


class Backoff:
    """Exponential backoff from `first` to `most` seconds; each delay is between half and all of its step."""

    def __init__(self, random: Random, first: float = 1.0, most: float = 30.0) -> None:
        self._random, self._first, self._most = random, first, most
        self._step = first

    def next(self) -> float:
        step = self._step
        self._step = min(self._most, step * 2)
        return step * self._random.uniform(0.5, 1.0)

    def reset(self) -> None:
        self._step = self._first


class TokenBucket:
    """A client-side rate limit: `qps` requests per second on average, `burst` at once; waiters proceed in order."""

    def __init__(
        self, qps: float, burst: int, clock: Callable[[], float], sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        self._qps, self._burst = qps, burst
        self._clock, self._sleep = clock, sleep
        self._tokens, self._seen = float(burst), clock()

    async def take(self) -> None:
        """Wait until one request may be sent."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._seen) * self._qps) - 1
        self._seen = now
        # A negative balance counts requests that already wait, so each further one waits for those before it.
        if self._tokens < 0:
            await self._sleep(-self._tokens / self._qps)
