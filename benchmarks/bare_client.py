"""
A client that makes no decisions: a bind and an event for each pod, as fast as one API server accepts them.

live.py starts it as a process of its own, like the schedulers; it reads its parameters as a line of JSON from standard
input, and ends when that is closed, so that its processor time can be read after the last request.
"""

import asyncio
import json
import ssl
import sys

import aiohttp

AT_A_TIME = 64


def binding(pod, node):
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}


def event(namespace, pod):
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": namespace, "name": f"{pod}.1"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "bare",
        "reportingInstance": "bare",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": pod},
        "note": "Successfully assigned",
        "type": "Normal",
    }


async def work(*, url, token, ca_file, namespace, pods, nodes):
    gate = asyncio.Semaphore(AT_A_TIME)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=ca_file), limit=AT_A_TIME)

    async with aiohttp.ClientSession(connector=connector, headers=headers, raise_for_status=True) as session:

        async def post(path, content):
            async with session.post(url + path, data=json.dumps(content)) as answer:
                await answer.read()

        async def one(pod, node):
            async with gate:
                await post(f"/api/v1/namespaces/{namespace}/pods/{pod}/binding", binding(pod, node))
                await post(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", event(namespace, pod))

        await asyncio.gather(*(one(pod, nodes[i % len(nodes)]) for i, pod in enumerate(pods)))


if __name__ == "__main__":
    asyncio.run(work(**json.loads(sys.stdin.readline())))
    sys.stdin.read()
