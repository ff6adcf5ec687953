"""Binding: how a decision reaches the API server and how failures are handled, on a cluster in memory."""

import asyncio

import pytest

from bayplan.live.cluster_writer import PodGoneError, RejectedError, ServerFailureError, UnknownOutcomeError
from bayplan.queueing.pending_pod import QueueStage
from live_loop.simulated import Simulation, apart, using


@pytest.fixture
def cluster():
    simulation = Simulation()
    simulation.add_node("one", zone="a")
    simulation.add_node("two", zone="b")
    simulation.add_class("late", provisioner="csi.example")
    return simulation


async def until(done):
    """Let the scheduler and its tasks run until a condition holds."""
    for _ in range(1000):
        if done():
            return
        await asyncio.sleep(0)
    raise AssertionError("the condition never held")


async def step(cluster):
    """Run one step, and the tasks it starts until they wait."""
    cluster.scheduler.step()
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_pod_recreated_while_its_predecessor_is_bound_is_scheduled(cluster):
    """A pod of a StatefulSet is deleted and recreated under its name before the response to the first bind arrives."""
    answers, bind = asyncio.Event(), cluster.bind

    async def slow(pod, node):
        if pod.uid == "uid-1":
            await answers.wait()
            raise PodGoneError("it is gone")
        await bind(pod, node)

    cluster.bind = slow
    cluster.add_pod("db-0")
    await step(cluster)
    cluster.remove_pod("db-0")
    cluster.add_pod("db-0")
    answers.set()
    await until(lambda: not cluster.scheduler._tasks)
    await cluster.settle(2)
    assert cluster.where()["db-0"]


async def test_a_pod_whose_claim_is_deleted_before_the_bind_is_requeued(cluster):
    cluster.add_claim("data")
    select = cluster.select_node

    async def gone(claim, node):
        del claim, node
        raise PodGoneError('persistentvolumeclaims "data" not found')

    cluster.select_node = gone
    cluster.add_pod("db", volumes=using("data"))
    await cluster.settle()
    (note,) = cluster.notes("db", "FailedScheduling")
    assert 'persistentvolumeclaims "data" not found' in note
    cluster.select_node = select
    cluster.now = 2.0
    await step(cluster)
    cluster.add_volume("made", "late")
    cluster.bind_claim("data", "made")
    await cluster.settle()
    assert cluster.where()["db"]


async def test_an_unknown_outcome_of_a_claim_write_does_not_end_the_scheduler(cluster):
    cluster.add_claim("data")

    async def silent(claim, node):
        raise UnknownOutcomeError("connection lost")

    cluster.select_node = silent
    cluster.add_pod("db", volumes=using("data"))
    cluster.add_pod("web")
    await cluster.settle()
    assert cluster.where()["web"]
    assert cluster.state.queue.pods["web/db"].stage is QueueStage.BACKOFF
    assert cluster.scheduler._failure is None


async def test_pods_that_wait_for_volumes_do_not_delay_other_pods(cluster):
    for i in range(80):
        cluster.add_claim(f"data-{i}")
        cluster.add_pod(f"db-{i}", volumes=using(f"data-{i}"))
    await step(cluster)
    cluster.add_pod("web")
    await until(lambda: step_until_placed(cluster, "web"))


def step_until_placed(cluster, name):
    cluster.scheduler.step()
    return cluster.where()[name] != ""


async def test_shutdown_does_not_wait_for_volumes(cluster):
    """The next leader takes over at once and handles the pod."""
    cluster.add_claim("data")
    cluster.add_pod("db", volumes=using("data"))
    cluster.add_pod("web")
    await step(cluster)
    async with asyncio.timeout(1):
        await cluster.scheduler.idle()
    assert cluster.where() == {"db": "", "web": cluster.where()["web"]}


async def test_a_pod_deleted_while_it_waits_for_its_volume_ends_the_wait(cluster):
    cluster.add_claim("data")
    cluster.add_pod("db", volumes=using("data"))
    await step(cluster)
    cluster.remove_pod("db")
    await until(lambda: not cluster.scheduler._tasks)
    assert not cluster.notes("db", "Scheduled")


async def test_a_pod_whose_node_is_removed_while_it_waits_for_its_volume_is_bound_elsewhere(cluster):
    cluster.add_claim("data")
    cluster.add_pod("db", volumes=using("data"))
    await step(cluster)
    first = cluster.claims["web/data"]["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]
    cluster.remove_node(first)
    cluster.add_volume("made", "late")
    cluster.bind_claim("data", "made")
    await cluster.settle(2)
    assert cluster.where()["db"] not in ("", first)


async def test_changes_of_one_claim_wake_only_the_pods_that_wait_for_it(cluster, monkeypatch):
    """A tenant may have many pods that wait for volumes, and change a claim as often as it likes."""
    for i in range(30):
        cluster.add_claim(f"data-{i}")
        cluster.add_pod(f"db-{i}", volumes=using(f"data-{i}"))
    await step(cluster)
    assert len(cluster.parts.volumes._waits._waiting) == 30
    checked, is_bound = [], cluster.parts.volumes._is_bound
    monkeypatch.setattr(
        cluster.parts.volumes,
        "_is_bound",
        lambda choice, node: checked.append(choice.claim.name) or is_bound(choice, node),
    )
    for i in range(20):
        cluster.claims["web/data-7"]["metadata"]["labels"] = {"x": str(i)}
        cluster.report_claim("data-7")
        await step(cluster)
    assert checked == [], "nothing that is read has changed"
    cluster.claims["web/data-7"]["spec"]["resources"]["requests"]["storage"] = "2Gi"
    cluster.report_claim("data-7")
    await step(cluster)
    assert checked == ["data-7"]
    cluster.add_volume("made", "late")
    cluster.bind_claim("data-7", "made")
    await cluster.settle(2)
    assert [name for name, node in cluster.where().items() if node] == ["db-7"]
    for i in range(30):
        if i != 7:
            cluster.remove_pod(f"db-{i}")
    await until(lambda: not cluster.scheduler._tasks)
    assert not cluster.parts.volumes._waits._by_claim


async def test_a_pod_follows_a_volume_provisioned_on_another_node(cluster):
    cluster.add_claim("data")
    cluster.add_pod("db", volumes=using("data"))
    await step(cluster)
    chosen = cluster.claims["web/data"]["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]
    other = "two" if chosen == "one" else "one"
    cluster.add_volume("made", "late", node=other)
    cluster.bind_claim("data", "made")
    await cluster.settle(2)
    assert cluster.where()["db"] == other


async def test_a_reported_selected_node_survives_unreserve(cluster):
    """The provisioner has the selected node: until it gives up, the pod must not be bound to another one."""
    cluster.add_claim("data")
    cluster.add_pod("db", volumes=using("data"))
    await step(cluster)
    chosen = cluster.claims["web/data"]["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]
    cluster.parts.volumes.unreserve(cluster.state.queue.pods["web/db"].workload)
    assert cluster.state.index.storage.claims["web/data"].selected_node == chosen


async def test_a_volume_just_bound_by_another_writer_is_not_overwritten(cluster):
    cluster.add_class("local")
    cluster.add_claim("data", "local")
    cluster.add_volume("disk", "local")
    cluster.take_volume("disk", "theirs", "uid-theirs")  # not reported by the watch yet
    cluster.add_pod("db", volumes=using("data"))
    await cluster.settle()
    assert cluster.volumes["disk"]["spec"]["claimRef"]["name"] == "theirs"
    cluster.report_volume("disk")
    cluster.add_volume("second-disk", "local", node="two")
    cluster.now = 2.0
    await step(cluster)
    cluster.bind_claim("data", "second-disk")
    await cluster.settle()
    assert cluster.where()["db"] == "two"


async def test_a_pod_bound_elsewhere_while_the_outcome_is_unknown_gets_no_wrong_event(cluster, monkeypatch):
    async def meanwhile(_seconds):
        cluster.change_pod("web", nodeName="elsewhere")

    monkeypatch.setattr(cluster.scheduler._binder, "_sleep", meanwhile)
    cluster.failures = [UnknownOutcomeError("connection lost")]
    cluster.add_pod("web")
    await cluster.settle()
    assert cluster.notes("web", "Scheduled") == []


async def test_a_bind_whose_node_is_removed_is_not_retried(cluster, monkeypatch):
    async def meanwhile(_seconds):
        cluster.remove_node("one")
        cluster.remove_node("two")

    monkeypatch.setattr(cluster.scheduler._binder, "_sleep", meanwhile)
    cluster.failures = [UnknownOutcomeError("connection lost")]
    cluster.add_pod("web")
    await cluster.settle()
    assert cluster.where() == {"web": ""}
    cluster.add_node("three")
    await cluster.settle(10)
    assert cluster.where() == {"web": "three"}


async def test_a_server_failure_for_one_pod_is_reported_and_delays_no_other_pod(cluster, monkeypatch):
    """A webhook for binds is down: every response is 500."""

    async def at_once(_seconds):
        return None

    async def fails(pod, node):
        if pod.name == "cursed":
            raise ServerFailureError("failed calling webhook: connection refused")
        await bind(pod, node)

    bind, cluster.bind = cluster.bind, fails
    monkeypatch.setattr(cluster.scheduler._binder, "_sleep", at_once)
    cluster.add_pod("cursed")
    cluster.add_pod("web")
    await cluster.settle()
    assert cluster.where()["web"]
    (note,) = cluster.notes("cursed", "FailedScheduling")
    assert "failed calling webhook" in note
    cluster.bind = bind
    await cluster.settle(2)
    assert cluster.where()["cursed"]


async def test_a_pod_that_becomes_terminating_while_it_is_bound_is_not_retried(cluster):
    """A finalizer keeps the pod; the API server rejects a bind of a terminating pod."""
    tried = []

    async def refused(pod, node):
        tried.append(node)
        if len(tried) == 1:
            cluster.pods["web/web"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            cluster.report("web")
        raise RejectedError("pod web is being deleted, cannot be assigned to a host")

    cluster.bind = refused
    cluster.add_pod("web")
    await cluster.settle(60)
    assert len(tried) == 1


async def test_changes_during_a_failed_bind_count_at_the_next_attempt(cluster):
    async def refused(_pod, _node):
        cluster.bind = bind
        cluster.pods["web/web"]["metadata"]["labels"] = {"app": "other"}
        cluster.report("web")
        cluster.add_node("one", unschedulable=True)
        raise RejectedError("not now")

    bind, cluster.bind = cluster.bind, refused
    cluster.add_pod("hermit", node="two", affinity=apart(app="web"))
    cluster.add_pod("web", labels={"app": "web"})
    await cluster.settle(5)
    assert cluster.where()["web"] == "two"
