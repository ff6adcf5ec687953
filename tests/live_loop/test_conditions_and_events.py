"""Conditions and events of pending pods, on a cluster in memory: none is missing, and none is outdated."""

import asyncio

import pytest

from bayplan.live import events
from bayplan.live.cluster_writer import PodGoneError, RejectedError, UnknownOutcomeError
from bayplan.validating import names
from live_loop.simulated import Simulation


@pytest.fixture
def cluster(monkeypatch):
    async def at_once(_seconds):
        await asyncio.sleep(0)

    simulation = Simulation()
    simulation.add_node("one", cpu="4")
    monkeypatch.setattr(simulation.scheduler._conditions, "_sleep", at_once)
    return simulation


async def test_a_condition_that_could_not_be_written_is_written_later(cluster):
    """Autoscalers add nodes for pods that have the condition."""
    patch, failures = cluster.patch_status, [UnknownOutcomeError("no answer"), UnknownOutcomeError("no answer")]

    async def succeeds_at_last(pod, status):
        if failures:
            raise failures.pop()
        await patch(pod, status)

    cluster.patch_status = succeeds_at_last
    cluster.add_pod("huge", cpu="100")
    await cluster.settle()
    assert cluster.condition("huge")["reason"] == "Unschedulable"


async def test_a_condition_that_the_server_rejects_is_not_written_again(cluster):
    tried = []

    async def rejected(pod, _status):
        tried.append(pod.name)
        raise RejectedError("no rights")

    cluster.patch_status = rejected
    cluster.add_pod("huge", cpu="100")
    await cluster.settle()
    assert tried == ["huge"]


async def test_a_pod_that_is_placed_meanwhile_gets_no_unschedulable_condition(cluster):
    patch, answers = cluster.patch_status, asyncio.Event()

    async def slow(pod, status):
        await answers.wait()
        await patch(pod, status)

    cluster.patch_status = slow
    for i in range(40):  # more than are written at once
        cluster.add_pod(f"huge-{i}", cpu="100")
    cluster.add_pod("late", cpu="5")
    cluster.scheduler.step()
    await asyncio.sleep(0)
    cluster.add_node("two", cpu="6")
    cluster.now = 2.0
    for _ in range(5):
        cluster.scheduler.step()
        await asyncio.sleep(0)
    answers.set()
    await cluster.settle()
    assert cluster.where()["late"] == "two"
    assert cluster.condition("late") == {}


async def test_a_condition_with_another_message_keeps_its_transition_time(cluster):
    cluster.add_pod("huge", cpu="100")
    await cluster.settle(10)
    first = cluster.condition("huge")
    cluster.add_node("two")
    cluster.state.queue.activate("web/huge", "uid-1")
    await cluster.settle(20)
    assert cluster.condition("huge")["message"] != first["message"]
    assert cluster.condition("huge")["lastTransitionTime"] == first["lastTransitionTime"]


async def test_an_expired_event_is_created_again(cluster):
    """The API server keeps events for an hour; a pod may be pending for longer."""

    async def gone(namespace, name, _patch):
        raise PodGoneError(f"{namespace}/{name} is gone")

    cluster.patch_event = gone
    cluster.add_pod("huge", cpu="100")
    await cluster.settle()
    cluster.now += events.SERIES_UPDATE_SECONDS
    cluster.state.queue.activate("web/huge", "uid-1")
    await cluster.settle(20)
    assert len(cluster.notes("huge", "FailedScheduling")) == 2


@pytest.mark.parametrize("end", ["-", "--", "."])
async def test_the_event_of_a_pod_with_a_long_name_has_a_valid_name(cluster, end):
    name = f"{'a' * (200 - len(end))}{end}{'b' * 20}"
    cluster.add_pod(name, cpu="100")
    await cluster.settle()
    (event,) = [one for one in cluster.events if one["regarding"]["name"] == name]
    assert names.dns_subdomain(event["metadata"]["name"]) == []


async def test_a_rejected_bind_counts_as_an_error(cluster):
    cluster.failures = [RejectedError("no")]
    cluster.add_pod("web")
    await cluster.settle()
    text = cluster.parts.metrics.text().decode()
    assert 'scheduler_schedule_attempts_total{profile="bayplan",result="error"} 1.0' in text
