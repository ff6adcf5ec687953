"""A cache with a limit keeps what was used most recently."""

from types import SimpleNamespace

import pytest

from bayplan import caching, schedule_pod
from bayplan.caching import BoundedCache, memoised
from bayplan.engine.engine import Engine
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.targets import Target
from bayplan.model.workloads import Needs, Requests, Workload
from bayplan.rules import profiles


def entry(used):
    return SimpleNamespace(used=used)


@pytest.mark.parametrize("most, n_dropped", [(8, 1), (16, 2), (64, 8), (3, 1)])  # an eighth, at least one
def test_the_least_recently_used_entries_are_dropped(most, n_dropped):
    cache = BoundedCache()
    entries = [entry(used) for used in range(most)]
    for key, one in enumerate(entries):
        assert cache.put(key, one, most) == []
    entries[0].used = most + 5  # used again: no longer the oldest
    dropped = cache.put("new", entry(most + 1), most)
    assert dropped == entries[1 : 1 + n_dropped]
    assert set(cache) == {0, "new", *range(1 + n_dropped, most)}


def test_replacing_an_entry_drops_none():
    cache = BoundedCache()
    for key in range(4):
        cache.put(key, entry(key), 4)
    assert cache.put(0, entry(9), 4) == []
    assert cache[0].used == 9


def test_a_memoised_function_is_called_once_for_equal_arguments():
    calls = []

    @memoised(2)
    def doubled(number):
        """Twice the number."""
        calls.append(number)
        return 2 * number

    assert [doubled(1), doubled(2), doubled(1), doubled(number=2)] == [2, 4, 2, 4]
    assert calls == [1, 2, 2]  # a keyword is another way to call it
    assert (doubled.__name__, doubled.__doc__) == ("doubled", "Twice the number.")


def test_a_memoised_function_drops_the_least_recently_used_result():
    calls = []

    @memoised(2)
    def seen(key):
        calls.append(key)

    for key in ("a", "b", "a", "c", "a", "b"):  # the third result drops b, which was used before a
        seen(key)
    assert calls == ["a", "b", "c", "b"]


def test_large_entries_clear_what_pure_functions_remember():
    calls, meter = [], caching.METER

    @caching.memoised(16)
    def read(text):
        meter.charge(len(text))
        calls.append(text)
        return text

    before = meter.generation
    large = "x" * (caching.MAX_CHARGED // 4)
    for number in range(8):
        read(f"{large}{number}")
    assert meter.generation >= before + 1
    calls.clear()
    read(f"{large}0")
    assert calls, "it was dropped although it is among the sixteen most recent ones"


def test_an_engine_and_a_journal_drop_what_they_keep_when_entries_are_large():
    index = PlacementIndex()
    engine = Engine(index, profiles.pod_rules())
    index.add_target(Target(name="n0", labels={}, allocatable=(("pods", 10),)))
    workload = Workload(namespace="t", name="a", labels={"app": "a"}, needs=Needs())
    schedule_pod.choose(workload, engine)
    index.add(workload, "n0")
    before = len(engine.evaluations)
    caching.METER.charge(caching.MAX_CHARGED + 1)
    other = Workload(namespace="t", name="b", labels={}, needs=Needs(requests=Requests((("cpu", 1),))))
    assert schedule_pod.choose(other, engine)[0] == -1
    assert 0 < len(engine.evaluations) <= before + 1
    index.remove("t/a")
    assert index.journal.since(0) is None
    assert schedule_pod.choose(workload, engine)[0] == 0, "answers are the same"
