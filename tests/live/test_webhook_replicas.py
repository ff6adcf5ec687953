"""The settings of the guard on a real API server, and two webhook replicas behind one address."""

import asyncio
import contextlib
import itertools

import pytest

from bayplan.kube_api import connect
from bayplan.model.semantics import DESIGN
from bayplan.validating.guard import Exempt, GuardSettings
from bayplan.webhook import running
from bayplan.webhook.admission_handler import AdmissionSettings
from bayplan.webhook.manifests import WebhookAddress
from bayplan.webhook.running import WebhookSettings
from live.admin import wait_for
from live.open_webhook import CONFIGURATIONS, serving_webhook
from live.processes import free_port
from live.test_webhook import BEYOND, CLUSTER_WIDE, HOSTNAME, OWN, RUNNING, ZONE, anti, pod, rejection


async def test_empty_namespaces_mean_all_under_design_semantics(admin):
    term = {"labelSelector": {}, "namespaces": [], "topologyKey": ZONE}
    all_pods = pod(rule={"podAntiAffinity": {RUNNING: [term]}})
    async with serving_webhook(admin):
        assert await rejection(admin, all_pods, dryRun="All") is None
    async with serving_webhook(admin, AdmissionSettings(semantics=DESIGN)):
        assert BEYOND in (await rejection(admin, all_pods, dryRun="All"))[1]


@pytest.mark.parametrize(
    "restrict, over_zones, over_nodes",
    [
        ("none", None, None),
        ("all-namespaces", None, None),
        ("wider-than-node", f'"{ZONE}" reaches beyond a node, and hard anti-affinity may only use', None),
        (
            "all",
            "only users, groups and namespaces that are exempt",
            "only users, groups and namespaces that are exempt",
        ),
    ],
)
async def test_what_the_restrict_setting_forbids(admin, restrict, over_zones, over_nodes):
    async with serving_webhook(admin, AdmissionSettings(guard=GuardSettings(restrict=restrict))):
        for key, said in ((ZONE, over_zones), (HOSTNAME, over_nodes)):
            answer = await rejection(admin, pod(affinity=anti(key, app="web")), dryRun="All")
            assert answer is None if said is None else said in answer[1]
    exempt = GuardSettings(restrict=restrict, exempt=Exempt(groups=("system:masters",)))
    async with serving_webhook(admin, AdmissionSettings(guard=exempt)):
        assert await rejection(admin, pod(affinity=CLUSTER_WIDE), dryRun="All") is None


class Balancer:
    """Distributes connections over the ports that answer, as a Service does."""

    def __init__(self, ports):
        self.ports, self.used = ports, []
        self._round = itertools.cycle(ports)

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *failure):
        self._server.close()

    @property
    def url(self):
        return f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _carry(self, reader, writer):
        for port in itertools.islice(self._round, len(self.ports)):
            with contextlib.suppress(ConnectionError):
                inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
                self.used.append(port)
                await asyncio.gather(_pour(reader, inner_writer), _pour(inner_reader, writer))
                return
        writer.close()


async def _pour(reader, writer):
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


async def test_one_of_two_replicas_may_stop(kube_server, admin):
    """Both serve a trusted certificate, and one takes over when the other stops."""
    await admin.create_namespace(OWN)
    ports = [free_port(), free_port()]
    errors_reported = []

    async def let_in():
        return await rejection(admin, pod(affinity=anti(HOSTNAME)), dryRun="All") is None

    async with (
        Balancer(ports) as balancer,
        connect.from_kubeconfig(kube_server.kubeconfig()) as connection,
        contextlib.AsyncExitStack() as second_stack,
    ):
        webhooks = [
            WebhookSettings(
                address=WebhookAddress(url=balancer.url), host="127.0.0.1", port=port, failure_policy="Fail"
            )
            for port in ports
        ]
        for document in webhooks[0].manifests():
            await admin.create(document)
        async with contextlib.AsyncExitStack() as first_stack:
            start = [
                stack.enter_async_context(running.serve(webhook, connection, errors_reported.append))
                for stack, webhook in zip((first_stack, second_stack), webhooks, strict=True)
            ]
            await asyncio.gather(*start)
            await wait_for(let_in)
            asked = [rejection(admin, pod(affinity=CLUSTER_WIDE), dryRun="All") for _ in range(40)]
            assert all(BEYOND in said for _, said in await asyncio.gather(*asked))
            assert ports[0] in balancer.used
        await wait_for(let_in)
        for _ in range(20):
            assert BEYOND in (await rejection(admin, pod(affinity=CLUSTER_WIDE), dryRun="All"))[1]
        assert ports[1] in balancer.used  # an idle connection may serve, so the last new one can be of either
        for resource in CONFIGURATIONS:
            await admin.delete(resource, "bayplan")
    await admin.delete_all("secrets", OWN)
    await wait_for(let_in)
    assert errors_reported == []
