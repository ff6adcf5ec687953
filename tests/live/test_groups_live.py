"""Groups of pods on a real API server with the PodGroup API: as a whole or not at all, also when the scheduler dies."""

import pytest

from live import bayplan_running, group_rounds
from live.admin import Admin, wait_for
from live.group_rounds import GONE_AT_ONCE, POD_GROUPS, RACK, Gangs
from live.kube_server import KubeServer


@pytest.fixture(scope="module")
def shared_server(real_servers):
    with KubeServer(POD_GROUPS) as server:
        yield server


@pytest.fixture
async def gangs(shared_server):
    """Gangs in a namespace of their own, on a server of this module's that is cleared after each test."""
    async with Admin.of(shared_server) as admin:
        await admin.create_namespace("gangs")
        yield Gangs(admin, shared_server)
    shared_server.recover()
    shared_server.clear()


async def condition(gangs, name):
    conditions = (await gangs.admin.get("pods", name, "gangs"))["status"].get("conditions", [])
    return next((one.get("message", "") for one in conditions if one["type"] == "PodScheduled"), "")


@pytest.mark.timeout(180)
async def test_a_gang_of_fifty_is_placed_in_one_rack_while_one_that_cannot_fit_waits(gangs):
    await gangs.create_racks(3, nodes=8, cpu="8")
    bayplan_running.process(gangs.server, "--no-leader-elect")
    await gangs.create("huge", 65, topology=RACK)
    await gangs.create("gang", 50, topology=RACK)
    await gangs.admin.create_pod("single", "gangs", scheduler="bayplan", cpu="1")
    racks = await wait_for(lambda: gangs.racks_if_complete("gang", 50))
    assert len(set(racks)) == 1
    assert await wait_for(lambda: gangs.admin.node_of("single", "gangs"))

    async def told():
        return "group gangs/huge waits: 65 members must run; 64 fit in" in await condition(gangs, "huge-0")

    await wait_for(told, 90)  # members are told one by one, which takes its time on a busy machine
    assert not await gangs.nodes("huge")
    events = await gangs.admin.items("events.k8s.io/v1/events", "gangs")
    assert any("group gangs/huge waits" in event["note"] for event in events)


@pytest.mark.timeout(180)
async def test_two_gangs_that_fit_only_one_at_a_time(gangs):
    await gangs.create_racks(1, nodes=4, cpu="4")
    bayplan_running.process(gangs.server, "--no-leader-elect")
    await group_rounds.one_at_a_time(gangs, "0")


@pytest.mark.timeout(240)
async def test_a_gang_is_complete_or_released_after_a_kill_between_two_binds(gangs):
    await gangs.create_racks(2, nodes=4, cpu="8")
    assert await group_rounds.killed_between_binds(gangs, "0") == "complete"


@pytest.mark.timeout(240)
async def test_a_gang_whose_room_is_taken_while_the_scheduler_is_down_is_released(gangs):
    await gangs.create_racks(2, nodes=4, cpu="8")
    assert await group_rounds.killed_between_binds(gangs, "0", take_room=True) == "released"


@pytest.mark.timeout(180)
async def test_a_gang_preempts_as_one(gangs):
    await gangs.create_racks(2, nodes=2, cpu="4")
    await gangs.admin.create(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 1000,
        }
    )
    for number in range(16):
        await gangs.admin.create_pod(f"low-{number}", "gangs", scheduler="bayplan", cpu="1", **GONE_AT_ONCE)
    bayplan_running.process(gangs.server, "--no-leader-elect")
    await wait_for(lambda: gangs.all_bound("low", 16))
    await gangs.create("gang", 6, topology=RACK, priorityClassName="high")
    racks = await wait_for(lambda: gangs.racks_if_complete("gang", 6))
    assert len(set(racks)) == 1
    assert len(await gangs.nodes("low")) == 10


@pytest.mark.timeout(180)
async def test_a_pod_group_that_comes_later_and_members_that_come_one_by_one(gangs):
    await gangs.create_racks(1, nodes=2, cpu="4")
    bayplan_running.process(gangs.server, "--no-leader-elect")
    await gangs.create_members("gang", 2)

    async def says(text):
        return text in await condition(gangs, "gang-0")

    await wait_for(lambda: says("there is no PodGroup gangs/gang"))
    await gangs.declare("gang", 3)
    await wait_for(lambda: says("3 members must run, and only 2 exist"))
    await gangs.create_members("gang", 1, first=2)
    await wait_for(lambda: gangs.all_bound("gang", 3))
