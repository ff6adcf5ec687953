import asyncio
import contextlib
import datetime as dt
import random
import time

import pytest
from aiohttp import web

from bayplan.errors import InputError
from bayplan.kube_api import errors, writes
from bayplan.kube_api.leader_election import LeaderElector
from kube_api.fake_time import SteppedTime
from kube_api.scripted import ScriptedServer, answer, connected, error_response

PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


class LeaseServer(ScriptedServer):
    """Keeps one lease as an API server does: a write must name the version that it changes. All else hangs."""

    def __init__(self):
        super().__init__()
        self.lease, self.version, self.fault = None, 0, None
        self.hanging = 0

    @property
    def spec(self):
        return self.lease["spec"]

    async def _answer(self, request):
        body = await request.json() if request.can_read_body else None
        if not request.path.startswith(PATH):
            self.hanging += 1
            await self._stopped.wait()
        if self.fault is not None and (faulty := await self.fault(request)) is not None:
            return faulty
        if request.method == "GET":
            return answer(self.lease) if self.lease else error_response(404, "NotFound")
        if request.method == "POST":
            if self.lease:
                return error_response(409, "AlreadyExists")
        elif body["metadata"].get("resourceVersion") != str(self.version):
            return error_response(409, "Conflict")
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.lease = body
        return answer(body)


async def until(true):
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110 (what is waited for happens on the server's side)
            await asyncio.sleep(0.02)


async def hang(_request):
    await asyncio.Event().wait()


async def fail(_request):
    return error_response(503, "ServiceUnavailable")


@pytest.fixture
async def server():
    started = await LeaseServer().start()
    yield started
    await started.stop()


class Replica:
    def __init__(self, connection, time, identity, **settings):
        self.leaders, self.trouble = [], []
        self.elector = LeaderElector(
            connection,
            "kube-system",
            "bayplan",
            identity,
            on_new_leader=self.leaders.append,
            on_trouble=self.trouble.append,
            random=random.Random(identity),
            **{"clock": time.clock, "sleep": time.sleep} | settings,
        )
        self.task = asyncio.create_task(self.elector.run())

    @property
    def leads(self):
        return self.elector.leading.is_set()

    async def kill(self):
        """As `kill -9` would: no release, nothing more is written."""
        self.elector._release = lambda: asyncio.sleep(0)
        await self.stop()

    async def stop(self):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@pytest.fixture
async def scene(server, kubeconfig_for):
    """A function that starts replicas on stepped time, and that time."""
    time, replicas = SteppedTime(), []
    async with connected(kubeconfig_for(server)) as connection:

        def start(identity, **settings):
            replicas.append(Replica(connection, time, identity, **settings))
            return replicas[-1]

        yield start, time
        for replica in replicas:
            await replica.stop()


async def test_the_first_candidate_leads_and_the_lease_is_as_client_go_writes_it(server, scene):
    start, time = scene
    a = start("a", now=lambda: dt.datetime(2026, 11, 15, 12, 0, 0, 5, tzinfo=dt.UTC))
    await time.settle(1)
    assert a.leads
    assert a.elector.may_write()
    assert a.leaders == ["a"]
    assert server.lease["metadata"]["name"] == "bayplan"
    assert server.lease["kind"] == "Lease"
    assert server.spec == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-11-15T12:00:00.000005Z",
        "renewTime": "2026-11-15T12:00:00.000005Z",
        "leaseTransitions": 0,
    }


async def test_a_leader_renews_and_others_wait(server, scene):
    start, time = scene
    moments = iter(dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=n) for n in range(1000))
    a = start("a", now=lambda: next(moments))
    await time.settle(1)
    b = start("b")
    await time.run_for(120, 2)
    assert a.leads
    assert not b.leads
    assert b.leaders == ["a"]
    assert server.version >= 55
    assert server.spec["acquireTime"] == "2026-01-01T00:00:00.000000Z"
    assert server.spec["renewTime"] > "2026-01-01T00:00:50"
    assert server.spec["leaseTransitions"] == 0


async def test_after_a_kill_another_takes_over_within_twenty_seconds(server, scene):
    start, time = scene
    a = start("a")
    await time.settle(1)
    b, c = start("b"), start("c")
    await time.run_for(31.9, 3)
    killed, renewed = time.now, a.elector._leads_until - 10
    await a.kill()
    await time.run_for(60, 2, until=lambda: b.leads or c.leads)
    assert b.leads != c.leads
    assert time.now >= renewed + 15  # until then the dead one may be writing, for all they know
    assert time.now - killed < 18
    assert server.spec["holderIdentity"] == ("b" if b.leads else "c")
    assert server.spec["leaseTransitions"] == 1
    await time.run_for(60, 2)
    assert b.leads != c.leads


async def test_after_a_graceful_stop_another_takes_over_at_its_next_attempt(server, scene):
    start, time = scene
    a = start("a")
    await time.settle(1)
    b = start("b")
    await time.run_for(30, 2)
    await a.stop()
    assert not a.leads
    assert a.elector.lost.is_set()
    assert server.spec["holderIdentity"] == ""
    assert server.spec["leaseDurationSeconds"] == 1
    stopped = time.now
    await time.run_for(30, 1, until=lambda: b.leads)
    assert b.leads
    assert time.now - stopped < 2.5
    assert b.leaders == ["a", "", "b"]
    assert server.spec["leaseTransitions"] == 1


async def test_a_leader_that_cannot_renew_stops_before_others_begin(server, scene):
    start, time = scene
    a = start("a")
    await time.run_for(7, 1)
    server.fault = fail
    renewed = a.elector._leads_until - 10
    await time.run_for(9.9 - (time.now - renewed), 1)
    assert a.leads
    assert a.elector.may_write()
    time.now = renewed + 10
    assert not a.elector.may_write()  # at once, before any other task has run
    time.wake_all()
    await asyncio.wait_for(a.task, 5)
    assert not a.leads
    assert a.elector.lost.is_set()
    assert any("503" in text for text in a.trouble)
    assert server.spec["holderIdentity"] == "a"  # not released: it was lost, not handed over


async def test_the_time_of_a_slow_renewal_counts_from_its_start(server, scene):
    start, time = scene
    a = start("a")
    await time.run_for(7, 1)
    began = []

    async def slow(request):
        server.fault = None
        began.append(time.now)
        time.now += 4

    server.fault = slow
    await time.run_for(3, 1, until=lambda: bool(began))
    await until(lambda: a.elector._leads_until >= began[0] + 10)
    time.now = began[0] + 9.9
    assert a.elector.may_write()
    time.now = began[0] + 10
    assert not a.elector.may_write()


async def test_a_renewal_that_hangs_ends_leadership_too(server, scene):
    start, _ = scene
    real = {"clock": time.monotonic, "sleep": asyncio.sleep}
    a = start("a", lease_duration=1.0, renew_deadline=0.2, retry_period=0.05, **real)
    await a.elector.leading.wait()
    server.fault = hang
    await asyncio.wait_for(a.elector.lost.wait(), 5)
    assert not a.leads


async def test_a_renewal_that_hangs_is_tried_once_more_before_leadership_ends(server, scene):
    start, _ = scene
    real = {"clock": time.monotonic, "sleep": asyncio.sleep}
    a = start("a", lease_duration=3.0, renew_deadline=2.0, retry_period=0.05, **real)
    await a.elector.leading.wait()

    async def hang_once(request):
        server.fault = None
        await hang(request)

    server.fault = hang_once
    await until(lambda: a.trouble)
    renewed = server.version
    await until(lambda: server.version >= renewed + 3 or a.task.done())
    assert a.leads
    assert a.trouble == ["leader election: no response while renewing the lease"]


async def test_the_lease_is_renewed_while_every_connection_waits_for_something_else(
    server, kubeconfig_for, monkeypatch
):
    monkeypatch.setattr("bayplan.kube_api.http1.MAX_CONNECTIONS", 4)
    async with connected(kubeconfig_for(server)) as connection, connection.separate() as own:
        elector = LeaderElector(own, "kube-system", "bayplan", "a", retry_period=0.05)
        election = asyncio.create_task(elector.run())
        await elector.leading.wait()
        binds = [asyncio.create_task(writes.bind(connection, "web", f"pod-{i}", "uid", "node")) for i in range(8)]
        await until(lambda: server.hanging == 4)
        renewed = server.version
        await until(lambda: server.version >= renewed + 5 or election.done())
        assert elector.may_write()
        for task in (*binds, election):
            task.cancel()
        await asyncio.gather(*binds, election, return_exceptions=True)


async def test_a_lease_taken_by_another_ends_leadership_at_once(server, scene):
    start, time = scene
    a = start("a")
    await time.run_for(3, 1)
    server.version += 1
    server.lease["metadata"]["resourceVersion"] = str(server.version)
    server.spec["holderIdentity"] = "intruder"
    time.wake_all()
    await asyncio.wait_for(a.task, 5)
    assert not a.leads
    assert a.leaders == ["a", "intruder"]


async def test_jumps_of_the_wall_clock_do_not_matter(server, scene):
    start, time = scene
    wall = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    a = start("a", now=lambda: wall)
    await time.settle(1)
    b = start("b", now=lambda: wall)
    for days in (400, -800, 0.5):
        wall += dt.timedelta(days=days)
        await time.run_for(40, 2)
        assert a.leads
        assert not b.leads
    assert server.spec["leaseTransitions"] == 0


async def test_the_clock_of_another_machine_does_not_matter(server, scene):
    """A lease renewed long ago by its own account is waited for all the same, and one of the future is not waited for longer."""
    start, time = scene
    for renewed in ("2001-01-01T00:00:00.000000Z", "2077-01-01T00:00:00.000000Z"):
        server.version += 1
        server.lease = {
            "metadata": {"name": "bayplan", "resourceVersion": str(server.version), "labels": {"keep": "me"}},
            "spec": {"holderIdentity": "go", "leaseDurationSeconds": 15, "renewTime": renewed, "leaseTransitions": 3},
        }
        b = start(f"b-{renewed}")
        began = time.now
        await time.run_for(40, 1, until=lambda b=b: b.leads)
        assert 15 <= time.now - began < 15.2
        assert server.spec["leaseTransitions"] == 4
        assert server.lease["metadata"]["labels"] == {"keep": "me"}
        await b.stop()


async def test_two_candidates_at_once(server, scene):
    start, time = scene
    replicas = [start(name) for name in "abcd"]
    await time.run_for(30, 4)
    assert sum(replica.leads for replica in replicas) == 1


async def test_a_deleted_lease_is_created_again(server, scene):
    start, time = scene
    a = start("a")
    await time.settle(1)
    server.lease, server.version = None, server.version + 10

    async def as_api_server(request):
        server.fault = None
        return error_response(404, "NotFound")

    server.fault = as_api_server
    await time.run_for(5, 1)
    assert a.leads
    assert server.spec["holderIdentity"] == "a"


async def test_a_standby_waits_for_the_holder_of_a_deleted_lease(server, scene):
    """The holder does not know yet that the lease is gone, and leads until it does."""
    start, time = scene
    a = start("a")
    await time.settle(1)
    b = start("b")
    await time.run_for(20, 2)
    until, seen = a.elector._leads_until, b.elector._seen_at
    await a.kill()
    server.lease = None
    await time.run_for(40, 1, until=lambda: b.leads)
    assert time.now >= until
    assert 15 <= time.now - seen < 15.2
    assert server.spec["holderIdentity"] == "b"


@pytest.mark.parametrize("duration, written", [(15.0, 15), (15.9, 16), (1.2, 2)])
async def test_others_wait_for_at_least_the_lease_duration(server, scene, duration, written):
    start, time = scene
    a = start("a", lease_duration=duration, renew_deadline=0.95 * duration, retry_period=0.1)
    await time.settle(1)
    assert server.spec["leaseDurationSeconds"] == written
    b = start("b")
    await time.settle(2)
    until = a.elector._leads_until
    await a.kill()
    await time.run_for(40, 1, until=lambda: b.leads)
    assert time.now > until


async def test_a_holder_without_a_duration_is_given_ours(server, scene):
    start, time = scene
    server.version = 1
    meta = {"name": "bayplan", "resourceVersion": "1"}
    server.lease = {"metadata": meta, "spec": {"holderIdentity": "other", "leaseTransitions": 2**31 - 1}}
    a = start("a")
    began = time.now
    await time.run_for(40, 1, until=lambda: a.leads)
    assert time.now - began >= 15
    assert server.spec["leaseTransitions"] == 2**31 - 1  # an int32, which a larger number would not fit


@pytest.mark.parametrize("method", ["GET", "PUT", "POST"])
async def test_answers_that_are_cut_off_end_neither_the_election_nor_leadership(server, scene, method):
    start, time = scene
    cut = []

    async def cut_off(request):
        if request.method != method or len(cut) == 2:
            return None
        cut.append(request.method)
        if method == "POST":  # carried out, and the answer is lost
            server.version, server.lease = 1, await request.json()
            server.lease["metadata"]["resourceVersion"] = "1"
        return web.Response(body=b'{"kind": "Lease", "metadata": {"na', content_type="application/json")

    server.fault = cut_off
    a = start("a")
    await time.run_for(30, 1)
    assert cut
    assert a.leads
    assert "the answer cannot be decoded" in a.trouble[0]


async def test_missing_rights_end_it_at_once(server, scene):
    start, _ = scene

    async def forbid(_request):
        return error_response(403, "Forbidden", 'leases "bayplan" is forbidden')

    server.fault = forbid
    a = start("a")
    with pytest.raises(errors.ForbiddenError, match="is forbidden"):
        await asyncio.wait_for(a.task, 5)


async def test_the_election_waits_for_an_unavailable_server(server, scene):
    start, time = scene
    server.fault = fail
    a = start("a")
    await time.run_for(20, 1)
    assert not a.leads
    server.fault = None
    await time.run_for(3, 1)
    assert a.leads
    assert "503" in a.trouble[0]


async def test_elections_are_not_rate_limited(server, kubeconfig_for):
    from bayplan.kube_api.access import ConnectOptions

    slept = []

    async def no_sleep(seconds):
        slept.append(seconds)

    options = ConnectOptions(qps=0.001, burst=1)
    async with connected(kubeconfig_for(server), options, sleep=no_sleep) as connection:
        elector = LeaderElector(connection, "kube-system", "bayplan", "a")
        task = asyncio.create_task(elector.run())
        await asyncio.wait_for(elector.leading.wait(), 5)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    assert slept == []


@pytest.mark.parametrize("times", [(10, 10, 2), (15, 10, 9), (15, 10, 0), (0.5, 0.4, 0.1)])
def test_inconsistent_durations_are_rejected(times):
    duration, deadline, period = times
    with pytest.raises(InputError, match="expected lease duration > renew deadline > retry period"):
        LeaderElector(None, "a", "b", "c", lease_duration=duration, renew_deadline=deadline, retry_period=period)
