"""Whose turn it is among groups: the same as by looking at all of them, at a cost that does not grow with them."""

import dataclasses
import itertools
import math

from hypothesis import given
from hypothesis import strategies as st

from bayplan.live.group_turns import GroupTurns
from live_loop.simulated import Simulation


@dataclasses.dataclass(eq=False)
class Group:
    key: str
    priority: int = 0
    tried: float = 0.0
    not_before: float = 0.0
    retry_at: float = math.inf
    timeout_at: float = math.inf

    @property
    def namespace(self):
        return self.key.partition("/")[0]


class AllOfThem:
    """The reference implementation: it looks at every group each time."""

    def __init__(self):
        self.groups, self.due, self.turns, self.n_turns = {}, set(), {}, 0

    def next_due(self, now):
        self.due |= {key for key, one in self.groups.items() if one.retry_at <= now}
        ready = [self.groups[key] for key in self.due if self.groups[key].not_before <= now]
        if not ready:
            return None
        chosen = min(ready, key=lambda one: (-one.priority, self.turns.get(one.namespace, 0), one.tried, one.key))
        self.due.remove(chosen.key)
        self.turns[chosen.namespace] = self.n_turns = self.n_turns + 1
        return chosen.key

    def timed_out(self, now):
        return {key for key, one in self.groups.items() if one.timeout_at <= now}

    def next_at(self, now):
        """When something is to be done; what has been possible for some time is possible now."""
        waits = [one.not_before for key, one in self.groups.items() if key in self.due]
        others = [min(one.retry_at, one.timeout_at) for one in self.groups.values()]
        return min((max(time, now) for time in (*waits, *others)), default=math.inf)


KEYS = st.sampled_from([f"{namespace}/{name}" for namespace in "ab" for name in "xyz"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("touch"), KEYS, st.integers(0, 2)),
        st.tuples(st.just("again"), KEYS, st.integers(0, 5)),
        st.tuples(st.just("forget"), KEYS, st.just(0)),
        st.tuples(st.just("wait"), KEYS, st.integers(0, 6)),
        st.tuples(st.just("retry"), KEYS, st.integers(0, 6)),
        st.tuples(st.just("timeout"), KEYS, st.integers(1, 9)),
        st.tuples(st.just("no timeout"), KEYS, st.just(0)),
        st.tuples(st.just("turn"), KEYS, st.just(0)),
    ),
    max_size=40,
)


@given(STEPS)
def test_the_next_group_is_the_one_that_is_found_among_all(steps):
    turns, every, now = GroupTurns(), AllOfThem(), 0.0
    every.groups = turns.groups
    for what, key, number in steps:
        group = turns.groups.get(key)
        match what, group:
            case "touch", _:
                if group is None:
                    turns.add(Group(key, tried=now))
                every.due.add(key)
                turns.mark_due(key)
            case "wait", _:
                now += number
            case "turn", _:
                chosen = turns.next_due(now)
                assert (chosen and chosen.key) == every.next_due(now)
                if chosen:
                    chosen.tried, chosen.retry_at, chosen.priority = now, math.inf, len(every.due) % 3
            case _, None:
                continue
            case "again", _:
                group.not_before = max(group.not_before, now + number)
                every.due.add(key)
                turns.mark_due(key)
            case "forget", _:
                every.due.discard(key)
                turns.remove(key)
                if not turns.groups:
                    every.turns.clear()
            case "retry", _:
                group.retry_at = min(group.retry_at, now + number)
                turns.rearm(group)
            case "timeout", _:
                group.timeout_at = now + number
                turns.rearm(group)
            case "no timeout", _:
                group.timeout_at = math.inf
        expected = every.timed_out(now)
        late = turns.timed_out(now)
        assert {one.key for one in late} == expected
        for one in late:
            one.timeout_at += 7
            turns.rearm(one)
        assert turns.next_at() <= every.next_at(now)


async def test_many_groups_that_miss_members_are_looked_at_once_each():
    """A tenant may have as many groups as pods: what a change costs is not their number times their number."""
    cluster = Simulation()
    cluster.add_node("one")
    for number in range(300):
        cluster.add_pod(f"m-{number}", annotations={"bayplan.io/group": f"g{number}", "bayplan.io/group-min": "2"})
    cluster.add_pod("web")
    await cluster.settle(40)
    assert cluster.where()["web"] == "one"
    known = cluster.parts.groups
    asked = []
    pending = known.pending
    known.pending = lambda key: asked.append(key) or pending(key)
    cluster.remove_pod("web")
    await cluster.settle(1)
    assert asked == [], "room does not help a group that misses members"
    cluster.add_pod("m-7-1", annotations={"bayplan.io/group": "g7", "bayplan.io/group-min": "2"})
    await cluster.settle(1)
    assert set(asked) == {"web/g7"}
    assert {name for name, node in cluster.where().items() if node} == {"m-7", "m-7-1"}


async def test_a_step_looks_for_a_group_to_try_for_some_milliseconds_only(monkeypatch):
    cluster = Simulation()
    cluster.add_node("one")
    for number in range(50):
        cluster.add_pod(f"m-{number}", annotations={"bayplan.io/group": f"g{number}", "bayplan.io/group-min": "2"})
    placer, ticks = cluster.scheduler._groups, itertools.count()
    monkeypatch.setattr(placer, "_clock", lambda: next(ticks) / 1000)
    asked = []
    begin = placer._begin
    monkeypatch.setattr(placer, "_begin", lambda group, now: asked.append(group.key) or begin(group, now))
    placer.step()
    assert 1 <= len(asked) <= 5
    assert placer.next_at() == 0.0, "the loop comes back at once"
