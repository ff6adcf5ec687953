"""The Bayplan scheduler on a real API server: in this process, or as a child process that can be killed."""

import asyncio
import contextlib
import json
import os
import sys

from bayplan.kube_api import connect
from bayplan.live.assembly import SchedulerSettings, ServerAddress
from bayplan.live.running import RunningScheduler
from bayplan.live.running_fleet import RunningFleetScheduler
from bayplan.model.semantics import UPSTREAM
from bayplan.reading import scheduler_config
from bayplan.rules import profiles as profile
from live.processes import Process, answers, free_port

NAME = "bayplan"


@contextlib.asynccontextmanager
async def in_process(server, *, semantics=UPSTREAM, config=None, names=(NAME,), url=None, wall=None, **settings):
    """Run a scheduler inside the block, in the event loop of the test."""
    profiles = {name: profile.pod_rules(scheduler_config.profile_of(config, name)) for name in names}
    options = {"identity": "test", "election": None, "addresses": (), "semantics": semantics, **settings}
    async with connect.from_kubeconfig(server.kubeconfig(url=url)) as connection:
        running = RunningScheduler(
            connection, profiles, SchedulerSettings(**options), **({"wall": wall} if wall else {})
        )
        task = asyncio.create_task(running.run())
        begun = asyncio.create_task(running.scheduling.wait())
        await asyncio.wait([task, begun], return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        try:
            yield running
        except AssertionError as failure:
            failure.add_note(f"the scheduler knew of {knowledge(running)}")
            raise
        finally:
            running.stop()
            await task


@contextlib.asynccontextmanager
async def fleet_in_process(server, *, names=(NAME,), url=None, **settings):
    """Run a scheduler of bindings inside the block, in the event loop of the test."""
    options = {"identity": "test", "election": None, "addresses": (), **settings}
    async with connect.from_kubeconfig(server.kubeconfig(url=url)) as connection:
        running = RunningFleetScheduler(connection, names, SchedulerSettings(**options))
        task = asyncio.create_task(running.run())
        begun = asyncio.create_task(running.scheduling.wait())
        await asyncio.wait([task, begun], return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        try:
            yield running
        finally:
            running.stop()
            await task


def knowledge(running):
    """Return what a scheduler in this process knows, to diagnose a test that makes no progress."""
    state, queue = running.state, running.state.queue
    stages = {stage.name: n for stage, n in queue.sizes.items() if n}
    waiting = [f"{one.key} {one.stage.name} after {one.attempts} attempts" for one in list(queue.pods.values())[:3]]
    facts = {"nodes": len(state.index.slots), "placed": len(state.index.records), "stages": stages, "waiting": waiting}
    return json.dumps(facts)


def process(
    server, *arguments, user="admin", url=None, kubeconfig=None, wait=True, program=("-m", "bayplan"), discovers=False
):
    """
    `bayplan run` as a Process, started; its `port` has /readyz and /metrics.

    It schedules pods unless it is told otherwise or `discovers` what the server is: once Karmada's kinds are defined on
    a server, they stay for later tests. `wait=False` starts it without waiting for it to be ready. `program` is what Python runs.
    """
    port = free_port()
    kubeconfig = kubeconfig or server.kubeconfig(user, url=url)
    address = f"127.0.0.1:{port}"
    of_pods = [] if discovers or "--fleet" in arguments else ["--no-fleet"]
    command = [sys.executable, *program, "run", "--kubeconfig", kubeconfig, *of_pods, *arguments]
    command += ["--metrics-bind-address", address, "--health-probe-bind-address", address]
    found = Process(
        command,
        log=server.folder / f"bayplan-{port}.log",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        ready=(lambda: answers(f"http://{address}/readyz")) if wait else (lambda: True),
    )
    found.port = port
    server.schedulers.append(found)
    found.start()
    return found


def addresses():
    """Return one free loopback address, for schedulers in this process that serve metrics."""
    return (ServerAddress("127.0.0.1", free_port()),)
