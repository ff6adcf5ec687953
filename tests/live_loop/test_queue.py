"""Who is tried next."""

import pytest

from bayplan.live.pending import Pending, Stage
from bayplan.live.queue import Queue
from bayplan.model.workloads import Needs, Workload


def pod(name, priority=0, now=0.0):
    return Pending(None, Workload(namespace="web", name=name, labels={}, needs=Needs(), priority=priority), now)


def names(queue, now=0.0):
    found = []
    while (pending := queue.pop(now)) is not None:
        found.append(pending.workload.name)
    return found


def test_higher_priority_first_then_the_older_one():
    queue = Queue()
    for pending in (pod("young", now=2.0), pod("old", now=1.0), pod("important", priority=10, now=3.0)):
        queue.add(pending, Stage.ACTIVE)
    assert names(queue) == ["important", "old", "young"]


def test_failures_wait_one_second_doubling_to_ten():
    queue, now, waits = Queue(), 100.0, []
    pending = pod("web")
    queue.add(pending, Stage.ACTIVE)
    for _ in range(6):
        assert queue.pop(now) is pending
        queue.retry(pending, now)
        waits.append(queue.wakes_at() - now)
        assert queue.pop(queue.wakes_at() - 0.001) is None
        now = queue.wakes_at()
    assert waits == [1, 2, 4, 8, 10, 10]


def test_removed_pods_are_not_tried_any_more():
    queue = Queue()
    first, second = pod("first"), pod("second", now=1.0)
    queue.add(first, Stage.ACTIVE)
    queue.add(second, Stage.ACTIVE)
    queue.remove(first.key)
    assert names(queue) == ["second"]
    assert queue.sizes[Stage.ACTIVE] == 1  # the second one: it was taken but has not moved on


@pytest.mark.parametrize("stage", [Stage.GATED, Stage.WAITING, Stage.BINDING])
def test_who_waits_for_something_else_is_not_tried(stage):
    queue = Queue()
    pending = pod("web")
    queue.add(pending, stage)
    assert names(queue) == []
    assert queue.sizes[stage] == 1
    queue.move(pending, Stage.ACTIVE, 5.0)
    assert names(queue) == ["web"]
