"""How long the event loop is held is known, turn by turn."""

import asyncio
import gc
import logging

import pytest

from bayplan.live import event_loop
from bayplan.live.event_loop import IterationTimer


class Clocks:
    """Time that passes only where the test works."""

    def __init__(self):
        self.now = self.worked = 1.0

    def work(self, seconds):
        self.now += seconds
        self.worked += seconds

    def be_kept_waiting(self, seconds):
        self.now += seconds


@pytest.fixture
def clocks():
    return Clocks()


@pytest.fixture
def turns(clocks):
    measured = IterationTimer(lambda: clocks.now, lambda: clocks.worked)
    measured.seen = []
    measured.on_iteration = measured.seen.append
    return measured


def test_every_turn_is_measured_whatever_it_is_made_of(turns, clocks):
    async def work():
        loop = asyncio.get_running_loop()
        for _ in range(3):
            loop.call_soon(clocks.work, 0.02)
        await asyncio.sleep(0)  # the three of them make one turn, or two with this task
        await asyncio.sleep(0)
        clocks.work(0.03)
        await asyncio.sleep(0)

    turns.run(work)
    assert sum(turns.seen) == pytest.approx(0.09)
    assert max(turns.seen) == pytest.approx(0.06)


@pytest.mark.parametrize(
    ("what", "seconds", "told"),
    [("work", 0.06, True), ("work", 0.04, False), ("be_kept_waiting", 0.5, False)],
    ids=["too long", "not too long", "the machine was busy"],
)
def test_a_turn_that_worked_too_long_is_told(turns, clocks, caplog, what, seconds, told):
    async def work():
        await asyncio.sleep(0)
        getattr(clocks, what)(seconds)
        await asyncio.sleep(0)

    caplog.set_level(logging.WARNING, "bayplan.loop")
    logging.getLogger("bayplan").propagate = True
    turns.run(work)
    assert max(turns.seen) == pytest.approx(seconds)
    assert [record.message for record in caplog.records] == ["event loop blocked"] * told


class Kept:
    def __init__(self):
        self.itself = self


def test_collections_look_at_each_object_twice_at_most():
    """What has survived is not looked at again: the work of a turn hangs on what is new, not on what there is."""
    gc.collect()
    gc.freeze()
    kept = []
    for turn in range(1, 1 + 5 * event_loop.OLDER_GENERATION_EVERY):
        kept += [Kept() for _ in range(1000)]
        event_loop.collect(turn)
        assert len(gc.get_objects()) < 1500 * event_loop.OLDER_GENERATION_EVERY
    gc.unfreeze()


async def test_garbage_is_found_and_python_is_left_as_it_was():
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


def test_what_is_only_made_is_not_looked_at():
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
