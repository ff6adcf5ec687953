"""Time that passes only when a test lets it."""

import asyncio
import heapq
import itertools


class SkippedTime:
    """Each sleep returns at once and moves the clock. Records how long each sleep was."""

    def __init__(self):
        self.now, self.slept = 1000.0, []

    def clock(self):
        return self.now

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class SteppedTime:
    """A sleep lasts until `run_for` has moved the clock to its end; real input and output takes no time."""

    def __init__(self):
        self.now = 1000.0
        self._timers = []
        self._numbers = itertools.count()
        self._asleep = asyncio.Condition()

    def clock(self):
        return self.now

    async def sleep(self, seconds):
        wake = asyncio.get_running_loop().create_future()
        entry = (self.now + seconds, next(self._numbers), wake)
        heapq.heappush(self._timers, entry)
        async with self._asleep:
            self._asleep.notify_all()
        try:
            await wake
        finally:
            if entry in self._timers:
                self._timers.remove(entry)
                heapq.heapify(self._timers)

    async def settle(self, n_timers):
        """Until so many are asleep."""
        async with self._asleep:
            await self._asleep.wait_for(lambda: len(self._timers) >= n_timers)

    async def run_for(self, seconds, n_timers, until=lambda: False):
        """Fire due timers one after another, each time waiting until every task sleeps again; stop early if `until`."""
        end = self.now + seconds
        while True:
            await self.settle(n_timers)
            if until() or self._timers[0][0] > end:
                break
            self.now, _, wake = heapq.heappop(self._timers)
            wake.set_result(None)
            while not wake.done() or len(self._timers) < n_timers:
                async with self._asleep:
                    await self._asleep.wait()
        if not until():
            self.now = end

    def wake_all(self):
        """Move the clock to the last timer and fire them all, without waiting for what they do."""
        while self._timers:
            hour, _, wake = heapq.heappop(self._timers)
            self.now = max(self.now, hour)
            wake.set_result(None)
