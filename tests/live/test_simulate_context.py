"""`bayplan simulate` of a live cluster: it is listed once, and nothing is written to it."""

import asyncio
import json
import os
import subprocess
import sys

from simulating.clusters import deployment, node


async def test_a_live_cluster_is_simulated_and_stays_as_it_is(kube_server, admin, tmp_path):
    await admin.create_namespace("shop")
    for one in (node("a1"), node("b1", "b"), deployment(replicas=3)):
        await admin.create(one)
    timeline = tmp_path / "timeline.yaml"
    timeline.write_text(
        "steps:\n- {at: 5m, expect: {ready: {of: web, exactly: 3}}}\n- {at: 6m, lose: node/a1}\n"
        "- {at: 20m, expect: {nodesReady: {exactly: 1}}}\n"
    )
    command = [
        sys.executable,
        "-m",
        "bayplan",
        "simulate",
        "--kubeconfig",
        kube_server.kubeconfig(),
        timeline,
        "-o",
        "json",
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = await asyncio.to_thread(
        subprocess.run, command, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ok"]
    assert await admin.items("pods", "shop") == []
    assert all("unreachable" not in str(one["spec"]) for one in await admin.items("nodes"))
