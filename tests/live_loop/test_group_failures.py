"""Groups whose members leave, whose writes fail and that are many: none holds room in vain, and none holds up others."""

import pytest

from bayplan.live.cluster_writer import RejectedError
from bayplan.live.known_groups import GroupLimits
from bayplan.queueing import group_attempt
from bayplan.wire.pods import PodGroup
from live_loop.simulated import START, Simulation, convert, near
from live_loop.test_groups import add_gang, member_of, placed

OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "gang", "uid": "u", "controller": True}


def own(cluster, *names, **status):
    """Give pods a controller, and a status."""
    for name in names:
        cluster.pods[f"web/{name}"]["metadata"]["ownerReferences"] = [OWNER]
        cluster.pods[f"web/{name}"].setdefault("status", {}).update(status)
        cluster.report(name)


def fill(cluster, node, n):
    for number in range(n):
        cluster.add_pod(f"low-{number}", cpu="1", node=node)


def names(group, n):
    return [f"{group}-{number}" for number in range(n)]


async def settle(cluster, seconds):
    """Second by second, as changes of one second are read in the next."""
    for _ in range(seconds):
        await cluster.settle(1)


async def test_a_nominated_group_that_lacks_members_leaves_its_room_to_others():
    cluster = Simulation()
    cluster.add_node("one", cpu="2")
    fill(cluster, "one", 2)

    async def delete(pod):
        cluster.pods[f"web/{pod.name}"]["metadata"]["deletionTimestamp"] = START.isoformat()
        cluster.report(pod.name)

    cluster.delete = delete
    add_gang(cluster, "gang", 2, priority=10)
    await cluster.settle(5)
    assert cluster.pods["web/gang-0"]["status"]["nominatedNodeName"] == "one"
    for name in ("gang-1", "low-0", "low-1"):
        cluster.remove_pod(name)
    for number in range(2):
        cluster.add_pod(f"web-{number}", cpu="1", priority=10)
    await cluster.settle(20)
    assert placed(cluster, "web") == {"web-0": "one", "web-1": "one"}
    assert "nominatedNodeName" not in cluster.pods["web/gang-0"]["status"]


async def test_victims_that_cannot_be_deleted_are_not_waited_for():
    cluster = Simulation()
    cluster.add_node("one", cpu="2")
    cluster.add_node("two", cpu="2")
    fill(cluster, "one", 2)
    cluster.add_pod("dear", cpu="2", node="two", priority=5)
    delete, n_refused = cluster.delete, 0

    async def refuse_at_first(pod):
        nonlocal n_refused
        if n_refused < 7:
            n_refused += 1
            raise RejectedError("a webhook says no")
        await delete(pod)

    cluster.delete = refuse_at_first
    add_gang(cluster, "gang", 2, priority=10)
    await settle(cluster, 100)
    assert placed(cluster, "gang") == {"gang-0": "one", "gang-1": "one"}
    assert n_refused == 7


async def test_a_release_that_fails_is_repeated():
    cluster = Simulation(groups=GroupLimits(timeout=60))
    cluster.add_node("one", cpu="4")
    add_gang(cluster, "gang", 2, 5, node="one")
    add_gang(cluster, "gang", 3, 5, first=2)
    own(cluster, *names("gang", 2))
    delete, refused = cluster.delete, []

    async def refuse_one(pod):
        if pod.name == "gang-0" and len(refused) < 2:
            refused.append(pod.name)
            raise RejectedError("a webhook says no")
        await delete(pod)

    cluster.delete = refuse_one
    await settle(cluster, 59)
    assert not cluster.deleted
    await settle(cluster, 130)
    assert sorted(cluster.deleted) == ["gang-0", "gang-1"]
    assert len(refused) == 2


async def test_a_group_that_has_run_is_not_released_because_members_have_finished():
    cluster = Simulation(groups=GroupLimits(timeout=60))
    cluster.add_node("one", cpu="6")
    add_gang(cluster, "gang", 8, 5)
    own(cluster, *names("gang", 8))
    await cluster.settle(5)
    running = sorted(placed(cluster, "gang"))
    assert len(running) == 6
    own(cluster, *running, startTime="2026-01-01T00:00:05Z")
    for name in running[:2]:  # two have waited from the beginning, so nothing is created after the others started
        cluster.remove_pod(name)
        cluster.add_pod(f"web-{name}", cpu="1", node="one", priority=100)
    await settle(cluster, 200)
    assert not cluster.deleted
    assert len(placed(cluster, "gang")) == 4


async def test_members_of_a_group_that_demands_none_preempt_like_single_pods():
    cluster = Simulation()
    cluster.add_node("one", cpu="3")
    fill(cluster, "one", 3)
    declared = {"metadata": {"namespace": "web", "name": "gang"}, "spec": {"schedulingPolicy": {"basic": {}}}}
    cluster.state.put_pod_group(convert(declared, PodGroup))
    for number in range(2):
        cluster.add_pod(f"gang-{number}", cpu="1", priority=10, schedulingGroup={"podGroupName": "gang"})
    cluster.add_pod("gang-2", cpu="8", priority=10, schedulingGroup={"podGroupName": "gang"})
    await settle(cluster, 40)
    assert placed(cluster, "gang") == {"gang-0": "one", "gang-1": "one"}
    assert len(cluster.deleted) == 2
    assert cluster.condition("gang-2")["message"] == "0/1 nodes are available: 1 Insufficient cpu."


async def test_what_is_wrong_with_a_growing_group_is_not_written_to_each_member_each_time():
    cluster = Simulation()
    cluster.add_node("one")
    writes, patch_status = [], cluster.patch_status

    async def count(pod, status):
        writes.append(pod.name)
        await patch_status(pod, status)

    cluster.patch_status = count
    for number in range(100):
        add_gang(cluster, "gang", 1, 200, first=number)
        await cluster.settle(0.5)
    assert len(writes) < 50 * 50 + 100  # not more than 50 per second
    await cluster.settle(10)
    for name in ("gang-0", "gang-99"):
        assert "200 members must run, and only 100 exist" in cluster.condition(name)["message"]


async def test_one_namespace_with_many_groups_does_not_keep_others_from_their_turn(monkeypatch):
    cluster = Simulation()
    cluster.add_node("one", cpu="3")
    tried, attempt = [], group_attempt.attempt

    def note(request, *further):
        tried.append(request.group.key)
        return attempt(request, *further)

    monkeypatch.setattr(group_attempt, "attempt", note)
    for number in range(50):
        cluster.add_pod(f"huge{number}", namespace="greedy", cpu="4", annotations=member_of(f"huge{number}", 1))
    add_gang(cluster, "gang", 1)
    await cluster.settle(3)
    assert tried.index("web/gang") <= 1


@pytest.mark.parametrize("n_members", [30])
async def test_each_member_of_a_huge_group_is_told(n_members):
    cluster = Simulation(groups=GroupLimits(max_members=4))
    cluster.add_node("one")
    add_gang(cluster, "gang", n_members, 2)
    await cluster.settle(10)
    for number in range(n_members):
        assert "more members than the 4" in cluster.condition(f"gang-{number}")["message"]


async def test_members_that_leave_while_a_plan_is_made_do_not_count(monkeypatch):
    cluster = Simulation()
    cluster.add_node("one", cpu="4")
    add_gang(cluster, "gang", 2, 5, node="one")
    add_gang(cluster, "gang", 3, 5, first=2)
    attempt = group_attempt.attempt

    def leave_first(request, index, *further):
        if "web/gang-1" in cluster.pods:  # it makes the room that the others need
            cluster.remove_pod("gang-1")
            index.remove("web/gang-1")
        return attempt(request, index, *further)

    monkeypatch.setattr(group_attempt, "attempt", leave_first)
    await settle(cluster, 20)
    assert placed(cluster, "gang") == {"gang-0": "one"}
    assert "5 members must run, and only 4 exist" in cluster.condition("gang-2")["message"]


async def test_two_first_pods_of_two_schedulers_are_told():
    cluster = Simulation()
    for name, zone in (("one", "a"), ("two", "b")):
        cluster.add_node(name, zone)
    cluster.add_pod("ours", labels={"app": "cache"}, affinity=near(app="cache"))
    await cluster.settle()
    other = "two" if cluster.where()["ours"] == "one" else "one"
    cluster.add_pod("theirs", labels={"app": "cache"}, affinity=near(app="cache"), scheduler="other", node=other)
    await settle(cluster, 5)
    (note,) = cluster.notes("ours", "BrokenAfterBinding")
    assert "now it is rejected there: node(s) didn't match pod affinity rules" in note


async def test_a_first_pod_that_is_followed_by_others_is_not_told():
    cluster = Simulation()
    for name, zone in (("one", "a"), ("two", "b")):
        cluster.add_node(name, zone)
    for number in range(3):
        cluster.add_pod(f"ours-{number}", labels={"app": "cache"}, affinity=near(app="cache"))
    await settle(cluster, 5)
    assert all(cluster.where().values())
    assert not any(cluster.notes(f"ours-{number}", "BrokenAfterBinding") for number in range(3))
