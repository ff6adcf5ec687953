"""How long to wait before the next try. Waits grow, and no two clients wait alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
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


# RF merged from kube_api.rate_limit: How many requests a second we allow ourselves, whatever the server would take.


class TokenBucket:
    """`qps` requests a second on average and `burst` at once; whoever comes later waits in the order of coming."""

    def __init__(
        self, qps: float, burst: int, clock: Callable[[], float], sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        self._qps, self._burst = qps, burst
        self._clock, self._sleep = clock, sleep
        self._tokens, self._seen = float(burst), clock()

    async def take(self) -> None:
        """Return when it is this request's turn."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._seen) * self._qps) - 1
        self._seen = now
        # Below zero stand the turns already given away, so each comer waits for those before it as well.
        if self._tokens < 0:
            await self._sleep(-self._tokens / self._qps)
