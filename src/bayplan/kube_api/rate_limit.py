"""How many requests a second we allow ourselves, whatever the server would take."""

from __future__ import annotations

from collections.abc import Awaitable, Callable


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
