"""What binding a pod costs, counted in requests, connections, bytes, tasks and their steps, never in seconds."""

import asyncio
import collections
import contextlib
import datetime as dt
import json
import time

import pytest

from bayplan.kube_api.access import Access, ConnectOptions
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.credentials import Credential, RereadCredentials
from bayplan.kube_api.tls import Trust
from bayplan.live import events
from bayplan.live.assembly import SchedulerAssembly, SchedulerSettings
from bayplan.live.cluster_writer import ApiServerWriter
from bayplan.live.loop import MAX_BINDS_IN_FLIGHT
from bayplan.rules import profiles
from bayplan.wire.nodes import Node
from bayplan.wire.pods import Pod
from live_loop.simulated import apart, convert

N_PODS = 200
ANSWER = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}'
HEAD = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(ANSWER)


class Counted(collections.abc.Coroutine):
    """A coroutine whose steps are counted: each is one turn of its task."""

    def __init__(self, inner, steps):
        self.inner, self.steps = inner, steps

    def send(self, value):
        self.steps[self.inner.__qualname__] += 1
        return self.inner.send(value)

    def throw(self, *error):
        return self.inner.throw(*error)

    def close(self):
        self.inner.close()

    def __await__(self):
        raise AssertionError("a task steps it and does not await it")


class CountingServer:
    """Accepts every write at once. `requests` has the path and the body of each, `sizes` the bytes of each."""

    def __init__(self):
        self.requests, self.sizes, self.n_connections = [], [], 0

    def protocol(self):
        server = self

        class Accepting(asyncio.Protocol):
            def connection_made(self, transport):
                server.n_connections += 1
                self.transport = transport

            def data_received(self, data):
                # A request arrives whole: it is sent with one call.
                head, _, body = data.partition(b"\r\n\r\n")
                server.requests.append((head.split()[1].decode(), json.loads(body)))
                server.sizes.append(len(data))
                self.transport.write(HEAD + ANSWER)

        return Accepting()

    def of(self, end):
        return [body for path, body in self.requests if path.endswith(end)]


class Scheduling:
    """A scheduler that writes over real connections."""

    def __init__(self, connection):
        self.connection = connection
        self.parts = SchedulerAssembly(
            ApiServerWriter(connection),
            {"bayplan": profiles.pod_rules()},
            SchedulerSettings(identity="test", election=None, events_per_second=1e6),
            clock=time.monotonic,
            wall=lambda: dt.datetime.now(dt.UTC),
        )
        self.n_pods = 0
        for i in range(N_PODS):
            labels = {"kubernetes.io/hostname": f"node-{i}"}
            status = {"allocatable": {"cpu": "64", "pods": "110"}}
            self.parts.state.put_node(
                convert({"metadata": {"name": f"node-{i}", "labels": labels}, "status": status}, Node)
            )

    def add_pods(self, n_pods):
        for _ in range(n_pods):
            self.n_pods += 1
            meta = {"namespace": "web", "name": f"pod-{self.n_pods}", "uid": f"uid-{self.n_pods}", "labels": {"a": "b"}}
            spec = {"schedulerName": "bayplan", "containers": [{"name": "main"}]}
            if n_pods == N_PODS:
                meta["labels"], spec["affinity"] = {"app": "web"}, apart(app="web")
            self.parts.state.put_pod(convert({"metadata": meta, "spec": spec}, Pod))
        self.parts.scheduler.changed()

    async def until_written(self, server):
        async with asyncio.timeout(60):
            while len(server.requests) < 2 * self.n_pods:  # noqa: ASYNC110 (what is waited for happens on the server)
                await asyncio.sleep(0.001)
            await self.parts.scheduler.idle()


@pytest.fixture
async def server():
    return CountingServer()


@pytest.fixture
async def scheduling(server):
    loop = asyncio.get_running_loop()
    async with await loop.create_server(server.protocol, "127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        credentials = RereadCredentials(Credential, time.monotonic)
        async with Connection(Access(server=url, credentials=credentials, trust=Trust()), ConnectOptions()) as opened:
            found = Scheduling(opened)
            tasks = [asyncio.create_task(found.parts.events.run())]
            await asyncio.sleep(0)
            tasks.append(asyncio.create_task(found.parts.scheduler.run()))
            yield found
            for task in tasks:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task


@contextlib.contextmanager
def counted_steps():
    """Count the steps of each task that is created in the block, by the name of its coroutine."""
    loop, steps = asyncio.get_running_loop(), collections.Counter()
    created = collections.Counter()

    def create(loop, inner, **options):
        created[inner.__qualname__] += 1
        return asyncio.Task(Counted(inner, steps), loop=loop, **options)

    loop.set_task_factory(create)
    try:
        yield created, steps
    finally:
        loop.set_task_factory(None)


async def test_a_pod_takes_two_requests(server, scheduling):
    scheduling.add_pods(N_PODS)
    await scheduling.until_written(server)
    assert len(server.of("/binding")) == N_PODS
    assert len(server.of("/events")) == N_PODS
    assert len(server.requests) == 2 * N_PODS
    assert len({body["metadata"]["name"] for body in server.of("/binding")}) == N_PODS


async def test_connections_stay_open_and_are_shared(server, scheduling):
    for n_pods in (N_PODS, N_PODS // 2, N_PODS // 2):
        scheduling.add_pods(n_pods)
        await scheduling.until_written(server)
    assert len(server.requests) == 4 * N_PODS
    assert server.n_connections <= MAX_BINDS_IN_FLIGHT + events.MAX_CONCURRENT_WRITES


async def test_pods_that_come_one_by_one_need_few_connections(server, scheduling):
    for _ in range(10):
        scheduling.add_pods(1)
        await scheduling.until_written(server)
    assert server.n_connections <= 2  # an event may be sent while the next pod is bound


async def test_requests_are_small(server, scheduling):
    scheduling.add_pods(1)
    await scheduling.until_written(server)
    assert server.of("/binding") == [
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": "web", "name": "pod-1", "uid": "uid-1"},
            "target": {"apiVersion": "v1", "kind": "Node", "name": server.of("/binding")[0]["target"]["name"]},
        }
    ]
    assert server.sizes[0] < 500, "head and body of a bind"
    assert server.sizes[1] < 900, "head and body of an event"


async def test_a_pod_takes_one_task_with_two_steps(server, scheduling):
    scheduling.add_pods(N_PODS)
    await scheduling.until_written(server)
    n_connections, n_pods = server.n_connections, N_PODS // 2
    with counted_steps() as (created, steps):
        scheduling.add_pods(n_pods)
        await scheduling.until_written(server)
    assert created["Scheduler._bind"] == n_pods
    n_opened = server.n_connections - n_connections
    assert 2 * n_pods <= steps["Scheduler._bind"] <= 2 * n_pods + 10 * n_opened  # connecting takes more steps


async def test_an_event_wakes_one_worker(server, scheduling):
    """Eight workers send events. If all of them woke for each event, seven would find nothing."""
    recorder = scheduling.parts.events
    await asyncio.sleep(0)
    for number in range(1, 4):
        assert len(recorder._idle_workers) == events.MAX_CONCURRENT_WRITES
        scheduling.add_pods(1)
        while len(server.of("/binding")) < number:  # noqa: ASYNC110 (the request has not arrived)
            await asyncio.sleep(0)
        while not recorder._unsent and len(recorder._idle_workers) == events.MAX_CONCURRENT_WRITES:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert len(recorder._idle_workers) == events.MAX_CONCURRENT_WRITES - 1
        await scheduling.until_written(server)
        while len(recorder._idle_workers) < events.MAX_CONCURRENT_WRITES:  # noqa: ASYNC110
            await asyncio.sleep(0)
