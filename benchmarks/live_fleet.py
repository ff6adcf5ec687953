"""
Bindings scheduled per second and processor time per binding on one real API server: Bayplan and karmada-scheduler.

    python benchmarks/live_fleet.py [--clusters 1000] [--bindings 500] [--turns 1]

The API server has Karmada's kinds and none of its controllers; clusters are written by hand, and a quarter of the
bindings each is duplicated, divided by capacity, aggregated and with an overflow tier. Bindings exist, suspended,
before a scheduler is started; it is idle when all are resumed at once. The rate is measured from the first result to
the last, as a watch reports them, and the processor time from the resumption until every binding is observed and has
its event. Both schedulers take turns on the same server, and every turn is written to live-fleet-results.json, with the
load of the machine. They are first figures, not marks: on a shared machine only the processor time means something.
"""

import argparse
import asyncio
import json
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "benchmarks")]

import processor_time  # noqa: E402

from live import fleets  # noqa: E402
from live.admin import Admin, wait_for  # noqa: E402
from live.bayplan_running import process  # noqa: E402
from live.fleet_user import is_observed, scheduled  # noqa: E402
from live.karmada import load_karmada_crds  # noqa: E402
from live.karmada_control_plane import BINDINGS, CLUSTERS  # noqa: E402
from live.kube_server import KubeServer, Options  # noqa: E402
from live.test_karmada_questions import start_karmada_scheduler  # noqa: E402

RESULTS = ROOT / "benchmarks" / "live-fleet-results.json"
OURS, THEIRS = "bayplan", "default-scheduler"
EVENTS = "events.k8s.io/v1/events"
PATIENCE = 900
POLL_SECONDS = 0.5
DIVIDED = {"replicaSchedulingType": "Divided"}
DYNAMIC = {
    **DIVIDED,
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
}
AGGREGATED = {**DIVIDED, "replicaDivisionPreference": "Aggregated"}
TEN = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 10}]
IDC, CLOUD = {"region": "idc"}, {"region": "cloud"}


def placements():
    """The four kinds of placement, in equal parts."""
    tiers = {
        "affinityName": "idc",
        "labelSelector": {"matchLabels": IDC},
        "overflowAffinities": [{"affinityName": "cloud", "labelSelector": {"matchLabels": CLOUD}}],
    }
    everywhere = {"clusterAffinity": {}, "spreadConstraints": TEN}
    return (
        {**everywhere, "replicaScheduling": {"replicaSchedulingType": "Duplicated"}},
        {**everywhere, "replicaScheduling": DYNAMIC},
        {**everywhere, "replicaScheduling": AGGREGATED},
        {"clusterAffinities": [tiers], "spreadConstraints": TEN, "replicaScheduling": AGGREGATED},
    )


def cluster(number):
    made = fleets.cluster(f"c{number:04}", cpu=str(50 + number % 50))
    made["metadata"]["labels"] = IDC if number % 10 == 0 else CLOUD
    return made


def binding(number, namespace, scheduler):
    kinds = placements()
    return fleets.binding(
        f"w{number:05}",
        namespace,
        {},
        kinds[number % len(kinds)],
        replicas=4,
        schedulerName=scheduler,
        suspension={"scheduling": True},
    )


class Turn:
    """One scheduler, the process `pid`, schedules the bindings of one namespace."""

    def __init__(self, admin, namespace, n_bindings, pid):
        self.admin, self.namespace, self.n_bindings, self.pid = admin, namespace, n_bindings, pid
        self.first = self.last = 0.0

    async def measure(self):
        """Resume all bindings and return the figures when all are scheduled."""
        found = await self.admin.list(BINDINGS, self.namespace, limit=1)
        watching = asyncio.create_task(self._watch(found["metadata"]["resourceVersion"]))
        names = [f"w{number:05}-deployment" for number in range(self.n_bindings)]
        before = processor_time.seconds(self.pid)
        for start in range(0, len(names), 20):
            await asyncio.gather(
                *(
                    self.admin.patch(BINDINGS, name, {"spec": {"suspension": None}}, self.namespace)
                    for name in names[start : start + 20]
                )
            )
        await asyncio.wait_for(watching, PATIENCE)
        # Polled, because a watch of the events would take processor time from the scheduler.
        await wait_for(self._is_done, PATIENCE)
        spent = processor_time.seconds(self.pid) - before
        return {
            "bindings/s": round((self.n_bindings - 1) / (self.last - self.first), 1),
            "ms/binding": round(1000 * spent / self.n_bindings, 2),
        }

    async def _watch(self, version):
        done = set()
        async for event in self.admin.watch(BINDINGS, self.namespace, resourceVersion=version):
            found = event["object"]
            condition = scheduled(found)
            if condition is None or condition["status"] != "True":
                continue
            self.last = time.monotonic()
            self.first = self.first or self.last
            done.add(found["metadata"]["name"])
            if len(done) == self.n_bindings:
                return

    async def _is_done(self):
        await asyncio.sleep(POLL_SECONDS)
        found = await self.admin.items(BINDINGS, self.namespace)
        page = await self.admin.list(EVENTS, self.namespace, limit=1)
        n_events = len(page["items"]) + page["metadata"].get("remainingItemCount", 0)
        return all(map(is_observed, found)) and n_events >= self.n_bindings


async def run(n_clusters, n_bindings, n_turns):
    """The figures of every turn, by scheduler."""
    found = {OURS: [], THEIRS: []}
    with KubeServer(Options(high_throughput=True)) as server:
        await asyncio.to_thread(load_karmada_crds, server)
        async with Admin.of(server) as admin:
            await admin.create_all([cluster(number) for number in range(n_clusters)])
            assert len(await admin.items(CLUSTERS)) == n_clusters
            for turn in range(n_turns):
                for scheduler, results in found.items():
                    namespace = f"{scheduler}-{turn}"
                    await admin.create_namespace(namespace)
                    await admin.create_all([binding(i, namespace, scheduler) for i in range(n_bindings)])
                    running = start(server, scheduler)
                    await asyncio.sleep(3)  # until it has listed everything: starting is not measured
                    figures = await Turn(admin, namespace, n_bindings, running.pid).measure()
                    running.kill()
                    load = round(os.getloadavg()[0], 1)
                    results.append({**figures, "load of the machine": load})
                    print(scheduler, results[-1], flush=True)
                    await admin.delete_all(BINDINGS)
    return found


def start(server, scheduler):
    if scheduler == OURS:
        return process(server, "--fleet", "--no-leader-elect", "-q")
    start_karmada_scheduler(server)
    return server.schedulers[-1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=1000)
    parser.add_argument("--bindings", type=int, default=500)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--quiet-machine", action="store_true", help="say in the results that nothing else ran")
    given = parser.parse_args()
    turns = asyncio.run(run(given.clusters, given.bindings, given.turns))
    machine = "quiet" if given.quiet_machine else "shared with other work"
    facts = {"clusters": given.clusters, "bindings": given.bindings, "machine": machine, "cores": os.cpu_count()}
    RESULTS.write_text(json.dumps({**facts, "turns": turns}, indent=2) + "\n", encoding="utf-8")
