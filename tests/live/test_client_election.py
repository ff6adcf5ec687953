"""Leader election among Bayplan's own and a real client-go, over one lease."""

import asyncio
import time

from bayplan.kube_api import connect
from bayplan.kube_api.leader_election import LeaderElector
from live.admin import wait_for
from live.test_client import in_background

LEASES = "coordination.k8s.io/v1/leases"
TIMES = {"lease_duration": 4.0, "renew_deadline": 3.0, "retry_period": 0.5}


# The only lease that a kube-scheduler may write.
WHERE = ("kube-system", "kube-scheduler")
SCHEDULER = {
    "leaderElection": {"leaderElect": True, "leaseDuration": "4s", "renewDeadline": "3s", "retryPeriod": "500ms"}
}


async def test_a_lease_is_shared_with_client_go(kube_server, admin):
    async def lease():
        namespace, name = WHERE
        return (await admin.get(LEASES, name, namespace))["spec"]

    async def holder():
        return (await lease())["holderIdentity"]

    async with connect.from_kubeconfig(kube_server.kubeconfig()) as connection:
        ours = LeaderElector(connection, *WHERE, "bayplan-0", **TIMES)
        running = asyncio.create_task(ours.run())
        await asyncio.wait_for(ours.leading.wait(), 10)

        theirs = kube_server.start_scheduler(config=SCHEDULER)
        await asyncio.sleep(6)  # longer than the lease: they must have seen it renewed
        assert await holder() == "bayplan-0"
        assert ours.may_write()

        running.cancel()  # a clean stop hands over before the lease would run out
        await asyncio.gather(running, return_exceptions=True)
        stopped = time.monotonic()
        await wait_for(holder, 10)
        assert time.monotonic() - stopped < 3
        taken = await lease()
        assert taken["leaseTransitions"] == 1

        again = LeaderElector(connection, *WHERE, "bayplan-1", **TIMES)
        running = asyncio.create_task(again.run())
        await asyncio.sleep(5)
        assert not again.leading.is_set()
        assert again.leader == taken["holderIdentity"]

        theirs.kill()
        await asyncio.wait_for(again.leading.wait(), 6)
        spec = await lease()
        assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("bayplan-1", 2)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_leader_survives_a_restart_of_the_server_and_no_two_lead(kube_server, namespace):
    async with connect.from_kubeconfig(kube_server.kubeconfig()) as connection:
        electors = [LeaderElector(connection, namespace, "shared", f"bayplan-{number}") for number in range(2)]
        tasks = [asyncio.create_task(elector.run()) for elector in electors]
        await wait_for(lambda: any(elector.leading.is_set() for elector in electors))
        await in_background(kube_server.restart_apiserver)
        await asyncio.sleep(3)
        assert sum(elector.may_write() for elector in electors) == 1
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
