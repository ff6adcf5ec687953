"""The election has a thread of its own: nothing that happens in the event loop of the scheduler delays it."""

import asyncio
import json
import time

import pytest
from aiohttp import web

from bayplan.kube_api import errors
from bayplan.kube_api.access import Access, ConnectOptions
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.credentials import Credential, RereadCredentials
from bayplan.kube_api.election_thread import ElectionThread
from bayplan.kube_api.leader_election import LeaderElector
from bayplan.kube_api.tls import Trust
from live.threaded_server import ThreadedServer

PATIENCE = 30  # seconds, only until a broken election fails the test


class LeaseServer(ThreadedServer):
    """Keeps one lease, in a thread; `rejects` is the status of every answer, if set."""

    def __init__(self):
        super().__init__()
        self.lease, self.version, self.rejects = None, 0, 0

    @property
    def holder(self):
        return self.lease and self.lease["spec"]["holderIdentity"]

    async def handle(self, request):
        if self.rejects:
            return web.json_response({"kind": "Status", "code": self.rejects, "message": "no"}, status=self.rejects)
        if request.method == "GET":
            return web.json_response(self.lease or {"kind": "Status", "code": 404}, status=200 if self.lease else 404)
        body = json.loads(await request.read())
        if request.method == "PUT" and body["metadata"].get("resourceVersion") != str(self.version):
            return web.json_response({"kind": "Status", "code": 409}, status=409)
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.lease = body
        return web.json_response(body)


@pytest.fixture
def server():
    with LeaseServer() as started:
        yield started


@pytest.fixture
def election(server):
    credentials = RereadCredentials(Credential, time.monotonic)
    access = Access(server=server.url, credentials=credentials, trust=Trust())

    def elector(connection):
        times = {"lease_duration": 2.0, "renew_deadline": 1.5, "retry_period": 0.05}
        return LeaderElector(connection, "kube-system", "bayplan", "a", **times)

    return ElectionThread(Connection(access, ConnectOptions()), elector)


async def stopped(task):
    task.cancel()
    await asyncio.wait([task])


async def test_the_lease_is_renewed_while_the_event_loop_is_held(server, election):
    task = asyncio.create_task(election.run())
    await election.leading.wait()
    renewed, deadline = server.version, time.monotonic() + PATIENCE
    while server.version < renewed + 50 and time.monotonic() < deadline:
        sum(range(1000))  # work that never returns to the event loop
        assert election.may_write()
    assert server.version >= renewed + 50
    await stopped(task)


async def test_cancelled_it_releases_the_lease_before_it_returns(server, election):
    task = asyncio.create_task(election.run())
    await election.leading.wait()
    assert server.holder == "a"
    await stopped(task)
    assert server.holder == ""
    assert task.cancelled()
    assert not election.may_write()
    assert election.lost.is_set()


async def test_it_can_be_cancelled_before_it_has_begun(server, election):
    task = asyncio.create_task(election.run())
    await asyncio.sleep(0)
    await stopped(task)
    assert not election.may_write()
    assert server.holder in (None, "")


async def test_missing_rights_are_raised_where_it_runs(server, election):
    server.rejects = 403
    with pytest.raises(errors.ForbiddenError):
        await asyncio.wait_for(election.run(), PATIENCE)


async def test_it_returns_when_leadership_is_lost(server, election):
    task = asyncio.create_task(election.run())
    await election.leading.wait()
    server.rejects = 500
    await asyncio.wait_for(election.lost.wait(), PATIENCE)
    assert not election.may_write()
    await task
    assert server.holder == "a"  # lost, not handed over


async def test_leadership_ends_by_the_clock_alone():
    """The process is suspended: no thread runs, so nothing can withdraw the permission to write."""
    now = 100.0
    elector = LeaderElector(None, "kube-system", "bayplan", "a", clock=lambda: now)
    assert not elector.may_write()
    elector._leads_until = now + 10
    assert elector.may_write()
    now += 10
    assert not elector.may_write()
