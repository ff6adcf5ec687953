"""A kind of the fault campaign: more slow and idle connections than descriptors, to every port, while pods are bound."""

import asyncio

import pytest

from live.hostile_clients import attacked_by, guarded, slow_clients
from live.processes import answers
from live.test_faults import PATIENCE, rounds, trial
from live.test_faults_forged_reviews import metric

pytestmark = pytest.mark.timeout(PATIENCE + 120)
DESCRIPTORS, CLIENTS = 1024, 600  # the usual limit; clients of each port
FEW_DESCRIPTORS = f"""
import resource, runpy
resource.setrlimit(resource.RLIMIT_NOFILE, ({DESCRIPTORS}, {DESCRIPTORS}))
runpy.run_module("bayplan", run_name="__main__", alter_sys=True)
"""


@rounds
async def test_slow_clients_hold_all_connections_while_pods_are_bound(kube_server, admin, namespace, round_):
    # Here the API server has the address of its attackers, so a new connection of its own may be closed in their place.
    # Whoever creates the pod is told so and tries again, as controllers do.
    admin.retried = (*admin.retried, "failed to call webhook")
    async with guarded(kube_server, admin, program=("-c", FEW_DESCRIPTORS)) as running:
        health = f"http://127.0.0.1:{running.port}"
        clients = [
            *slow_clients(running.webhook_port, CLIENTS, tls=True),
            *slow_clients(running.port, CLIENTS, tls=False),
        ]
        async with attacked_by(clients), trial(admin, namespace, "slow clients"):
            pass
        async with attacked_by(clients):
            for path in ("/livez", "/readyz", "/metrics"):
                assert await asyncio.to_thread(answers, health + path)
            assert await asyncio.to_thread(metric, running.port, "bayplan_leading") == 1
            assert await asyncio.to_thread(metric, running.port, "bayplan_webhook_connections_closed_total") > 0
        running.stop()
        assert running.child.returncode == 0
        assert "leadership was lost" not in running.log.read_text()
