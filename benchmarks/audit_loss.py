"""
Measure the audit of a large cluster with every single-domain loss simulated: `python benchmarks/audit_loss.py`.

A dump is generated (two nodes to a machine, 25 machines to a rack, three zones), and `bayplan audit` reads it,
simulates the loss of every node, machine, rack and zone, and places the displaced pods again. On a terminal it shows
its progress.
`--dump FILE` only writes the dump.
"""

import argparse
import json
import pathlib
import random
import resource
import subprocess
import sys
import tempfile
import time

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
HOST, RACK = "topology.scs.community/host-id", "topology.rook.io/rack"
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")
NODES_PER_HOST, HOSTS_PER_RACK, ZONES = 2, 25, 3
REPLICAS = (2, 3, 5, 10, 20, 50)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    arguments.add_argument("--nodes", type=int, default=5000)
    arguments.add_argument("--pods", type=int, default=100_000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--dump", help="only write the dump there")
    arguments.add_argument("--lose", action="append", default=[], help="as for `bayplan audit`")
    given = arguments.parse_args()
    objects = cluster(given.nodes, given.pods, random.Random(given.seed))
    if given.dump:
        pathlib.Path(given.dump).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        return
    with tempfile.TemporaryDirectory() as folder:
        dump, report = pathlib.Path(folder, "dump.json"), pathlib.Path(folder, "report.json")
        dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        del objects
        print(f"{given.nodes} nodes, {given.pods} pods, {dump.stat().st_size / 1e6:.0f} MB")
        words = ["--exit-zero", *(word for level in given.lose for word in ("--lose", level))]
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "bayplan", "audit", "-f", dump, "-o", "json", "--output-file", report, *words],
            check=True,
        )
        wall = time.perf_counter() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print_summary(json.loads(report.read_text()))
        print(f"{wall:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of CPU, {used.ru_maxrss / 1024:.0f} MB at most")


def print_summary(report):
    print("| level | losses | pods displaced | not placed again |\n|---|---|---|---|")
    for level in report["survivability"]["levels"]:
        played = [event["rescheduling"] for event in level["events"] if event["rescheduling"]]
        displaced = sum(one["displaced"] for one in played)
        stranded = sum(len(entry["pods"]) for one in played for entry in one["stranded"])
        print(f"| {level['level']} | {len(played)} | {displaced} | {stranded} |")


def cluster(n_nodes, n_pods, chance):
    nodes = [node(i, n_nodes) for i in range(n_nodes)]
    workers = [one["metadata"]["name"] for one in nodes[3:]]
    room = dict.fromkeys(workers, 16_000)
    objects = [*nodes, *(mirror(part, one) for one in nodes[:3] for part in COMPONENTS)]
    made = 0
    while made < n_pods:
        size = min(chance.choice(REPLICAS), n_pods - made)
        deployment = Deployment(f"app-{made}", f"team-{chance.randrange(50)}", chance)
        if size > 2 and chance.random() < 0.3:
            objects.append(deployment.budget())
        objects += [deployment.pod(replica, roomy(room, deployment.cpu, chance)) for replica in range(size)]
        made += size
    return objects


def roomy(room, cpu, chance):
    """A node with enough free resources."""
    names = list(room) if len(room) < 10 else None
    while True:
        name = chance.choice(names) if names else f"node-{chance.randrange(3, 3 + len(room)):05}"
        if room[name] >= cpu:
            room[name] -= cpu
            return name


class Deployment:
    """Pods of one template: some have anti-affinity, some are spread over zones, most have no constraint."""

    def __init__(self, name, namespace, chance):
        self.name, self.namespace = name, namespace
        self.cpu, self.memory = chance.choice((100, 250, 500, 1000)), chance.choice((128, 512, 1024))
        self.rule = chance.choice(("none", "none", "none", "apart", "spread"))

    def spec(self, node_name):
        requests = {"cpu": f"{self.cpu}m", "memory": f"{self.memory}Mi"}
        selector = {"matchLabels": {"app": self.name}}
        found = {"nodeName": node_name, "containers": [{"name": "c", "resources": {"requests": requests}}]}
        if self.rule == "apart":
            term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
            preferred_term = {"weight": 100, "podAffinityTerm": term}
            found["affinity"] = {
                "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preferred_term]}
            }
        if self.rule == "spread":
            constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
            found["topologySpreadConstraints"] = [{**constraint, "labelSelector": selector}]
        return found

    def pod(self, replica, node_name):
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{self.name}-5d9f", "uid": self.name}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{self.name}-5d9f-{replica}",
                "namespace": self.namespace,
                "uid": f"{self.name}-{replica}",
                "labels": {"app": self.name, "pod-template-hash": "5d9f"},
                "ownerReferences": [{**owner, "controller": True}],
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": self.spec(node_name),
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }

    def budget(self):
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": self.name, "namespace": self.namespace, "uid": f"pdb-{self.name}"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": self.name}}},
            "status": {},
        }


def node(i, n_nodes):
    host = i // NODES_PER_HOST
    rack = host // HOSTS_PER_RACK
    zone = "abc"[rack * ZONES * HOSTS_PER_RACK * NODES_PER_HOST // n_nodes % ZONES] if i >= 3 else "abc"[i]
    name = f"node-{i:05}"
    labels = {"kubernetes.io/hostname": name, REGION: "r", ZONE: zone}
    labels |= {HOST: f"host-{host}", RACK: f"rack-{rack}"} if i >= 3 else {HOST: f"control-{i}", RACK: f"control-{i}"}
    given = {"cpu": "24", "memory": "64Gi", "pods": "110"}
    found = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": labels},
        "spec": {},
        "status": {"allocatable": given, "capacity": given, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    if i < 3:
        labels[CONTROL_PLANE] = ""
        found["spec"]["taints"] = [{"key": CONTROL_PLANE, "effect": "NoSchedule"}]
    return found


def mirror(part, one):
    name = one["metadata"]["name"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{part}-{name}",
            "namespace": "kube-system",
            "uid": f"{part}-{name}",
            "labels": {"component": part, "tier": "control-plane"},
            "annotations": {"kubernetes.io/config.mirror": "x"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "controller": True}],
        },
        "spec": {"nodeName": name, "containers": [{"name": part}]},
        "status": {"phase": "Running"},
    }


if __name__ == "__main__":
    main()
