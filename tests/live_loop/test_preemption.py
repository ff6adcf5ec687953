"""Preemption as the running scheduler carries it out, on a cluster in memory."""

import logging

import pytest

from bayplan.live.cluster_writer import DryRunWriter, PodRef, UnknownOutcomeError
from bayplan.preempting import preemption
from live_loop.simulated import Simulation, near


@pytest.fixture
def cluster():
    simulation = Simulation()
    simulation.add_node("one", cpu="4")
    return simulation


async def test_an_uncordoned_node_is_freed_for_a_pending_pod_of_higher_priority(cluster):
    cluster.add_node("one", cpu="4", unschedulable=True)
    cluster.add_pod("low", cpu="3", node="one")
    cluster.add_pod("vip", cpu="3", priority=100)
    await cluster.settle()
    assert cluster.deleted == []
    cluster.add_node("one", cpu="4")
    await cluster.settle(5)
    assert cluster.deleted == ["low"]
    assert cluster.where() == {"vip": "one"}


async def test_room_of_a_deleted_pod_of_equal_priority_is_completed_by_preemption(cluster):
    cluster.add_pod("equal-1", cpu="2", node="one", priority=100)
    cluster.add_pod("low", cpu="1", node="one")
    cluster.add_pod("vip", cpu="3", priority=100)
    await cluster.settle()
    assert cluster.deleted == []
    cluster.remove_pod("equal-1")
    cluster.add_pod("quick", cpu="1", node="one")
    await cluster.settle(5)
    assert cluster.where()["vip"] == "one"


async def test_a_new_required_peer_makes_preemption_on_its_node_possible(cluster):
    cluster.add_pod("low", cpu="3", node="one")
    cluster.add_pod("vip", cpu="3", priority=100, affinity=near(app="db"))
    await cluster.settle()
    assert cluster.deleted == []
    cluster.add_pod("db", cpu="1", node="one", labels={"app": "db"}, priority=100)
    await cluster.settle(5)
    assert cluster.where() == {"db": "one", "vip": "one"}


async def test_a_pod_that_never_preempts_does_not_delay_one_that_does(cluster):
    cluster.add_node("one", cpu="4", unschedulable=True)
    cluster.add_pod("low", cpu="3", node="one")
    cluster.add_pod("patient", cpu="3", priority=100, preemptionPolicy="Never")
    cluster.add_pod("vip", cpu="3", priority=100)
    await cluster.settle()
    cluster.add_node("one", cpu="4")
    await cluster.settle(5)
    assert cluster.where() == {"patient": "", "vip": "one"}


async def test_every_pod_of_an_equivalence_class_may_preempt_when_nodes_are_uncordoned(cluster):
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


async def test_of_equivalent_pods_the_nominated_one_gets_the_room(cluster):
    async def slowly(pod):
        cluster.deleted.append(pod.name)

    cluster.delete = slowly
    cluster.add_node("two", cpu="4")
    cluster.add_pod("low-one", cpu="3", node="one")
    cluster.add_pod("high-two", cpu="3", node="two", priority=100)
    cluster.add_pod("unlucky", cpu="3", priority=100, nodeSelector={"kubernetes.io/hostname": "two"})
    await cluster.settle()
    cluster.change_pod("unlucky", nodeSelector={})  # allowed while the pod has no node
    cluster.add_pod("lucky", cpu="3", priority=100)
    await cluster.settle()
    nominated = [name for name in ("lucky", "unlucky") if cluster.state.queue.nominations.target_of(f"web/{name}")]
    assert len(nominated) == 1
    cluster.remove_pod("low-one")
    await cluster.settle(5)
    assert cluster.where()[nominated[0]] == "one"


async def test_a_pod_that_waits_for_its_victims_is_not_retried(cluster):
    async def slowly(pod):
        cluster.deleted.append(
            pod.name
        )  # the victim terminates slowly, and the watch has not reported it as terminating

    cluster.delete = slowly
    cluster.add_pod("low", cpu="3", node="one")
    cluster.add_pod("vip", cpu="3", priority=100)
    await cluster.settle()
    for i in range(5):
        cluster.add_node(f"small-{i}", cpu="1")
        await cluster.settle(20)
    assert cluster.deleted == ["low"]
    assert cluster.state.queue.pods["web/vip"].attempts == 1


async def test_a_pod_that_could_only_preempt_for_another_one_is_not_retried(cluster):
    """The room of the victim is kept for the pod that is nominated there."""

    async def slowly(pod):
        cluster.deleted.append(pod.name)

    cluster.delete = slowly
    cluster.add_pod("low", cpu="3", node="one")
    cluster.add_pod("first", cpu="3", priority=100)
    cluster.add_pod("second", cpu="3", priority=100)
    await cluster.settle()
    cluster.add_node("small", cpu="1")
    await cluster.settle(20)
    assert cluster.deleted == ["low"]
    assert [cluster.state.queue.pods[f"web/{name}"].attempts for name in ("first", "second")] == [1, 1]


async def test_a_pod_that_could_only_violate_a_budget_instead_is_not_retried(cluster):
    """Without the budget, preemption would choose the victim of the lowest priority."""

    async def slowly(pod):
        cluster.deleted.append(pod.name)

    cluster.delete = slowly
    cluster.add_budget("keep", {"app": "precious"}, allowed=0)
    cluster.add_node("two", cpu="4")
    cluster.add_pod("precious", cpu="3", node="one", labels={"app": "precious"})
    cluster.add_pod("other", cpu="3", node="two", priority=5)
    cluster.add_pod("vip", cpu="3", priority=100)
    await cluster.settle()
    cluster.add_node("small", cpu="1")
    await cluster.settle(20)
    assert cluster.deleted == ["other"]
    assert cluster.state.queue.pods["web/vip"].attempts == 1


async def test_a_failed_deletion_of_a_victim_is_retried(cluster):
    delete = cluster.delete

    async def silent(pod):
        cluster.delete = delete
        raise UnknownOutcomeError(f"no answer about {pod.name}")

    cluster.delete = silent
    cluster.add_pod("low", cpu="3", node="one")
    cluster.add_pod("vip", cpu="3", priority=100)
    await cluster.settle(5)
    assert cluster.where() == {"vip": "one"}


async def test_a_nomination_survives_an_older_report_of_its_pod(cluster):
    """The API server is slow to store the nominated node, and the pod is annotated meanwhile."""

    async def slowly(pod):
        cluster.deleted.append(pod.name)

    async def later(_pod, _status):
        return None

    cluster.delete, patch, cluster.patch_status = slowly, cluster.patch_status, later
    cluster.add_pod("low", cpu="3", node="one")
    cluster.add_pod("vip", cpu="3", priority=100)
    await cluster.settle()
    cluster.pods["web/vip"]["metadata"]["annotations"] = {"seen": "meanwhile"}
    cluster.report("vip")
    assert cluster.state.queue.nominations.target_of("web/vip") == "one"
    vip = PodRef("web", "vip", cluster.pods["web/vip"]["metadata"]["uid"])
    await patch(vip, {"nominatedNodeName": "one"})
    await patch(vip, {"nominatedNodeName": None})  # cleared by another client
    assert cluster.state.queue.nominations.target_of("web/vip") == ""


async def test_a_pod_displaced_from_its_nominated_node_is_retried(cluster):
    async def slowly(pod):
        cluster.deleted.append(pod.name)
        cluster.pods[f"web/{pod.name}"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        cluster.report(pod.name)

    cluster.delete = slowly
    cluster.add_pod("low-one", cpu="3", node="one")
    cluster.add_pod("middle", cpu="3", priority=100)
    await cluster.settle()
    assert cluster.state.queue.nominations.target_of("web/middle") == "one"
    cluster.add_node("two", cpu="4", unschedulable=True)
    cluster.add_pod("low-two", cpu="3", node="two", priority=50)
    cluster.add_pod("top", cpu="3", priority=1000)
    await cluster.settle()
    assert cluster.state.queue.nominations.target_of("web/top") == "one"
    assert cluster.state.queue.nominations.target_of("web/middle") == ""
    tried = cluster.state.queue.pods["web/middle"].attempts
    await cluster.settle(5)
    assert cluster.state.queue.pods["web/middle"].attempts > tried, "it is tried on other nodes"


async def test_an_obsolete_nominated_node_is_cleared(cluster):
    """Such as one that an earlier scheduler process could not clear."""
    cluster.add_pod("vip", cpu="100", priority=100, schedulingGates=[{"name": "later"}])
    cluster.pods["web/vip"]["status"] = {"nominatedNodeName": "one"}
    cluster.report("vip")
    cluster.state.queue.clear_nomination("web/vip")
    cluster.change_pod("vip", schedulingGates=[])
    await cluster.settle()
    assert "nominatedNodeName" not in cluster.pods["web/vip"]["status"]


@pytest.mark.parametrize("n_left", [0, 1])
async def test_pods_nominated_to_more_room_than_is_left_do_not_keep_each_other_pending(cluster, n_left):
    """Another pod has taken a part of the room: none fits beside all others, until one nomination is cleared."""

    async def slowly(pod):
        cluster.deleted.append(pod.name)

    cluster.delete = slowly
    cluster.add_node("full", cpu="1")
    cluster.add_pod("elsewhere", cpu="1", node="full", priority=100 * (1 - n_left))
    for number in range(4):
        cluster.add_pod(f"low-{number}", cpu="1", node="one")
        cluster.add_pod(f"vip-{number}", cpu="1", priority=100, nodeSelector={"kubernetes.io/hostname": "one"})
    await cluster.settle(60)
    nominations = cluster.state.queue.nominations
    assert [nominations.target_of(f"web/vip-{number}") for number in range(4)] == ["one"] * 4
    cluster.add_pod("intruder", cpu="1", node="one", priority=200)
    for number in range(4):
        cluster.remove_pod(f"low-{number}")
    await cluster.settle(30)
    placed = [name for name, node in cluster.where().items() if name.startswith("vip") and node == "one"]
    assert len(placed) == 3
    (waiting,) = {f"vip-{number}" for number in range(4)} - set(placed)
    assert nominations.target_of(f"web/{waiting}") == ""


async def test_a_nomination_that_no_longer_helps_ends_before_the_api_server_has_cleared_it(cluster):
    async def later(_pod, _status):
        return None

    cluster.patch_status = later
    cluster.add_pod("vip", cpu="100", priority=100, schedulingGates=[{"name": "later"}])
    cluster.pods["web/vip"]["status"] = {"nominatedNodeName": "one"}
    cluster.report("vip")
    assert cluster.state.queue.nominations.target_of("web/vip") == "one"
    cluster.change_pod("vip", schedulingGates=[])
    await cluster.settle()
    assert cluster.state.queue.nominations.target_of("web/vip") == ""


async def test_an_internal_error_during_preemption_is_reported_and_other_pods_are_scheduled(
    cluster, monkeypatch, caplog
):
    def broken(workload, *rest):
        raise ZeroDivisionError

    monkeypatch.setattr(preemption, "preempt", broken)
    cluster.add_pod("huge", cpu="100")
    cluster.add_pod("fine")
    await cluster.settle()
    assert cluster.where()["fine"]
    assert cluster.condition("huge")["reason"] == "SchedulerError"


async def test_a_dry_run_only_logs_that_a_nomination_would_be_cleared(caplog):
    caplog.set_level("INFO", "bayplan")
    await DryRunWriter().patch_status(PodRef("web", "middle", "uid-1"), {"nominatedNodeName": None})
    assert "would patch the status" in caplog.text


async def test_a_preemption_is_logged_with_its_victims(cluster, caplog):
    caplog.set_level(logging.INFO, logger="bayplan.preemption")
    cluster.add_pod("small", cpu="4", node="one")
    cluster.add_pod("large", cpu="4", priority=10)
    await cluster.settle()
    found = [record for record in caplog.records if record.name == "bayplan.preemption"]
    assert [(one.levelname, one.message, one.pod, one.victims) for one in found] == [
        ("INFO", "preempting", "web/large", ["web/small"])
    ]
