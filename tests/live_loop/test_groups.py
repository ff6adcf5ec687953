"""Groups are placed as a whole by a live scheduler: all members that must run, or none."""

import json

import pytest

from bayplan.live.cluster_writer import RejectedError
from bayplan.live.known_groups import GroupLimits
from bayplan.wire.pods import CoschedulingPodGroup, PodGroup
from live_loop.simulated import START, Simulation, apart, convert, near, using

MEMBERSHIPS = {
    "annotation": {"annotations": {"bayplan.io/group": "gang", "bayplan.io/group-min": "3"}},
    "PodGroup": {"schedulingGroup": {"podGroupName": "gang"}},
    "label": {"labels": {"scheduling.x-k8s.io/pod-group": "gang"}},
}


def member_of(group, least, **further):
    return {"bayplan.io/group": group, "bayplan.io/group-min": str(least), **further}


def declare(cluster, name, least, key=None):
    topology = {"schedulingConstraints": {"topology": [{"key": key}]}} if key else {}
    spec = {"schedulingPolicy": {"gang": {"minCount": least}}, **topology}
    cluster.state.put_pod_group(convert({"metadata": {"namespace": "web", "name": name}, "spec": spec}, PodGroup))
    cluster.scheduler.changed()


def add_gang(cluster, group, n, least=None, *, cpu="1", first=0, **further):
    annotations = member_of(group, least or n, **further.pop("annotations", {}))
    for number in range(first, first + n):
        cluster.add_pod(f"{group}-{number}", cpu=cpu, annotations=annotations, **further)


def placed(cluster, group):
    return {name: node for name, node in cluster.where().items() if name.startswith(f"{group}-") and node}


@pytest.mark.parametrize("membership", MEMBERSHIPS.values(), ids=MEMBERSHIPS)
async def test_members_wait_for_those_that_must_run_and_are_placed_together(membership):
    cluster = Simulation()
    cluster.add_node("one")
    declare(cluster, "gang", 3)
    if "labels" in membership:
        spec = {"metadata": {"namespace": "web", "name": "gang"}, "spec": {"minMember": 3}}
        cluster.state.put_pod_group(convert(spec, CoschedulingPodGroup))
    if "annotations" in membership:
        cluster.state.spread_context.current.pod_groups.clear()
    cluster.add_pod("gang-0", **membership)
    cluster.add_pod("gang-1", **membership)
    cluster.add_pod("web")
    await cluster.settle(5)
    assert cluster.where() == {"gang-0": "", "gang-1": "", "web": "one"}
    assert (
        "group web/gang is not placed: 3 members must run, and only 2 exist" in cluster.condition("gang-0")["message"]
    )
    assert len(cluster.notes("gang-1", "FailedScheduling")) == 1
    cluster.add_pod("gang-2", **membership)
    await cluster.settle(5)
    assert placed(cluster, "gang").keys() == {"gang-0", "gang-1", "gang-2"}


async def test_members_are_placed_one_by_one_if_asked():
    cluster = Simulation(places_group_members=True)
    cluster.add_node("one")
    cluster.add_pod("member", annotations=member_of("gang", 2))
    await cluster.settle()
    assert cluster.where() == {"member": "one"}


async def test_rules_of_running_groups_hold_for_others():
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}
    rule = json.dumps({"groupAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    cluster = Simulation()
    for name in ("one", "two"):
        cluster.add_node(name)
    cluster.add_pod("runs", node="one", annotations=member_of("a", 1, **{"bayplan.io/group-affinity": rule}))
    add_gang(cluster, "b", 2)
    await cluster.settle(5)
    assert set(placed(cluster, "b").values()) == {"two"}


async def test_all_members_are_in_one_domain_and_one_that_dies_is_replaced_there():
    cluster = Simulation()
    for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")):
        cluster.add_node(name, zone)
    cluster.add_pod("big", cpu="2", node="a1")
    add_gang(cluster, "gang", 8, annotations={"bayplan.io/group-topology": "topology.kubernetes.io/zone"})
    await cluster.settle(5)
    assert len(placed(cluster, "gang")) == 8
    assert set(placed(cluster, "gang").values()) == {"b1", "b2"}
    cluster.remove_pod("gang-3")
    add_gang(cluster, "gang", 1, 8, first=9, annotations={"bayplan.io/group-topology": "topology.kubernetes.io/zone"})
    await cluster.settle(5)
    assert cluster.where()["gang-9"] in ("b1", "b2")


async def test_a_group_that_does_not_fit_holds_no_room_and_says_why():
    cluster = Simulation()
    cluster.add_node("one", cpu="4")
    add_gang(cluster, "gang", 5)
    for number in range(4):
        cluster.add_pod(f"web-{number}", cpu="1")
    await cluster.settle(20)
    assert not placed(cluster, "gang")
    assert len(placed(cluster, "web")) == 4
    message = cluster.condition("gang-0")["message"]
    assert message.startswith("group web/gang waits: 5 members must run; 0 fit, and web/gang-0 does not: 0/1 nodes")
    assert cluster.condition("gang-4")["message"] == message
    assert cluster.notes("gang-0", "FailedScheduling")[-1] == message
    assert not cluster.binds or {name for name, _ in cluster.binds} == {f"web-{n}" for n in range(4)}


async def test_a_group_is_placed_when_room_appears():
    cluster = Simulation()
    cluster.add_node("one", cpu="4")
    add_gang(cluster, "gang", 5)
    await cluster.settle(60)
    assert not placed(cluster, "gang")
    cluster.add_node("two", cpu="1")
    await cluster.settle(11)
    assert len(placed(cluster, "gang")) == 5


async def test_members_beyond_those_that_must_run_are_placed_as_room_appears():
    cluster = Simulation()
    cluster.add_node("one", cpu="4")
    cluster.add_pod("other", cpu="1", node="one")
    add_gang(cluster, "gang", 5, 2)
    await cluster.settle(5)
    assert len(placed(cluster, "gang")) == 3
    message = cluster.condition(next(name for name in cluster.where() if not cluster.where()[name]))["message"]
    assert message.startswith("group web/gang has the 2 members that must run, and no room for more")
    cluster.remove_pod("other")
    await cluster.settle(11)
    assert len(placed(cluster, "gang")) == 4


async def test_two_groups_that_fit_only_one_at_a_time_run_one_after_the_other():
    cluster = Simulation()
    for name in ("one", "two"):
        cluster.add_node(name, cpu="4")
    for number in range(6):  # their members come in turns
        for group in ("red", "blue"):
            cluster.add_pod(f"{group}-{number}", cpu="1", annotations=member_of(group, 6))
    await cluster.settle(5)
    assert sorted(map(len, (placed(cluster, "red"), placed(cluster, "blue")))) == [0, 6]
    first, second = ("red", "blue") if placed(cluster, "red") else ("blue", "red")
    for number in range(6):
        cluster.remove_pod(f"{first}-{number}")
    await cluster.settle(11)
    assert len(placed(cluster, second)) == 6


async def test_a_group_that_was_bound_in_part_is_completed_after_a_restart():
    cluster = Simulation()
    for name, zone in (("a1", "a"), ("b1", "b")):
        cluster.add_node(name, zone, cpu="8")
    topology = {"bayplan.io/group-topology": "topology.kubernetes.io/zone"}
    add_gang(cluster, "gang", 2, 4, node="b1", annotations=topology)
    add_gang(cluster, "gang", 2, 4, first=2, annotations=topology)
    await cluster.settle(5)
    assert placed(cluster, "gang") == dict.fromkeys([f"gang-{n}" for n in range(4)], "b1")


def _bound_in_part(cluster, **status):
    cluster.add_node("one", cpu="4")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "gang", "uid": "u", "controller": True}
    add_gang(cluster, "gang", 2, 5, node="one")
    for number in range(2):
        written = cluster.pods[f"web/gang-{number}"]
        written["metadata"]["ownerReferences"] = [owner]
        written["status"] = status
        cluster.report(f"gang-{number}")
    add_gang(cluster, "gang", 3, 5, first=2)


async def test_a_group_that_was_bound_in_part_and_finds_no_room_is_released():
    cluster = Simulation(groups=GroupLimits(timeout=60))
    _bound_in_part(cluster)
    await cluster.settle(50)
    assert not cluster.deleted
    await cluster.settle(30)
    assert sorted(cluster.deleted) == ["gang-0", "gang-1"]
    (note,) = cluster.notes("gang-0", "GroupReleased")
    assert "2 of 5 members were bound" in note


async def test_members_of_a_group_that_ran_are_not_deleted():
    cluster = Simulation(groups=GroupLimits(timeout=60))
    _bound_in_part(cluster, startTime="2025-01-01T00:00:00Z")
    await cluster.settle(90)
    assert not cluster.deleted
    (note,) = cluster.notes("gang-2", "GroupTimedOut")
    assert "has waited for 60 s: group web/gang waits: 5 members must run; 4 fit" in note


async def test_too_few_members_that_run_are_told_once():
    cluster = Simulation()
    cluster.add_node("one")
    add_gang(cluster, "gang", 3)
    await cluster.settle(5)
    assert len(placed(cluster, "gang")) == 3
    cluster.remove_pod("gang-2")
    await cluster.settle(20)
    assert cluster.notes("gang-0", "GroupBelowMin") == [
        "group web/gang has 2 members that run, 3 must, and no other is pending"
    ]


async def test_a_rejected_member_is_bound_later():
    cluster = Simulation()
    cluster.add_node("one")
    cluster.failures = [None, RejectedError("the webhook says no")]
    add_gang(cluster, "gang", 3)
    await cluster.settle(30)
    assert len(placed(cluster, "gang")) == 3


async def test_no_member_is_bound_before_the_volumes_of_all_are():
    cluster = Simulation()
    cluster.add_class("late", "csi.example.com")
    cluster.add_node("one")
    cluster.add_claim("data")
    cluster.add_pod("gang-0", annotations=member_of("gang", 2), volumes=using("data"))
    cluster.add_pod("gang-1", annotations=member_of("gang", 2))
    await cluster.settle(1)
    assert not cluster.binds
    cluster.remove_claim("data")
    await cluster.settle(5)
    assert not cluster.binds
    cluster.add_claim("data")
    await cluster.settle(15)
    cluster.add_volume("disk", node="one")
    cluster.bind_claim("data", "disk")
    await cluster.settle(15)
    assert len(placed(cluster, "gang")) == 2


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ({"bayplan.io/group-topology": "example.com/nowhere"}, "no node has the label example.com/nowhere"),
        ({"bayplan.io/group-min": "7"}, "7 members must run, and only 3 exist"),
    ],
)
async def test_what_is_wrong_with_a_group_is_said_and_others_go_on(annotations, said):
    cluster = Simulation()
    cluster.add_node("one")
    for number in range(3):
        cluster.add_pod(f"gang-{number}", annotations={**member_of("gang", 3), **annotations})
    cluster.add_pod("web")
    add_gang(cluster, "fine", 2)
    await cluster.settle(5)
    assert not placed(cluster, "gang")
    assert cluster.where()["web"] == "one"
    assert len(placed(cluster, "fine")) == 2
    assert said in cluster.condition("gang-0")["message"]
    assert said in cluster.notes("gang-0", "FailedScheduling")[-1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.add_pod("gang-2", priority=5, annotations=member_of("gang", 3)), "different priorities: 0, 5"),
        (lambda c: c.add_pod("gang-2", annotations=member_of("gang", 2)), "different annotations of the group"),
        (lambda c: declare(c, "gang", 3), "two groups have one name"),
        (lambda c: c.add_pod("gang-2", labels={"scheduling.x-k8s.io/pod-group": "gang"}), "two groups have one name"),
        (
            lambda c: c.add_pod("gang-2", annotations=member_of("gang", 3), schedulingGates=[{"name": "wait"}]),
            "held back: web/gang-2: it has the scheduling gate wait",
        ),
        (
            lambda c: c.add_pod("gang-2", scheduler="other", annotations=member_of("gang", 3)),
            "different schedulers: bayplan, other",
        ),
    ],
)
async def test_members_that_disagree_are_said(change, said):
    cluster = Simulation(names=("bayplan", "other"))
    cluster.add_node("one")
    add_gang(cluster, "gang", 2, 3)
    change(cluster)
    await cluster.settle(5)
    assert not placed(cluster, "gang")
    assert said in cluster.condition("gang-0")["message"]


async def test_a_group_without_a_declaration_waits_for_it():
    cluster = Simulation()
    cluster.add_node("one")
    for number in range(2):
        cluster.add_pod(f"gang-{number}", schedulingGroup={"podGroupName": "gang"})
    await cluster.settle(5)
    assert "there is no PodGroup web/gang" in cluster.condition("gang-0")["message"]
    declare(cluster, "gang", 2, "topology.kubernetes.io/zone")
    await cluster.settle(5)
    assert len(placed(cluster, "gang")) == 2


async def test_annotations_must_say_how_many_members_must_run():
    cluster = Simulation()
    cluster.add_node("one")
    cluster.add_pod("gang-0", annotations={"bayplan.io/group": "gang"})
    await cluster.settle(5)
    assert "lack bayplan.io/group-min" in cluster.condition("gang-0")["message"]


async def test_a_huge_group_is_set_aside():
    cluster = Simulation(groups=GroupLimits(max_members=4))
    cluster.add_node("one", cpu="100")
    add_gang(cluster, "gang", 5, 2)
    await cluster.settle(5)
    assert not placed(cluster, "gang")
    assert "it has more members than the 4" in cluster.condition("gang-0")["message"]


async def test_a_group_whose_members_all_differ_in_many_terms_is_set_aside():
    cluster = Simulation(groups=GroupLimits(max_comparisons=100))
    cluster.add_node("one", cpu="100")
    for number in range(6):
        own = apart(app=str(number))["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": own * 4}}
        cluster.add_pod(f"gang-{number}", annotations=member_of("gang", 2), affinity=rules)
    await cluster.settle(5)
    assert "comparing them takes too long" in cluster.condition("gang-0")["message"]


async def test_a_group_preempts_as_one_and_no_more_than_it_needs():
    cluster = Simulation()
    for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")):
        cluster.add_node(name, zone, cpu="4")
    for name in ("a1", "a2", "b1", "b2"):
        for number in range(4):
            cluster.add_pod(f"low-{name}-{number}", cpu="1", node=name, priority=1 if name < "b" else 2)
    topology = {"bayplan.io/group-topology": "topology.kubernetes.io/zone"}
    add_gang(cluster, "gang", 6, priority=10, annotations=topology)
    await cluster.settle(30)
    assert set(placed(cluster, "gang").values()) == {"a1", "a2"}
    assert len(cluster.deleted) == 6
    assert all(name.startswith("low-a") for name in cluster.deleted)
    assert cluster.notes(cluster.deleted[0], "Preempted")


async def test_a_group_preempts_nobody_if_that_is_not_enough():
    cluster = Simulation()
    cluster.add_node("one", cpu="4")
    for number in range(4):
        cluster.add_pod(f"low-{number}", cpu="1", node="one", priority=1 if number else 20)
    add_gang(cluster, "gang", 4, priority=10)
    await cluster.settle(30)
    assert not cluster.deleted
    assert not placed(cluster, "gang")


async def test_a_group_exceeds_no_disruption_budget():
    cluster = Simulation()
    for name in ("one", "two"):
        cluster.add_node(name, cpu="2")
        for number in range(2):
            cluster.add_pod(f"low-{name}-{number}", cpu="1", node=name, priority=1, labels={"on": name})
    cluster.add_budget("guarded", {"on": "one"}, 0)
    add_gang(cluster, "gang", 2, priority=10)
    await cluster.settle(30)
    assert set(placed(cluster, "gang").values()) == {"two"}
    assert sorted(cluster.deleted) == ["low-two-0", "low-two-1"]


async def test_a_group_that_may_not_preempt_waits():
    cluster = Simulation()
    cluster.add_node("one", cpu="2")
    cluster.add_pod("low", cpu="2", node="one")
    add_gang(cluster, "gang", 2, priority=10, preemptionPolicy="Never")
    await cluster.settle(30)
    assert not cluster.deleted
    assert not placed(cluster, "gang")


async def test_while_victims_leave_the_room_is_kept_for_the_group():
    cluster = Simulation()
    cluster.add_node("one", cpu="2")
    for number in range(2):
        cluster.add_pod(f"low-{number}", cpu="1", node="one")
    kept = []

    async def delete(pod):
        cluster.pods[f"web/{pod.name}"]["metadata"]["deletionTimestamp"] = START.isoformat()
        cluster.report(pod.name)
        kept.append(pod.name)

    cluster.delete = delete
    add_gang(cluster, "gang", 2, priority=10)
    await cluster.settle(5)
    assert sorted(kept) == ["low-0", "low-1"]
    assert cluster.pods["web/gang-0"]["status"]["nominatedNodeName"] == "one"
    cluster.remove_pod("low-0")
    cluster.add_pod("web", cpu="1", priority=10)
    await cluster.settle(20)
    assert cluster.where()["web"] == ""
    cluster.remove_pod("low-1")
    await cluster.settle(20)
    assert len(placed(cluster, "gang")) == 2
    assert len(kept) == 2


async def test_members_may_require_each_other():
    cluster = Simulation()
    for name, zone in (("a1", "a"), ("b1", "b")):
        cluster.add_node(name, zone)
    for name, wanted in (("gang-0", "gang-1"), ("gang-1", "gang-0")):
        cluster.add_pod(name, labels={"app": name}, annotations=member_of("gang", 2), affinity=near(app=wanted))
    await cluster.settle(5)
    assert len(set(placed(cluster, "gang").values())) == 1
    assert len(placed(cluster, "gang")) == 2


async def test_a_bug_in_placing_groups_is_reported_and_others_go_on(monkeypatch):
    def broken(*_):
        raise ZeroDivisionError

    cluster = Simulation()
    cluster.add_node("one")
    with monkeypatch.context() as patched:
        patched.setattr("bayplan.queueing.group_attempt.attempt", broken)
        add_gang(cluster, "gang", 2)
        cluster.add_pod("web")
        await cluster.settle(3)
    assert cluster.where()["web"] == "one"
    assert cluster.condition("gang-0")["reason"] == "SchedulerError"
    await cluster.settle(20)
    assert len(placed(cluster, "gang")) == 2


async def test_a_member_that_leaves_its_group_is_scheduled_by_itself():
    cluster = Simulation()
    cluster.add_node("one")
    add_gang(cluster, "gang", 1, 2)
    await cluster.settle(3)
    assert cluster.where()["gang-0"] == ""
    cluster.pods["web/gang-0"]["metadata"]["annotations"] = {}
    cluster.report("gang-0")
    await cluster.settle(3)
    assert cluster.where()["gang-0"] == "one"
