"""The explain endpoint of a running scheduler on a real API server."""

import asyncio
import json
import urllib.error
import urllib.request

from live.admin import wait_for
from live.bayplan_running import NAME, process
from live.processes import free_port

HOST = "kubernetes.io/hostname"


def fetched(port, query):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/explain{query}", timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


async def test_a_pending_pod_is_explained_and_the_endpoint_is_off_by_default(kube_server, admin, namespace):
    await admin.create_nodes(2)
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOST}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    port = free_port()
    plain = process(kube_server, "--no-leader-elect", "--dry-run")
    serving = process(kube_server, "--no-leader-elect", "--explain-bind-address", f"127.0.0.1:{port}")
    try:
        for i in range(3):
            await admin.create_pod(
                f"web-{i}", namespace, scheduler=NAME, meta={"labels": {"app": "web"}}, affinity=affinity
            )

        async def two_bound():
            pods = await admin.items("pods", namespace)
            return [p["metadata"]["name"] for p in pods if not p["spec"].get("nodeName")] if len(pods) == 3 else None

        (pending,) = await wait_for(lambda: one_of(two_bound()))
        status, text = await asyncio.to_thread(fetched, port, f"?pod={namespace}/{pending}")
        assert status == 200
        answer = json.loads(text)
        assert answer["kind"] == "Explanation"
        assert answer["message"].startswith("0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules.")
        assert {failure["rule"] for verdict in answer["verdicts"].values() for failure in verdict["failures"]} == {
            "pod-affinity"
        }
        assert await asyncio.to_thread(fetched, port, "?pod=no/such") == (404, "there is no pod no/such\n")
        assert (await asyncio.to_thread(fetched, plain.port, f"?pod={namespace}/{pending}"))[0] == 404
    finally:
        plain.stop()
        serving.stop()


async def one_of(coroutine):
    found = await coroutine
    return found if found is not None and len(found) == 1 else None
