"""Every failure of every level, named sets, pairs of failures, and whether displaced pods can be placed again."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenery import finding, judge, layout_of, node, nodes, replicas, stacked, verdicts

from bayplan.auditing import audit, profiles, spread, surveying, survival, workload_groups
from bayplan.auditing.audit_input import AuditInput
from bayplan.auditing.layout import COMPONENTS, HOST, LEVELS, REGION, ZONE, AuditNode, ComponentInstance, Layout
from bayplan.auditing.survivability import NODE
from bayplan.engine.engine import Engine
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping.pods import EMPTY_SPREAD_CONTEXT
from bayplan.model import labels as label_model
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.targets import Target
from bayplan.model.workloads import Needs, Requests, Workload
from bayplan.rules import profiles as profile

RULES = profile.pod_rules()


def levels(layout, *asked, workloads=None):
    return {one.level: one for one in survival.survey_losses(layout, workloads, asked or survival.ALL_LEVELS)}


def control_plane(rows, healthy=None):
    """A stacked control plane: (host, zone, region) of each node, None where a label is missing."""
    made = tuple(
        AuditNode(name=f"n{i}", domains=dict(zip((HOST, ZONE, REGION), row, strict=True)), roles=("control-plane",))
        for i, row in enumerate(rows)
    )
    members = tuple(ComponentInstance(one.name, healthy is None or healthy[i]) for i, one in enumerate(made))
    return Layout(nodes=made, members=dict.fromkeys(COMPONENTS, members))


@pytest.mark.parametrize("hosts, node_level, host_level", [
    ("abcde",   2, 2),
    ("aabbc",   2, 1),
    ("abcdefg", 3, 3),
    ("aabcdef", 3, 2),   # two on one machine cost one loss
    ("aabbccd", 3, 1),
    ("aaabbbc", 3, 1),
])  # fmt: skip
def test_more_than_one_loss(hosts, node_level, host_level):
    found = levels(control_plane([(host, "z", "r") for host in hosts]))
    assert found[NODE].control_plane.tolerance == node_level
    assert found[HOST].control_plane.tolerance == host_level
    etcd = next(one for one in found[HOST].control_plane.tolerances if one.group == "etcd")
    assert etcd.tolerance == host_level
    others = {one.tolerance for one in found[HOST].control_plane.tolerances if one.group != "etcd"}
    assert others == {len(set(hosts)) - 1}  # one instance is enough for them


def test_an_unhealthy_member_lowers_the_tolerance_but_not_that_of_the_design():
    found = levels(control_plane([(host, "z", "r") for host in "abc"], healthy=[False, True, True]))[HOST]
    assert (found.control_plane.tolerance, found.by_design) == (0, 1)


def test_levels_without_any_domain_are_left_out_but_hosts_follow_from_zones():
    found = levels(control_plane([(None, "x", "r"), (None, "y", "r"), (None, "z", "r")]))
    assert list(found) == [NODE, HOST, ZONE, REGION]
    assert (found[HOST].control_plane.tolerance, found[HOST].control_plane.at_most) == (1, 1)
    assert found[HOST].events == ()  # no machine has a name
    assert list(levels(control_plane([(None, None, None)] * 3))) == [NODE]


def test_regions_keep_hosts_apart_where_zones_are_missing():
    found = levels(control_plane([(None, None, "r"), (None, None, "s"), (None, None, "t")]))
    assert found[HOST].control_plane.tolerance == 1


@pytest.mark.parametrize("rows, zone, host", [
    # One machine in two zones: which of them is not known, so all that the zones hold may be lost at once.
    ([("a", "x", "r"), ("a", "y", "r"), ("b", "x", "r"), ("c", "y", "r"), ("d", "z", "r")], (0, 1), (1, 1)),
    # A zone of one name in two regions is two zones.
    ([("a", "x", "r"), ("b", "x", "s"), ("c", "y", "s")], (1, 1), (1, 1)),
])  # fmt: skip
def test_contradictory_labels_guarantee_nothing(rows, zone, host):
    found = levels(control_plane(rows))
    assert (found[ZONE].control_plane.tolerance, found[ZONE].control_plane.at_most) == zone
    assert (found[HOST].control_plane.tolerance, found[HOST].control_plane.at_most) == host


ROW = st.tuples(
    st.sampled_from(["a", "b", "c", None]), st.sampled_from(["x", "y", None]), st.sampled_from(["r", "s", None])
)


@settings(max_examples=200, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=6))
def test_one_loss_is_judged_as_the_checks_judge_it(rows):
    """The two ways to count agree on whether any one domain may fail, whatever is missing or contradictory."""
    layout = control_plane(rows)
    for level, one in levels(layout, *LEVELS).items():
        held = spread.spread_over_domains(layout, layout.nodes, level)
        for found in one.control_plane.tolerances:
            need = len(rows) // 2 + 1 if found.group == "etcd" else 1
            assert (found.tolerance >= 1) == (len(rows) - held.hi >= need)
            assert (found.at_most >= 1) == (len(rows) - held.lo >= need)


def test_named_sets_are_labels_facts_or_columns_of_the_inventory():
    made = [node(f"n{i}", "cp", f"z{i}/h{i}", labels={"feed": "left" if i < 2 else "right"}) for i in range(3)]
    for i, one in enumerate(made):
        one.status.node_info.kernel_version = "6.1" if i else "6.2"
    layout = layout_of(made, inventory={"n0": {"ups": "u1"}, "n1": {"ups": "u1"}, "n2": {"ups": "u2"}})
    found = levels(layout, "feed", "kernel", "ups", "nothing")
    assert list(found) == ["feed", "kernel", "ups"]
    assert found["feed"].control_plane.single_points == ("left",)
    assert found["kernel"].control_plane.single_points == ("6.1",)
    assert found["ups"].control_plane.single_points == ("u1",)
    assert all(one.named for one in found.values())


def test_pairs_of_failures_of_different_levels():
    layout = control_plane([("a", "x", "r"), ("b", "x", "r"), ("c", "y", "r"), ("d", "y", "r"), ("e", "z", "r")])
    found = survival.risks(layout, survival.survey_losses(layout))
    broken = {frozenset((event.level, event.domain) for event in events) for group, events in found if group == "etcd"}
    assert {(REGION, "r")} in broken
    assert {(ZONE, "x"), (HOST, "c")} in broken
    assert {(HOST, "a"), (HOST, "b")} not in broken  # two of five may fail
    assert all(len(events) <= 2 for events in broken)


# Rescheduling


def target(name, zone, cpu=4000):
    labels = {"topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": name}
    return Target(name=name, labels=labels, allocatable=(("cpu", cpu), ("memory", 8 << 30), ("pods", 10)))


def simulated(given, pods, cpu=1000, budgets=(), asked=survival.ALL_LEVELS, room=4000):
    """The audit with every loss simulated; all pods have the same request."""
    source = AuditInput(nodes=given, pods=pods, budgets=budgets)
    layout = surveying.layout_of(source)
    workloads = workload_groups.workloads_of(source, layout)
    index = PlacementIndex()
    for one in layout.nodes:
        index.add_target(target(one.name, one.at(ZONE), room))
    amounts = (("cpu", cpu),)
    for one in pods:
        needs = Needs(requests=Requests(amounts, amounts, amounts))
        meta = one.metadata
        workload = Workload(namespace=meta.namespace, name=meta.name, labels=meta.labels, needs=needs)
        index.add(workload, one.spec.node_name)
    how = survival.Rescheduling(
        engine=Engine(index, RULES), spread_context=EMPTY_SPREAD_CONTEXT, lost_with_node=workloads.lost_with_node
    )
    steps = []
    found = survival.reschedule(
        survival.survey_losses(layout, workloads.all, asked), workloads.all, how, lambda *step: steps.append(step)
    )
    whole = survival.Survival(asked=tuple(asked), levels=tuple(found), rescheduled=True)
    result = audit.run_audit(layout, profiles.PROFILES["ha"], workloads=workloads, survival=whole)
    return result, steps


THREE = nodes("worker x/a", "worker y/b", "worker z/c")


def test_all_displaced_pods_find_room():
    result, steps = simulated(THREE, replicas("web", "worker-0", "worker-1"))
    found = finding(result, "fd-room-host")
    assert found.verdict == "PASS"
    assert found.message == "whichever host is lost, all its pods find room again, 1 at the most"
    assert verdicts(result)["fd-room-zone"] == "PASS"
    assert verdicts(result)["fd-room-region"] == "N/A"  # there is only one
    # Nodes, hosts and zones are the same sets here: each is simulated once.
    assert [(done, total) for done, total, _ in steps] == [(1, 3), (2, 3), (3, 3)]


def test_a_stranded_pod_is_reported_with_what_is_missing():
    result, _ = simulated(THREE, replicas("web", "worker-0", "worker-1", "worker-2"), cpu=3000)
    found = finding(result, "fd-room-host")
    assert found.verdict == "WARN"
    assert found.message == "losing host a leaves 1 pod unschedulable; 3 of 3 hosts leave at least one"
    assert found.fix == "add room for 3 cpu and 1 pod slot"
    loss = result.survival.at(HOST).losses["a"]
    assert (loss.stranded[0].nearest, loss.stranded[0].missing) == ("worker-1", (("cpu", 2000),))
    assert verdicts(result)["fd-n1-workloads-host"] == "PASS"  # it is spread, only too large


def test_nodes_of_unknown_host_leave_it_open():
    result, _ = simulated(nodes("worker x/a", "worker y/b", "worker y/-"), replicas("web", "worker-0"))
    assert verdicts(result)["fd-room-host"] == "UNDECIDED"
    assert verdicts(result)["fd-room-zone"] == "PASS"


def test_the_loss_of_all_nodes_is_not_simulated():
    result, steps = simulated(nodes("worker x/a", "worker x/b"), replicas("web", "worker-0"))
    assert verdicts(result)["fd-room-zone"] == "N/A"
    assert result.survival.at(ZONE).losses == {}
    assert len(steps) == 2


def test_rescheduling_may_restore_a_budget():
    selector = label_model.equals({"app": "web"})
    budget = DisruptionBudget(namespace="shop", name="web", selector=selector, min_available=2)
    result, _ = simulated(THREE, replicas("web", "worker-0", "worker-1"), budgets=[budget])
    found = finding(result, "fd-need-workloads-host")
    assert found.verdict == "WARN"
    assert found.message.endswith("; rescheduling repairs 1 of them")
    full, _ = simulated(THREE, replicas("web", "worker-0", "worker-1", "worker-2"), cpu=3000, budgets=[
        msgspec.structs.replace(budget, min_available=3)
    ])  # fmt: skip
    assert "rescheduling repairs" not in finding(full, "fd-need-workloads-host").message


def test_a_level_that_was_not_asked_about():
    result, _ = simulated(THREE, replicas("web", "worker-0"), asked=(ZONE,))
    assert verdicts(result)["fd-room-host"] == "N/A"
    assert verdicts(result)["fd-room-zone"] == "PASS"


def test_the_worst_comes_first():
    pods = [*replicas("web", "worker-0", "worker-0", "worker-1", "worker-1", "worker-2"), *replicas("db", "worker-2")]
    result, _ = simulated(THREE, pods, cpu=2000)
    afters = result.survival.at(HOST).aftermaths()
    assert [(len(after.loss.stranded), after.workloads.down) for after in afters] == [
        (2, ("Deployment shop/db",)), (2, ()), (2, ()),
    ]  # fmt: skip
    assert all(after.hurts for after in afters)


def test_control_plane_members_rank_before_pods():
    given = nodes("cp x/a", "worker y/b", "worker z/c")
    result, _ = simulated(given, [*stacked(given), *replicas("web", "worker-1", "worker-2")], cpu=3000)
    first = result.survival.at(HOST).aftermaths()[0]
    assert (first.event.domain, len(first.control_plane.down)) == ("a", 4)


def test_without_rescheduling_the_reason_is_given():
    assert finding(judge(THREE, replicas("web", "worker-0")), "fd-room-host").message == "not asked for"
