"""
Pods per second of gangs of 50 in one rack each, beside the same pods placed one by one without groups.

usage: gangs.py [--nodes 5000 15000] [--gangs 100] [--peer] [--dry]

Racks have 50 nodes. A gang takes half of a rack. Each is placed as a running scheduler does (a search on the index,
then all members are assumed), strictly one after another. Processor time, without interning; the best of three runs.
With `--peer`, the first size is given to kube-scheduler's own pod-group cycle too, on a real API server with the gates
on, and to `bayplan run`: elapsed time from the first bind to the last. Written to gangs.json and README.md.
"""

import argparse
import asyncio
import json
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE.parent / "tests"), str(HERE)]

import msgspec  # noqa: E402
import tables  # noqa: E402

from bayplan import schedule_pod  # noqa: E402
from bayplan.engine.engine import Engine  # noqa: E402
from bayplan.grouping import pending_groups  # noqa: E402
from bayplan.indexing.placement_index import PlacementIndex  # noqa: E402
from bayplan.mapping import pods, targets  # noqa: E402
from bayplan.queueing import group_attempt  # noqa: E402
from bayplan.queueing.group_attempt import GroupRequest  # noqa: E402
from bayplan.rules.profiles import pod_rules  # noqa: E402
from bayplan.wire.nodes import Node  # noqa: E402
from bayplan.wire.pods import Pod  # noqa: E402

RACK, NODES_PER_RACK, MEMBERS, RUNS = "example.com/rack", 50, 50, 3
PATIENCE = 900
HEAD = ("nodes", "gangs", "gang pods/s", "single pods/s", "single over gang", "µs per gang pod", "live: Bayplan pods/s",
        "live: kube-scheduler's pod-group cycle pods/s")  # fmt: skip


def nodes(n):
    for number in range(n):
        allocatable = {"cpu": "8", "memory": "64Gi", "pods": "110"}
        name, zone = f"n{number}", f"z{number % 3}"
        labels = {
            "kubernetes.io/hostname": name,
            RACK: f"r{number // NODES_PER_RACK}",
            "topology.kubernetes.io/zone": zone,
        }
        status = {"allocatable": allocatable, "capacity": allocatable}
        yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def members(gang, *, annotated, scheduler="bayplan"):
    says = {"bayplan.io/group": gang, "bayplan.io/group-min": str(MEMBERS), "bayplan.io/group-topology": RACK}
    for number in range(MEMBERS):
        metadata = {"name": f"{gang}-{number}", "namespace": "default", "labels": {"app": gang}}
        container = {"name": "c", "image": "example.com/none", "resources": {"requests": {"cpu": "4"}}}
        spec = {"schedulerName": scheduler, "containers": [container], "terminationGracePeriodSeconds": 0}
        if annotated:
            metadata["annotations"] = says
        else:
            spec["schedulingGroup"] = {"podGroupName": gang}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def loaded(n_nodes):
    index = PlacementIndex()
    for node in nodes(n_nodes):
        index.add_target(targets.target_of_node(msgspec.convert(node, Node)))
    return index, Engine(index, pod_rules())


def workloads(gang, *, annotated):
    return [pods.workload_of(msgspec.convert(one, Pod)) for one in members(gang, annotated=annotated)]


def seconds_of_gangs(n_nodes, n_gangs):
    index, engine = loaded(n_nodes)
    all_members = [workloads(f"g{number}", annotated=True) for number in range(n_gangs)]
    began = time.process_time()
    for some in all_members:
        group = pending_groups.pending_group(f"default/{some[0].group.name}", some, (), {})
        found = group_attempt.attempt(GroupRequest(group=group), index, lambda _: engine, lambda: False)
        for pod in some:
            schedule_pod.assume(index, pod, index.slots.by_name[found.nodes[pod.key]])
    seconds = time.process_time() - began
    for some in all_members:
        racks = {index.slots.at(index.records[pod.key].slots[0]).labels[RACK] for pod in some}
        assert len(racks) == 1
    return seconds


def seconds_of_single_pods(n_nodes, n_gangs):
    index, engine = loaded(n_nodes)
    singles = [pod for number in range(n_gangs) for pod in workloads(f"g{number}", annotated=True)]
    singles = [msgspec.structs.replace(pod, group=None, needs=alone(pod.needs), labels={"app": "x"}) for pod in singles]
    began = time.process_time()
    for pod in singles:
        slot, _ = schedule_pod.choose(pod, engine)
        assert slot >= 0
        schedule_pod.assume(index, pod, slot)
    return time.process_time() - began


def alone(needs):
    affinity = msgspec.structs.replace(needs.affinity, group_required=())
    return msgspec.structs.replace(needs, affinity=affinity)


def measure(n_nodes, n_gangs):
    runs = [(seconds_of_gangs(n_nodes, n_gangs), seconds_of_single_pods(n_nodes, n_gangs)) for _ in range(RUNS)]
    gangs, singles = min(gang for gang, _ in runs), min(single for _, single in runs)
    n_pods = n_gangs * MEMBERS
    return {
        "nodes": n_nodes,
        "gangs": n_gangs,
        "gangPodsPerSecond": round(n_pods / gangs),
        "singlePodsPerSecond": round(n_pods / singles),
    }


# Live


async def live(n_nodes, n_gangs):
    """Pods bound per second by Bayplan and by kube-scheduler's pod-group cycle."""
    from planted_peer import GATES, SERVER

    from live.admin import Admin
    from live.bayplan_running import process
    from live.kube_server import KubeServer

    found = {}
    with KubeServer(SERVER) as server:
        async with Admin.of(server) as admin:
            await admin.create_all(list(nodes(n_nodes)))
            for name in ("bayplan", "kube-scheduler"):
                await _create_gangs(admin, name, n_gangs)
                if name == "bayplan":
                    scheduler = process(server, "--no-leader-elect", "--kube-api-qps=5000", "--kube-api-burst=5000")
                else:
                    scheduler = server.start_scheduler("kube-scheduler", flags=(GATES,))
                found[name] = await _bound_per_second(admin, n_gangs * MEMBERS)
                print(name, found[name], file=sys.stderr, flush=True)
                scheduler.kill()
                await admin.delete_all("pods", "default")
                await admin.delete_all("scheduling.k8s.io/v1alpha2/podgroups", "default")
    return found


async def _create_gangs(admin, scheduler, n_gangs):
    from planted_peer import pod_group

    gangs = [f"g{number}" for number in range(n_gangs)]
    await admin.create_all([pod_group(gang, "default", RACK, MEMBERS) for gang in gangs], namespace="default")
    every = [one for gang in gangs for one in members(gang, annotated=False, scheduler=scheduler)]
    await admin.create_all(every, namespace="default")


async def _bound_per_second(admin, n_pods):
    """From the first bind to the last, as seen; what is bound after the time is up does not count."""
    first, began = None, time.monotonic()
    while True:
        items = await admin.items("pods", "default")
        n, now = sum(bool(one["spec"].get("nodeName")) for one in items), time.monotonic()
        if n and first is None:
            first = n, now
        if n == n_pods or now - began > PATIENCE:
            break
        await asyncio.sleep(0.5)
    return {
        "bound": n,
        "podsPerSecond": round((n - first[0]) / (now - first[1]), 1) if first and now > first[1] else None,
    }


def cells(row):
    gang, single, beside = row["gangPodsPerSecond"], row["singlePodsPerSecond"], row.get("live", {})
    rates = [beside.get(name, {}).get("podsPerSecond", "–") for name in ("bayplan", "kube-scheduler")]
    measured = (f"{gang:,.0f}", f"{single:,.0f}", f"{single / gang:.1f}", f"{1e6 / gang:,.0f}")
    return (row["nodes"], row["gangs"], *measured, *rates)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, nargs="+", default=[5000, 15000])
    parser.add_argument("--gangs", type=int, default=100)
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--dry", action="store_true")
    chosen = parser.parse_args()
    rows = [measure(n, chosen.gangs) for n in chosen.nodes]
    if chosen.peer:
        rows[0]["live"] = asyncio.run(live(chosen.nodes[0], chosen.gangs))
    print("\n".join(map(str, rows)))
    if not chosen.dry:
        (HERE / "gangs.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        tables.write("gangs", "gangs.py", tables.table(HEAD, [cells(row) for row in rows]))


if __name__ == "__main__":
    main()
