"""
A storm and a signal, as a process of its own feels them.

Five hundred violations at once on a real API server are resolved within the limits, and scheduling continues.
"""

import asyncio
import contextlib
import re
import signal
import time

import pytest

from live import bayplan_running
from live.admin import wait_for
from live.breaking import HOST, ZONE, Cluster, apart
from live.objects import pod

MINUTE = 59.0  # as a watch sees it: the delay of events varies
LONG = 0.1  # seconds of work in one iteration of the event loop


@pytest.mark.parametrize(
    "nodes, key, stay, per_minute",
    [
        (250, HOST, 250, 150),  # two on each node: one of each pair is evicted, which takes more than a minute
        (500, ZONE, 1, 500),  # all pods have anti-affinity to each other
    ],
    ids=["pairs", "crowd"],
)
async def test_a_storm_of_five_hundred_violations(nodes, key, stay, per_minute, kube_server, admin, namespace):
    cluster = await Cluster(admin, namespace).set_up()
    await admin.create_nodes(nodes, zones=1)
    rules = {"labels": {"app": "web"}, "annotations": apart(key, app="web")}
    await admin.create_all([cluster.manifest(f"web-{i}", nodeName=f"node-{i % nodes}", **rules) for i in range(500)])
    limits = ("--enforce-per-minute", str(per_minute), "--enforce-anti-affinity-grace", "1s")
    async with ends_of_pods(admin, namespace) as ended:
        scheduler = bayplan_running.process(kube_server, "--enforce", *limits)
        await wait_for(lambda: len(ended) >= 100)
        await admin.create_all([pod(f"new-{i}", namespace, scheduler=bayplan_running.NAME) for i in range(20)])
        await wait_for(lambda: all_bound(admin, namespace))  # scheduling does not wait for the evictions
        await wait_for(lambda: len(ended) >= 500 - stay, timeout=180)
    left = [found["spec"]["nodeName"] for found in await admin.items("pods", namespace, labelSelector="app=web")]
    assert len(set(left)) == len(left) == stay
    assert all(sum(start <= end < start + MINUTE for end in ended) <= per_minute for start in ended)
    assert [turn for turn in turns_held(scheduler) if turn > LONG] == []


@contextlib.asynccontextmanager
async def ends_of_pods(admin, namespace):
    """A list that grows inside the block: the time at which each deletion was seen."""
    ended = []

    async def watch(version):
        async for event in admin.watch("pods", namespace, resourceVersion=version):
            if event["type"] == "DELETED":
                ended.append(time.monotonic())  # noqa: PERF401 - it is read meanwhile

    watching = asyncio.create_task(watch((await admin.list("pods", namespace))["metadata"]["resourceVersion"]))
    try:
        yield ended
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching


async def all_bound(admin, namespace):
    return all(found["spec"].get("nodeName") for found in await admin.items("pods", namespace))


def turns_held(scheduler):
    """Return the working times of the blocked event loop that the scheduler has logged."""
    found = re.findall(r"event loop blocked .*worked=(\S+)", log_of(scheduler))
    return [float(seconds) for seconds in found]


async def test_a_signal_switches_enforcement_off_and_on_again(kube_server, admin, namespace):
    cluster = await Cluster(admin, namespace).set_up()
    await admin.create_nodes(3)
    for i in range(3):
        await cluster.run(f"quiet-{i}", f"node-{i}", annotations=apart(app="loud"), priority="high")
        await cluster.run(f"loud-{i}", f"node-{i}", labels={"app": "loud"}, finalizers=["example.com/stays"])
    limits = ("--enforce-at-once", "1", "--enforce-anti-affinity-grace", "1s")
    scheduler = bayplan_running.process(kube_server, "--enforce", *limits)
    (terminating,) = await wait_for(cluster.terminating)
    scheduler.child.send_signal(signal.SIGUSR1)
    await wait_for(lambda: "enforcement switched off" in log_of(scheduler))
    await admin.patch("pods", terminating, {"metadata": {"finalizers": None}}, namespace)
    for i in range(3):  # so that a check has run and some time has passed
        await admin.create_pod(f"new-{i}", namespace, scheduler=bayplan_running.NAME)
        await wait_for(lambda: all_bound(admin, namespace))
    assert await cluster.terminating() == []
    scheduler.child.send_signal(signal.SIGUSR1)
    (another,) = await wait_for(cluster.terminating)
    assert another != terminating
    _, off = log_of(scheduler).split("enforcement switched off")
    assert "evicted" not in off.split("enforcement switched on")[0]


def log_of(scheduler):
    return scheduler.log.read_text(encoding="utf-8")
