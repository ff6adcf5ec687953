"""Every iteration of the event loop is measured, and garbage is collected in small portions."""

import asyncio
import gc
import logging

import pytest

from bayplan.live import event_loop
from bayplan.live.event_loop import IterationTimer


class Clocks:
    """Clocks that only the test advances."""

    def __init__(self):
        self.now = self.worked = 1.0

    def work(self, seconds):
        self.now += seconds
        self.worked += seconds

    def wait(self, seconds):
        self.now += seconds


@pytest.fixture
def clocks():
    return Clocks()


@pytest.fixture
def timer(clocks):
    measured = IterationTimer(lambda: clocks.now, lambda: clocks.worked)
    measured.seen = []
    measured.on_iteration = measured.seen.append
    return measured


def test_every_iteration_is_measured(timer, clocks):
    async def work():
        loop = asyncio.get_running_loop()
        for _ in range(3):
            loop.call_soon(clocks.work, 0.02)
        await asyncio.sleep(0)  # the three callbacks make one iteration, or two with this task
        await asyncio.sleep(0)
        clocks.work(0.03)
        await asyncio.sleep(0)

    timer.run(work)
    assert sum(timer.seen) == pytest.approx(0.09)
    assert max(timer.seen) == pytest.approx(0.06)


@pytest.mark.parametrize(
    ("what", "seconds", "logged"),
    [("work", 0.06, True), ("work", 0.04, False), ("wait", 0.5, False)],
    ids=["too long", "not too long", "the machine was busy"],
)
def test_an_iteration_that_worked_too_long_is_logged(timer, clocks, caplog, what, seconds, logged):
    async def work():
        await asyncio.sleep(0)
        getattr(clocks, what)(seconds)
        await asyncio.sleep(0)

    caplog.set_level(logging.WARNING, "bayplan.loop")
    logging.getLogger("bayplan").propagate = True
    timer.run(work)
    assert max(timer.seen) == pytest.approx(seconds)
    assert [record.message for record in caplog.records] == ["event loop blocked"] * logged


class Kept:
    def __init__(self):
        self.itself = self


def test_collections_examine_each_object_twice_at_most():
    """Survivors are not examined again: the work of a collection depends on new objects, not on all objects."""
    gc.collect()
    gc.freeze()
    kept = []
    for number in range(1, 1 + 5 * event_loop.OLDER_GENERATION_EVERY):
        kept += [Kept() for _ in range(1000)]
        event_loop.collect(number)
        assert len(gc.get_objects()) < 1500 * event_loop.OLDER_GENERATION_EVERY
    gc.unfreeze()


async def test_garbage_is_collected_and_the_defaults_are_restored():
    found = []

    class Lost(Kept):
        pass

    async def sleep(_seconds):
        if len(found) > 2 * event_loop.OLDER_GENERATION_EVERY:
            raise asyncio.CancelledError
        assert not gc.isenabled()
        found.append(sum(isinstance(one, Lost) for one in gc.get_objects()))
        Lost()

    with pytest.raises(asyncio.CancelledError):
        await event_loop.collect_periodically(sleep)
    assert gc.isenabled()
    assert max(found) <= 1
    gc.unfreeze()


def test_nothing_is_collected_while_collection_is_suspended():
    collections = []
    gc.callbacks.append(lambda phase, _info: collections.append(phase))
    try:
        with event_loop.without_collection():
            kept = [[i] for i in range(50_000)]
        assert len(kept) == 50_000
        assert collections == []
        assert gc.isenabled()
    finally:
        gc.callbacks.pop()
        gc.unfreeze()
