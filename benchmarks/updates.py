"""
Updates of large workloads, stepped through: processor time of a whole `bayplan place`, reading and writing included.

As a program, `python benchmarks/updates.py KIND REPLICAS SURGE FOLDER` writes what runs and what is applied.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parent.parent
TITLE = "Updates of large workloads"
HEAD = ("goal over seconds", "seconds", "goal", "ms for each step", "steps", "input")
# Kind, replicas, maxSurge, and the goal in seconds if there is one.
CASES = (
    ("Deployment 400 1", None),
    ("Deployment 1600 1", 3),
    ("Deployment 10000 25%", 15),
    ("StatefulSet 400 0", None),
    ("StatefulSet 1600 0", None),
    ("DaemonSet 100 0", None),
    ("DaemonSet 400 0", None),
)
PODS_PER_NODE = 20
OLD, NEW = 1, 2


def rows(scale):
    for words, goal in CASES:
        given = scale(words)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, __file__, *given, folder], check=True)
            files = ["--state", f"{folder}/state.json", "-f", f"{folder}/change.json"]
            runs = [run(["-m", "bayplan", "place", *files, "-o", "json"]) for _ in range(3)]
        seconds, answer = min(runs, key=lambda one: one[0])
        (rollout,) = answer["rollouts"]
        assert rollout["result"] == "complete"
        yield {"input": " ".join(given), "goal": goal, "seconds": seconds, "steps": len(rollout["steps"])}


def run(words):
    """Seconds of processor time, and the answer."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OPENBLAS_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, json.loads(done.stdout)


def cells(row):
    return (
        f"{row['goal'] / row['seconds']:.1f}" if row["goal"] else "–",
        f"{row['seconds']:.1f}",
        row["goal"] or "–",
        f"{1000 * row['seconds'] / row['steps']:.1f}",
        f"{row['steps']:,}",
        f"`updates.py {row['input']}`",
    )


def main():
    kind, n_replicas, surge, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3], pathlib.Path(sys.argv[4])
    surge = int(surge) if surge.isdigit() else surge
    n_nodes = n_replicas if kind == "DaemonSet" else -(-n_replicas // PODS_PER_NODE) + 1
    owned = [owner(kind, OLD, n_replicas, surge)]
    if kind == "Deployment":
        owned.append(replica_set(n_replicas, owned[0]))
    pods = [pod(owned[-1], number, f"node-{number % n_nodes}") for number in range(n_replicas)]
    items = [*(node(number) for number in range(n_nodes)), *owned, *pods]
    (folder / "state.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    (folder / "change.json").write_text(json.dumps(owner(kind, NEW, n_replicas, surge)))


def node(number):
    name = f"node-{number}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
    }


def template(version, **labels):
    container = {"name": "c", "image": f"web:{version}", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    return {"metadata": {"labels": {"app": "web", **labels}}, "spec": {"containers": [container]}}


def owner(kind, version, n_replicas, surge):
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template(version)}
    if kind != "DaemonSet":
        spec["replicas"] = n_replicas
    if kind == "Deployment":
        limits = {"maxSurge": surge, "maxUnavailable": 0}
        spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": limits}
    found = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web", "namespace": "shop"}, "spec": spec}
    if version == OLD:
        found["metadata"]["uid"] = "uid-web"
        found["status"] = {"currentRevision": "web-1", "updateRevision": "web-1"}
    return found


def replica_set(n_replicas, deployment):
    labels = {"app": "web", "pod-template-hash": "abc"}
    meta = {"name": "web-abc", "namespace": "shop", "uid": "uid-web-abc", "ownerReferences": [reference(deployment)]}
    spec = {"replicas": n_replicas, "selector": {"matchLabels": labels}, "template": template(OLD, **labels)}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": spec}


def reference(one):
    named = {"name": one["metadata"]["name"], "uid": one["metadata"]["uid"]}
    return {"apiVersion": one["apiVersion"], "kind": one["kind"], **named, "controller": True}


def pod(owned_by, number, where):
    minute = f"{number // 60 % 60:02}:{number % 60:02}Z"
    mark = "pod-template-hash" if owned_by["kind"] == "ReplicaSet" else "controller-revision-hash"
    written = template(OLD, **{mark: "abc" if owned_by["kind"] == "ReplicaSet" else "web-1"})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{owned_by['metadata']['name']}-{number}",
            "namespace": "shop",
            "uid": f"uid-{number * 7919 % 10007}",
            "creationTimestamp": f"2026-11-01T08:{minute}",
            "ownerReferences": [reference(owned_by)],
            **written["metadata"],
        },
        "spec": {**written["spec"], "nodeName": where},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": f"2026-11-01T09:{minute}"}],
        },
    }


if __name__ == "__main__":
    main()
