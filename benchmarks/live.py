"""
Pods bound per second and processor time per pod on one real API server: Bayplan, kube-scheduler and a bare client.

    python benchmarks/live.py [--nodes 5000] [--pods 1500] [--turns 3] [--shares]

Pods exist before a scheduler is started. The rate is measured from its first bind to its last, as a watch reports
them. Its processor time is counted from the first bind until every pod is bound and has its event, and separately
before the first bind: starting and listing. The bare client makes no decisions: it only sends a bind and an event for
each pod. All take turns in one run, and the best turn of each counts.

Results are written to live-results.json and the table to README.md. `--nodes` or `--pods` other than the defaults
write nothing. `--shares` measures Bayplan alone and prints where its processor time goes; see shares.py.
"""

import argparse
import asyncio
import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "benchmarks")]

import processor_time  # noqa: E402
import tables  # noqa: E402

from live.admin import Admin  # noqa: E402
from live.bayplan_running import process  # noqa: E402
from live.kube_server import KubeServer, Options  # noqa: E402

NODES, PODS = 5000, 1500
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
KINDS = {
    "anti-affinity by hostname": ("podAntiAffinity", HOST),
    "affinity by zone": ("podAffinity", ZONE),
}
OURS, THEIRS, BARE = "bayplan", "kube-scheduler", "bare-client"
SHARE = 0.9  # of the bare client's rate, at least
PROCESSOR_SHARE = 0.2  # of kube-scheduler's processor time per pod, at most
PATIENCE = 300
POLL_SECONDS = 0.02
EVENTS = "events.k8s.io/v1/events"
HEAD = (
    "times kube-scheduler",
    "share of the bare client's rate",
    "goal",
    "processor time over kube-scheduler's",
    "goal",
    "ms of processor time per pod: Bayplan",
    "kube-scheduler",
    "bare client",
    "seconds before the first bind: Bayplan",
    "kube-scheduler",
    "pods/s: Bayplan",
    "kube-scheduler",
    "bare client",
    "input",
)


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


class Turn:
    """One scheduler binds the pods of one namespace; `pid` is its process."""

    def __init__(self, admin, namespace, n_pods):
        self.admin, self.namespace, self.n_pods = admin, namespace, n_pods
        self.pid = None
        self.bound = set()
        self.first = self.last = 0.0
        self.starting = self.total = 0.0  # seconds of processor time until the first bind, and until the end

    async def watch(self, version):
        """Return when all pods are bound and have their event."""
        async for event in self.admin.watch("pods", self.namespace, resourceVersion=version):
            found = event["object"]
            if not found["spec"].get("nodeName"):
                continue
            if not self.bound:
                self.first, self.starting = time.monotonic(), processor_time.seconds(self.pid)
            self.bound.add(found["metadata"]["name"])
            if len(self.bound) == self.n_pods:
                break
        self.last = time.monotonic()
        # Polled, because a watch of the events would take processor time from the scheduler.
        while await self.n_events() < self.n_pods:  # noqa: ASYNC110
            await asyncio.sleep(POLL_SECONDS)
        self.total = processor_time.seconds(self.pid)

    async def n_events(self):
        page = await self.admin.list(EVENTS, self.namespace, limit=1)
        return len(page["items"]) + page["metadata"].get("remainingItemCount", 0)

    def result(self):
        return {
            "pods/s": (self.n_pods - 1) / (self.last - self.first),
            "ms/pod": 1000 * (self.total - self.starting) / self.n_pods,
            "seconds before the first bind": self.starting,
        }


async def measure(admin, kind, scheduler, n_pods, start):
    """One turn; `start` is called when all pods exist, and returns the process and the function that stops it."""
    namespace = f"{scheduler}-{kind.replace(' ', '-')}"
    await admin.create_all([pod(f"pod-{i}", namespace, kind, scheduler) for i in range(n_pods)], namespace=namespace)
    version = (await admin.list("pods", namespace, limit=1))["metadata"]["resourceVersion"]
    turn = Turn(admin, namespace, n_pods)
    await asyncio.sleep(2)  # wait for the creations to finish: they are not measured
    turn.pid, end = start(namespace)
    try:
        await asyncio.wait_for(turn.watch(version), PATIENCE)
    finally:
        end()
    await admin.delete_all("pods", namespace)
    await admin.delete_all(EVENTS, namespace)
    return turn.result()


def bare(server, namespace, n_pods, nodes):
    """Start a process that binds the pods."""
    pods = [f"pod-{i}" for i in range(n_pods)]
    access = {"url": server.url, "token": server.token("admin"), "ca_file": str(server.ca_file)}
    client = subprocess.Popen([sys.executable, ROOT / "benchmarks" / "bare_client.py"], stdin=subprocess.PIPE)
    client.stdin.write(json.dumps({**access, "namespace": namespace, "pods": pods, "nodes": nodes}).encode() + b"\n")
    client.stdin.flush()

    def end():
        client.stdin.close()
        client.wait()

    return client.pid, end


async def run(n_nodes, n_pods, n_turns, *, only_shares=False):
    """The results of all turns by kind and scheduler; `only_shares` prints the shares of Bayplan's processor time."""
    results = {}
    with KubeServer(Options(high_throughput=True)) as server:
        async with Admin.of(server) as admin:
            nodes = await admin.create_nodes(n_nodes, cpu="64", memory="256Gi")

            def ours(_namespace):
                found = process(server, "--no-leader-elect", "-q", wait=False)
                return found.pid, found.stop

            def theirs(_namespace):
                found = server.start_scheduler(THEIRS, wait=False)
                return found.pid, found.stop

            def no_scheduler(namespace):
                return bare(server, namespace, n_pods, nodes)

            def timed(_namespace):
                program = (str(ROOT / "benchmarks" / "shares.py"),)
                found = process(server, "--no-leader-elect", "-q", wait=False, program=program)

                def end():
                    found.stop()
                    print(found.log.read_text(encoding="utf-8"), flush=True)

                return found.pid, end

            schedulers = {OURS: timed} if only_shares else {BARE: no_scheduler, THEIRS: theirs, OURS: ours}
            for kind in KINDS:
                for scheduler in schedulers:
                    await admin.create_namespace(f"{scheduler}-{kind.replace(' ', '-')}")
                for _ in range(n_turns):
                    for scheduler, start in schedulers.items():
                        found = await measure(admin, kind, scheduler, n_pods, start)
                        results.setdefault((kind, scheduler), []).append(found)
                        facts = "  ".join(f"{name} {value:8.2f}" for name, value in found.items())
                        print(f"{kind:26} {scheduler:15} {facts}", flush=True)
    return results


def best(turns):
    """The highest rate and the lowest times; each depends on what else the machine does during a turn."""
    rate = max(turn["pods/s"] for turn in turns)
    return {name: rate if name == "pods/s" else min(turn[name] for turn in turns) for name in turns[0]}


def rows_of(results, n_nodes, n_pods):
    """One row for each kind, ratios first: rates and times depend on the machine, ratios on Bayplan."""
    for kind in KINDS:
        ours, theirs, bare_ = (best(results[kind, name]) for name in (OURS, THEIRS, BARE))
        share, processor_share = ours["pods/s"] / bare_["pods/s"], ours["ms/pod"] / theirs["ms/pod"]
        yield {
            "input": kind,
            "nodes": n_nodes,
            "pods": n_pods,
            "times kube-scheduler": round(ours["pods/s"] / theirs["pods/s"], 1),
            "share of the bare client's rate": round(share, 2),
            "share of kube-scheduler's processor time": round(processor_share, 3),
            "wanted": {"rate": SHARE, "processor time": PROCESSOR_SHARE},
            "reached": bool(share >= SHARE and processor_share <= PROCESSOR_SHARE),
            "best": {name: rounded(of) for name, of in ((OURS, ours), (THEIRS, theirs), (BARE, bare_))},
            "turns": {name: [rounded(of) for of in results[kind, name]] for name in (OURS, THEIRS, BARE)},
        }


def rounded(values):
    return {name: round(value, 3) for name, value in values.items()}


def cells(row):
    ours, theirs, bare_ = (row["best"][name] for name in (OURS, THEIRS, BARE))
    return (
        row["times kube-scheduler"],
        row["share of the bare client's rate"],
        f"≥ {SHARE}",
        row["share of kube-scheduler's processor time"],
        f"≤ {PROCESSOR_SHARE}",
        *(f"{of['ms/pod']:.2f}" for of in (ours, theirs, bare_)),
        *(f"{of['seconds before the first bind']:.1f}" for of in (ours, theirs)),
        *(f"{of['pods/s']:.0f}" for of in (ours, theirs, bare_)),
        row["input"],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--pods", type=int, default=PODS)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--shares", action="store_true", help="only print where Bayplan's processor time goes")
    given = parser.parse_args()
    if given.pods > given.nodes:
        parser.error("pods with anti-affinity need a node each: pass no more pods than nodes")
    measured = asyncio.run(run(given.nodes, given.pods, given.turns, only_shares=given.shares))
    if given.shares:
        sys.exit()
    rows = list(rows_of(measured, given.nodes, given.pods))
    table = tables.table(HEAD, map(cells, rows))
    print(table)
    if (given.nodes, given.pods) == (NODES, PODS):
        results = ROOT / "benchmarks" / "live-results.json"
        results.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
        tables.write("live", "live.py", table)
