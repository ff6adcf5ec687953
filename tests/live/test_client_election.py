"""Leader election between Bayplan and a real client-go, over one lease."""

import asyncio

from bayplan.kube_api import connect
from bayplan.kube_api.leader_election import LeaderElector
from live.admin import wait_for
from live.test_client import in_background

LEASES = "coordination.k8s.io/v1/leases"
TIMES = {"lease_duration": 6.0, "renew_deadline": 5.0, "retry_period": 0.5}
# The only lease that a kube-scheduler may write.
WHERE = ("kube-system", "kube-scheduler")
SCHEDULER = {
    "leaderElection": {"leaderElect": True, "leaseDuration": "6s", "renewDeadline": "5s", "retryPeriod": "500ms"}
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
        await asyncio.wait_for(ours.leading.wait(), 30)

        theirs = await in_background(lambda: kube_server.start_scheduler(config=SCHEDULER))
        await asyncio.sleep(7)  # longer than the lease: the others must have seen a renewal
        assert await holder() == "bayplan-0"
        assert ours.may_write()

        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert await holder() != "bayplan-0"  # released, not expired
        await wait_for(holder)
        taken = await lease()
        assert taken["leaseTransitions"] == 1

        again = LeaderElector(connection, *WHERE, "bayplan-1", **TIMES)
        running = asyncio.create_task(again.run())
        await asyncio.sleep(7)
        assert not again.leading.is_set()
        assert again.leader == taken["holderIdentity"]

        theirs.kill()
        await asyncio.wait_for(again.leading.wait(), 60)
        spec = await lease()
        assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("bayplan-1", 2)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_restart_of_the_server_leaves_one_leader(kube_server, namespace):
    async with connect.from_kubeconfig(kube_server.kubeconfig()) as connection:
        electors = [LeaderElector(connection, namespace, "shared", f"bayplan-{number}") for number in range(2)]
        tasks = [asyncio.create_task(elector.run()) for elector in electors]

        def n_leading():
            leading = sum(elector.may_write() for elector in electors)
            assert leading <= 1
            return leading

        await wait_for(n_leading)
        restarted = asyncio.ensure_future(in_background(kube_server.restart_apiserver))
        await wait_for(lambda: n_leading() <= 1 and restarted.done(), 60)
        await wait_for(n_leading, 60)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
