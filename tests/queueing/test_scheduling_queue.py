"""The order in which pods are tried, the backoff of failed ones, and when a change or a nomination requeues others."""

import msgspec
import pytest

from bayplan.queueing.pending_pod import PendingPod, QueueStage
from bayplan.queueing.scheduling_queue import SchedulingQueue
from queueing.small_cluster import SmallCluster, pod


class Queue(SchedulingQueue):
    """A queue with a clock to set, on a cluster with one node for four pods; `n_pending` counts calls of on_pending."""

    def __init__(self, **backoff):
        self.now, self.n_pending = 0.0, 0
        self.cluster = SmallCluster(one=4)
        super().__init__(self.cluster.index, self.cluster, lambda: self.now, on_pending=self.count_pending, **backoff)

    def count_pending(self):
        self.n_pending += 1

    def put(self, name, at=0.0, **fields):
        self.now = at
        pending = PendingPod(None, pod(name, **fields))
        self.add(pending)
        return pending

    def change(self, pending, **fields):
        self.update(pending, msgspec.structs.replace(pending.workload, **fields))

    def tried(self):
        """The names of all pods that can be popped."""
        return [pending.workload.name for pending in iter(self.pop, None)]

    def fail(self, name, **fields):
        """A pod for which no node is feasible, after its attempt."""
        pending = self.put(name, at=self.now, **{"cpu": 5, **fields})
        assert self.pop() is pending
        self.add_unschedulable_if_not_present(pending)
        return pending


def test_higher_priority_first_then_the_older_one():
    queue = Queue()
    queue.put("old", at=1.0)
    queue.put("young", at=2.0)
    queue.put("important", at=3.0, priority=10)
    assert queue.tried() == ["important", "old", "young"]


def test_equals_are_tried_in_the_order_of_arrival():
    queue = Queue()
    for name in ("c", "a", "b"):
        queue.put(name)
    assert queue.tried() == ["c", "a", "b"]


@pytest.mark.parametrize(
    "settings, expected",
    [({}, [1, 2, 4, 8, 10, 10]), ({"initial_backoff": 3.0, "max_backoff": 7.0}, [3, 6, 7, 7, 7, 7])],
)
def test_backoff_doubles_from_the_initial_to_the_longest(settings, expected):
    queue, backoffs = Queue(**settings), []
    pending = queue.put("web", at=100.0)
    for _ in range(6):
        assert queue.pop() is pending
        queue.requeue(pending)
        backoffs.append(queue.ready_at() - queue.now)
        queue.now = queue.ready_at() - 0.001
        assert queue.pop() is None
        queue.now = queue.ready_at()
    assert backoffs == expected


def test_a_backoff_stays_at_its_longest_after_any_number_of_attempts():
    queue = Queue()
    pending = queue.put("web")
    pending.attempts = 5000  # the power of two is no float
    queue.pop()
    queue.requeue(pending)
    assert queue.ready_at() == 10.0


def test_a_pod_whose_backoff_is_over_is_as_old_as_its_end():
    """Otherwise the pods that came meanwhile would be tried first, or those before it last."""
    queue = Queue()
    early = queue.put("early")
    queue.pop()
    queue.requeue(early)  # until 1.0
    queue.put("before", at=0.5)
    queue.put("after", at=1.5)
    queue.now = 2.0
    assert queue.tried() == ["before", "early", "after"]


def test_a_popped_pod_counts_as_active_until_its_attempt_has_a_result():
    queue = Queue()
    pending = queue.put("web")
    assert queue.pop() is pending
    assert queue.sizes[QueueStage.ACTIVE] == 1
    assert queue.pop() is None
    queue.assumed(pending)
    assert (queue.sizes[QueueStage.ACTIVE], queue.sizes[QueueStage.BINDING]) == (0, 1)
    assert not queue.is_unplaced(pending)
    queue.done(pending)
    assert len(queue) == 0
    assert sum(queue.sizes.values()) == 0


def test_deleted_pods_are_not_tried():
    queue = Queue()
    first = queue.put("first")
    queue.put("second", at=1.0)
    assert queue.delete(first.key) is first
    assert queue.tried() == ["second"]


def test_another_pod_of_the_same_name_is_not_held():
    queue = Queue()
    old = queue.put("web")
    queue.delete(old.key)
    new = queue.put("web", uid="another")
    assert queue.holds(new)
    assert not queue.holds(old)
    queue.done(old)
    assert queue.holds(new)


@pytest.mark.parametrize("held_back", [{"gates": ("later",)}, {"terminating": True}])
def test_gated_and_terminating_pods_are_not_tried(held_back):
    queue = Queue()
    pending = queue.put("web", **held_back)
    assert queue.tried() == []
    assert queue.sizes[QueueStage.GATED] == 1
    queue.now = 5.0
    queue.change(pending, gates=(), terminating=False)
    assert pending.since == 5.0, "the time behind a gate does not count"
    assert queue.tried() == ["web"]


def test_a_pod_that_was_tried_before_it_was_held_back_keeps_its_time():
    queue = Queue()
    pending = queue.fail("web")
    queue.change(pending, terminating=True)
    queue.now = 5.0
    queue.change(pending, terminating=False)
    assert pending.since == 0.0


@pytest.mark.parametrize(
    "change, stage",
    [
        ({"created": "later"}, QueueStage.UNSCHEDULABLE),
        ({"started": "later"}, QueueStage.UNSCHEDULABLE),
        ({"labels": {"app": "web"}}, QueueStage.BACKOFF),
        ({"needs": pod("", 2).needs}, QueueStage.BACKOFF),
        ({"priority": 1}, QueueStage.BACKOFF),
        ({"unplaceable": "it is left to another scheduler"}, QueueStage.BACKOFF),
        ({"gates": ("later",)}, QueueStage.GATED),
        ({"terminating": True}, QueueStage.GATED),
    ],
)
def test_a_change_that_a_decision_reads_has_an_unschedulable_pod_retried_after_its_backoff(change, stage):
    queue = Queue()
    pending = queue.fail("web")
    queue.now = 0.5
    queue.change(pending, **change)
    assert pending.stage is stage
    assert (pending.key in queue._unschedulable) == (stage is QueueStage.UNSCHEDULABLE)
    assert queue.tried() == []
    queue.now = 1.0
    assert queue.tried() == (["web"] if stage is QueueStage.BACKOFF else [])


def test_a_changed_pod_whose_backoff_is_over_is_active_at_once():
    queue = Queue()
    pending = queue.fail("web")
    queue.now = 1.0
    queue.change(pending, labels={"app": "web"})
    assert (pending.stage, pending.queued) == (QueueStage.ACTIVE, 1.0)


def test_however_often_a_label_changes_the_backoff_is_kept():
    """Otherwise a tenant who changes a label again and again would have a pod tried without end."""
    queue = Queue()
    pending = queue.put("web", cpu=5)
    tried = []
    for tenths in range(300):
        queue.now = tenths / 10
        queue.change(pending, labels={"turn": str(tenths)})
        if queue.pop() is pending:
            tried.append(queue.now)
            queue.add_unschedulable_if_not_present(pending)
    assert tried == [0.0, 1.0, 3.0, 7.0, 15.0, 25.0]


def test_a_pod_in_backoff_is_tried_when_it_ends_as_it_was_changed_meanwhile():
    queue = Queue()
    pending = queue.put("web")
    queue.pop()
    queue.requeue(pending)
    queue.put("other", at=1.5)
    queue.change(pending, priority=10)
    assert (pending.stage, queue.ready_at()) == (QueueStage.BACKOFF, 1.0)
    assert queue.tried() == ["web", "other"]


def test_an_active_pod_keeps_its_place_when_it_changes():
    queue = Queue()
    first, second = queue.put("first"), queue.put("second")
    queue.put("third", at=1.0)
    queue.change(first, labels={"app": "web"})
    queue.change(second, priority=10)
    assert queue.tried() == ["second", "first", "third"]
    queue = Queue()
    first, _ = queue.put("first"), queue.put("important", at=1.0, priority=10)
    queue.put("late", at=2.0, priority=10)
    queue.change(first, priority=10)
    assert queue.tried() == ["first", "important", "late"], "by age, whatever its priority was before"


def test_a_pod_that_changes_during_its_attempt_is_tried_again_after_its_backoff():
    queue = Queue()
    pending = queue.put("web", cpu=5)
    queue.pop()
    queue.change(pending, needs=pod("", 2).needs)
    queue.add_unschedulable_if_not_present(pending)  # as it was before
    assert pending.stage is QueueStage.BACKOFF
    assert queue.ready_at() == 1.0


def test_a_pod_that_was_tried_before_it_was_held_back_keeps_its_backoff():
    queue = Queue()
    pending = queue.fail("web")
    queue.change(pending, terminating=True)
    queue.now = 0.5
    queue.change(pending, terminating=False)
    assert queue.tried() == []
    queue.now = 1.0
    assert queue.tried() == ["web"]


def test_a_change_of_the_index_requeues_the_pods_that_fit_now():
    queue = Queue()
    large, huge = queue.fail("large", cpu=5), queue.fail("huge", cpu=50)
    assert queue.move_to_active_or_backoff() == []
    queue.cluster.resize("one", 5)
    assert queue.move_to_active_or_backoff() == [large]
    assert (large.stage, huge.stage) == (QueueStage.BACKOFF, QueueStage.UNSCHEDULABLE)
    queue.now = 1.0
    assert queue.tried() == ["large"]


def test_a_pod_that_fits_while_no_change_says_so_is_found_by_the_sweep(monkeypatch):
    queue = Queue()
    pending = queue.fail("web")
    monkeypatch.setattr(queue.cluster, "fits", lambda _workload, _nominations: True)
    assert queue.move_to_active_or_backoff() == []
    assert queue.sweep() == []
    queue.mark_all_for_sweep()
    assert queue.has_candidates
    assert queue.sweep() == [pending]
    assert pending.stage is QueueStage.BACKOFF


def test_a_placed_pod_lets_the_next_one_of_its_class_be_evaluated():
    queue = Queue()
    first, second = queue.fail("first"), queue.fail("second")
    queue.cluster.resize("one", 20)
    assert queue.move_to_active_or_backoff() == [first]
    assert queue.move_to_active_or_backoff() == []
    queue.now = 1.0
    assert queue.pop() is first
    queue.assumed(first)
    assert queue.move_to_active_or_backoff() == [second]


@pytest.mark.parametrize(
    "end",
    [
        lambda queue, pending: queue.delete(pending.key),
        lambda queue, pending: queue.requeue(pending),
        lambda queue, pending: queue.change(pending, priority=1),
        lambda queue, pending: queue.change(pending, terminating=True),
    ],
    ids=["deleted", "broken", "changed", "terminating"],
)
def test_an_attempt_without_a_result_lets_the_next_one_of_its_class_be_evaluated(end):
    queue = Queue()
    first, second = queue.fail("first"), queue.fail("second")
    queue.cluster.resize("one", 20)
    assert queue.move_to_active_or_backoff() == [first]
    queue.now = 1.0
    assert queue.pop() is first
    end(queue, first)
    assert queue.move_to_active_or_backoff() == [second]


def test_a_failed_attempt_says_that_no_pod_of_its_class_fits():
    queue = Queue()
    first, _ = queue.fail("first"), queue.fail("second")
    queue.cluster.resize("one", 20)
    assert queue.move_to_active_or_backoff() == [first]
    queue.now = 1.0
    assert queue.pop() is first
    queue.cluster.index.add(pod("quick", 20), "one")
    queue.move_to_active_or_backoff()
    before = queue.n_evaluations
    queue.add_unschedulable_if_not_present(first)
    queue.move_to_active_or_backoff()
    assert queue.n_evaluations == before


def test_a_nominated_pod_lets_the_next_one_of_its_class_be_evaluated():
    queue = Queue()
    queue.fail("first")
    queue.move_to_active_or_backoff()
    second = queue.put("second", cpu=5)
    queue.pop()
    queue.nominate(second.workload, "one", frozenset({"victim"}))
    before = queue.n_evaluations
    queue.add_unschedulable_if_not_present(second, nominated=True)
    queue.move_to_active_or_backoff()
    assert queue.n_evaluations == before + 1


def test_an_unschedulable_pod_is_activated_by_its_uid():
    queue = Queue()
    pending = queue.fail("web")
    queue.activate(pending.key, "another")
    assert pending.stage is QueueStage.UNSCHEDULABLE
    queue.activate(pending.key, pending.uid)
    assert pending.stage is QueueStage.BACKOFF


def test_a_nomination_displaces_those_of_lower_priority_on_its_node():
    queue = Queue()
    low, equal, elsewhere = (queue.fail(name, priority=p) for name, p in (("low", 1), ("equal", 5), ("elsewhere", 1)))
    queue.nominate(low.workload, "one", frozenset())
    queue.nominate(equal.workload, "one", frozenset({"victim"}))
    assert queue.nominations.target_of(low.key) == ""
    assert low.stage is QueueStage.BACKOFF, "it may fit another node"
    queue.nominate(elsewhere.workload, "two", frozenset())
    top = queue.fail("top", priority=5)
    assert queue.nominate(top.workload, "one", frozenset()) == ()
    assert {workload.name: node for workload, node in queue.nominations.all()} == {
        "equal": "one",
        "elsewhere": "two",
        "top": "one",
    }
    assert queue.nominations.victims_of(equal.key) == {"victim"}


def test_a_cleared_nomination_lets_other_pods_be_evaluated():
    queue = Queue()
    kept = queue.put("kept", cpu=4, priority=5)
    queue.pop()
    queue.nominate(kept.workload, "one", frozenset())
    other = queue.fail("other", cpu=1)
    assert queue.move_to_active_or_backoff() == []
    queue.clear_nomination(kept.key)
    assert queue.move_to_active_or_backoff() == [other]


def test_a_nominated_pod_that_changes_lets_other_pods_be_evaluated():
    queue = Queue()
    kept = queue.put("kept", cpu=4, priority=5)
    queue.pop()
    queue.nominate(kept.workload, "one", frozenset())
    other = queue.fail("other", cpu=1)
    assert queue.move_to_active_or_backoff() == []
    queue.change(kept, created="later")  # of no interest to a decision
    assert not queue.has_candidates
    queue.change(kept, needs=pod("", 3).needs)
    assert queue.move_to_active_or_backoff() == [other]


@pytest.mark.parametrize(
    "reported, expected",
    [
        (["", "", "one"], "one"),
        (["one", "two"], "two"),
        (["one", ""], ""),
    ],
)
def test_the_nominated_node_of_the_api_server_is_adopted_when_it_changes(reported, expected):
    queue = Queue()
    pending = queue.put("web", nominated_target=reported[0])
    for node in reported[1:]:
        queue.change(pending, nominated_target=node)
    assert queue.nominations.target_of(pending.key) == expected


def test_a_nomination_survives_reports_from_before_it_was_written():
    queue = Queue()
    pending = queue.fail("web")
    queue.nominate(pending.workload, "one", frozenset())
    queue.change(pending, created="later")
    assert queue.nominations.target_of(pending.key) == "one"
    queue.change(pending, terminating=True)
    assert queue.nominations.target_of(pending.key) == ""


def test_a_nominated_node_that_the_api_server_drops_lets_pods_preempt_again():
    """The nomination was cleared here before, and is reported only now."""
    queue = Queue()
    pending = queue.fail("web", nominated_target="one")
    queue.clear_nomination(pending.key)
    queue.move_to_active_or_backoff()
    before = queue.n_evaluations
    queue.change(pending, nominated_target="")
    queue.move_to_active_or_backoff()
    assert queue.n_evaluations == before + 1


def test_a_report_and_a_failed_write_may_make_a_pod_ready():
    queue = Queue()
    pending = queue.put("web", cpu=5)
    assert queue.n_pending == 1
    queue.change(pending, created="later")
    assert queue.n_pending == 2
    queue.pop()
    queue.requeue(pending)
    assert queue.n_pending == 3
    queue.now = 20.0
    queue.pop()
    queue.add_unschedulable_if_not_present(pending)
    assert queue.n_pending == 3
    queue.activate(pending.key, pending.uid)
    assert queue.n_pending == 4


def test_a_pod_is_added_once_and_changes_only_before_it_is_placed():
    queue = Queue()
    pending = queue.put("web")
    with pytest.raises(AssertionError, match="once"):
        queue.put("web")
    with pytest.raises(AssertionError, match="popped"):
        queue.assumed(pending)
    queue.pop()
    queue.assumed(pending)
    with pytest.raises(AssertionError, match="bound"):
        queue.change(pending, priority=1)
