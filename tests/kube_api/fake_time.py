"""Time that passes only when a test lets it."""

import asyncio
import heapq
import itertools


class SkippedTime:
    """Whoever sleeps wakes at once, and the clock has moved on. Remembers how long was slept."""

    def __init__(self):
        self.now, self.slept = 1000.0, []

    def clock(self):
        return self.now

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class SteppedTime:
    """Sleepers sleep until `run_for` has moved the clock to their hour; real input and output takes no time at all."""

    def __init__(self):
        self.now = 1000.0
        self._sleepers = []
        self._numbers = itertools.count()
        self._asleep = asyncio.Condition()

    def clock(self):
        return self.now

    async def sleep(self, seconds):
        wake = asyncio.get_running_loop().create_future()
        entry = (self.now + seconds, next(self._numbers), wake)
        heapq.heappush(self._sleepers, entry)
        async with self._asleep:
            self._asleep.notify_all()
        try:
            await wake
        finally:
            if entry in self._sleepers:
                self._sleepers.remove(entry)
                heapq.heapify(self._sleepers)

    async def settle(self, n_sleepers):
        """Until so many are asleep."""
        async with self._asleep:
            await self._asleep.wait_for(lambda: len(self._sleepers) >= n_sleepers)

    async def run_for(self, seconds, n_sleepers, until=lambda: False):
        """Wake whoever is due, one after another, each time waiting until all are asleep again; stop early if `until`."""
        end = self.now + seconds
        while True:
            await self.settle(n_sleepers)
            if until() or self._sleepers[0][0] > end:
                break
            self.now, _, wake = heapq.heappop(self._sleepers)
            wake.set_result(None)
            while not wake.done() or len(self._sleepers) < n_sleepers:
                async with self._asleep:
                    await self._asleep.wait()
        if not until():
            self.now = end

    def wake_all(self):
        """Move the clock to the last of the sleepers and wake them, without waiting for what they do."""
        while self._sleepers:
            hour, _, wake = heapq.heappop(self._sleepers)
            self.now = max(self.now, hour)
            wake.set_result(None)
