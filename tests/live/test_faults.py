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


@rounds
async def test_an_object_that_cannot_be_read(kube_server, admin, namespace, round_):
    async with trial(admin, namespace, "poison object") as run, in_process(kube_server) as running:
        await run.some_are_bound(0.1)
        await admin.create_nodes(1, prefix="poison-", memory="1e150")
        await admin.create_pod("poison", namespace, scheduler=NAME, memory="1e150")
        await wait_for(lambda: b'undecodable_objects_total{resource="nodes"} 1.0' in running._parts.metrics.text())
        await admin.delete("pods", "poison", namespace)
        await run.all_are_bound()
