"""Random transitions of the scheduling queue, each also made in the reference implementation."""

import random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.queueing.pending_pod import PendingPod, QueueStage
from bayplan.queueing.scheduling_queue import SchedulingQueue
from queueing.small_cluster import SmallCluster, pod
from reference.scheduling_queue import PlainQueue

NODES = ("one", "two")
UNPLACED = ("active", "backoff", "unschedulable", "gated")


class QueueTransitions:
    """Pods come, change, are tried, bound and deleted while other pods take and free the nodes."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.cluster = SmallCluster(one=4, two=4)
        self.plain = PlainQueue(0.5, 3.0)
        self.queue = SchedulingQueue(
            self.cluster.index,
            self.cluster,
            lambda: self.plain.now,
            initial_backoff=0.5,
            max_backoff=3.0,
            reserve_after=3.0,
        )
        self.attempting = {}  # the class of each pod that was requeued by a change and whose attempt is not over
        self.serial = 0

    def step(self):
        transition, *_ = self.chance.choices(
            (
                *(self.add, self.update, self.delete, self.activate, self.clear_nomination),
                *(self.pop, self.end_attempt, self.attempt_breaks, self.end_binding),
                *(self.wait, self.resize_node, self.place_another, self.requeue_schedulable, self.sweep),
                *(self.reserve, self.end_reservation),
            ),
            (3, 3, 1, 1, 1, 5, 5, 1, 1, 3, 1, 2, 2, 1, 2, 1),
        )
        transition()

    def choose(self, *stages, popped=None):
        """One of the pods in these stages, with its counterpart; twice None if there is none."""
        found = [one for one in self.plain.pods if one.stage in stages and popped in (None, one.is_popped)]
        if not found:
            return None, None
        plain = self.chance.choice(found)
        return self.queue.pods[plain.workload.key], plain

    def some_node(self):
        return self.chance.choice(("", "", "", *NODES))

    # Reports

    def add(self):
        self.serial += 1
        workload = pod(
            f"pod-{self.serial}",
            self.chance.randint(1, 4),
            priority=self.chance.choice((0, 0, 10)),
            gates=self.chance.choice(((), (), (), ("later",))),
            terminating=self.chance.random() < 0.1,
            nominated_target=self.some_node(),
        )
        self.queue.add(PendingPod(None, workload))
        self.plain.add(workload)

    def update(self):
        pending, plain = self.choose(*UNPLACED)
        if pending is None:
            return
        change = self.chance.choice(
            (
                {"created": "later"},  # of no interest to a decision
                {"labels": {"turn": self.chance.choice("ab")}},
                {"priority": self.chance.choice((0, 10))},
                {"needs": pod("", self.chance.randint(1, 4)).needs},
                {"gates": ()},
                {"nominated_target": self.some_node()},
                {"terminating": True},
                {"terminating": False},
            )
        )
        workload = msgspec.structs.replace(pending.workload, **change)
        stage, was_popped = plain.stage, plain.is_popped
        decides_alike = decided_by(workload) == decided_by(pending.workload)
        self.queue.update(pending, workload)
        self.plain.update(pending.key, workload)
        if not decides_alike or plain.stage != stage:
            self.attempting.pop(pending.key, None)
        if was_popped and not plain.is_popped:
            self.late_results(pending)

    def delete(self):
        pending, plain = self.choose(*UNPLACED, "binding")
        if pending is None:
            assert self.queue.delete("web/unknown") is None
            return
        if plain.stage == "binding":
            self.cluster.index.remove(pending.key)
        assert self.queue.delete(pending.key) is pending
        self.plain.delete(pending.key)
        self.attempting.pop(pending.key, None)
        self.late_results(pending)

    def late_results(self, pending):
        """The result of an attempt changes nothing if the pod is no longer in flight."""
        self.queue.add_unschedulable_if_not_present(pending)
        self.queue.requeue(pending)

    # Attempts

    def pop(self):
        expected, popped = self.plain.pop(), self.queue.pop()
        assert (popped and popped.key) == (expected and expected.workload.key)

    def end_attempt(self):
        """Place a popped pod if it fits, else keep it as unschedulable, nominated or not."""
        pending, _ = self.choose("active", popped=True)
        if pending is None:
            return
        workload, node = pending.workload, self.some_node()
        feasible = self.cluster.feasible(workload, self.queue.nominations.all())
        if feasible:
            self.cluster.index.add(workload, feasible[0])
            self.queue.assumed(pending)
            self.plain.bind(pending.key)
        else:
            if node:
                self.nominate(workload, node)
            self.queue.add_unschedulable_if_not_present(pending, nominated=bool(node))
            self.plain.fail(pending.key)
            self.queue.reservations.wait(pending, self.plain.now, is_short=self.chance.random() < 0.9)
        self.attempting.pop(pending.key, None)

    def nominate(self, workload, node):
        victims = frozenset({f"victim-{self.serial}"})
        displaced, expected = self.queue.nominate(workload, node, victims), self.plain.nominate(workload, node)
        assert [other.key for other in displaced] == expected
        assert self.queue.nominations.victims_of(workload.key) == victims

    def attempt_breaks(self):
        pending, _ = self.choose("active", popped=True)
        if pending is not None:
            self.queue.requeue(pending)
            self.plain.back_off(pending.key)
            self.attempting.pop(pending.key, None)

    def end_binding(self):
        pending, plain = self.choose("binding")
        if pending is None:
            return
        if self.chance.random() < 0.5:
            self.queue.done(pending)
            self.queue.done(pending)
            self.plain.delete(pending.key)
            return
        self.cluster.index.remove(pending.key)
        terminating = self.chance.random() < 0.3
        pending.workload = plain.workload = msgspec.structs.replace(pending.workload, terminating=terminating)
        self.queue.requeue(pending)
        if terminating:
            self.plain.hold_back(pending.key)
        else:
            self.plain.back_off(pending.key)

    def activate(self):
        pending, plain = self.choose(*UNPLACED, "binding")
        if pending is None:
            return
        is_recreated = self.chance.random() < 0.3
        self.queue.activate(pending.key, "another" if is_recreated else pending.uid)
        if plain.stage == "unschedulable" and not is_recreated:
            self.plain.back_off(pending.key)

    def clear_nomination(self):
        pending, _ = self.choose(*UNPLACED, "binding")
        if pending is not None:
            self.queue.clear_nomination(pending.key)
            self.plain.set_node(pending.key, "")

    # Reservations

    def reserve(self):
        waited = self.queue.reservations.next_candidate(self.plain.now)
        if waited is not None and not self.plain.node_of(waited.pending.key):
            node = self.chance.choice(NODES)
            self.queue.reserve(waited.pending, node)
            self.plain.set_node(waited.pending.key, node)

    def end_reservation(self):
        for held in self.queue.reservations.to_check(self.plain.now):
            self.queue.clear_nomination(held.pending.key)
            self.plain.set_node(held.pending.key, "")

    # Changes

    def wait(self):
        self.plain.now += self.chance.choice((0.5, 1.0, 3.0, 20.0))

    def resize_node(self):
        self.cluster.resize(self.chance.choice(NODES), self.chance.randint(2, 6))

    def place_another(self):
        name, index = f"other-{self.chance.randrange(4)}", self.cluster.index
        if f"web/{name}" in index.records:
            index.remove(f"web/{name}")
        else:
            index.add(pod(name, self.chance.randint(1, 4)), self.chance.choice(NODES))

    def requeue_schedulable(self):
        """At times each call may evaluate one class only; the next calls evaluate the others."""
        limit = self.chance.choice((1, 100))
        while True:
            before = self.queue.n_evaluations
            requeued = self.queue.move_to_active_or_backoff(
                lambda since=before: self.queue.n_evaluations - since >= limit
            )
            assert self.queue.n_evaluations - before <= limit
            self.note_requeued(requeued)
            if not self.queue.has_candidates:
                break
        for one in self.plain.in_stage("unschedulable"):
            if self.cluster.fits(one.workload, self.queue.nominations):
                assert class_of(one.workload) in self.attempting.values(), f"{one.workload.key} was not requeued"

    def sweep(self):
        """The sweep finds no pod but those that wait for the attempt of another one of their class."""
        self.requeue_schedulable()
        self.queue.mark_all_for_sweep()
        found = self.queue.sweep()
        assert {class_of(pending.workload) for pending in found} <= set(self.attempting.values())
        self.note_requeued(found)

    def note_requeued(self, requeued):
        for pending in requeued:
            assert self.cluster.fits(pending.workload, self.queue.nominations), "requeued in vain"
            assert self.plain.find(pending.key).stage == "unschedulable"
            self.plain.back_off(pending.key)
            self.attempting[pending.key] = class_of(pending.workload)

    # What always holds

    def check(self):
        plain, queue = self.plain, self.queue
        assert {key: one.stage.value for key, one in queue.pods.items()} == {
            one.workload.key: one.stage for one in plain.pods
        }
        assert len(queue) == len(plain.pods)
        for stage in QueueStage:
            assert queue.sizes[stage] == len(plain.in_stage(stage.value))
        assert queue.ready_at() == plain.ready_at()
        assert len(queue._unschedulable) == len(plain.in_stage("unschedulable"))
        for one in plain.pods:
            self.check_pod(one, queue.pods[one.workload.key])
        nominations = queue.nominations
        assert {workload.key: node for workload, node in nominations.all()} == dict(plain.nominated)
        assert not any(nominations.victims_of(key) for key in queue.pods if not nominations.target_of(key))

        self.check_reservations()

    def check_reservations(self):
        """Only a pod that could still be placed has one, and its node is nominated."""
        reservations, unplaced = self.queue.reservations, {}
        for one in self.plain.pods:
            if one.stage in ("active", "backoff", "unschedulable"):
                unplaced[one.workload.key] = self.queue.pods[one.workload.key]
        assert len(reservations) <= 1
        for known in (reservations._held, reservations._waiting):
            assert all(unplaced[key] is one.pending for key, one in known.items())
        assert not reservations._held.keys() & reservations._waiting.keys()
        for key, held in reservations._held.items():
            assert self.queue.nominations.target_of(key) == held.node

    def check_pod(self, plain, pending):
        """The pod is in the set of its stage alone, with the times and attempts of the reference."""
        queue = self.queue
        assert queue.holds(pending)
        assert queue.is_unplaced(pending) == (plain.stage != "binding")
        assert (pending in queue._active) == (plain.stage == "active" and not plain.is_popped)
        assert (pending in queue._backing_off) == (plain.stage == "backoff")
        assert (pending.key in queue._unschedulable) == (plain.stage == "unschedulable")
        assert (pending.since, pending.queued, pending.tried) == (plain.since, plain.queued, plain.tried)
        assert pending.attempts == plain.attempts


def class_of(workload):
    return workload.needs, workload.priority


def decided_by(workload):
    return workload.labels, workload.needs, workload.priority


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_the_queue_does_what_the_plain_one_does(seed):
    transitions = QueueTransitions(seed)
    for _ in range(200):
        transitions.step()
        transitions.check()
