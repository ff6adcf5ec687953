"""The limits of `bayplan rebalance --apply` on a real API server: budgets, per minute, at once."""

import asyncio
import contextlib
import signal

import pytest

from bayplan.enforcing.move_execution import EvictionRejected, MoveSettings, MoveWaiting
from bayplan.enforcing.rebalancing import DisruptionLimits
from bayplan.kube_api import connect
from bayplan.live.moving import Mover, tools_of
from bayplan.live.pod_moves import PodMoves
from bayplan.reading import cluster
from bayplan.reading.files import ReadOptions
from bayplan.rules import profiles
from bayplan.watching.fetching import ClusterFetcher
from live.admin import wait_for
from live.bayplan_running import in_process
from live.programs import ended, started
from live.replica_sets import crowded


@pytest.fixture
async def crowd(admin, namespace):
    return await crowded(admin, namespace)


def read_cluster(server):
    """Read a cluster as the command does."""
    fetching = ClusterFetcher(connect.from_kubeconfig(server.kubeconfig()))
    return PodMoves(cluster.load(ReadOptions(live=fetching.sources())), profiles.pod_rules())


async def planned(server):
    view = await asyncio.to_thread(read_cluster, server)
    plan = view.plan(DisruptionLimits(max_moves=5, movable=lambda _: True, budgets=view.budgets))
    return plan, view


@contextlib.asynccontextmanager
async def moving(server, planned, timeout=300.0):  # noqa: ASYNC109 - a setting, and nothing that is waited for here
    """Carry out a plan with a short timeout; yields the task and its reported events."""
    happened = []
    async with connect.from_kubeconfig(server.kubeconfig()) as connection:
        mover = Mover(
            tools_of(connection),
            *planned,
            read_cluster=lambda: read_cluster(server),
            report=happened.append,
            settings=MoveSettings(retry_after=0.3, timeout=timeout),
        )
        task = asyncio.create_task(mover.run())
        try:
            yield task, happened
        finally:
            mover.interrupt.set()
            await task


class Budget:
    """A PodDisruptionBudget for the ReplicaSet, with the status that its controller would write."""

    def __init__(self, admin, namespace):
        self.admin, self.namespace = admin, namespace

    async def create(self):
        meta, selector = {"name": "web", "namespace": self.namespace}, {"matchLabels": {"app": "web"}}
        spec = {"minAvailable": 2, "selector": selector}
        await self.admin.create(
            {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec}
        )

    async def allow(self, count, generation=1):
        status = {"disruptionsAllowed": count, "expectedPods": 3, "desiredHealthy": 2, "currentHealthy": 2 + count}
        change = {"status": {**status, "observedGeneration": generation, "disruptedPods": None}}
        resource = "policy/v1/poddisruptionbudgets"
        await self.admin.patch(resource, "web", change, self.namespace, subresource="status")


@pytest.fixture
async def budget(admin, crowd):
    found = Budget(admin, crowd.namespace)
    await found.create()
    return found


async def test_a_budget_that_allows_nothing_leaves_nothing_to_do(kube_server, crowd, budget):
    code, _, said = await ended("rebalance", kube_server, "--apply", "--yes")
    assert code == 0
    assert "no moves within the limits would gain anything" in said
    assert len(await crowd.pods()) == 3


async def test_an_eviction_rejected_by_the_api_server_is_not_made(kube_server, crowd, budget):
    await budget.allow(2, generation=0)  # outdated, which the API server checks and the plan does not
    code, _, said = await ended("rebalance", kube_server, "--apply", "--yes", "--timeout", "1s")
    assert code == 1
    assert "would violate the pod's disruption budget" in said
    assert "stopped: 0 of 2 moves made" in said
    assert len(await crowd.pods()) == 3


async def test_a_move_rejected_repeatedly_is_given_up(kube_server, crowd, budget):
    await budget.allow(2, generation=0)
    async with moving(kube_server, await planned(kube_server), timeout=2.0) as (mover, happened):
        outcome = await mover
    refused = [one.workload for one in happened if isinstance(one, EvictionRejected)]
    assert len(refused) > len(set(refused))  # requested more than once
    assert (outcome.made, len(outcome.left)) == ([], 2)
    assert outcome.stopped.endswith("waited for 2 s")


async def test_an_exhausted_budget_is_waited_for(kube_server, crowd, budget):
    await budget.allow(2)
    async with in_process(kube_server), crowd.reconciled():
        plan = await planned(kube_server)
        await budget.allow(1)
        async with moving(kube_server, plan) as (mover, happened):
            held = await wait_for(lambda: [one for one in happened if isinstance(one, MoveWaiting)])
            assert "PodDisruptionBudget web allows no disruption" in held[0].why
            await budget.allow(1)
            outcome = await mover
    assert (len(outcome.made), outcome.gain, outcome.left) == (2, 600, ())
    assert sorted((await crowd.pods()).values()) == ["node-0", "node-1", "node-2"]


async def test_no_more_are_evicted_in_a_minute_than_allowed(kube_server, crowd):
    words = ("--apply", "--yes", "--per-minute", "1")
    async with in_process(kube_server), crowd.reconciled(), started("rebalance", kube_server, *words) as program:
        await wait_for(lambda: "1 evictions in the last minute, which is the limit" in program.said)
        assert "move 2" not in program.said
        program.child.send_signal(signal.SIGINT)
        code, _ = await program.end()
    assert code == 130
    assert "interrupted: 1 of 2 moves made" in program.said


async def test_two_may_be_evicted_at_once(kube_server, crowd):
    async with started("rebalance", kube_server, "--apply", "--yes", "--at-once", "2") as program:

        async def two_are_gone():
            return len(await crowd.pods()) == 1

        await wait_for(two_are_gone)
        async with in_process(kube_server), crowd.reconciled():
            code, _ = await program.end()
    assert code == 0, program.said
    assert "2 of 2 moves made, 600 of 600 points gained" in program.said
