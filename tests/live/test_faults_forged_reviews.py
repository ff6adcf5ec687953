"""A kind of the fault campaign: forged reviews while pods are bound. They reserve no node, use up no quota, delay nothing."""

import asyncio
import re
import urllib.request

import pytest

from live.admin import path_to, wait_for
from live.hostile_clients import attacked_by, forged_reviews, guarded
from live.objects import pod
from live.test_faults import HOST, NODES, PATIENCE, rounds, trial

pytestmark = pytest.mark.timeout(PATIENCE + 120)
EXCLUSIVE = {"labelSelector": {}, "namespaceSelector": {}, "topologyKey": HOST}


def metric(port, name):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE))


async def has_refused(port, count):
    return await asyncio.to_thread(metric, port, "bayplan_webhook_requests_refused_total") >= count


@rounds
async def test_reviews_are_forged_while_pods_are_bound(kube_server, admin, namespace, round_):
    async with guarded(kube_server, admin) as running:
        limits = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bayplan-quota"}}
        await admin.create({**limits, "data": {namespace: "{cpu: 64}"}}, namespace="bayplan-system")
        nodes = [f"node-{n}" for n in range(NODES)]
        async with attacked_by(forged_reviews(running.webhook_port, namespace, nodes)):
            async with trial(admin, namespace, "forged reviews"):
                pass
            # The quota is not used up: a pod that excludes all others is admitted.
            affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [EXCLUSIVE]}}
            alone = pod("alone", namespace, scheduler="another", affinity=affinity)
            await admin.request("POST", path_to("pods", namespace=namespace), alone, dryRun="All")
            await wait_for(lambda: has_refused(running.port, 100))
            assert await asyncio.to_thread(metric, running.port, "bayplan_leading") == 1
        running.stop()
        assert running.child.returncode == 0
