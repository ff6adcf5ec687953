"""A request is withheld if its sender may not write any more when all waits are over."""

import asyncio

import pytest

from bayplan.kube_api import writes
from bayplan.kube_api.access import ConnectOptions
from bayplan.kube_api.errors import FencedError
from bayplan.kube_api.fencing import FencedConnection
from kube_api.scripted import ScriptedServer, answer, connected, error_response

DONE = {"kind": "Status", "status": "Success"}


class Leadership:
    """True until it is lost; counts how often it was asked for."""

    def __init__(self):
        self.is_held, self.asked = True, 0

    def __call__(self):
        self.asked += 1
        return self.is_held

    def lose(self):
        self.is_held = False


@pytest.fixture
async def server():
    started = await ScriptedServer().start()
    yield started
    await started.stop()


@pytest.fixture
def leadership():
    return Leadership()


def bind(connection, leadership, name="pod", **options):
    return writes.bind(FencedConnection(connection, leadership), "shop", name, "uid", "node", **options)


async def test_a_write_of_the_leader_is_judged_once_and_sent(server, kubeconfig_for, leadership):
    server.then(answer(DONE))
    async with connected(kubeconfig_for(server)) as connection:
        await bind(connection, leadership)
    assert [asked.method for asked in server.requests] == ["POST"]
    assert leadership.asked == 1


async def test_leadership_lost_while_waiting_for_the_rate_limit(server, kubeconfig_for, leadership):
    async def sleep(_seconds):
        leadership.lose()

    server.then(answer(DONE))
    async with connected(kubeconfig_for(server), ConnectOptions(qps=1, burst=1), sleep=sleep) as connection:
        await bind(connection, leadership)
        with pytest.raises(FencedError, match="not sent: this replica does not lead any more"):
            await bind(connection, leadership)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status, reason", [(429, "TooManyRequests"), (503, "ServiceUnavailable")])
async def test_leadership_lost_while_the_server_is_busy(server, kubeconfig_for, leadership, status, reason):
    async def sleep(_seconds):
        leadership.lose()

    server.then(error_response(status, reason, retry_after=1))
    async with connected(kubeconfig_for(server), sleep=sleep) as connection:
        with pytest.raises(FencedError):
            await bind(connection, leadership, retry=True)
    assert len(server.requests) == 1


async def test_leadership_lost_while_waiting_for_a_free_connection(server, kubeconfig_for, leadership, monkeypatch):
    monkeypatch.setattr("bayplan.kube_api.http1.MAX_CONNECTIONS", 1)
    released = asyncio.Event()

    async def slow(_request):
        await released.wait()
        return answer(DONE)

    server.then(slow)
    async with connected(kubeconfig_for(server)) as connection:
        first = asyncio.create_task(bind(connection, leadership, "first"))
        await server.asked(1)
        second = asyncio.create_task(bind(connection, leadership, "second"))
        await asyncio.sleep(0)
        leadership.lose()
        released.set()
        await first
        with pytest.raises(FencedError):
            await second
    assert len(server.requests) == 1


async def test_leadership_lost_while_connecting(server, kubeconfig_for, leadership, monkeypatch):
    async with connected(kubeconfig_for(server)) as connection:
        connect = connection.pool._connect

        async def slow(tls):
            channel = await connect(tls)
            leadership.lose()
            return channel

        monkeypatch.setattr(connection.pool, "_connect", slow)
        with pytest.raises(FencedError):
            await bind(connection, leadership)
    assert server.requests == []


async def test_a_connection_that_broke_is_not_used_again_without_leadership(server, kubeconfig_for, leadership):
    """The server closes an idle connection at the moment of a request, which is then repeated over another one."""

    async def cut(request):
        leadership.lose()
        request.transport.close()

    server.then(answer(DONE), cut)
    async with connected(kubeconfig_for(server)) as connection:
        fenced = FencedConnection(connection, leadership)
        await fenced.request("PUT", "/api/v1/nodes/a", body=b"{}")
        with pytest.raises(FencedError):
            await fenced.request("PUT", "/api/v1/nodes/a", body=b"{}")
    assert len(server.requests) == 2


async def test_through_a_proxy_the_body_is_withheld(server, kubeconfig_for, leadership, monkeypatch):
    async with connected(kubeconfig_for(server)) as connection:
        monkeypatch.setattr(connection, "pool", None)  # as with a proxy
        server.then(answer(DONE))
        await bind(connection, leadership)
        assert server.requests[0].json["target"]["name"] == "node"
        assert server.requests[0].headers["Content-Type"] == "application/json"
        leadership.lose()
        with pytest.raises(FencedError):
            await bind(connection, leadership)
    assert len(server.requests) == 1
