"""Bayplan as the scheduler of a real Karmada control plane: from a policy to the objects on the members."""

import json

from live import bayplan_running
from live.admin import wait_for
from live.fleet_user import DUPLICATED, DYNAMIC, PATIENCE, scheduled

MEMBERS = {"clusterAffinity": {"clusterNames": ["member1", "member2"]}}


async def test_a_duplicated_deployment_runs_on_every_member(karmada, fleet):
    async with bayplan_running.fleet_in_process(karmada.server):
        await fleet.deploy("web", 2)
        await fleet.propagate("web", placement={**MEMBERS, "replicaScheduling": DUPLICATED})
        found = await fleet.until_placed("web", {"member1": 2, "member2": 2})
        await wait_for(lambda: _is(fleet, "web", {"member1": 2, "member2": 2}), PATIENCE)

    assert (
        json.loads(found["metadata"]["annotations"]["policy.karmada.io/applied-placement"])
        == found["spec"]["placement"]
    )
    assert found["status"]["lastScheduledTime"]
    assert scheduled(found)["message"] == "Binding has been scheduled successfully."


async def test_a_divided_deployment_is_divided_by_capacity(karmada, fleet):
    async with bayplan_running.fleet_in_process(karmada.server):
        await fleet.deploy("web", 6)
        await fleet.propagate("web", placement={**MEMBERS, "replicaScheduling": DYNAMIC})
        await fleet.until_placed("web", {"member1": 3, "member2": 3})
        await wait_for(lambda: _is(fleet, "web", {"member1": 3, "member2": 3}), PATIENCE)
        await wait_for(lambda: _is_fully_applied(fleet, "web"), PATIENCE)
        events = await wait_for(lambda: fleet.events_of("web-deployment"))

    text = "Binding has been scheduled successfully. Result: {member1:3, member2:3}"
    assert ("ScheduleBindingSucceed", text) in events


async def _is(fleet, name, expected):
    return await fleet.replicas_on_members(name) == expected


async def _is_fully_applied(fleet, name):
    """Another controller's condition stands beside that of the scheduler."""
    conditions = (await fleet.binding(name))["status"]["conditions"]
    return {one["type"]: one["status"] for one in conditions} == {"Scheduled": "True", "FullyApplied": "True"}
