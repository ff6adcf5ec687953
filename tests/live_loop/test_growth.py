"""Memory stays flat: a scheduler that has seen many thousand pods holds no more than one that has seen a few."""

import collections
import functools
import gc
import sys
import types

import pytest

from live_loop.simulated import Simulation, apart, near

MAX_PODS = 60  # pods at a time
ROLLOUT = 40  # pods that share a template
WARM, LATER = 1_500, 3_000


def held_by(*roots):
    """Return how many objects of each type can be reached."""
    seen, unread = {}, list(roots)  # objects are kept, so that no id is used twice
    while unread:
        for found in gc.get_referents(unread.pop()):
            if id(found) not in seen and not isinstance(found, type | types.ModuleType):
                seen[id(found)] = found
                unread.append(found)
    return collections.Counter(type(found).__qualname__ for found in seen.values())


def ours():
    """Return what our modules hold. Caches with a bound are emptied; one without would show."""
    found = [module.__dict__ for name, module in sys.modules.items() if name.partition(".")[0] == "bayplan"]
    for value in [value for names in found for value in names.values()]:
        if isinstance(value, functools._lru_cache_wrapper) and value.cache_info().maxsize is not None:
            value.cache_clear()
    return found


@pytest.fixture(autouse=True)
def small_caches(monkeypatch):
    """Every bounded cache is full before the first count."""
    monkeypatch.setattr("bayplan.indexing.journal.MIN_KEPT_CHANGES", 200)
    monkeypatch.setattr("bayplan.indexing.peer_index.MAX_VISIBLE_ENTRIES", 200)
    monkeypatch.setattr("bayplan.engine.evaluations.MAX_CACHED_BYTES", 0)
    monkeypatch.setattr("bayplan.engine.engine.MAX_EQUIVALENCE_CLASSES", 50)
    monkeypatch.setattr("bayplan.live.events.MAX_TRACKED_EVENTS", 200)


class Rollouts:
    """
    Creates the pods of one rollout after another, scheduled or not, and deletes them.

    Each rollout has new names, labels and selectors, as in a real cluster.
    """

    def __init__(self):
        self.cluster, self.created = Simulation(), 0
        for i in range(12):
            self.cluster.add_node(f"node-{i}", zone="abc"[i % 3])

    async def create(self, n_pods):
        cluster = self.cluster
        for _ in range(n_pods):
            self.created += 1
            number, rollout = self.created, f"r{self.created // ROLLOUT}"
            rule = [apart, near, apart][number % 3](app=rollout) if number % 4 else {}
            cluster.add_pod(
                f"pod-{number}",
                labels={"app": rollout, "number": str(number)},
                cpu="20" if number % 50 == 0 else f"{100 + number % 3}m",
                priority=number % 3 if number % 10 == 0 else 0,
                affinity=rule,
            )
            if number > MAX_PODS and f"web/pod-{number - MAX_PODS}" in cluster.pods:
                cluster.remove_pod(f"pod-{number - MAX_PODS}")
            if number % 10 == 0:
                await cluster.settle(1)
        await cluster.settle(1)
        cluster.events.clear()
        cluster.binds.clear()
        cluster.deleted.clear()


async def test_nothing_grows_with_the_number_of_pods_ever_seen():
    rollouts = Rollouts()
    await rollouts.create(WARM)
    before = held_by(rollouts.cluster, *ours())
    await rollouts.create(LATER)
    after = held_by(rollouts.cluster, *ours())
    more = {name: (before[name], count) for name, count in after.items() if count > 1.1 * before[name] + 300}
    assert not more, "count before and count now"
    assert len(rollouts.cluster.pods) <= MAX_PODS + 2
    assert len(rollouts.cluster.state.index.records) <= MAX_PODS + 2
