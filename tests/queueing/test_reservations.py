"""Which pod is next to get a reservation, and when one ends. A wait takes 10 s here."""

import pytest

from bayplan.queueing.pending_pod import PendingPod, QueueStage
from bayplan.queueing.reservations import Reservations
from queueing.small_cluster import pod


def unschedulable(name, priority=0):
    pending = PendingPod(None, pod(name, priority=priority))
    pending.stage = QueueStage.UNSCHEDULABLE
    return pending


class Waiting(Reservations):
    def __init__(self, most=1, **since_by_name):
        super().__init__(10.0, most)
        self.pods = {name: unschedulable(name) for name in since_by_name}
        for name, since in since_by_name.items():
            self.wait(self.pods[name], since, is_short=True)

    def candidates(self, now):
        return [one.pending.workload.name for one in iter(lambda: self.next_candidate(now), None)]


def test_the_longest_wait_comes_first_and_once_in_a_round():
    waiting = Waiting(a=1.0, b=2.0, c=30.0)
    assert waiting.candidates(10.9) == []
    assert waiting.next_at() == 11.9
    assert waiting.candidates(12.0) == ["a", "b"]
    assert waiting.candidates(12.5) == []
    assert waiting.candidates(13.0) == ["a", "b"]


def test_the_highest_priority_comes_first():
    waiting = Waiting(a=1.0)
    waiting.wait(unschedulable("high", priority=5), 2.0, is_short=True)
    assert waiting.candidates(20.0) == ["high", "a"]


def test_a_pod_that_is_about_to_be_tried_is_passed_over():
    waiting = Waiting(a=1.0, b=2.0)
    waiting.pods["a"].stage = QueueStage.BACKOFF
    assert waiting.candidates(20.0) == ["b"]


@pytest.mark.parametrize(
    "before, after, since",
    [
        (True, True, 1.0),
        (False, False, 1.0),
        (True, False, 5.0),  # something else keeps it pending now
        (False, True, 5.0),  # it lacks nothing but resources only since then
    ],
)
def test_a_wait_begins_again_when_the_pod_is_pending_for_another_reason(before, after, since):
    waiting = Reservations(10.0, 1)
    pending = unschedulable("a")
    waiting.wait(pending, 1.0, is_short=before)
    waiting.wait(pending, 5.0, is_short=after)
    found = waiting.next_candidate(20.0)
    assert (found.since, found.is_short) == (since, after)


def test_nobody_is_next_while_all_reservations_are_held():
    waiting = Waiting(a=1.0, b=2.0)
    waiting.hold(waiting.pods["a"], "one", 12.0)
    assert (len(waiting), waiting.node_of("web/a")) == (1, "one")
    assert waiting.candidates(20.0) == []
    assert waiting.next_at() == 22.0, "when it is checked"
    waiting.forget("web/a")
    assert waiting.candidates(21.0) == ["b"]


def test_a_reservation_is_checked_again_and_again_until_it_ends():
    waiting = Waiting(a=0.0, b=5.0)
    waiting.hold(waiting.pods["a"], "one", 10.0)
    checked = []
    for now in range(10, 200):
        for held in waiting.to_check(now):
            checked.append(now)
            if now < held.ends_at:
                waiting.keep(held, now)
            else:
                waiting.release("web/a", now)
    assert checked == [20, 30, 40, 50, 60, 70, 80, 90, 100, 110]
    assert waiting.candidates(115) == ["b"], "the pod whose reservation has ended waits again"
    assert waiting.candidates(120) == ["b", "a"]


def test_without_the_option_nobody_waits():
    reservations = Reservations(0.0, 1)
    reservations.wait(unschedulable("a"), 1.0, is_short=True)
    assert reservations.next_at() is None
    assert reservations.next_candidate(1e9) is None
