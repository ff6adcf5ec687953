"""
A client that makes no decisions: the two patches and the two events of each binding, as fast as one API server accepts.

live_fleet.py starts it as a process of its own, like the schedulers; it reads its parameters as a line of JSON from
standard input, and ends when that is closed, so that its processor time can be read after the last request.
"""

import asyncio
import json
import ssl
import sys

import aiohttp

AT_A_TIME = 64
MERGE = "application/merge-patch+json"
NOW = "2026-01-01T00:00:00Z"


def result(clusters, placement):
    annotations = {"policy.karmada.io/applied-placement": json.dumps(placement)}
    return {"metadata": {"annotations": annotations}, "spec": {"clusters": clusters}}


def status(generation):
    condition = {
        "type": "Scheduled",
        "status": "True",
        "reason": "Success",
        "message": "Binding has been scheduled successfully.",
        "lastTransitionTime": NOW,
    }
    written = {"schedulerObservedGeneration": generation, "lastScheduledTime": NOW, "conditions": [condition]}
    return {"status": written}


def event(namespace, name, kind, version):
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": namespace, "name": f"{name}.1"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "bare",
        "reportingInstance": "bare",
        "action": "Scheduling",
        "reason": "ScheduleBindingSucceed",
        "regarding": {"apiVersion": version, "kind": kind, "namespace": namespace, "name": name},
        "note": "Binding has been scheduled successfully.",
        "type": "Normal",
    }


async def work(*, url, token, ca_file, namespace, names, clusters, placement):
    gate = asyncio.Semaphore(AT_A_TIME)
    headers = {"Authorization": f"Bearer {token}"}
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=ca_file), limit=AT_A_TIME)

    async with aiohttp.ClientSession(connector=connector, headers=headers, raise_for_status=True) as session:

        async def send(method, path, content, media_type):
            data, sent = json.dumps(content), {"Content-Type": media_type}
            async with session.request(method, url + path, data=data, headers=sent) as answer:
                return json.loads(await answer.read())

        async def one(name):
            async with gate:
                path = f"/apis/work.karmada.io/v1alpha2/namespaces/{namespace}/resourcebindings/{name}-deployment"
                answer = await send("PATCH", path, result(clusters, placement), MERGE)
                await send("PATCH", f"{path}/status", status(answer["metadata"]["generation"]), MERGE)
                events = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
                binding = event(namespace, f"{name}-deployment", "ResourceBinding", "work.karmada.io/v1alpha2")
                for content in (binding, event(namespace, name, "Deployment", "apps/v1")):
                    await send("POST", events, content, "application/json")

        await asyncio.gather(*(one(name) for name in names))


if __name__ == "__main__":
    asyncio.run(work(**json.loads(sys.stdin.readline())))
    sys.stdin.read()
