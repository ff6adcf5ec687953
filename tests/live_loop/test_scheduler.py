"""The scheduling loop on a cluster in memory."""

import asyncio
import contextlib

import pytest

from bayplan.live.cluster_writer import RejectedError, UnknownOutcomeError
from bayplan.live.loop import MAX_BINDS_IN_FLIGHT
from bayplan.queueing.pending_pod import QueueStage
from live_loop.simulated import Simulation, apart, near

ZONE = "topology.kubernetes.io/zone"


@pytest.fixture
def cluster():
    simulation = Simulation()
    simulation.add_node("one", zone="a")
    simulation.add_node("two", zone="b")
    return simulation


async def test_pods_are_bound_and_get_an_event(cluster):
    cluster.add_pod("web")
    await cluster.settle()
    assert cluster.where()["web"] in ("one", "two")
    assert cluster.notes("web", "Scheduled") == [f"Successfully assigned web/web to {cluster.where()['web']}"]


async def test_a_slow_machine_does_not_leave_ready_pods_in_the_queue():
    cluster = Simulation(slowness=1.0)  # a second passes between two readings of the clock
    cluster.add_node("one")
    cluster.add_pod("a")
    cluster.add_pod("b")
    assert cluster.scheduler.step(), "a loop without work waits for the next change"
    assert cluster.scheduler.step()
    await cluster.scheduler.idle()
    assert cluster.where() == {"a": "one", "b": "one"}


@contextlib.asynccontextmanager
async def waiting_loop(cluster, monkeypatch):
    """The loop runs inside the block, in which no watch tells it of a change."""
    running = asyncio.create_task(cluster.scheduler.run())
    await some_iterations()
    monkeypatch.setattr(cluster.scheduler, "changed", lambda: None)
    yield
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


async def some_iterations():
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_pod_that_becomes_pending_ends_the_wait_of_the_loop(cluster, monkeypatch):
    async with waiting_loop(cluster, monkeypatch):
        cluster.add_pod("web")
        await some_iterations()
        assert cluster.where()["web"]


async def test_a_bind_that_ends_lets_a_full_loop_continue(cluster, monkeypatch):
    answers, bind = asyncio.Semaphore(0), cluster.bind

    async def slowly(pod, node):
        await answers.acquire()
        await bind(pod, node)

    cluster.bind = slowly
    for i in range(MAX_BINDS_IN_FLIGHT + 1):
        cluster.add_pod(f"web-{i}")
    async with waiting_loop(cluster, monkeypatch):
        assert cluster.state.queue.sizes[QueueStage.BINDING] == MAX_BINDS_IN_FLIGHT
        answers.release()
        await some_iterations()
        assert cluster.state.queue.sizes[QueueStage.ACTIVE] == 0


async def test_pods_of_other_schedulers_are_not_scheduled_but_counted(cluster):
    cluster.add_pod("theirs", scheduler="default-scheduler", labels={"app": "x"})
    cluster.add_pod("running", scheduler="default-scheduler", labels={"app": "x"}, node="one")
    cluster.add_pod("ours", labels={"app": "x"}, affinity=apart(app="x"))
    await cluster.settle()
    assert cluster.where() == {"theirs": "", "running": "one", "ours": "two"}


async def test_blockers_are_named_by_domain_with_what_they_block():
    cluster = Simulation()
    for number in range(9):
        cluster.add_node(f"node-{number}", zone="aabbbbccd"[number])
    for number, node in ((1, "node-0"), (2, "node-2"), (3, "node-3"), (4, "node-6"), (5, "node-8")):
        cluster.add_pod(f"old-{number}", labels={"app": "x"}, node=node)
    cluster.add_pod("new", labels={"app": "x"}, affinity=apart(ZONE, app="x"))
    await cluster.settle()
    (note,) = cluster.notes("new", "FailedScheduling")
    blocked = note.partition(" Blocked by ")[2]
    assert blocked == (
        f"web/old-2 and 1 more in {ZONE}=b (4 nodes), web/old-1 in {ZONE}=a (2 nodes), "
        f"web/old-4 in {ZONE}=c (2 nodes), others (1 node)."
    )


async def test_an_unschedulable_pod_names_its_blockers_and_is_requeued_when_one_is_deleted(cluster):
    for name in ("a", "b", "c"):
        cluster.add_pod(name, labels={"app": "x"}, affinity=apart(app="x"))
    await cluster.settle()
    (pending,) = [name for name, node in cluster.where().items() if not node]
    (note,) = cluster.notes(pending, "FailedScheduling")
    assert note.startswith("0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules. preemption: ")
    assert "Blocked by web/" in note
    assert cluster.condition(pending)["reason"] == "Unschedulable"
    attempts = cluster.state.queue.pods[f"web/{pending}"].attempts
    await cluster.settle(60)
    assert cluster.state.queue.pods[f"web/{pending}"].attempts == attempts, "without a change there is no attempt"
    cluster.remove_pod(next(name for name, node in cluster.where().items() if node))
    await cluster.settle(2)
    assert all(cluster.where().values())


async def test_the_deletion_of_an_unrelated_pod_requeues_no_pod(cluster):
    for name in ("a", "b", "c"):
        cluster.add_pod(name, labels={"app": "x"}, affinity=apart(app="x"))
    cluster.add_pod("bystander")
    await cluster.settle()
    asked = cluster.state.queue.n_evaluations
    cluster.remove_pod("bystander")
    await cluster.settle(20)
    assert cluster.state.queue.n_evaluations == asked


async def test_gated_pods_wait_for_their_gates(cluster):
    cluster.add_pod("web", schedulingGates=[{"name": "quota"}])
    await cluster.settle(30)
    assert cluster.where() == {"web": ""}
    assert cluster.state.queue.sizes[QueueStage.GATED] == 1
    cluster.change_pod("web", schedulingGates=[])
    await cluster.settle()
    assert cluster.where()["web"]
    text = cluster.parts.metrics.text().decode()
    assert 'scheduler_pod_scheduling_sli_duration_seconds_sum{attempts="1"} 0.0' in text, (
        "time behind a gate does not count"
    )


async def test_a_pod_is_scheduled_when_its_required_peer_appears(cluster):
    cluster.add_pod("follower", affinity=near(app="db"))
    await cluster.settle()
    assert cluster.where()["follower"] == ""
    cluster.add_pod("db", labels={"app": "db"}, scheduler="other", node="two")
    await cluster.settle(2)
    assert cluster.where()["follower"] == "two"


async def test_a_rejected_bind_is_unreserved_and_requeued(cluster):
    cluster.failures = [RejectedError("no")]
    cluster.add_pod("web", cpu="4")
    await cluster.settle(0)
    assert cluster.where() == {"web": ""}
    assert not cluster.state.index.records
    await cluster.settle(1)
    assert cluster.where()["web"]
    assert len(cluster.state.index.records) == 1


async def test_a_bind_of_unknown_outcome_is_checked(cluster, monkeypatch):
    async def at_once(_seconds):
        return None

    monkeypatch.setattr(cluster.scheduler._binder, "_sleep", at_once)
    cluster.failures = [UnknownOutcomeError("connection lost"), UnknownOutcomeError("connection lost")]
    cluster.add_pod("web")
    await cluster.settle()
    assert len(cluster.binds) == 1
    assert cluster.where()["web"]


async def test_a_recreated_pod_is_another_pod(cluster):
    cluster.add_pod("web", cpu="3")
    await cluster.settle()
    cluster.remove_pod("web")
    cluster.add_pod("web", cpu="3")
    await cluster.settle()
    assert len(cluster.binds) == 2
    assert len(cluster.state.index.records) == 1


async def test_a_pod_of_higher_priority_preempts_one_of_lower_priority(cluster):
    cluster.add_pod("low-1", cpu="3", node="one")
    cluster.add_pod("low-2", cpu="3", node="two")
    cluster.add_pod("vip", cpu="3", priority=1000)
    await cluster.settle(2)
    assert len(cluster.deleted) == 1
    assert cluster.where()["vip"]
    assert len(cluster.state.queue.nominations) == 0


async def test_a_disruption_budget_decides_which_pod_is_preempted(cluster):
    cluster.add_budget("keep", {"app": "precious"}, allowed=0)
    cluster.add_pod("precious", cpu="3", node="one", labels={"app": "precious"})
    cluster.add_pod("other", cpu="3", node="two")
    cluster.add_pod("vip", cpu="3", priority=1000)
    await cluster.settle(2)
    assert cluster.deleted == ["other"]


async def test_room_of_a_nominated_pod_is_not_taken(cluster):
    cluster.add_pod("low-1", cpu="3", node="one")
    cluster.add_pod("low-2", cpu="3", node="two")

    async def slowly(pod):
        cluster.deleted.append(pod.name)  # it terminates later

    cluster.delete = slowly
    cluster.add_pod("vip", cpu="3", priority=1000)
    await cluster.settle()
    (victim,) = cluster.deleted
    cluster.add_pod("sneaky", cpu="3")
    await cluster.settle()
    cluster.remove_pod(victim)
    await cluster.settle(3)
    assert cluster.where()["vip"]
    assert cluster.where()["sneaky"] == ""


async def test_a_malformed_rule_is_reported_and_other_pods_are_scheduled(cluster):
    cluster.add_pod("broken", annotations={"bayplan.io/affinity": '{"podAffinity": {"surprise": 1}}'})
    cluster.add_pod("fine")
    await cluster.settle()
    assert cluster.where()["fine"]
    (note,) = cluster.notes("broken", "FailedScheduling")
    assert "surprise" in note


async def test_pods_with_resource_claims_are_left_to_kube_scheduler(cluster):
    cluster.add_pod("gpu", resourceClaims=[{"name": "gpu"}])
    await cluster.settle()
    (note,) = cluster.notes("gpu", "FailedScheduling")
    assert "spec.resourceClaims" in note


async def test_an_internal_error_is_reported_and_other_pods_are_scheduled(cluster, monkeypatch, caplog):
    from bayplan.queueing import deciding

    choose = deciding.choose

    def broken(workload, *rest):
        if workload.name == "cursed":
            raise ZeroDivisionError
        return choose(workload, *rest)

    monkeypatch.setattr(deciding, "choose", broken)
    cluster.add_pod("cursed")
    cluster.add_pod("fine")
    await cluster.settle()
    assert cluster.where()["fine"]
    assert cluster.condition("cursed")["reason"] == "SchedulerError"
    monkeypatch.undo()
    await cluster.settle(1)
    assert cluster.where()["cursed"], "it is tried again after its backoff"


async def test_a_pod_with_an_absurd_request_does_no_harm(cluster):
    """Every user who may create pods may write this, and set a node without a scheduler."""
    most = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"memory": str(2**63 - 1)}}}]}
    cluster.add_pod("ordinary", cpu="1", node="one")
    for name in ("a", "b", "c"):
        cluster.add_pod(name, node="one", **most)
    cluster.add_pod("web", cpu="1")
    cluster.add_pod("vip", priority=100, **most)
    await cluster.settle(5)
    assert cluster.where()["web"] == "two"
    assert cluster.where()["vip"] == ""
    assert cluster.deleted == []
    for name in ("a", "b", "c", "vip"):
        cluster.remove_pod(name)
    cluster.add_pod("big", cpu="3", nodeSelector={"kubernetes.io/hostname": "one"})
    await cluster.settle(5)
    assert cluster.where()["big"] == "one"
    capacity, slot = cluster.state.index.capacity, cluster.state.index.slots.by_name["one"]
    assert capacity.requested[capacity.row("memory"), slot] == 0


async def test_repeated_failures_are_one_event(cluster):
    cluster.add_pod("huge", cpu="100")
    await cluster.settle()
    for i in range(5):
        cluster.add_node(f"more-{i}")
        await cluster.settle(20)
    assert len(cluster.notes("huge", "FailedScheduling")) <= 6
    assert cluster.state.queue.sizes[QueueStage.UNSCHEDULABLE] == 1


async def test_a_step_evaluates_a_bounded_number_of_unschedulable_classes(cluster, monkeypatch):
    """Sixty classes are unschedulable, a new node concerns all of them, and each evaluation takes a millisecond."""
    for i in range(60):
        cluster.add_pod(f"huge-{i}", cpu=f"{100 + i}")
    await cluster.settle()
    queue = cluster.state.queue

    def slowly(_workload, _nominations):
        cluster.now += 0.001
        return False

    monkeypatch.setattr(cluster.parts.evaluator, "fits", slowly)
    cluster.add_node("three")
    asked, steps = queue.n_evaluations, []
    while cluster.scheduler.step():
        steps.append(queue.n_evaluations - asked - sum(steps))
    assert queue.n_evaluations - asked == 60
    assert max(steps) <= 5
