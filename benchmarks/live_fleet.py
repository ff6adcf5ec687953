"""
Bindings scheduled per second and processor time per binding on one real API server: Bayplan, karmada-scheduler and a
client that makes no decisions.

    python benchmarks/live_fleet.py [--clusters 1000] [--bindings 3000] [--limited-bindings 600] [--turns 1]

The API server has Karmada's kinds and none of its controllers; clusters are written by hand, and a quarter of the
bindings each is duplicated, divided by capacity, aggregated and with an overflow tier. All of them exist when a
scheduler is started. Measured is what comes after its first result, until every binding is observed and has its two
events; so starting and listing are not. The bare client makes the same writes: two patches and two events for each
binding. They take turns on the same server: first with limits that no one reaches, then both schedulers with 40
requests per second and a burst of 60, which are karmada-scheduler's defaults. live-fleet-results.json has every turn,
with the load of the machine, and what the goals are about. On a shared machine only the processor time means something.
"""

import argparse
import asyncio
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "benchmarks")]

import processor_time  # noqa: E402

from live import fleets  # noqa: E402
from live.admin import Admin  # noqa: E402
from live.bayplan_running import process  # noqa: E402
from live.fleet_user import is_observed, scheduled  # noqa: E402
from live.karmada import load_karmada_crds  # noqa: E402
from live.karmada_control_plane import BINDINGS, CLUSTERS  # noqa: E402
from live.kube_server import KubeServer, Options  # noqa: E402
from live.test_karmada_questions import start_karmada_scheduler  # noqa: E402

RESULTS = ROOT / "benchmarks" / "live-fleet-results.json"
OURS, THEIRS, BARE = "bayplan", "default-scheduler", "bare-client"
FREE, LIMITED = "no limit", "qps 40, burst 60"
ACTORS = {FREE: (BARE, OURS, THEIRS), LIMITED: (OURS, THEIRS)}
EVENTS_PER_BINDING = 2
SHARE_OF_BARE, TIMES_THEIRS, PROCESSOR_SHARE = 0.8, 1.7, 0.2  # the goals; the last is of 46 ms
EVENTS = "events.k8s.io/v1/events"
PATIENCE = 1800
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
    )


class Turn:
    """One actor, a process, writes to the bindings of one namespace. It is started while the turn is watched."""

    def __init__(self, admin, namespace, n_bindings):
        self.admin, self.namespace, self.n_bindings = admin, namespace, n_bindings
        self.pid, self.first, self.last, self.before, self.n_events = 0, 0.0, 0.0, 0.0, 0

    async def measure(self, start):
        """Start the actor and return the figures when everything is written."""
        versions = [
            (await self.admin.list(one, self.namespace, limit=1))["metadata"]["resourceVersion"]
            for one in (BINDINGS, EVENTS)
        ]
        watching = [
            asyncio.create_task(one) for one in (self._watch_bindings(versions[0]), self._watch_events(versions[1]))
        ]
        running = await asyncio.to_thread(start)
        self.pid = running.pid
        try:
            await asyncio.wait_for(asyncio.gather(*watching), PATIENCE)
            spent = processor_time.seconds(self.pid) - self.before
        finally:
            running.kill()
        return {
            "bindings/s": round((self.n_bindings - 1) / (self.last - self.first), 1),
            "ms/binding": round(1000 * spent / self.n_bindings, 2),
        }

    async def _watch_bindings(self, version):
        done = set()
        async for event in self.admin.watch(BINDINGS, self.namespace, resourceVersion=version):
            found = event["object"]
            condition = scheduled(found)
            if condition is None or condition["status"] != "True" or not is_observed(found):
                continue
            self._note()
            done.add(found["metadata"]["name"])
            if len(done) == self.n_bindings:
                return

    async def _watch_events(self, version):
        async for event in self.admin.watch(EVENTS, self.namespace, resourceVersion=version):
            if event["type"] == "ADDED":
                self.n_events += 1
                self._note()
            if self.n_events == EVENTS_PER_BINDING * self.n_bindings:
                return

    def _note(self):
        self.last = time.monotonic()
        if not self.first:
            self.first, self.before = self.last, processor_time.seconds(self.pid)


async def run(n_clusters, numbers, n_turns):
    """The figures of every turn, by limit and actor."""
    found = {limit: {actor: [] for actor in actors} for limit, actors in ACTORS.items()}
    with KubeServer(Options(high_throughput=True)) as server:
        await asyncio.to_thread(load_karmada_crds, server)
        async with Admin.of(server) as admin:
            await admin.create_all([cluster(number) for number in range(n_clusters)])
            assert len(await admin.items(CLUSTERS)) == n_clusters
            for turn in range(n_turns):
                for limit, actors in ACTORS.items():
                    for actor in actors:
                        namespace = f"{actor}-{turn}-{list(ACTORS).index(limit)}"
                        await admin.create_namespace(namespace)
                        scheduler = actor if actor != BARE else "nobody"
                        await admin.create_all([binding(i, namespace, scheduler) for i in range(numbers[limit])])
                        figures = await Turn(admin, namespace, numbers[limit]).measure(
                            lambda: start(server, actor, limit, namespace, numbers[limit])  # noqa: B023
                        )
                        found[limit][actor].append({**figures, "load of the machine": round(os.getloadavg()[0], 1)})
                        print(limit, actor, found[limit][actor][-1], flush=True)
                        await admin.delete_all(BINDINGS)
    return found


def start(server, actor, limit, namespace, n_bindings):
    if actor == BARE:
        return bare(server, namespace, n_bindings)
    qps, burst = (40, 60) if limit == LIMITED else (0, 0)
    if actor == OURS:
        limits = ("--kube-api-qps", str(qps), "--kube-api-burst", str(burst))
        return process(server, "--fleet", "--no-leader-elect", "-q", *limits, wait=False)
    start_karmada_scheduler(server, qps or 5000, burst or 5000)
    return server.schedulers[-1]


def bare(server, namespace, n_bindings):
    client = subprocess.Popen([sys.executable, ROOT / "benchmarks" / "bare_fleet_client.py"], stdin=subprocess.PIPE)
    given = {
        "url": server.url,
        "token": server.token(),
        "ca_file": str(server.ca_file),
        "namespace": namespace,
        "names": [f"w{number:05}" for number in range(n_bindings)],
        # As many as most results have.
        "clusters": [{"name": f"c{number:04}", "replicas": 4} for number in range(4)],
        "placement": placements()[1],
    }
    client.stdin.write(json.dumps(given).encode() + b"\n")
    client.stdin.flush()
    return client


def goals(turns):
    """What the goals are about, of the best turn of each."""
    pace = {
        (limit, actor): max(one["bindings/s"] for one in found)
        for limit, by in turns.items()
        for actor, found in by.items()
    }
    spent = {actor: min(one["ms/binding"] for one in found) for actor, found in turns[FREE].items()}
    return {
        "share of the bare client's pace": round(pace[FREE, OURS] / pace[FREE, BARE], 2),
        "goal of that": SHARE_OF_BARE,
        "times karmada-scheduler at qps 40": round(pace[LIMITED, OURS] / pace[LIMITED, THEIRS], 2),
        "goal of times": TIMES_THEIRS,
        "processor time, share of karmada-scheduler's": round(spent[OURS] / spent[THEIRS], 2),
        "goal of processor time": PROCESSOR_SHARE,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=1000)
    parser.add_argument("--bindings", type=int, default=3000)
    parser.add_argument("--limited-bindings", type=int, default=600)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--quiet-machine", action="store_true", help="say in the results that nothing else ran")
    given = parser.parse_args()
    turns = asyncio.run(run(given.clusters, {FREE: given.bindings, LIMITED: given.limited_bindings}, given.turns))
    machine = "quiet" if given.quiet_machine else "shared with other work"
    facts = {"clusters": given.clusters, "bindings": given.bindings, "limited bindings": given.limited_bindings}
    facts |= {"machine": machine, "cores": os.cpu_count(), **goals(turns)}
    RESULTS.write_text(json.dumps({**facts, "turns": turns}, indent=2) + "\n", encoding="utf-8")
