"""
Ten minutes of pods created and deleted at a steady rate on a real API server: memory stays flat and no pod is stuck.

    python benchmarks/soak.py [--minutes 10] [--rate 50] [--tenants]

Pods are created at the given rate per second, bound by `bayplan run` and deleted again. The resident memory of the
scheduler is read every few seconds; after the first quarter, the last third may exceed the first by a tenth at most.
The result has the largest delay of a creation, since the test is meaningful only if pods were created at that rate.
With `--tenants`, every pod uses label keys, topology keys, resources, taint keys and namespaces that nobody has used
before, one in fifty has hundreds of them, and one in twenty is unschedulable.
"""

import argparse
import asyncio
import json
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from live.admin import Admin  # noqa: E402
from live.bayplan_running import NAME, process  # noqa: E402
from live.kube_server import KubeServer, Options  # noqa: E402

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NODES = 200
LIVES = 20.0  # seconds until a pod is deleted; one that is not bound by then is stuck


def usual_pod(number):
    """The labels and the spec of a pod like those of a Deployment."""
    set_ = f"set-{number % 40}"
    term = {"labelSelector": {"matchLabels": {"set": set_}}, "topologyKey": "kubernetes.io/hostname"}
    preferred = {PREFERRED: [{"weight": 10, "podAffinityTerm": term}]}
    return {"set": set_, "number": str(number)}, {"affinity": {"podAntiAffinity": preferred}}


def tenants_pod(number):
    """The labels and the spec of a pod full of names that nobody has used before."""
    new = f"example.com/new-{number}"
    selector = {"matchLabels": {new: str(number)}}
    n_terms = 150 if number % 50 == 0 else 3
    terms = [
        {"topologyKey": f"{new}-{i}", "labelSelector": selector, "namespaces": [f"of-{number}"]} for i in range(n_terms)
    ]
    absent = [{"key": f"{new}-{i}", "operator": "DoesNotExist"} for i in range(n_terms)]
    resources = {"requests": {"cpu": "10m", new: "0"}, "limits": {new: "0"}}
    spec = {
        "containers": [{"name": "main", "image": f"{new}:latest", "resources": resources}],
        "tolerations": [{"key": new, "operator": "Exists"}],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": new, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector}
        ],
        "affinity": {
            "podAntiAffinity": {REQUIRED: terms},
            "podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": term} for term in terms]},
            "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": absent}]}},
        },
    }
    if is_unschedulable(number):
        spec["nodeSelector"] = {new: "nowhere"}
    return {new: str(number), "app": f"app-{number}"}, spec


def is_unschedulable(number):
    return number % 20 == 7


class Soak:
    """Creates and deletes pods with two requests each, so that this process keeps its rate."""

    def __init__(self, admin, rate, *, tenants):
        self.admin, self.rate, self.tenants = admin, rate, tenants
        self.made = self.deleted = self.most_alive = 0
        self.latest = 0.0  # the largest delay of a creation in seconds
        self.stuck = set()

    async def make(self, seconds):
        """Create pods at a steady rate, and delete each when its time is over."""
        began, lives = time.monotonic(), set()
        for number in range(int(seconds * self.rate)):
            due = began + number / self.rate
            await asyncio.sleep(max(due - time.monotonic(), 0.0))
            task = asyncio.create_task(self.live(number, due))
            lives.add(task)
            task.add_done_callback(lives.discard)
            self.most_alive = max(self.most_alive, len(lives))
        await asyncio.gather(*lives)

    async def live(self, number, due):
        name = f"pod-{number}"
        labels, spec = tenants_pod(number) if self.tenants else usual_pod(number)
        await self.admin.create_pod(name, "soak", scheduler=NAME, cpu="10m", meta={"labels": labels}, **spec)
        self.made += 1
        self.latest = max(self.latest, time.monotonic() - due)
        await asyncio.sleep(LIVES)
        gone = await self.admin.delete("pods", name, "soak")  # the response is the pod before its deletion
        self.deleted += 1
        if not gone["spec"].get("nodeName") and not (self.tenants and is_unschedulable(number)):
            self.stuck.add(name)


def resident(pid):
    """Megabytes."""
    fields = pathlib.Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    return int(fields[1]) * 4096 / 1e6


async def measure(pid, until, seen):
    while time.monotonic() < until:
        seen.append(resident(pid))
        await asyncio.sleep(3)


def flatness(seen):
    """Whether memory stayed flat after the first quarter, and how much it was."""
    settled = seen[len(seen) // 4 :]
    third = len(settled) // 3
    first, last = (sum(part) / len(part) for part in (settled[:third], settled[-third:]))
    return {
        "memory first third MB": round(first, 1),
        "memory last third MB": round(last, 1),
        "flat": last <= 1.1 * first,
        "memory by time MB": [round(value, 1) for value in seen[:: max(1, len(seen) // 20)]],
    }


async def soak(minutes, rate, *, tenants):
    with KubeServer(Options(high_throughput=True)) as server:
        async with Admin.of(server) as admin:
            await admin.create_nodes(NODES)
            await admin.create_namespace("soak")
            running = process(server, "--no-leader-elect", "-q")
            found, seen = Soak(admin, rate, tenants=tenants), []
            until = time.monotonic() + 60 * minutes
            await asyncio.gather(found.make(60 * minutes), measure(running.child.pid, until, seen))
            alive = running.running
            running.stop()
            return {
                "tenants with new names": tenants,
                "minutes": minutes,
                "pods a second": rate,
                "created": found.made,
                "deleted": found.deleted,
                "stuck": len(found.stuck),
                "latest creation s": round(found.latest, 2),
                "pods at a time": found.most_alive,
                "pace kept": found.latest < LIVES / 4,
                "alive": alive,
                **flatness(seen),
            }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--tenants", action="store_true", help="pods use names that nobody has used before")
    given = parser.parse_args()
    result = asyncio.run(soak(given.minutes, given.rate, tenants=given.tenants))
    name = "soak-tenants-results.json" if given.tenants else "soak-results.json"
    (ROOT / "benchmarks" / name).write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result))
    sys.exit(0 if result["flat"] and not result["stuck"] and result["alive"] and result["pace kept"] else 1)
