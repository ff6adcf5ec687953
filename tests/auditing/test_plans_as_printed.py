"""The commands and labels that a repair plan prints, applied literally to the input, give the verdict it promises."""

import re
import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenery import CONTROL_PLANE, HOST, REGION, ZONE, finding, judge, layout_of, node, nodes, pod, stacked

from bayplan.auditing.repairing import instructions, plan_search, plans, repair_proposal
from bayplan.auditing.repairing.plans import SpreadDemand
from bayplan.wire.meta import ObjectMeta
from bayplan.wire.observed import ObservedNode

CREATE = re.compile(r"# create (\S+) on ")
ADD = re.compile(r"add (\S+) \(([^)]*)\) on .*")
START = re.compile(r"start (\S+) on (\S+)")


def carried_out(found, given, pods):
    """The nodes and pods after every printed line was carried out as it stands, except for who hosts what."""
    labels = {one.metadata.name: dict(one.metadata.labels) for one in given}
    after = list(pods)
    repair = repair_proposal.propose_repair(found)
    layout = repair.after.layout
    for line in instructions.openstack(repair.plan, found.layout, layout):
        created = CREATE.match(line)
        if created:
            labels[created[1]] = {CONTROL_PLANE: ""}
        if line.startswith("kubectl label"):
            _, _, kind, name, *words = shlex.split(line)
            assert (kind, words.pop()) == ("node", "--overwrite")
            labels[name] |= dict(word.split("=", 1) for word in words)
    for line in instructions.summary(repair.plan):
        started = START.fullmatch(line)
        if started:
            after.append(pod(started[1], started[2]))
        added = ADD.fullmatch(line)
        if added:
            after += [pod(part, added[1]) for part in added[2].split(", ")]
    return repair, [ObservedNode(metadata=ObjectMeta(name=name, labels=own)) for name, own in labels.items()], after


WORKERS_APART = SpreadDemand("host", "separate", of_workers=True)
HOSTS = st.integers(0, 7)
CONTROL_PLANES = st.lists(HOSTS, min_size=1, max_size=5)
PROFILES = st.sampled_from(("scs-0214-v2", "scs-0213", "ha", "scs-0214-v2-draft"))


@settings(max_examples=500, deadline=None)
@given(CONTROL_PLANES, st.lists(HOSTS, max_size=4), PROFILES, st.booleans(), st.booleans())
def test_a_plan_carried_out_as_printed_passes(control, workers, profile, labelled, with_scheduler_missing):
    """Hosts are in zones of two; where they are not labelled, the plan is made by zones or asks for labels."""

    def place(host):
        return f"z{host // 2}/{f'h{host}' if labelled else '-'}"

    given_nodes = [node(f"cp-{i}", "cp", place(host)) for i, host in enumerate(control)]
    given_nodes += [node(f"worker-{i}", "worker", place(host)) for i, host in enumerate(workers)]
    pods = stacked(given_nodes)
    if with_scheduler_missing:
        pods = [one for one in pods if one.metadata.name != "kube-scheduler-cp-0"]
    found = judge(given_nodes, pods, profile=profile)
    repair, after_nodes, after_pods = carried_out(found, given_nodes, pods)
    again = judge(after_nodes, after_pods, profile=profile)
    promised = {one.id: one.verdict for one in repair.after.results if one.required}
    assert {one.id: one.verdict for one in again.results if one.id in promised} == promised
    if repair.after.passed():
        assert again.passed()


def test_a_move_sets_every_label_of_its_new_place():
    given_nodes = nodes("cp x/a", "cp x/a", "cp x/b", "worker y/c")
    found = judge(given_nodes, stacked(given_nodes), profile="ha")
    repair, after, _ = carried_out(found, given_nodes, stacked(given_nodes))
    lines = instructions.openstack(repair.plan, found.layout, repair.after.layout)
    assert any(f"{HOST}=" in line and f"{ZONE}=" in line for line in lines)
    assert any("It leaves its zone" in line for line in lines)
    assert all(one.metadata.labels[REGION] == "r" for one in after if one.metadata.name.startswith("cp"))


@pytest.mark.parametrize("rows, moved", [
    (["cp x/a", "cp y/b", "cp z/c", "worker x/a", "worker x/a", "worker x/a"], 1),
    (["cp x/a", "cp y/b", "cp z/c", "worker x/a", "worker y/b"],               0),
    (["cp x/a", "cp y/b", "cp z/c", "worker x/a"],                             0),
    (["cp x/a", "cp y/b", "cp z/c", "worker x/a", "worker x/d"],               0),
])  # fmt: skip
def test_workers_are_spread_too(rows, moved):
    given_nodes = nodes(*rows)
    found = judge(given_nodes, stacked(given_nodes))
    plan = plan_search.plan_repair(found.layout, [WORKERS_APART])
    assert (len(plan.moves), plan.passes) == (moved, True)
    assert all(move.node.startswith("worker") for move in plan.moves)
    after = plans.layout_after(found.layout, plan)
    assert not plan.moves or "server group" not in "\n".join(instructions.openstack(plan, found.layout, after))


def test_workers_of_a_hidden_control_plane_can_be_spread():
    plan = plan_search.plan_repair(layout_of(nodes("2x worker x/a", "worker x/a")), [WORKERS_APART])
    assert (len(plan.moves), plan.passes) == (1, True)
    assert "no control plane is visible" in plan.notes[0]


@pytest.mark.parametrize("rows, profile, policy", [
    (["cp x/a", "cp x/a", "cp x/a"],                                "ha",       "anti-affinity"),
    (["cp x/a", "cp x/a", "cp x/a", "cp x/a", "cp y/b"],            "ha",       "soft-anti-affinity"),  # two stay on one
])  # fmt: skip
def test_no_hard_group_where_two_servers_share_a_machine(rows, profile, policy):
    given_nodes = nodes(*rows)
    found = judge(given_nodes, stacked(given_nodes), profile=profile)
    repair = repair_proposal.propose_repair(found)
    lines = instructions.openstack(repair.plan, found.layout, repair.after.layout)
    assert f"openstack server group create --policy {policy} control-plane" in lines
    lines = instructions.cluster_api(repair.plan, found.layout, repair.after.layout)
    assert any(line.endswith(f"the policy {policy}.") for line in lines)


@pytest.mark.parametrize("n, text", [(3, True), (4, False)])
def test_the_number_of_replicas_stays_odd_only_where_it_is(n, text):
    given_nodes = nodes(*["cp x/a"] * n)
    found = judge(given_nodes, stacked(given_nodes), profile="ha")
    repair = repair_proposal.propose_repair(found)
    lines = instructions.cluster_api(repair.plan, found.layout, repair.after.layout)
    assert any("stays odd" in line for line in lines) == text
    assert finding(found, "cp-hidden").verdict == "PASS"


def test_a_zone_is_used_of_which_no_host_is_known():
    given_nodes = nodes("3x cp x/a", "worker y/-", "worker z/-")
    found = judge(given_nodes, stacked(given_nodes), profile="ha")
    repair, after, pods = carried_out(found, given_nodes, stacked(given_nodes))
    assert {(move.target["zone"], move.new) for move in repair.plan.moves} == {("y", ("host",)), ("z", ("host",))}
    assert repair.plan.further == {"host": 2, "zone": 0}
    assert repair.after.passed()
    assert judge(after, pods, profile="ha").passed()
