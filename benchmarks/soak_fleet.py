"""
Ten minutes of bindings created, scaled and deleted while a cluster flaps: memory stays flat and no binding is stuck.

    python benchmarks/soak_fleet.py [--minutes 10] [--rate 10]

The API server has Karmada's kinds and none of its controllers; a hundred clusters are written by hand. Bindings are
created at the given rate per second, scheduled by `bayplan run`, scaled, and deleted. One in twenty names a cluster
that does not exist, and half have groups of clusters to fail back to, as the switches are on. One cluster gets and
loses a taint every few seconds, and all report other resources now and then. The resident memory of the scheduler is
read every few seconds; after the first quarter, the last third may exceed the first by a tenth at most.
"""

import argparse
import asyncio
import itertools
import json
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "benchmarks")]

from soak import flatness, measure  # noqa: E402

from live import fleets  # noqa: E402
from live.admin import Admin  # noqa: E402
from live.bayplan_running import NAME, process  # noqa: E402
from live.fleet_user import is_observed, scheduled, shares_of  # noqa: E402
from live.karmada import load_karmada_crds  # noqa: E402
from live.karmada_control_plane import BINDINGS, CLUSTERS  # noqa: E402
from live.kube_server import KubeServer, Options  # noqa: E402

N_CLUSTERS = 100
LIVES = 20.0  # seconds until a binding is deleted, once it is placed; it is scaled in the middle
PATIENCE = 120.0  # seconds after it was scaled
SCALED_TO = 5
FLAPPING = "c000"
DIVIDED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
FEW = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 3}]
SWITCHES = ("failBackAfter=5", "schedulingOvercommitProtection=true", "drainingCopiesCount=true")


def placement_of(number):
    if is_unschedulable(number):
        return {"clusterAffinity": {"clusterNames": ["nowhere"]}}
    if number % 2:
        groups = [{"affinityName": "first", "clusterNames": [FLAPPING]}, {"affinityName": "second"}]
        return {"clusterAffinities": groups, "replicaScheduling": DIVIDED, "spreadConstraints": FEW}
    apart = {"antiAffinity": {"groupByLabelKey": "set"}}
    return {"clusterAffinity": {}, "replicaScheduling": DIVIDED, "spreadConstraints": FEW, "workloadAffinity": apart}


def is_unschedulable(number):
    return number % 20 == 7


class Soak:
    def __init__(self, admin, rate):
        self.admin, self.rate = admin, rate
        self.made = self.deleted = self.flaps = 0
        self.latest = self.slowest = 0.0  # the largest delay of a creation, and beyond half a life of a placement
        self.stuck = set()

    async def make(self, seconds):
        """Create bindings at a steady rate; each is scaled and deleted when its time comes."""
        began, lives = time.monotonic(), set()
        flapping = asyncio.create_task(self.flap())
        for number in range(int(seconds * self.rate)):
            due = began + number / self.rate
            await asyncio.sleep(max(due - time.monotonic(), 0.0))
            task = asyncio.create_task(self.live(number, due))
            lives.add(task)
            task.add_done_callback(lives.discard)
        await asyncio.gather(*lives)
        flapping.cancel()

    async def live(self, number, due):
        groups = {"workloadAffinityGroups": {"antiAffinityGroup": f"set={number // 10}"}}
        content = fleets.binding(
            f"w{number}", "default", {}, placement_of(number), replicas=3, schedulerName=NAME, **groups
        )
        name = content["metadata"]["name"]
        await self.admin.create(content)
        self.made += 1
        self.latest = max(self.latest, time.monotonic() - due)
        await asyncio.sleep(LIVES / 2)
        await self.admin.patch(BINDINGS, name, {"spec": {"replicas": SCALED_TO}}, "default")
        scaled = time.monotonic()
        await asyncio.sleep(LIVES / 2)
        while not await self.is_decided(name, number):
            if time.monotonic() - scaled > PATIENCE:
                self.stuck.add(name)
                break
            await asyncio.sleep(5)
        self.slowest = max(self.slowest, time.monotonic() - scaled - LIVES / 2)
        await self.admin.delete(BINDINGS, name, "default")
        self.deleted += 1

    async def is_decided(self, name, number):
        found = await self.admin.get(BINDINGS, name, "default")
        condition = scheduled(found)
        if is_unschedulable(number):
            return bool(condition) and condition["reason"] == "NoClusterFit"
        return sum(shares_of(found).values()) == SCALED_TO and is_observed(found)

    async def flap(self):
        """Let one cluster be tainted now and then, and all report other resources in turn."""
        for number in itertools.count():
            taints = [{"key": "down", "effect": "NoSchedule"}] if number % 2 else []
            await self.admin.patch(CLUSTERS, FLAPPING, {"spec": {"taints": taints}})
            self.flaps += 1
            # Clusters have no status subresource here, so a report is a new generation, and all bindings are due.
            for other in range(number % 50, N_CLUSTERS, 50):
                room = {"allocatable": {"cpu": str(1000 + number % 7), "memory": "1000Gi", "pods": "1000"}}
                await self.admin.patch(CLUSTERS, f"c{other:03}", {"status": {"resourceSummary": room}})
            await asyncio.sleep(7)


async def soak(minutes, rate):
    with KubeServer(Options(high_throughput=True)) as server:
        await asyncio.to_thread(load_karmada_crds, server)
        async with Admin.of(server) as admin:
            await admin.create_all([fleets.cluster(f"c{number:03}", cpu="1000") for number in range(N_CLUSTERS)])
            switches = [part for one in SWITCHES for part in ("--switch", one)]
            running = process(server, "--fleet", "--no-leader-elect", "-q", *switches)
            found, seen = Soak(admin, rate), []
            until = time.monotonic() + 60 * minutes
            await asyncio.gather(found.make(60 * minutes), measure(running.child.pid, until, seen))
            alive = running.running
            running.stop()
            return {
                "minutes": minutes,
                "bindings a second": rate,
                "created": found.made,
                "deleted": found.deleted,
                "flaps": found.flaps,
                "stuck": len(found.stuck),
                "latest creation s": round(found.latest, 2),
                "slowest placement beyond 10 s": round(found.slowest, 2),
                **flatness(seen),
                "alive": alive,
            }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--rate", type=float, default=10)
    given = parser.parse_args()
    result = asyncio.run(soak(given.minutes, given.rate))
    print(json.dumps(result, indent=2))
    (ROOT / "benchmarks" / "soak-fleet-results.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    sys.exit(0 if result["flat"] and result["alive"] and not result["stuck"] else 1)
