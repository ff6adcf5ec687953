"""The order in which pods are tried, and the backoff of failed ones."""

import pytest

from bayplan.model.workloads import Needs, Workload
from bayplan.queueing.scheduling_queue import PendingPod, QueueStage, SchedulingQueue


def pod(name, priority=0, now=0.0):
    return PendingPod(None, Workload(namespace="web", name=name, labels={}, needs=Needs(), priority=priority), now)


def names(queue, now=0.0):
    found = []
    while (pending := queue.pop(now)) is not None:
        found.append(pending.workload.name)
    return found


def test_higher_priority_first_then_the_older_one():
    queue = SchedulingQueue()
    for pending in (pod("young", now=2.0), pod("old", now=1.0), pod("important", priority=10, now=3.0)):
        queue.add(pending, QueueStage.ACTIVE)
    assert names(queue) == ["important", "old", "young"]


def test_backoff_doubles_from_one_second_to_ten():
    queue, now, backoffs = SchedulingQueue(), 100.0, []
    pending = pod("web")
    queue.add(pending, QueueStage.ACTIVE)
    for _ in range(6):
        assert queue.pop(now) is pending
        queue.retry(pending, now)
        backoffs.append(queue.ready_at() - now)
        assert queue.pop(queue.ready_at() - 0.001) is None
        now = queue.ready_at()
    assert backoffs == [1, 2, 4, 8, 10, 10]


def test_removed_pods_are_not_tried():
    queue = SchedulingQueue()
    first, second = pod("first"), pod("second", now=1.0)
    queue.add(first, QueueStage.ACTIVE)
    queue.add(second, QueueStage.ACTIVE)
    queue.remove(first.key)
    assert names(queue) == ["second"]
    assert queue.sizes[QueueStage.ACTIVE] == 1  # the second one: it is popped but still in this stage


@pytest.mark.parametrize("stage", [QueueStage.GATED, QueueStage.UNSCHEDULABLE, QueueStage.BINDING])
def test_pods_in_other_stages_are_not_tried(stage):
    queue = SchedulingQueue()
    pending = pod("web")
    queue.add(pending, stage)
    assert names(queue) == []
    assert queue.sizes[stage] == 1
    queue.move(pending, QueueStage.ACTIVE, 5.0)
    assert names(queue) == ["web"]
