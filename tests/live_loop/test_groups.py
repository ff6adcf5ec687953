"""Pods of groups are not placed one by one by a live scheduler that was not told to."""

import json

import pytest

from live_loop.simulated import Simulation

MEMBER = {"bayplan.io/group": "gang", "bayplan.io/group-min": "2"}
MEMBERSHIPS = {
    "annotation": {"annotations": MEMBER},
    "PodGroup": {"schedulingGroup": {"podGroupName": "gang"}},
    "label": {"labels": {"scheduling.x-k8s.io/pod-group": "gang"}},
}


@pytest.mark.parametrize("membership", MEMBERSHIPS.values(), ids=MEMBERSHIPS)
async def test_a_member_is_left_unscheduled_with_an_event(membership):
    cluster = Simulation()
    cluster.add_node("one")
    cluster.add_pod("member", **membership)
    cluster.add_pod("web")
    await cluster.settle()
    assert cluster.where() == {"member": "", "web": "one"}
    (note,) = cluster.notes("member", "FailedScheduling")
    assert "the pod is in group web/gang" in note
    assert "--place-group-members" in note
    assert "does not place groups as a whole yet" in cluster.condition("member")["message"]


async def test_members_are_placed_one_by_one_if_asked():
    cluster = Simulation(places_group_members=True)
    cluster.add_node("one")
    cluster.add_pod("member", annotations=MEMBER)
    await cluster.settle()
    assert cluster.where() == {"member": "one"}


async def test_rules_of_running_groups_hold_for_others():
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}
    apart = json.dumps({"groupAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    cluster = Simulation(places_group_members=True)
    for name in ("one", "two"):
        cluster.add_node(name)
    cluster.add_pod("runs", node="one", annotations={"bayplan.io/group": "a", "bayplan.io/group-affinity": apart})
    cluster.add_pod("comes", annotations={"bayplan.io/group": "b"})
    await cluster.settle()
    assert cluster.where()["comes"] == "two"
