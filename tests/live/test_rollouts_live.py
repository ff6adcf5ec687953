"""
Random updates on a real API server with kube-controller-manager and `bayplan run`, predicted from a dump taken before.

`make rollouts-live` runs all thirty and records them; here are a few of them.
"""

import asyncio
import json
import os
import pathlib
import random
import subprocess
import sys
from collections import Counter

import pytest

from live import bayplan_running
from live.kubelets import Kubelets
from live.random_updates import UNREACHABLE, Update, is_complete

N_UPDATES = int(os.environ.get("BAYPLAN_ROLLOUTS", "4"))
FIRST = int(
    os.environ.get("BAYPLAN_ROLLOUTS_FIRST", "0")
)  # other updates than the recorded ones begin at 30, nodes are lost from 120 on
RECORD = os.environ.get("BAYPLAN_ROLLOUTS_RECORD", "")
# Of the nodes; whether a rollout completes is never missed. DaemonSets take nodes in random order.
MISSES_ALLOWED = max(1, N_UPDATES // 10)
CONTROLLERS = ("deployment-controller", "replicaset-controller", "statefulset-controller", "daemonset-controller")
KIND_OF = {
    "nodes": ("v1", "Node"), "pods": ("v1", "Pod"), "apps/v1/deployments": ("apps/v1", "Deployment"),
    "apps/v1/replicasets": ("apps/v1", "ReplicaSet"), "apps/v1/statefulsets": ("apps/v1", "StatefulSet"),
    "apps/v1/daemonsets": ("apps/v1", "DaemonSet"),
}  # fmt: skip


@pytest.mark.timeout(60 + 60 * N_UPDATES)
async def test_rollouts_end_as_predicted(kube_server, admin, tmp_path):
    kube_server.start_controller_manager(*CONTROLLERS)
    bayplan_running.process(kube_server, "--no-leader-elect")
    outcomes = []
    for number in range(FIRST, FIRST + N_UPDATES):
        update = Update(random.Random(f"update {number}"), number)
        outcomes.append(await predicted_and_seen(update, admin, tmp_path))
        outcomes[-1]["update"] = number
        await clear(admin)
    if RECORD:
        record(outcomes)
    wrong = [one for one in outcomes if one["predicted"]["complete"] != one["seen"]["complete"]]
    elsewhere = [one for one in outcomes if one["predicted"]["nodes"] != one["seen"]["nodes"]]
    assert not wrong
    assert len(elsewhere) <= MISSES_ALLOWED, elsewhere


async def predicted_and_seen(update, admin, folder):
    """How the update was predicted to end, and how it ended."""
    await admin.create_all(update.nodes)
    await admin.create_all(update.others)
    await admin.create(update.workload)
    kubelets = Kubelets(admin)
    await kubelets.settle()
    if update.lost:
        await kubelets.lose(update.lost, UNREACHABLE)
    state = [
        {"apiVersion": KIND_OF[resource][0], "kind": KIND_OF[resource][1], **one}
        for resource in KIND_OF
        for one in await admin.items(resource)
    ]
    before = nodes_of(one for one in state if one["kind"] == "Pod")
    changed = update.workload | {"spec": update.workload["spec"] | update.change}
    predicted = await asyncio.to_thread(prediction, folder, state, changed)
    await admin.patch(update.resource, "web", {"spec": update.change}, "default")
    await kubelets.settle()
    ended = {"kind": update.kind, **await admin.get(update.resource, "web", "default")}
    seen = {"complete": is_complete(ended), "nodes": nodes_of(await admin.items("pods"))}
    lost = {"lost": update.lost} if update.lost else {}
    return {"kind": update.kind, **lost, "before": before, "predicted": predicted, "seen": seen}


async def clear(admin):
    """Delete everything, what controllers would recreate after its controller."""
    for resources in (("apps/v1/deployments", "apps/v1/statefulsets", "apps/v1/daemonsets"), ("apps/v1/replicasets",)):
        for resource in resources:
            await admin.delete_all(resource, "default")
        await Kubelets(admin).settle()
    for resource in ("pods", "apps/v1/controllerrevisions"):
        await admin.delete_all(resource, "default")
    await admin.delete_all("nodes")
    await Kubelets(admin).settle()


def prediction(folder, state, changed):
    """What `bayplan place` says of the changed workload on a dump of the state."""
    dump, manifest = folder / "state.json", folder / "change.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": state}), encoding="utf-8")
    manifest.write_text(json.dumps(changed), encoding="utf-8")
    command = [sys.executable, "-m", "bayplan", "place", "--state", dump, "-f", manifest, "-o", "json"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    (rollout,) = json.loads(done.stdout)["rollouts"]
    where = Counter(nodes_of(one for one in state if one["kind"] == "Pod"))
    for move in rollout["moves"]:
        where.subtract([move["from"]["node"]] if move["from"] else [])
        where.update([move["to"]["node"]] if move["to"] else [])
    return {
        "complete": rollout["result"] in ("complete", "held back"),
        "nodes": sorted(where.elements()),
        "steps": len(rollout["steps"]),
        "why": rollout["why"],
    }


def nodes_of(pods):
    """The nodes of the workload's pods, sorted; "" for a pending one."""
    return sorted(
        pod["spec"].get("nodeName", "") for pod in pods if pod["metadata"].get("labels", {}).get("app") == "web"
    )


def record(outcomes):
    """Write how all of them were predicted to end, and ended."""
    content = {
        "first": FIRST,
        "updates": len(outcomes),
        "completed": sum(one["seen"]["complete"] for one in outcomes),
        "stuck": sum(not one["seen"]["complete"] for one in outcomes),
        "ended_as_predicted": sum(one["predicted"]["complete"] == one["seen"]["complete"] for one in outcomes),
        "nodes_as_predicted": sum(one["predicted"]["nodes"] == one["seen"]["nodes"] for one in outcomes),
        "outcomes": outcomes,
    }
    pathlib.Path(RECORD).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
