"""
A storm and a signal, as a process of its own feels them.

Five hundred rules broken at once on a real API server are worked off within the limits, and everything else goes on.
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

MINUTE = 59.0  # as a watch sees it: events do not come all equally late
LONG = 0.1  # seconds of work in one turn of the event loop


@pytest.mark.parametrize(
    "nodes, key, stay, per_minute",
    [
        (250, HOST, 250, 150),  # two on each node: one of each pair has to go, and a minute is too short for that
        (500, ZONE, 1, 500),  # one crowd in which everybody keeps off everybody else
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
        await wait_for(lambda: all_bound(admin, namespace))  # nobody waits for the storm to be over
        await wait_for(lambda: len(ended) >= 500 - stay, timeout=180)
    left = [found["spec"]["nodeName"] for found in await admin.items("pods", namespace, labelSelector="app=web")]
    assert len(set(left)) == len(left) == stay
    assert all(sum(start <= end < start + MINUTE for end in ended) <= per_minute for start in ended)
    assert [turn for turn in turns_held(scheduler) if turn > LONG] == []


@contextlib.asynccontextmanager
async def ends_of_pods(admin, namespace):
    """A list that grows inside the block: when each pod that goes was seen to be gone."""
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
    """How long the event loop was at work without a pause, as far as the scheduler found it worth a line."""
    found = re.findall(r"event loop blocked .*worked=(\S+)", log_of(scheduler))
    return [float(seconds) for seconds in found]


async def test_a_signal_switches_it_off_in_flight_and_on_again(kube_server, admin, namespace):
    cluster = await Cluster(admin, namespace).set_up()
    await admin.create_nodes(3)
    for i in range(3):
        await cluster.run(f"quiet-{i}", f"node-{i}", annotations=apart(app="loud"), priority="high")
        await cluster.run(f"loud-{i}", f"node-{i}", labels={"app": "loud"}, finalizers=["example.com/stays"])
    limits = ("--enforce-at-once", "1", "--enforce-anti-affinity-grace", "1s")
    scheduler = bayplan_running.process(kube_server, "--enforce", *limits)
    (going,) = await wait_for(cluster.ending)
    scheduler.child.send_signal(signal.SIGUSR1)
    await wait_for(lambda: "enforcement switched off" in log_of(scheduler))
    await admin.patch("pods", going, {"metadata": {"finalizers": None}}, namespace)
    for i in range(3):  # so that it has looked, and some time has passed
        await admin.create_pod(f"new-{i}", namespace, scheduler=bayplan_running.NAME)
        await wait_for(lambda: all_bound(admin, namespace))
    assert await cluster.ending() == []
    scheduler.child.send_signal(signal.SIGUSR1)
    (another,) = await wait_for(cluster.ending)
    assert another != going
    _, off = log_of(scheduler).split("enforcement switched off")
    assert "evicted" not in off.split("enforcement switched on")[0]


def log_of(scheduler):
    return scheduler.log.read_text(encoding="utf-8")
