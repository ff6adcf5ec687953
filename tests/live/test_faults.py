"""
What can go wrong while pods are being bound, and that nothing comes of it: every pod is bound once, no rule is broken.

A few rounds each; `make faults` makes twenty of each and records them (BAYPLAN_FAULT_ROUNDS, BAYPLAN_FAULT_RECORD).
"""

import asyncio
import collections
import concurrent.futures
import contextlib
import datetime as dt
import json
import os
import pathlib
import time

import pytest

from live.admin import wait_for
from live.bayplan_running import NAME, in_process, process

ROUNDS = int(os.environ.get("BAYPLAN_FAULT_ROUNDS", "2"))
RECORD = os.environ.get("BAYPLAN_FAULT_RECORD")
PATIENCE = 180  # seconds until all pods must be bound, on a busy machine
HOST = "kubernetes.io/hostname"
SETS, NODES = 20, 60  # pods of a set run on different nodes
UNHURRIED = ("--kube-api-qps", "40", "--kube-api-burst", "5")  # so that it is stopped before it has bound all pods

rounds = pytest.mark.parametrize("round_", range(ROUNDS))
pytestmark = pytest.mark.timeout(PATIENCE + 120)


# Servers end with the thread that started them, so that thread must outlive the test.
THREAD = concurrent.futures.ThreadPoolExecutor(1)


async def elsewhere(work):
    """Run a slow function while the scheduler in this process continues."""
    await asyncio.get_running_loop().run_in_executor(THREAD, work)


class FaultTrial:
    """Pods to schedule during a fault, and a watch that records the nodes of each."""

    def __init__(self, admin, namespace, n_pods):
        self.admin, self.namespace, self.n_pods = admin, namespace, n_pods
        self.seen = collections.defaultdict(set)  # uid → nodes it was ever on
        self.bound_then = 0  # how many were bound at the time of the fault
        self.trouble = None  # the last error of the watch

    async def set_up(self):
        await self.admin.create_nodes(NODES)
        made = [pod_of(i % SETS, i, self.namespace) for i in range(self.n_pods)]
        await self.admin.create_all(made, namespace=self.namespace)

    async def bound(self):
        found = await self.admin.items("pods", self.namespace)
        for pod in found:
            if pod["spec"].get("nodeName"):
                self.seen[pod["metadata"]["uid"]].add(pod["spec"]["nodeName"])
        return len(self.seen)

    async def some_are_bound(self, share=0.2):
        await wait_for(lambda: self._at_least(share * self.n_pods), PATIENCE)
        self.bound_then = len(self.seen)

    async def _at_least(self, expected):
        try:
            found = await self.bound()
        except Exception as error:  # noqa: BLE001 - the API server may be away
            self.trouble = error
            return False
        self.trouble = None
        return found >= expected

    async def all_are_bound(self):
        await wait_for(lambda: self._at_least(self.n_pods), PATIENCE, every=0.3)

    async def nothing_is_wrong(self):
        """Check that every pod is bound exactly once and no two of a set share a node."""
        pods = await self.admin.items("pods", self.namespace)
        assert len(pods) == self.n_pods
        assert all(len(nodes) == 1 for nodes in self.seen.values())
        places = [(pod["metadata"]["labels"]["set"], pod["spec"]["nodeName"]) for pod in pods]
        assert len(set(places)) == self.n_pods, "two pods of a set share a node"


def pod_of(set_, number, namespace):
    term = {"labelSelector": {"matchLabels": {"set": str(set_)}}, "topologyKey": HOST}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}", "namespace": namespace, "labels": {"set": str(set_)}},
        "spec": {
            "schedulerName": NAME,
            "containers": [{"name": "main", "image": "example.com/none"}],
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        },
    }


@contextlib.asynccontextmanager
async def trial(admin, namespace, fault, n_pods=150):
    """Set up, run the block that injects the fault, then wait and check."""
    began = time.monotonic()
    found = FaultTrial(admin, namespace, n_pods)
    await found.set_up()
    try:
        yield found
        await found.all_are_bound()
    except AssertionError as failure:
        failure.add_note(
            f"{len(found.seen)} of {found.n_pods} pods were seen bound; error of the watch: {found.trouble!r}"
        )
        raise
    await found.nothing_is_wrong()
    record(
        fault=fault,
        pods=n_pods,
        bound_then=found.bound_then,
        seconds=round(time.monotonic() - began, 1),
        outcome="all bound once",
    )


def record(**line):
    if RECORD:
        with pathlib.Path(RECORD).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


@rounds
async def test_killed_in_the_middle_of_a_thousand_binds(kube_server, admin, namespace, round_):
    async with trial(admin, namespace, "kill -9 and restart", n_pods=1000) as run:
        first = process(kube_server, "--no-leader-elect")
        await run.some_are_bound(0.1 + 0.1 * (round_ % 5))
        first.kill()
        process(kube_server, "--no-leader-elect")


@rounds
async def test_the_api_server_restarts(kube_server, admin, namespace, round_):
    async with trial(admin, namespace, "API server restarted") as run, in_process(kube_server):
        await run.some_are_bound()
        await elsewhere(kube_server.restart_apiserver)
        await run.all_are_bound()


@rounds
async def test_the_store_restarts(kube_server, admin, namespace, round_):
    async with trial(admin, namespace, "etcd restarted") as run, in_process(kube_server):
        await run.some_are_bound()
        await elsewhere(kube_server.restart_etcd)
        await run.all_are_bound()


@rounds
async def test_the_history_is_compacted_during_watches(kube_server, admin, namespace, round_):
    async with trial(admin, namespace, "watch history compacted") as run, in_process(kube_server) as running:
        await run.some_are_bound()
        await admin.delete("pods", "pod-0", namespace)  # not reported to a watch that resumes too late
        run.n_pods -= 1
        await elsewhere(kube_server.forget_history)
        await run.all_are_bound()
        await wait_for(lambda: f"{namespace}/pod-0" not in running._parts.state.index.records, PATIENCE)


@rounds
@pytest.mark.parametrize("status", [429, 503])
async def test_a_storm_of_rejections(kube_server, proxy, admin, namespace, status, round_):
    async with trial(admin, namespace, f"storm of {status}") as run, in_process(kube_server, url=proxy.url):
        await run.some_are_bound(0.1)
        proxy.storm(status, retry_after=1 if status == 429 else None, times=200)
        await asyncio.sleep(2)  # the duration of the storm
        proxy.calm()
        await run.all_are_bound()


@rounds
async def test_responses_to_binds_are_lost(kube_server, proxy, admin, namespace, round_):
    async with trial(admin, namespace, "answers to binds lost") as run, in_process(kube_server, url=proxy.url):
        await run.some_are_bound(0.1)
        proxy.lose_answers(times=30, matching=lambda method, path: method == "POST" and path.endswith("/binding"))
        await run.all_are_bound()


@rounds
async def test_a_slow_network(kube_server, proxy, admin, namespace, round_):
    proxy.latency = 0.15
    async with trial(admin, namespace, "slow network") as run, in_process(kube_server, url=proxy.url):
        await run.all_are_bound()


@rounds
async def test_the_leader_is_killed(kube_server, admin, namespace, round_):
    async with trial(admin, namespace, "leader killed") as run:
        leader = process(kube_server, *UNHURRIED)
        standby = process(kube_server)
        await run.some_are_bound(0.1)
        leader.kill()
        killed = time.monotonic()
        lease = await wait_for(lambda: taken_over(admin, leader), 40)
        assert time.monotonic() - killed < 20, f"{lease} took over late"
        await run.all_are_bound()
        standby.stop()


async def taken_over(admin, leader):
    lease = await admin.get("coordination.k8s.io/v1/leases", "bayplan", "kube-system")
    holder = lease["spec"].get("holderIdentity") or ""
    identity = next((line for line in leader.log.read_text().splitlines() if " leader leader=" in line), "")
    return holder if holder and holder not in identity else None


@rounds
async def test_a_clean_stop_hands_over_at_once(kube_server, admin, namespace, round_):
    async with trial(admin, namespace, "leader stopped") as run:
        leader = process(kube_server, *UNHURRIED)
        process(kube_server)
        await run.some_are_bound(0.1)
        leader.stop()
        stopped = time.monotonic()
        await wait_for(lambda: taken_over(admin, leader), 40)
        assert time.monotonic() - stopped < 6
        assert leader.child.returncode == 0


@rounds
async def test_the_clock_jumps(kube_server, admin, namespace, round_):
    jump = dt.timedelta()

    def wall():
        return dt.datetime.now(dt.UTC) + jump

    from bayplan.live.assembly import Election

    async with trial(admin, namespace, "clock jump") as run, in_process(kube_server, wall=wall, election=Election()):
        await run.some_are_bound(0.1)
        for hours in (2, -3, 0):
            jump = dt.timedelta(hours=hours)
            await asyncio.sleep(0.5)  # the clock stays wrong for a while
        await run.all_are_bound()


QUICK_ELECTION = (
    *("--leader-elect-lease-duration", "8s"),
    *("--leader-elect-renew-deadline", "5s"),
    *("--leader-elect-retry-period", "500ms"),
)
SLOW = ("--kube-api-qps", "10", "--kube-api-burst", "2")  # so that most pods wait when it is suspended


@rounds
async def test_the_leader_is_suspended(kube_server, proxy, admin, namespace, round_):
    """Its binds wait for the rate limit when it is suspended, and are due when it continues and leads no more."""
    async with trial(admin, namespace, "leader suspended") as run:
        leader = process(kube_server, *SLOW, *QUICK_ELECTION, url=proxy.url)
        process(kube_server, *UNHURRIED, *QUICK_ELECTION)
        await run.some_are_bound(0.1)
        leader.suspend()
        await wait_for(lambda: taken_over(admin, leader), 40)
        await run.some_are_bound((run.bound_then + 10) / run.n_pods)
        written = len(proxy.writes)
        leader.resume()
        await wait_for(lambda: not leader.running, 40)
        # An attempt to renew the lease is harmless: it names the version of the lease.
        late = [(method, path) for method, path in proxy.writes[written:] if "/leases" not in path]
        assert late == []
        assert leader.child.returncode == 3


@rounds
async def test_the_lease_is_deleted(kube_server, admin, namespace, round_):
    async with trial(admin, namespace, "lease deleted") as run:
        leader = process(kube_server, *SLOW)
        process(kube_server)
        await run.some_are_bound(0.1)
        for _ in range(2):
            await admin.delete(LEASES, "bayplan", "kube-system")
            assert await wait_for(lambda: holder(admin), 40)
        await run.all_are_bound()
        assert not await taken_over(admin, leader)  # the leader had it back before a standby could believe it dead


@rounds
async def test_answers_are_cut_off(kube_server, proxy, admin, namespace, round_):
    """With status 200: lists at the start, the lease, and the pods that are read after a bind without an answer."""
    proxy.halve_answers(times=3, matching=lambda method, path: method == "GET" and path.endswith(("/nodes", "/pods")))
    proxy.halve_answers(times=2, matching=lambda method, path: path.endswith(("/leases", "/leases/bayplan")))
    async with trial(admin, namespace, "answers cut off") as run:
        running = process(kube_server, *UNHURRIED, url=proxy.url)
        await run.some_are_bound(0.1)
        proxy.lose_answers(times=20, matching=lambda method, path: path.endswith("/binding"))
        proxy.halve_answers(times=10, matching=lambda method, path: method == "GET" and "/pods/pod-" in path)
        for method in ("PUT", "GET"):
            proxy.halve_answers(times=1, matching=lambda asked, path, m=method: asked == m and "/leases" in path)
        await run.all_are_bound()
        assert running.running
        assert "cannot be decoded" in running.log.read_text()


@rounds
async def test_watches_are_replayed(kube_server, proxy, admin, namespace, round_):
    """Pods that were bound seem unbound again, and pods that were deleted seem to exist."""
    async with trial(admin, namespace, "watch replayed") as run, in_process(kube_server, url=proxy.url) as running:
        await run.some_are_bound(0.1)
        await admin.delete("pods", "pod-0", namespace)
        run.n_pods -= 1
        run.seen.clear()
        proxy.replay_watches(10)
        await run.all_are_bound()
        await admin.create_nodes(1, prefix="later-")  # an event with which the rest is replayed
        await admin.create_pod("later", namespace, scheduler="nobody")
        await admin.delete("pods", "later", namespace)
        await wait_for(lambda: proxy.replayed, PATIENCE)
        records = running.state.index.records
        await wait_for(lambda: len(records) == run.n_pods and not running.state.queue.pods, PATIENCE)
        await wait_for(lambda: any(one.stale_events for one in running._reflectors), PATIENCE)


@rounds
async def test_nodes_are_deleted_under_binds(kube_server, proxy, admin, namespace, round_):
    proxy.latency = 0.05
    async with trial(admin, namespace, "nodes deleted") as run, in_process(kube_server, url=proxy.url) as running:
        await run.some_are_bound(0.1)
        gone = {f"node-{number}" for number in range(20)}
        for name in gone:
            await admin.delete("nodes", name)
        slots = running.state.index.slots
        await wait_for(lambda: gone.isdisjoint(slots.by_name), PATIENCE)
        await run.all_are_bound()


@rounds
async def test_a_namespace_is_deleted(kube_server, admin, namespace, round_):
    """Its pods vanish one by one, and nothing can be created in it any more, not even an event."""
    doomed = f"{namespace}-doomed"
    await admin.create_namespace(doomed)
    await admin.create_all([pod_of(i % SETS, i, doomed) for i in range(150)], namespace=doomed)
    async with trial(admin, namespace, "namespace deleted") as run, in_process(kube_server) as running:
        await run.some_are_bound(0.1)
        await admin.delete("namespaces", doomed)
        for number in range(150):  # as the namespace controller does, which does not run here
            await admin.delete("pods", f"pod-{number}", doomed)
        await run.all_are_bound()
        state = running.state
        await wait_for(
            lambda: not [key for key in (*state.queue.pods, *state.index.records) if key.startswith(f"{doomed}/")],
            PATIENCE,
        )


LEASES = "coordination.k8s.io/v1/leases"


async def holder(admin):
    leases = await admin.items(LEASES, "kube-system")
    return next((one["spec"].get("holderIdentity") for one in leases if one["metadata"]["name"] == "bayplan"), None)


TIMES_OUT_OF_RANGE = ("9999-12-31T23:59:59-12:00", "2262-04-12T00:00:00Z", "0000-01-01T00:00:00+12:00")


@rounds
async def test_times_out_of_range(kube_server, admin, namespace, round_):
    async with trial(admin, namespace, "times out of range") as run, in_process(kube_server) as running:
        await run.some_are_bound(0.1)
        names = [pod["metadata"]["name"] for pod in await admin.items("pods", namespace) if pod["spec"].get("nodeName")]
        for name, start in zip(names, TIMES_OUT_OF_RANGE, strict=False):
            await admin.patch("pods", name, {"status": {"startTime": start}}, namespace, subresource="status")
        await run.all_are_bound()
        await wait_for(lambda: len(running.state.index.records) == run.n_pods, PATIENCE)


@rounds
async def test_an_object_that_cannot_be_read(kube_server, admin, namespace, round_):
    async with trial(admin, namespace, "poison object") as run, in_process(kube_server) as running:
        await run.some_are_bound(0.1)
        await admin.create_nodes(1, prefix="poison-", memory="1e150")
        await admin.create_pod("poison", namespace, scheduler=NAME, memory="1e150")
        await wait_for(lambda: b'undecodable_objects_total{resource="nodes"} 1.0' in running._parts.metrics.text())
        await admin.delete("pods", "poison", namespace)
        await run.all_are_bound()
