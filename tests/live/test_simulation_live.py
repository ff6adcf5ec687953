"""
Timelines on a real API server with kube-controller-manager and `bayplan run`, and simulated: they end in the same state.

`make timelines-live` plays all of them and records how they end; here are a few of them.
"""

import asyncio
import json
import os
import pathlib

import pytest

from live import bayplan_running
from live.timeline_player import NAMESPACE, TimelinePlayer, workload_of
from live.timelines import TIMELINES, for_bayplan
from simulating.clusters import simulate

CONTROLLERS = (
    "deployment-controller", "replicaset-controller", "statefulset-controller", "daemonset-controller",
    "disruption-controller", "taint-eviction-controller", "garbage-collector-controller",
)  # fmt: skip
ENFORCED = ("--enforce", "--enforce-affinity-grace", "1s", "--enforce-anti-affinity-grace", "1s")
RECORD = os.environ.get("BAYPLAN_TIMELINES_RECORD", "")
FEW = (
    "back to the first template",
    "a node is drained as a budget allows",
    "a machine is lost and comes back",
    "a peer is gone for longer than the grace time",
    "a zone is lost under a spread constraint",
)
NAMES = tuple(TIMELINES) if RECORD else FEW
QUIET = 2.5  # seconds without a change: more than the grace times


@pytest.mark.timeout(90 + 90 * len(NAMES))
async def test_timelines_end_as_simulated(kube_server, admin):
    kube_server.start_controller_manager(*CONTROLLERS)
    bayplan_running.process(kube_server, "--no-leader-elect", *ENFORCED)
    await admin.create_namespace(NAMESPACE)
    outcomes = {}
    for name in NAMES:
        objects, steps = for_bayplan(TIMELINES[name])
        simulated = await asyncio.to_thread(end_of, objects, steps)
        player = TimelinePlayer(admin, QUIET)
        await player.begin(objects)
        for step in steps:
            await player.play(step)
        outcomes[name] = {"simulated": shown(simulated), "seen": shown(await player.where())}
        await player.clear()
    if RECORD:
        record(outcomes)
    assert {name: one for name, one in outcomes.items() if one["simulated"] != one["seen"]} == {}


def record(outcomes):
    """Write how all of them ended, on the server and simulated."""
    pathlib.Path(RECORD).write_text(json.dumps(outcomes, indent=1) + "\n", encoding="utf-8")


def end_of(objects, steps):
    """Where the pods are at the end of the simulation, counted as on the server."""
    timed = [{"at": f"{20 * (n + 1)}m", **step} for n, step in enumerate(steps)]
    end = f"{20 * (len(steps) + 1)}m"
    enforcement = {"affinityGrace": "1s", "antiAffinityGrace": "1s"}
    (state,) = simulate(objects, timed, lasts=end, at=[end], enforcement=enforcement).states
    found = {}
    places = [(pod, node) for node, pods in state.pods.items() for pod in pods]
    for pod, node in (*places, *((pod, "") for pod in state.pending)):
        place = (workload_of(pod.partition("/")[2]), node)
        found[place] = found.get(place, 0) + 1
    return found


def shown(found):
    return {f"{workload} on {node or 'no node'}": n for (workload, node), n in sorted(found.items())}
