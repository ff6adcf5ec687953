"""When unschedulable pods are retried, on a cluster in memory: no schedulable pod waits for the sweep."""

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bayplan.live.loop import SWEEP_INTERVAL_SECONDS
from bayplan.preempting import preemption
from bayplan.queueing import deciding
from bayplan.queueing.pending_pod import QueueStage
from live_loop.simulated import START, Simulation, apart, near
from test_large_pod_costs import n_lines


@pytest.fixture
def full():
    """One node, on which another pod of the size of `resident` does not fit."""
    simulation = Simulation()
    simulation.add_node("one", cpu="4")
    simulation.add_pod("resident", cpu="3", node="one")
    return simulation


async def test_after_the_deletion_of_the_retried_pod_the_next_one_is_placed(full):
    full.add_pod("first", cpu="3")
    full.add_pod("second", cpu="3")
    await full.settle()
    full.remove_pod("resident")
    full.scheduler.step()
    (retried,) = [
        key for key, pending in full.state.queue.pods.items() if pending.stage is not QueueStage.UNSCHEDULABLE
    ]
    full.remove_pod(retried.partition("/")[2])
    await full.settle(30)
    assert list(full.where().values()) == ["one"]


async def test_a_resource_that_a_pod_does_not_request_may_be_overcommitted():
    """Another scheduler has overcommitted the memory, which does not matter to a pod that requests none."""
    cluster = Simulation()
    cluster.add_node("one", cpu="4")
    cluster.add_pod("resident", cpu="3", node="one")
    cluster.add_pod("hog", node="one", containers=[container(memory="9Ti")])
    cluster.add_pod("thin", containers=[container(cpu="3", memory="0")])
    await cluster.settle()
    cluster.remove_pod("resident")
    await cluster.settle(15)
    assert cluster.where()["thin"] == "one"


def container(**requests):
    return {"name": "c", "image": "i", "resources": {"requests": requests}}


async def test_after_a_change_of_the_retried_pod_the_next_one_is_placed(full):
    full.add_pod("first", cpu="3")
    full.add_pod("second", cpu="3")
    await full.settle()
    full.remove_pod("resident")
    full.scheduler.step()
    (retried,) = [
        key for key, pending in full.state.queue.pods.items() if pending.stage is not QueueStage.UNSCHEDULABLE
    ]
    full.pods[retried]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"  # a finalizer delays the deletion
    full.report(retried.partition("/")[2])
    await full.settle(30)
    assert sorted(full.where().values()) == ["", "one"]


async def test_an_earlier_rejection_of_a_node_is_not_kept():
    """Two pods wait for a cordoned node. Once uncordoned, a third one takes it; they are retried when that is deleted."""
    cluster = Simulation()
    cluster.add_node("one", cpu="4", unschedulable=True)
    cluster.add_pod("first", cpu="3")
    cluster.add_pod("second", cpu="3")
    await cluster.settle()
    cluster.add_node("one", cpu="4")
    assert len(cluster.state.queue.move_to_active_or_backoff()) == 1
    cluster.add_pod("quick", cpu="3", node="one", scheduler="other")
    await cluster.settle(20)
    assert cluster.where() == {"first": "", "second": "", "quick": "one"}
    cluster.remove_pod("quick")
    await cluster.settle(30)
    assert sorted(cluster.where().values()) == ["", "one"]


async def test_an_unschedulable_pod_whose_backoff_is_over_is_tried_at_once():
    """Otherwise a later pod of lower priority takes the resources during the backoff."""
    cluster = Simulation()
    cluster.add_node("one", cpu="4")
    cluster.add_pod("resident", cpu="3", node="one", priority=100)
    cluster.add_pod("vip", cpu="3", priority=100)
    await cluster.settle()
    cluster.state.queue.pods["web/vip"].attempts = 5  # enough for the longest backoff
    await cluster.settle(60)
    cluster.remove_pod("resident")
    cluster.add_pod("late", cpu="3")
    await cluster.settle()
    assert cluster.where() == {"vip": "one", "late": ""}


async def test_a_cleared_nomination_retries_the_pods_that_it_kept_away():
    """`vip` is nominated to node one and placed on another; `low` could not use the nominated resources."""
    cluster = Simulation()
    cluster.add_node("one", cpu="4")
    cluster.add_pod("victim", cpu="3", node="one")

    async def never_ends(pod):
        cluster.deleted.append(pod.name)

    cluster.delete, bind = never_ends, cluster.bind

    async def answered_before_the_watch(pod, node):
        report, cluster.report = cluster.report, lambda *_names: None
        await bind(pod, node)
        cluster.report = report

    cluster.bind = answered_before_the_watch
    cluster.add_pod("vip", cpu="3", priority=100)
    await cluster.settle()
    cluster.add_pod("low", cpu="1", nodeSelector={"kubernetes.io/hostname": "one"})
    await cluster.settle()
    assert cluster.deleted == ["victim"]
    assert cluster.where()["low"] == ""
    cluster.add_node("two", cpu="3")
    await cluster.settle(20)
    assert cluster.where() == {"victim": "one", "vip": "two", "low": "one"}
    assert len(cluster.state.queue) == len(cluster.state.queue.nominations) == 0, "the watch has reported neither bind"


async def test_a_nomination_retries_the_next_pod_of_the_class():
    """Both pods wait while preemption is impossible; once it is possible, each gets a victim of its own."""
    cluster = Simulation()
    cluster.add_node("one", cpu="4")
    cluster.add_pod("important", cpu="4", priority=100, node="one")

    async def never_ends(pod):
        cluster.deleted.append(pod.name)

    cluster.delete = never_ends
    cluster.add_pod("first", cpu="2", priority=10)
    cluster.add_pod("second", cpu="2", priority=10)
    await cluster.settle()
    assert cluster.deleted == []
    cluster.remove_pod("important")
    for i in range(2):
        cluster.add_pod(f"victim-{i}", cpu="2", scheduler="other", node="one")
    await cluster.settle(20)
    assert set(cluster.deleted) == {"victim-0", "victim-1"}


async def test_a_pending_pod_that_is_recreated_under_its_name_is_another_pod(full):
    full.add_pod("a", cpu="100")
    await full.settle()
    old = full.state.queue.pods["web/a"]
    full.add_pod("a", cpu="1")  # the deletion was never reported
    assert full.state.queue.pods["web/a"] is not old
    await full.settle()
    assert full.where()["a"] == "one"


async def test_an_update_of_a_claim_without_a_change_retries_no_pod(full):
    full.add_claim("data")
    full.add_pod("huge", cpu="100")
    await full.settle()
    before = full.state.queue.n_evaluations
    full.claims["web/data"]["metadata"]["labels"] = {"written": "again"}
    full.report_claim("data")
    await full.settle(20)
    assert full.state.queue.n_evaluations == before


async def test_the_sweep_reports_a_schedulable_pod_that_no_change_has_requeued(full, monkeypatch, caplog):
    full.add_pod("huge", cpu="100")
    await full.settle()
    monkeypatch.setattr(full.parts.evaluator, "fits", lambda _workload, _nominations: True)
    full.now = SWEEP_INTERVAL_SECONDS - 1
    full.scheduler.step()
    assert full.state.queue.pods["web/huge"].attempts == 1
    full.now = SWEEP_INTERVAL_SECONDS
    full.scheduler.step()
    assert full.state.queue.pods["web/huge"].attempts == 2
    assert full.parts.metrics.missed_requeues._value.get() == 1
    assert "requeued by the sweep, not by a change" in caplog.text


async def test_pods_that_a_new_term_distinguishes_are_grouped_again(full):
    """Both are equivalent until a pod comes that keeps one of them away."""
    full.add_pod("kept-away", cpu="3", labels={"app": "a"})
    full.add_pod("other", cpu="3", labels={"app": "b"})
    await full.settle()
    full.add_pod("new", cpu="1", node="one", affinity=apart(app="a"))
    await full.settle(20)
    full.remove_pod("resident")
    await full.settle(20)
    assert full.where() == {"kept-away": "", "other": "one", "new": "one"}


# Many classes


async def work_of_a_change(n_classes, change):
    """How many lines the first step after a change takes beside unschedulable pods of so many classes."""
    cluster = Simulation()
    for name in ("one", "two", "three"):
        cluster.add_node(name, cpu="4")
    cluster.add_pod("resident", cpu="1", node="one")
    for i in range(n_classes):
        cluster.add_pod(f"huge-{i}", cpu=f"{4000 + i}m", labels={"number": str(i)})
    await cluster.settle(0)
    cluster.slowness = OUT_OF_TIME
    change(cluster)
    lines = n_lines(cluster.scheduler.step)
    assert cluster.state.queue.has_candidates
    cluster.slowness = 0.0
    await cluster.settle(0)
    assert not cluster.state.queue.has_candidates
    return lines


def a_pod_leaves(cluster):
    cluster.remove_pod("resident")


def a_term_distinguishes_them(cluster):
    cluster.add_pod("new", cpu="1", node="two", affinity=apart(number="7"))


@pytest.mark.parametrize("change", [a_pod_leaves, a_term_distinguishes_them], ids=lambda change: change.__name__)
async def test_a_step_after_a_change_is_as_short_with_many_classes(change):
    """A tenant may create thousands of pods that have a class of their own each; others are scheduled between."""
    await work_of_a_change(3, change)
    assert await work_of_a_change(120, change) < 1.5 * await work_of_a_change(20, change)


# Random events

OUT_OF_TIME = 0.005  # seconds for each reading of the clock, so that every class is evaluated in a step of its own
SIZES = ("500m", "1", "2", "3")
RULES = ({}, {}, {}, apart(app="a"), apart("topology.kubernetes.io/zone", app="b"), near(app="a"))


class RandomEvents:
    """Random events of a cluster while the scheduler works."""

    def __init__(self, seed, slowness=0.0):
        self.chance = random.Random(seed)
        self.cluster = Simulation(slowness=slowness)
        self.n = 0
        self.delete, self.cluster.delete = self.cluster.delete, self.evict
        for i in range(4):
            self.set_node(i)

    def set_node(self, i):
        closed = self.chance.random() < 0.3
        self.cluster.add_node(f"n{i}", zone="ab"[i % 2], cpu=self.chance.choice(("2", "4")), unschedulable=closed)
        self.cluster.scheduler.changed()

    def add_pod(self):
        self.n += 1
        self.cluster.add_pod(
            f"p{self.n}",
            cpu=self.chance.choice(SIZES),
            labels={"app": self.chance.choice("ab")},
            affinity=self.chance.choice(RULES),
            priority=self.chance.choice((0, 0, 0, 10, 20)),
        )

    def remove_pod(self):
        if self.cluster.pods:
            self.cluster.remove_pod(self.chance.choice(sorted(self.cluster.pods)).partition("/")[2])

    async def evict(self, pod):
        """Most pods terminate only later."""
        if self.chance.random() < 0.3:
            await self.delete(pod)
            return
        self.cluster.deleted.append(pod.name)
        self.cluster.pods[f"web/{pod.name}"]["metadata"]["deletionTimestamp"] = START.isoformat()
        self.cluster.report(pod.name)

    def terminate(self):
        """End one of the terminating pods."""
        terminating = [key for key, pod in sorted(self.cluster.pods.items()) if "deletionTimestamp" in pod["metadata"]]
        if terminating:
            self.cluster.remove_pod(self.chance.choice(terminating).partition("/")[2])

    def relabel(self):
        if self.cluster.pods:
            key = self.chance.choice(sorted(self.cluster.pods))
            self.cluster.pods[key]["metadata"]["labels"] = {"app": self.chance.choice("abc")}
            self.cluster.report(key.partition("/")[2])

    async def step(self):
        for _ in range(self.chance.randint(1, 6)):
            what = self.chance.choice((*[self.add_pod] * 3, self.remove_pod, self.relabel, *[self.terminate] * 2, None))
            if what is None:
                self.set_node(self.chance.randrange(4))
            else:
                what()
            if self.chance.random() < 0.3:
                self.cluster.scheduler.step()
        await self.cluster.settle(11)

    def schedulable_but_not_retried(self):
        state, engine = self.cluster.state, self.cluster.parts.engines["bayplan"]
        return [
            pending.key
            for pending in state.queue.pods.values()
            if pending.stage is QueueStage.UNSCHEDULABLE
            and deciding.choose(pending.workload, engine, state.queue.nominations).slot >= 0
        ]

    def preempting_but_not_retried(self):
        """The pods for which preemption would evict a pod that is not evicted for them yet."""
        state, engine = self.cluster.state, self.cluster.parts.engines["bayplan"]
        found = []
        for pending in state.queue.pods.values():
            if pending.stage is QueueStage.UNSCHEDULABLE:
                result = preemption.preempt(pending.workload, engine, nominated=state.queue.nominations.all())
                uids = {state.index.records[key].workload.uid for key in result.victims}
                if uids - state.queue.nominations.victims_of(pending.key):
                    found.append(pending.key)
        return found


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), slowness=st.sampled_from((0.0, OUT_OF_TIME)))
@example(seed=51, slowness=0)  # a nomination that moves to another node frees the first one
@example(seed=382, slowness=0)  # two pods nominated to one node block each other until a third one is deleted
@example(seed=955, slowness=0)  # a pod of higher priority takes the freed resources, so preemption is needed elsewhere
@example(seed=3018, slowness=0)  # a pod was tried before the API server had cleared its nomination
async def test_every_schedulable_pod_is_retried(seed, slowness):
    events = RandomEvents(seed, slowness)
    for _ in range(12):
        await events.step()
        assert events.schedulable_but_not_retried() == []
        assert events.preempting_but_not_retried() == []
    assert events.cluster.parts.metrics.missed_requeues._value.get() == 0


async def test_a_change_at_the_time_of_the_sweep_is_no_missed_requeue():
    cluster = Simulation()
    cluster.add_node("one", cpu="1")
    for number in range(4):
        cluster.add_pod(f"pod-{number}", cpu="1")
    await cluster.settle(SWEEP_INTERVAL_SECONDS - 1)
    cluster.now += 1
    cluster.add_node("two", cpu="3")
    await cluster.settle()
    assert sorted(cluster.where().values()) == ["one", "two", "two", "two"]
    assert cluster.parts.metrics.missed_requeues._value.get() == 0
