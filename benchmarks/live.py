"""
Pods bound per second on one real API server: Bayplan, kube-scheduler and a bare client, one after another in one run.

    python benchmarks/live.py [--nodes 5000] [--pods 1500] [--results benchmarks/live-results.json]

Pods exist before a scheduler is started. The rate is measured from its first bind to its last, as a watch reports them.
The bare client makes no decisions: it only sends a bind and an event for each pod. It runs first and last, and the
better rate counts.
"""

import argparse
import asyncio
import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from live.admin import Admin  # noqa: E402
from live.bayplan_running import process  # noqa: E402
from live.kube_server import KubeServer, Options  # noqa: E402

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
KINDS = {
    "anti-affinity": ("podAntiAffinity", HOST),
    "zone affinity": ("podAffinity", ZONE),
}
WANTED = {"anti-affinity": 4, "zone affinity": 10}  # times kube-scheduler's rate
SHARE = 0.8  # of the bare client's rate, whichever is lower
PATIENCE = 300


def pod(name, namespace, kind, scheduler):
    side, key = KINDS[kind]
    term = {"labelSelector": {"matchLabels": {"app": namespace}}, "topologyKey": key}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": namespace}},
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "main", "image": "example.com/none", "resources": {"requests": {"cpu": "10m"}}}],
            "affinity": {side: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        },
    }


class Pace:
    """Watches the pods of a namespace until they are bound."""

    def __init__(self, admin, namespace, n_pods):
        self.admin, self.namespace, self.n_pods = admin, namespace, n_pods
        self.times = {}

    async def watch(self, version):
        async for event in self.admin.watch("pods", self.namespace, resourceVersion=version):
            found = event["object"]
            if found["spec"].get("nodeName"):
                self.times.setdefault(found["metadata"]["name"], time.monotonic())
            if len(self.times) == self.n_pods:
                return

    @property
    def per_second(self):
        first, last = min(self.times.values()), max(self.times.values())
        return (self.n_pods - 1) / (last - first)


async def measure(admin, kind, scheduler, n_pods, start):
    """Pods per second; `start` is called when all pods exist, and returns the function that stops the scheduler."""
    namespace = f"{scheduler}-{kind.replace(' ', '-')}"
    await admin.create_namespace(namespace)
    await admin.create_all([pod(f"pod-{i}", namespace, kind, scheduler) for i in range(n_pods)], namespace=namespace)
    version = (await admin.list("pods", namespace, limit=1))["metadata"]["resourceVersion"]
    pace = Pace(admin, namespace, n_pods)
    watching = asyncio.create_task(pace.watch(version))
    await asyncio.sleep(2)  # wait for the creations to finish: they are not measured
    end = await start(namespace)
    try:
        await asyncio.wait_for(watching, PATIENCE)
    finally:
        end()
    await admin.delete_all("pods", namespace)
    await admin.delete_all("events.k8s.io/v1/events", namespace)
    return pace.per_second


def bare(server, namespace, n_pods, nodes):
    """Start a process that binds the pods; returns the function that stops it."""
    pods = [f"pod-{i}" for i in range(n_pods)]
    access = {"url": server.url, "token": server.token("admin"), "ca_file": str(server.ca_file)}
    client = subprocess.Popen([sys.executable, ROOT / "benchmarks" / "bare_client.py"], stdin=subprocess.PIPE)
    client.stdin.write(json.dumps({**access, "namespace": namespace, "pods": pods, "nodes": nodes}).encode())
    client.stdin.close()
    return client.wait


async def run(n_nodes, n_pods):
    results = {}
    with KubeServer(Options(high_throughput=True)) as server:
        async with Admin.of(server) as admin:
            nodes = await admin.create_nodes(n_nodes, cpu="64", memory="256Gi")

            async def ours(_namespace):
                return process(server, "--no-leader-elect", "-q", wait=False).stop

            async def theirs(_namespace):
                return server.start_scheduler("kube-scheduler").stop

            async def no_scheduler(namespace):
                return bare(server, namespace, n_pods, nodes)

            for kind in KINDS:
                turns = (
                    ("bare", no_scheduler),
                    ("kube-scheduler", theirs),
                    ("bayplan", ours),
                    ("bare-again", no_scheduler),
                )
                for scheduler, start in turns:
                    results[kind, scheduler] = await measure(admin, kind, scheduler, n_pods, start)
                    print(f"{kind:15} {scheduler:15} {results[kind, scheduler]:8.0f} pods/s", flush=True)
                results[kind, "bare"] = max(results[kind, "bare"], results[kind, "bare-again"])
    return results


def rows_of(results, n_nodes, n_pods):
    """The table, ratios first: rates depend on the machine, ratios on Bayplan."""
    for kind, wanted in WANTED.items():
        bare_, theirs, ours = (results[kind, name] for name in ("bare", "kube-scheduler", "bayplan"))
        yield {
            "input": kind,
            "nodes": n_nodes,
            "pods": n_pods,
            "times kube-scheduler": round(ours / theirs, 1),
            "share of the API server's pace": round(ours / bare_, 2),
            "wanted": f"{wanted} x or {SHARE}",
            "reached": bool(ours >= min(wanted * theirs, SHARE * bare_)),
            "bayplan pods/s": round(ours),
            "kube-scheduler pods/s": round(theirs),
            "bare client pods/s": round(bare_),
        }


def table(rows):
    lines = [list(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=1500)
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "benchmarks" / "live-results.json")
    given = parser.parse_args()
    if given.pods > given.nodes:
        parser.error("pods with anti-affinity need a node each: pass no more pods than nodes")
    rows = list(rows_of(asyncio.run(run(given.nodes, given.pods)), given.nodes, given.pods))
    given.results.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    print(table(rows))
