"""Clients in the network of a webhook: they forge reviews, or hold connections open. They know its address, no secret."""

import asyncio
import contextlib
import json
import ssl

import aiohttp

from bayplan.webhook.manifests import WebhookAddress
from bayplan.webhook.running import WebhookSettings
from live.admin import wait_for
from live.bayplan_running import process
from live.open_webhook import CONFIGURATIONS, PROBE
from live.processes import free_port
from webhook.admission_reviews import HOSTNAME, RUNNING, anti, pod, review


def unverified():
    """A TLS context for clients that do not care who answers."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


UNVERIFIED = unverified()


@contextlib.asynccontextmanager
async def guarded(kube_server, admin, *arguments, **how):
    """A scheduler with a webhook, in a process of its own; without the webhook's answer nothing is admitted."""
    port = free_port()
    url = f"https://127.0.0.1:{port}"
    await admin.create_namespace("bayplan-system")
    for configuration in WebhookSettings(address=WebhookAddress(url=url), failure_policy="Fail").manifests():
        await admin.create(configuration)
    where = ("--webhook", "--webhook-bind-address", f"127.0.0.1:{port}", "--webhook-url", url)
    running = process(kube_server, *where, *arguments, **how)
    running.webhook_port = port
    try:
        await wait_for(lambda: admits(admin))
        yield running
    finally:
        for resource in CONFIGURATIONS:
            await admin.delete(resource, "bayplan")
        await admin.delete_all("secrets", "bayplan-system")


async def admits(admin):
    """Whether the API server reaches the webhook."""
    try:
        await admin.create(PROBE, dryRun="All")
    except Exception:  # noqa: BLE001
        return False
    return True


@contextlib.asynccontextmanager
async def attacked_by(clients):
    """Run coroutine functions again and again, each in a task of its own, inside the block."""

    async def again(client):
        while True:
            with contextlib.suppress(OSError, aiohttp.ClientError, asyncio.IncompleteReadError):
                await client()
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(again(client)) for client in clients]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def forged_reviews(port, namespace, nodes):
    """Clients that send reviews of pods that do not exist: each would keep all pods of a namespace from a node."""
    rule = anti(HOSTNAME, RUNNING, labelSelector={}, namespaces=[namespace])

    def client(number):
        async def ask():
            for node in nodes[number::4]:
                name = f"forged-{number}-{node}"
                forged = pod(name, affinity=anti(HOSTNAME), annotation=json.dumps(rule), namespace=namespace, node=node)
                await post(port, "/validate/pods", review(forged))

        return ask

    return [client(number) for number in range(4)]


async def post(port, path, content, context=UNVERIFIED):
    headers = {"Content-Type": "application/json"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"https://127.0.0.1:{port}{path}", data=json.dumps(content), headers=headers, ssl=context
        ) as answer,
    ):
        return answer.status


def slow_clients(port, count, *, tls):
    """Clients that connect and then send nothing, half a header, or half a body, and come again when they are closed."""
    half_body = (
        b"POST /validate/pods HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"
    )
    parts = (None, b"", b"POST /validate/po", half_body)

    def client(part):
        async def hold():
            context = UNVERIFIED if tls and part is not None else None
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, local_addr=("127.0.0.2", 0))
            with contextlib.closing(writer):
                writer.write(part or b"")
                await reader.read()
            await asyncio.sleep(0.2)  # so that the test leaves some processor time to the servers

        return hold

    return [client(parts[number % 4]) for number in range(count)]
