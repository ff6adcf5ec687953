"""Random transitions of the scheduling queue, each also made in the reference implementation."""

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bayplan.queueing.pending_pod import PendingPod, QueueStage
from bayplan.queueing.scheduling_queue import SchedulingQueue
from queueing.small_cluster import SmallCluster, pod
from reference.scheduling_queue import PlainQueue

NODES = ("one", "two")
WHICH = st.integers(0, 999)  # modulo the number of choices
CPU, PRIORITIES, NOMINATED = st.integers(1, 4), st.sampled_from([0, 0, 10]), st.sampled_from(["", "", *NODES])
SECONDS = st.sampled_from([0.0, 0.5, 1.0, 3.0, 20.0])


class QueueTransitions(RuleBasedStateMachine):
    """Pods come, change, are tried, bound and deleted while other pods take and free the nodes."""

    def __init__(self):
        super().__init__()
        self.cluster = SmallCluster(one=4, two=4)
        self.plain = PlainQueue(1.0, 10.0)
        self.queue = SchedulingQueue(self.cluster.index, self.cluster, lambda: self.plain.now)
        self.attempting = {}  # the class of each pod that was requeued by a change and whose attempt is not over
        self.serial = 0

    def choose(self, which, *stages, popped=None):
        """One of the pods in these stages, with its counterpart; None if there is none."""
        found = [one for one in self.plain.pods if one.stage in stages and popped in (None, one.is_popped)]
        if not found:
            return None, None
        plain = found[which % len(found)]
        return self.queue.pods[plain.workload.key], plain

    # Reports

    @rule(cpu=CPU, priority=PRIORITIES, gated=st.booleans(), terminating=st.booleans(), node=NOMINATED)
    def add(self, cpu, priority, gated, terminating, node):
        self.serial += 1
        workload = pod(
            f"pod-{self.serial}",
            cpu,
            priority=priority,
            gates=("later",) if gated and self.serial % 2 else (),
            terminating=terminating and self.serial % 5 == 0,
            nominated_target=node,
        )
        self.queue.add(PendingPod(None, workload))
        self.plain.add(workload)

    @rule(which=WHICH, priority=PRIORITIES, cpu=CPU, node=NOMINATED, what=st.integers(0, 5))
    def update(self, which, priority, cpu, node, what):
        pending, plain = self.choose(which, "active", "backoff", "unschedulable", "gated")
        if pending is None:
            return
        change = [
            {"created": "later"},  # of no interest to a decision
            {"priority": priority},
            {"needs": pod("", cpu).needs},
            {"gates": ()},
            {"nominated_target": node},
            {"terminating": True},
        ][what]
        workload = msgspec.structs.replace(pending.workload, **change)
        self.queue.update(pending, workload)
        stage, was_popped = plain.stage, plain.is_popped
        self.plain.update(pending.key, workload)
        if "needs" in change or "priority" in change or plain.stage != stage:
            self.attempting.pop(pending.key, None)
        if was_popped and not plain.is_popped:
            self.late_results(pending)

    @rule(which=WHICH)
    def delete(self, which):
        pending, _ = self.choose(which, "active", "backoff", "unschedulable", "gated", "binding")
        if pending is None:
            assert self.queue.delete("web/unknown") is None
            return
        if pending.stage is QueueStage.BINDING:
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

    @rule()
    def pop(self):
        expected, popped = self.plain.pop(), self.queue.pop()
        assert (popped and popped.key) == (expected and expected.workload.key)

    @rule(which=WHICH, node=NOMINATED)
    def end_attempt(self, which, node):
        """Place the popped pod if it fits, else keep it as unschedulable, nominated or not."""
        pending, _ = self.choose(which, "active", popped=True)
        if pending is None:
            return
        workload = pending.workload
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
        self.attempting.pop(pending.key, None)

    def nominate(self, workload, node):
        victims = frozenset({f"victim-{self.serial}"})
        displaced = self.queue.nominate(workload, node, victims)
        assert [other.key for other in displaced] == self.plain.nominate(workload, node)
        assert self.queue.nominations.victims_of(workload.key) == victims

    @rule(which=WHICH)
    def attempt_breaks(self, which):
        pending, _ = self.choose(which, "active", popped=True)
        if pending is not None:
            self.queue.requeue(pending)
            self.plain.back_off(pending.key)
            self.attempting.pop(pending.key, None)

    @rule(which=WHICH, rejected=st.booleans(), terminating=st.booleans())
    def end_binding(self, which, rejected, terminating):
        pending, plain = self.choose(which, "binding")
        if pending is None:
            return
        if not rejected:
            self.queue.done(pending)
            self.queue.done(pending)
            self.plain.delete(pending.key)
            return
        self.cluster.index.remove(pending.key)
        pending.workload = plain.workload = msgspec.structs.replace(pending.workload, terminating=terminating)
        self.queue.requeue(pending)
        if terminating:
            self.plain.hold_back(pending.key)
        else:
            self.plain.back_off(pending.key)

    @rule(which=WHICH, is_recreated=st.booleans())
    def activate(self, which, is_recreated):
        pending, plain = self.choose(which, "active", "backoff", "unschedulable", "gated", "binding")
        if pending is None:
            return
        self.queue.activate(pending.key, "another" if is_recreated else pending.uid)
        if plain.stage == "unschedulable" and not is_recreated:
            self.plain.back_off(pending.key)

    @rule(which=WHICH)
    def clear_nomination(self, which):
        pending, _ = self.choose(which, "active", "backoff", "unschedulable", "gated", "binding")
        if pending is not None:
            self.queue.clear_nomination(pending.key)
            self.plain.set_node(pending.key, "")

    # Changes

    @rule(seconds=SECONDS)
    def wait(self, seconds):
        self.plain.now += seconds

    @rule(node=st.sampled_from(NODES), cpu=st.integers(2, 6))
    def resize_node(self, node, cpu):
        self.cluster.resize(node, cpu)

    @rule(which=WHICH, node=st.sampled_from(NODES), cpu=CPU)
    def place_another(self, which, node, cpu):
        name = f"other-{which % 3}"
        if f"web/{name}" in self.cluster.index.records:
            self.cluster.index.remove(f"web/{name}")
        else:
            self.cluster.index.add(pod(name, cpu), node)

    @rule(is_sweep=st.booleans())
    def requeue_schedulable(self, is_sweep):
        requeued = self.queue.move_to_active_or_backoff()
        if is_sweep:
            self.queue.mark_all_for_sweep()
            requeued += self.queue.sweep()
        for pending in requeued:
            assert self.cluster.fits(pending.workload, self.queue.nominations), "requeued in vain"
            assert self.plain.find(pending.key).stage == "unschedulable"
            self.plain.back_off(pending.key)
            self.attempting[pending.key] = class_of(pending.workload)
        assert not self.queue.has_candidates
        for one in self.plain.in_stage("unschedulable"):
            if self.cluster.fits(one.workload, self.queue.nominations):
                assert class_of(one.workload) in self.attempting.values(), f"{one.workload.key} was not requeued"

    @precondition(lambda self: self.plain.in_stage("unschedulable"))
    @rule()
    def requeue_schedulable_in_short_calls(self):
        """A call that may evaluate one class evaluates one; the next calls evaluate the others."""
        while True:
            before = self.queue.n_evaluations
            for pending in self.queue.move_to_active_or_backoff(lambda: True):
                self.plain.back_off(pending.key)
                self.attempting[pending.key] = class_of(pending.workload)
            assert self.queue.n_evaluations <= before + 1
            if not self.queue.has_candidates:
                break
        self.requeue_schedulable(False)

    # Invariants

    @invariant()
    def every_pod_is_in_the_stage_of_the_reference(self):
        assert {key: pending.stage.value for key, pending in self.queue.pods.items()} == {
            one.workload.key: one.stage for one in self.plain.pods
        }
        assert len(self.queue) == len(self.plain.pods)

    @invariant()
    def sizes_are_counts(self):
        for stage in QueueStage:
            assert self.queue.sizes[stage] == len(self.plain.in_stage(stage.value))

    @invariant()
    def every_pod_is_in_the_set_of_its_stage_alone(self):
        for one in self.plain.pods:
            pending = self.queue.pods[one.workload.key]
            assert self.queue.holds(pending)
            assert self.queue.is_unplaced(pending) == (one.stage != "binding")
            assert (pending in self.queue._active) == (one.stage == "active" and not one.is_popped)
            assert (pending in self.queue._backing_off) == (one.stage == "backoff")
            assert (pending.key in self.queue._unschedulable) == (one.stage == "unschedulable")
        assert len(self.queue._unschedulable) == len(self.plain.in_stage("unschedulable"))

    @invariant()
    def times_and_attempts_are_those_of_the_reference(self):
        for one in self.plain.pods:
            pending = self.queue.pods[one.workload.key]
            assert (pending.since, pending.queued, pending.tried) == (one.since, one.queued, one.tried)
            assert pending.attempts == one.attempts
        assert self.queue.ready_at() == self.plain.ready_at()

    @invariant()
    def nominations_stay_until_cleared(self):
        nominations = self.queue.nominations
        assert {workload.key: node for workload, node in nominations.all()} == dict(self.plain.nominated)
        assert all(
            nominations.victims_of(key) == frozenset() for key in self.queue.pods if not nominations.target_of(key)
        )


def class_of(workload):
    return workload.needs, workload.priority


TestQueueTransitions = QueueTransitions.TestCase
TestQueueTransitions.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
