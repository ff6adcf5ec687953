"""Servers in a thread: what runs where, and that the thread leaves the processor to others."""

import asyncio
import threading

import pytest

from bayplan.live.serving import SharedAnswer
from bayplan.serving.server_thread import BURST_SECONDS, ServerThread, ThrottledSelector


async def name_of_thread():
    return threading.current_thread().name


async def test_work_runs_in_the_thread_and_on_its_owner():
    here = threading.current_thread().name
    async with ServerThread() as thread:

        async def both():
            return threading.current_thread().name, await thread.on_owner(name_of_thread())

        assert await thread.run(both()) == ("bayplan-servers", here)
    assert "bayplan-servers" not in {one.name for one in threading.enumerate()}


async def test_a_failure_in_the_thread_reaches_the_owner():
    async def fail():
        raise ValueError("in the thread")

    async with ServerThread() as thread:
        with pytest.raises(ValueError, match="in the thread"):
            await thread.run(fail())


class Times:
    """The clocks of a thread: `work` uses the processor, `sleep` does not."""

    def __init__(self):
        self.now = self.worked = self.slept = 0.0

    def work(self, seconds):
        self.now += seconds
        self.worked += seconds

    def sleep(self, seconds):
        self.now += seconds
        self.slept += seconds


def test_a_busy_thread_sleeps_for_its_share():
    times = Times()
    with ThrottledSelector(0.25, lambda: times.now, lambda: times.worked, times.sleep) as selector:
        for _ in range(1000):
            selector.select(0)
            times.work(0.01)
        selector.select(0)
    assert times.worked == pytest.approx(10)
    assert times.worked <= 0.25 * times.now + BURST_SECONDS + 0.01


def test_a_thread_that_is_mostly_idle_never_sleeps():
    times = Times()
    with ThrottledSelector(0.25, lambda: times.now, lambda: times.worked, times.sleep) as selector:
        for _ in range(1000):
            selector.select(0)
            times.work(0.01)
            times.now += 0.04
    assert times.slept == 0


async def test_requests_that_wait_at_the_same_time_share_one_call():
    calls = []
    async with ServerThread() as thread:
        shared = SharedAnswer(thread, lambda: calls.append(threading.current_thread().name), clock=lambda: 0.0)

        async def many():
            await asyncio.gather(*(shared.get() for _ in range(1000)))

        await thread.run(many())
        await thread.run(many())
    assert calls == [threading.current_thread().name]
