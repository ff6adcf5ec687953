"""
Pods with a volume each: the cost of a decision as nodes and volumes grow together.

As a program, `python benchmarks/volumes.py NODES PER_NODE PODS` measures one cluster: PER_NODE volumes on every node,
drivers with attach limits that report their free capacity, and pending pods, half with a bound volume in some zone,
half with an unbound claim.
"""

import gc
import json
import pathlib
import sys
import time

import msgspec
from gen_templates import HOST, ZONE
from measuring import best, last_line

TITLE = "Pods with volumes"
HEAD = ("largest over smallest", "µs with a bound claim", "µs with an unbound claim", "inputs")
INPUTS = ("volumes.py 500 4 1000", "volumes.py 5000 4 1000")
RUNS = 3
DRIVER, CLASS = "disks.example", "late"


def rows(scale):
    inputs = [scale(text) for text in INPUTS]
    measured = [best(last_line(pathlib.Path(__file__), *words[1:]) for _ in range(RUNS)) for words in inputs]
    yield {"inputs": [" ".join(words) for words in inputs], "measured": measured}


def cells(row):
    seconds = [each["seconds"] for each in row["measured"]]
    each = [" · ".join(f"{one[kind] * 1e6:,.0f}" for one in row["measured"]) for kind in ("bound", "waiting")]
    return f"{max(seconds) / min(seconds):.2f}", *each, " · ".join(f"`{text}`" for text in row["inputs"])


def main():
    n_nodes, per_node, n_pods = map(int, sys.argv[1:4])
    engine, waiting = cluster(n_nodes, per_node, n_pods)
    gc.collect()
    gc.freeze()
    gc.disable()
    place(engine, waiting[:2])  # builds what is built once
    bound = place(engine, waiting[2::2])
    unbound = place(engine, waiting[3::2])
    print(json.dumps({"seconds": bound + unbound, "bound": bound, "waiting": unbound}))


def place(engine, workloads):
    """The mean seconds of a decision, including the update of the index."""
    from bayplan import schedule_pod

    start = time.perf_counter()
    for workload in workloads:
        decision = schedule_pod.schedule(workload, engine)
        engine.index.add(workload, engine.index.slots.at(decision.slot).name)
    return (time.perf_counter() - start) / max(1, len(workloads))


def cluster(n_nodes, per_node, n_pods):
    from bayplan.engine.engine import Engine
    from bayplan.mapping import pods
    from bayplan.reading import questions
    from bayplan.rules import profiles
    from bayplan.wire.pods import Pod

    n_running = n_nodes * per_node
    objects = [*drivers(n_nodes)]
    for i in range(n_running + n_pods):
        objects += stored(i, zone=i % 3, bound=i < n_running or i % 2 == 0)
    question = {
        "nodes": [node(i) for i in range(n_nodes)],
        "pods": [pod(i, f"node-{i % n_nodes}") for i in range(n_running)],
        "pod": pod(n_running),
        "objects": objects,
    }
    index = questions.pod_situation_of(msgspec.convert(question, questions.PodQuestion)).index
    asking = [pods.workload_of(msgspec.convert(pod(n_running + i), Pod)) for i in range(n_pods)]
    return Engine(index, profiles.pod_rules()), asking


def node(i):
    room = {"cpu": "32", "memory": "128Gi", "pods": "250"}
    labels = {HOST: f"node-{i}", ZONE: f"zone{i % 3}"}
    return {"metadata": {"name": f"node-{i}", "labels": labels}, "status": {"allocatable": room}}


def pod(i, node_name=""):
    container = {"name": "c", "image": "db", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": f"claim-{i}"}}
    spec = {"containers": [container], "volumes": [volume], "nodeName": node_name}
    return {"metadata": {"name": f"db-{i}", "namespace": "default", "labels": {"app": "db"}}, "spec": spec}


def drivers(n_nodes):
    yield {
        "kind": "StorageClass",
        "metadata": {"name": CLASS},
        "provisioner": DRIVER,
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    yield {"kind": "CSIDriver", "metadata": {"name": DRIVER}, "spec": {"storageCapacity": True}}
    for zone in range(3):
        yield {
            "kind": "CSIStorageCapacity",
            "metadata": {"name": f"zone{zone}", "namespace": "default"},
            "storageClassName": CLASS,
            "nodeTopology": {"matchLabels": {ZONE: f"zone{zone}"}},
            "capacity": "10Ti",
        }
    for i in range(n_nodes):
        limit = {"name": DRIVER, "nodeID": f"node-{i}", "allocatable": {"count": 25}}
        yield {"kind": "CSINode", "metadata": {"name": f"node-{i}"}, "spec": {"drivers": [limit]}}


def stored(i, *, zone, bound):
    """A claim and, if it is bound, its volume."""
    metadata = {"name": f"claim-{i}", "namespace": "default", "uid": f"claim-{i}"}
    size, modes = {"storage": "1Gi"}, ["ReadWriteOnce"]
    wanted = {"storageClassName": CLASS, "accessModes": modes, "resources": {"requests": size}}
    if not bound:
        yield {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": wanted}
        return
    metadata["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    yield {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": {**wanted, "volumeName": f"volume-{i}"}}
    in_zone = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [f"zone{zone}"]}]}
    spec = {
        "storageClassName": CLASS,
        "accessModes": modes,
        "capacity": size,
        "csi": {"driver": DRIVER, "volumeHandle": f"handle-{i}"},
        "claimRef": {"namespace": "default", "name": f"claim-{i}", "uid": f"claim-{i}"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [in_zone]}},
    }
    yield {"kind": "PersistentVolume", "metadata": {"name": f"volume-{i}"}, "spec": spec, "status": {"phase": "Bound"}}


if __name__ == "__main__":
    main()
