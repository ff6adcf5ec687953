"""The proxy causes the configured faults and no others."""

import asyncio
import contextlib

import aiohttp
import pytest

from live.admin import Admin, ApiError
from live.kubectl import kubectl


@pytest.fixture
async def far_admin(kube_server, proxy):
    """A client that reaches the API server through the proxy."""
    async with Admin(proxy.url, token=kube_server.token(), ca_file=kube_server.ca_file) as admin:
        yield admin


async def test_requests_without_a_fault_pass(admin, far_admin, namespace):
    await far_admin.create_nodes(3)
    assert await far_admin.items("nodes") == await admin.items("nodes")
    await far_admin.create_pod("web", namespace)
    await far_admin.bind(namespace, "web", "node-1")
    assert await admin.node_of("web", namespace) == "node-1"
    with pytest.raises(ApiError) as rejected:
        await far_admin.get("pods", "none", namespace, pretty="true")
    assert rejected.value.status == 404


async def test_a_storm_rejects_as_often_as_configured(proxy, far_admin):
    proxy.storm(429, times=2, retry_after=1, matching=lambda method, path: path.endswith("/nodes"))
    for _ in range(2):
        with pytest.raises(ApiError) as rejected:
            await far_admin.list("nodes")
        assert rejected.value.status == 429
        assert rejected.value.body["reason"] == "TooManyRequests"
    await far_admin.list("nodes")
    assert proxy.answers == {429: 2, 200: 1}


async def test_a_storm_lasts_until_calm(proxy, far_admin):
    proxy.storm(503)
    for _ in range(5):
        with pytest.raises(ApiError, match="503"):
            await far_admin.list("nodes")
    proxy.calm()
    await far_admin.list("nodes")


async def test_a_lost_response_belongs_to_a_completed_request(proxy, far_admin, admin, namespace):
    await admin.create_nodes(1)
    await admin.create_pod("web", namespace)
    proxy.lose_answers(times=1, matching=lambda method, path: path.endswith("/binding"))
    with pytest.raises(aiohttp.ClientConnectionError):
        await far_admin.bind(namespace, "web", "node-0")
    assert await admin.node_of("web", namespace) == "node-0"


async def test_a_watch_passes_and_is_cut(proxy, far_admin, admin):
    version = (await admin.list("nodes"))["metadata"]["resourceVersion"]
    async with contextlib.aclosing(far_admin.watch("nodes", resourceVersion=version)) as events:
        seen = asyncio.ensure_future(anext(events))
        await admin.create_nodes(1)
        assert (await seen)["object"]["metadata"]["name"] == "node-0"
        seen = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        assert proxy.cut() >= 1
        with pytest.raises(aiohttp.ClientError):
            await seen


async def test_a_stalled_network_sends_nothing_until_it_resumes(proxy, far_admin, admin):
    proxy.stall()
    listing = asyncio.ensure_future(far_admin.list("nodes"))
    await asyncio.wait([listing], timeout=0.3)
    assert not listing.done()
    proxy.flow()
    assert (await listing)["items"] == []


async def test_a_dead_server_is_a_broken_connection(kube_server, proxy, far_admin):
    kube_server.kill_apiserver()
    with pytest.raises(aiohttp.ClientConnectionError):
        await far_admin.list("nodes")


def test_kubectl_works_through_it(sync_admin, proxy):
    sync_admin.create_nodes(1)
    proxy.latency = 0.01
    proxy.bytes_per_second = 1 << 20
    answer = kubectl("get", "nodes", "-o", "name", kubeconfig=proxy.kubeconfig())
    assert answer.stdout.split() == ["node/node-0"], answer.stderr
    assert proxy.answers[200] >= 1


async def test_a_halved_answer_has_the_status_of_the_whole(proxy, far_admin, admin):
    await admin.create_nodes(1)
    proxy.halve_answers(times=1, matching=lambda method, path: path.endswith("/node-0"))
    with pytest.raises(ValueError, match=r"Unterminated string|Expecting"):
        await far_admin.get("nodes", "node-0")
    assert proxy.answers == {200: 1}
    assert (await far_admin.get("nodes", "node-0"))["metadata"]["name"] == "node-0"


async def test_writes_are_counted(proxy, far_admin, namespace):
    await far_admin.create_pod("web", namespace)
    await far_admin.get("pods", "web", namespace)
    assert proxy.writes == [("POST", f"/api/v1/namespaces/{namespace}/pods")]
