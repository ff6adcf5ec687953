"""Preemption as the running scheduler carries it out, on a cluster in memory."""

import pytest

from bayplan.live.cluster_writer import DryRunWriter, PodRef, UnknownOutcomeError
from bayplan.preempting import preemption
from live_loop.simulated import Simulation, near


@pytest.fixture
def cluster():
    simulation = Simulation()
    simulation.add_node("one", cpu="4")
    return simulation


async def test_a_node_that_opens_is_freed_for_who_waits_and_is_important(cluster):
    cluster.add_node("one", cpu="4", unschedulable=True)
    cluster.add_pod("low", cpu="3", node="one")
    cluster.add_pod("vip", cpu="3", priority=100)
    await cluster.settle()
    assert cluster.deleted == []
    cluster.add_node("one", cpu="4")
    await cluster.settle(5)
    assert cluster.deleted == ["low"]
    assert cluster.where() == {"vip": "one"}


async def test_room_of_an_equal_that_goes_is_made_up_with_that_of_lesser_ones(cluster):
    cluster.add_pod("equal-1", cpu="2", node="one", priority=100)
    cluster.add_pod("low", cpu="1", node="one")
    cluster.add_pod("vip", cpu="3", priority=100)
    await cluster.settle()
    assert cluster.deleted == []
    cluster.remove_pod("equal-1")
    cluster.add_pod("quick", cpu="1", node="one")
    await cluster.settle(5)
    assert cluster.where()["vip"] == "one"


async def test_a_partner_that_comes_opens_the_way_to_its_node(cluster):
    cluster.add_pod("low", cpu="3", node="one")
    cluster.add_pod("vip", cpu="3", priority=100, affinity=near(app="db"))
    await cluster.settle()
    assert cluster.deleted == []
    cluster.add_pod("db", cpu="1", node="one", labels={"app": "db"}, priority=100)
    await cluster.settle(5)
    assert cluster.where() == {"db": "one", "vip": "one"}


async def test_one_that_preempts_nobody_does_not_hold_back_one_that_does(cluster):
    cluster.add_node("one", cpu="4", unschedulable=True)
    cluster.add_pod("low", cpu="3", node="one")
    cluster.add_pod("patient", cpu="3", priority=100, preemptionPolicy="Never")
    cluster.add_pod("vip", cpu="3", priority=100)
    await cluster.settle()
    cluster.add_node("one", cpu="4")
    await cluster.settle(5)
    assert cluster.where() == {"patient": "", "vip": "one"}


async def test_every_pod_of_a_kind_has_room_made_when_nodes_open(cluster):
    for name in ("one", "two"):
        cluster.add_node(name, cpu="4", unschedulable=True)
        cluster.add_pod(f"low-{name}", cpu="3", node=name)
    for name in ("vip-1", "vip-2", "vip-3"):
        cluster.add_pod(name, cpu="3", priority=100)
    await cluster.settle()
    cluster.add_node("one", cpu="4")
    cluster.add_node("two", cpu="4")
    await cluster.settle(20)
    assert sorted(cluster.deleted) == ["low-one", "low-two"]
    assert sorted(cluster.where().values()) == ["", "one", "two"]


async def test_of_pods_that_are_alike_those_get_the_room_that_it_was_made_for(cluster):
    async def slowly(pod):
        cluster.deleted.append(pod.name)

    cluster.delete = slowly
    cluster.add_node("two", cpu="4")
    cluster.add_pod("low-one", cpu="3", node="one")
    cluster.add_pod("high-two", cpu="3", node="two", priority=100)
    cluster.add_pod("unlucky", cpu="3", priority=100, nodeSelector={"kubernetes.io/hostname": "two"})
    await cluster.settle()
    cluster.change_pod("unlucky", nodeSelector={})  # which it is allowed to while it has no node
    cluster.add_pod("lucky", cpu="3", priority=100)
    await cluster.settle()
    nominated = [name for name in ("lucky", "unlucky") if cluster.state.nominations.target_of(f"web/{name}")]
    assert len(nominated) == 1
    cluster.remove_pod("low-one")
    await cluster.settle(5)
    assert cluster.where()[nominated[0]] == "one"


async def test_who_waits_for_its_victims_to_go_is_not_tried_over_and_over(cluster):
    async def slowly(pod):
        cluster.deleted.append(pod.name)  # it takes its time, and the watch has not even told that it goes

    cluster.delete = slowly
    cluster.add_pod("low", cpu="3", node="one")
    cluster.add_pod("vip", cpu="3", priority=100)
    await cluster.settle()
    for i in range(5):
        cluster.add_node(f"small-{i}", cpu="1")
        await cluster.settle(20)
    assert cluster.deleted == ["low"]
    assert cluster.state.queue.pods["web/vip"].attempts == 1


async def test_a_victim_that_could_not_be_deleted_is_asked_again(cluster):
    delete = cluster.delete

    async def silent(pod):
        cluster.delete = delete
        raise UnknownOutcomeError(f"no answer about {pod.name}")

    cluster.delete = silent
    cluster.add_pod("low", cpu="3", node="one")
    cluster.add_pod("vip", cpu="3", priority=100)
    await cluster.settle(5)
    assert cluster.where() == {"vip": "one"}


async def test_a_promise_outlives_news_of_its_pod_from_before_it_was_made(cluster):
    """The API server is slow to take down the nominated node, and the pod is relabelled meanwhile."""

    async def slowly(pod):
        cluster.deleted.append(pod.name)

    async def later(_pod, _status):
        return None

    cluster.delete, patch, cluster.patch_status = slowly, cluster.patch_status, later
    cluster.add_pod("low", cpu="3", node="one")
    cluster.add_pod("vip", cpu="3", priority=100)
    await cluster.settle()
    cluster.pods["web/vip"]["metadata"]["annotations"] = {"seen": "by somebody"}
    cluster.tell("vip")
    assert cluster.state.nominations.target_of("web/vip") == "one"
    vip = PodRef("web", "vip", cluster.pods["web/vip"]["metadata"]["uid"])
    await patch(vip, {"nominatedNodeName": "one"})
    await patch(vip, {"nominatedNodeName": None})  # somebody else takes it back
    assert cluster.state.nominations.target_of("web/vip") == ""


async def test_who_loses_a_promised_node_to_somebody_more_important_gets_another_one(cluster):
    async def slowly(pod):
        cluster.deleted.append(pod.name)
        cluster.pods[f"web/{pod.name}"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        cluster.tell(pod.name)

    cluster.delete = slowly
    cluster.add_pod("low-one", cpu="3", node="one")
    cluster.add_pod("middle", cpu="3", priority=100)
    await cluster.settle()
    assert cluster.state.nominations.target_of("web/middle") == "one"
    cluster.add_node("two", cpu="4", unschedulable=True)
    cluster.add_pod("low-two", cpu="3", node="two", priority=50)
    cluster.add_pod("top", cpu="3", priority=1000)
    await cluster.settle()
    assert cluster.state.nominations.target_of("web/top") == "one"
    assert cluster.state.nominations.target_of("web/middle") == ""
    tried = cluster.state.queue.pods["web/middle"].attempts
    await cluster.settle(5)
    assert cluster.state.queue.pods["web/middle"].attempts > tried, "it looks for another place"


async def test_a_nominated_node_that_nobody_stands_for_any_more_is_taken_back(cluster):
    """Such as one whose clearing was lost with the scheduler that wanted it."""
    cluster.add_pod("vip", cpu="100", priority=100, schedulingGates=[{"name": "later"}])
    cluster.pods["web/vip"]["status"] = {"nominatedNodeName": "one"}
    cluster.tell("vip")
    cluster.state.clear_nomination("web/vip")
    cluster.change_pod("vip", schedulingGates=[])
    await cluster.settle()
    assert "nominatedNodeName" not in cluster.pods["web/vip"]["status"]


async def test_a_bug_while_making_room_is_told_as_one_and_the_others_go_on(cluster, monkeypatch, caplog):
    def broken(workload, *rest):
        raise ZeroDivisionError

    monkeypatch.setattr(preemption, "preempt", broken)
    cluster.add_pod("huge", cpu="100")
    cluster.add_pod("fine")
    await cluster.settle()
    assert cluster.where()["fine"]
    assert cluster.condition("huge")["reason"] == "SchedulerError"


async def test_a_dry_run_only_says_that_a_promise_would_be_taken_back(caplog):
    caplog.set_level("INFO", "bayplan")
    await DryRunWriter().patch_status(PodRef("web", "middle", "uid-1"), {"nominatedNodeName": None})
    assert "would patch the status" in caplog.text
