"""
A day of a cluster, simulated: 1,000 nodes, 10,000 pods and 5,000 changes.

    python benchmarks/simulate.py [--nodes N] [--pods N] [--changes N] [--hours N] [--record FILE]

The changes are those of a busy cluster: workloads are scaled and restarted, machines are lost and come back, nodes are
tainted and cordoned. The memory is measured at the end of each quarter of the day.
"""

import argparse
import json
import pathlib
import random
import resource
import time

from bayplan.library.cluster import Cluster

ZONES, REPLICAS = 10, 20
ABOUT = {"shape": "Deployments of 20 replicas, a third of them spread over zones, a third apart from each other"}


def node(number):
    labels = {"kubernetes.io/hostname": f"n{number}", "topology.kubernetes.io/zone": f"z{number % ZONES}"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n{number}", "labels": labels},
        "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"}},
    }


def deployment(number, replicas):
    labels = {"app": f"app-{number}"}
    selector = {"matchLabels": labels}
    rules = [
        {},
        {
            "topologySpreadConstraints": [
                {
                    "maxSkew": 2,
                    "topologyKey": "topology.kubernetes.io/zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": selector,
                }
            ]
        },
        {
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
                    ]
                }
            }
        },
    ][number % 3]
    container = {"name": "c", "image": "app:1", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"app-{number}", "namespace": f"team-{number % 20}"},
        "spec": {
            "replicas": replicas,
            "selector": selector,
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container], **rules}},
        },
    }


def timeline(n_nodes, n_workloads, n_changes, hours):
    """The changes at random times; a machine that is lost comes back."""
    chance, seconds, steps = random.Random(1), hours * 3600, []
    for _ in range(n_changes):
        at, one = chance.uniform(600, seconds), chance.random()
        app, where = f"app-{chance.randrange(n_workloads)}", f"node/n{chance.randrange(n_nodes)}"
        if one < 0.6:
            steps.append((at, {"scale": {app: chance.randint(REPLICAS - 8, REPLICAS + 8)}}))
        elif one < 0.7:
            steps.append((at, {"restart": app}))
        elif one < 0.8:
            steps += [(at, {"lose": where}), (at + 1800, {"recover": where})]
        elif one < 0.9:
            steps += [(at, {"cordon": where}), (at + 900, {"uncordon": where})]
        else:
            steps += [(at, {"taint": {where: "busy:PreferNoSchedule"}}), (at + 900, {"taint": {where: "busy-"}})]
    steps = sorted((round(min(at, seconds), 1), number, step) for number, (at, step) in enumerate(steps))
    ends = {"at": seconds, "expect": {"ready": {"of": "app-0", "atLeast": 1}}}
    return {"lasts": seconds, "steps": [*({"at": at, **step} for at, _, step in steps), ends]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--changes", type=int, default=5000)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--record", type=pathlib.Path)
    asked = parser.parse_args()
    n_workloads = asked.pods // REPLICAS
    objects = [node(n) for n in range(asked.nodes)] + [deployment(n, REPLICAS) for n in range(n_workloads)]
    plan, memory = timeline(asked.nodes, n_workloads, asked.changes, asked.hours), {}
    quarters = [asked.hours * 3600 * n / 4 for n in (1, 2, 3, 4)]

    def progress(line):
        now = line.split()[1] if line.startswith("simulating") else ""
        memory[now] = resident()

    began, processor = time.perf_counter(), time.process_time()
    run = Cluster.from_objects(objects).reporting(progress).simulate(plan)
    counts = run.to_dict()["eventCounts"]
    found = {
        "nodes": asked.nodes,
        "pods": asked.pods,
        "changes": asked.changes,
        "hours": asked.hours,
        "seconds": round(time.perf_counter() - began, 1),
        "processor_seconds": round(time.process_time() - processor, 1),
        "pods_created": counts["Created"],
        "pods_scheduled": counts["Scheduled"],
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "resident_mib_by_quarter": by_quarter(memory, quarters),
    }
    print(json.dumps(found, indent=1))
    if asked.record:
        asked.record.write_text(json.dumps({**ABOUT, **found}, indent=1) + "\n", encoding="utf-8")


def resident():
    """The resident memory of this process in MiB."""
    for line in pathlib.Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) // 1024
    return 0


def by_quarter(memory, quarters):
    """The memory at the last report of each quarter."""
    from bayplan.simulating.timeline_fields import parse_duration

    times = sorted((parse_duration(now), mib) for now, mib in memory.items() if parse_duration(now) is not None)
    return [max((mib for at, mib in times if end - 3600 <= at <= end), default=0) for end in quarters]


if __name__ == "__main__":
    main()
