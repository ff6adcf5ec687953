"""A repair plan passes, is the shortest one, and keeps the majority at every step."""

import itertools
from collections import Counter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.auditing import audit as auditing
from bayplan.auditing import profiles, survivability
from bayplan.auditing.layout import (
    COMPONENTS,
    CONTROL_PLANE,
    ETCD,
    HOST,
    REGION,
    WORKER,
    ZONE,
    AuditNode,
    ComponentInstance,
    Layout,
)
from bayplan.auditing.repairing import instructions, plan_search, plans
from bayplan.auditing.repairing.plans import HALF, LOSS, SEPARATE, TWICE, SpreadDemand

LOSE_A_HOST, LOSE_A_ZONE = SpreadDemand(HOST, LOSS), SpreadDemand(ZONE, LOSS)


def place(text):
    zone, _, host = text.rpartition("/")
    return {HOST: host or None, ZONE: zone or None}


def layout_of(*places, workers=(), down=(), **fields):
    """A stacked control plane, a node for each place: `z1/h1` or `h1`."""
    nodes = [
        AuditNode(name=f"cp{i}", roles=(CONTROL_PLANE,), domains=place(text), ready=f"cp{i}" not in down, **fields)
        for i, text in enumerate(places)
    ]
    nodes += [AuditNode(name=f"w{i}", roles=(WORKER,), domains=place(text)) for i, text in enumerate(workers)]
    members = tuple(ComponentInstance(f"cp{i}", f"cp{i}" not in down) for i in range(len(places)))
    return Layout(nodes=tuple(nodes), members=dict.fromkeys(COMPONENTS, members))


def moves(found):
    return [(move.node, *move.target.values()) for move in found.moves]


@pytest.mark.parametrize("demand, hosts, n_moves, machines", [
    (LOSE_A_HOST, "aab", 1, 1),          # three on two machines: the disputed case
    (LOSE_A_HOST, "aaa", 2, 2),
    (LOSE_A_HOST, "abc", 0, 0),
    (LOSE_A_HOST, "aaabb", 1, 1),
    (LOSE_A_HOST, "aaaab", 2, 1),
    (LOSE_A_HOST, "aaabc", 1, 0),
    (LOSE_A_HOST, "aaaabbb", 1, 1),
    (LOSE_A_HOST, "aabb", 2, 2),
    (SpreadDemand(HOST, HALF), "aaab", 1, 0),
    (SpreadDemand(HOST, HALF), "aaa", 1, 1),
    (SpreadDemand(HOST, SEPARATE), "aaa", 1, 1),
    (SpreadDemand(HOST, SEPARATE), "aab", 0, 0),
])  # fmt: skip
def test_how_many_moves_and_machines_it_takes(demand, hosts, n_moves, machines):
    found = plan_search.plan_repair(layout_of(*hosts), [demand])
    assert found.passes
    assert found.exact
    assert found.safe
    assert (len(found.moves), found.further.get(HOST, 0)) == (n_moves, machines)


def test_an_existing_machine_is_used_and_the_emptier_one_first():
    layout = layout_of("a", "a", "b", workers=("c", "c", "d"))
    found = plan_search.plan_repair(layout, [LOSE_A_HOST])
    assert moves(found) == [("cp0", "d")]
    assert instructions.summary(found) == ["move cp0 from a to host d"]
    assert (found.before, found.after) == ({HOST: 0}, {HOST: 1})
    [only_c] = plan_search.plan_repair(layout, [LOSE_A_HOST], usable=frozenset("abc")).moves
    assert only_c.target == {HOST: "c"}


def test_zones_and_hosts_together():
    found = plan_search.plan_repair(layout_of("z1/a", "z1/b", "z2/c", workers=("z3/d",)), [LOSE_A_HOST, LOSE_A_ZONE])
    assert moves(found) == [("cp0", "d", "z3")]
    found = plan_search.plan_repair(layout_of("z1/a", "z1/b", "z2/c"), [LOSE_A_HOST, LOSE_A_ZONE])
    assert (len(found.moves), found.further) == (1, {HOST: 1, ZONE: 1})
    assert instructions.summary(found)[1:] == ["1 further machine is needed", "1 further zone is needed"]


def test_down_nodes_then_the_youngest_move_first():
    young = layout_of("a", "a", "b")
    nodes = [msgspec.structs.replace(n, created=f"202{i}") for i, n in enumerate(young.nodes)]
    young = msgspec.structs.replace(young, nodes=tuple(nodes))
    assert moves(plan_search.plan_repair(young, [LOSE_A_HOST]))[0][0] == "cp1"
    assert moves(plan_search.plan_repair(young, [LOSE_A_HOST], keep=frozenset({"cp1"})))[0][0] == "cp0"
    down = layout_of("a", "a", "b", down=("cp1",))
    [move] = plan_search.plan_repair(down, [LOSE_A_HOST]).moves
    assert (move.node, move.how) == ("cp1", plans.REMOVE_FIRST)


def test_without_a_spare_member_the_majority_is_repaired_first():
    found = plan_search.plan_repair(layout_of("a", "a", "b", down=("cp2",)), [LOSE_A_HOST])
    assert [move.how for move in found.moves] == [plans.NOT_YET]
    assert not found.safe
    assert "repair the members that are down first" in found.notes[0]


@pytest.mark.parametrize("hosts, how", [
    ("a", [plans.LEARNER, plans.ADD_FIRST]),  # a second voter that does not work yet would stop the first
    ("ab", [plans.ADD_FIRST]),
    ("aa", [plans.ADD_FIRST]),
])  # fmt: skip
def test_too_few_members_become_three(hosts, how):
    found = plan_search.plan_repair(layout_of(*hosts), [LOSE_A_HOST])
    assert found.passes
    assert [move.how for move in found.adds] == how
    assert [move.components for move in found.adds] == [tuple(sorted(COMPONENTS))] * len(how)
    assert len(plans.layout_after(layout_of(*hosts), found).members[ETCD]) == 3


def test_stacked_members_stay_odd_even_where_two_would_do():
    assert len(plan_search.plan_repair(layout_of("a"), [SpreadDemand(HOST, SEPARATE)]).adds) == 2


def test_a_component_is_started_where_it_lacks():
    layout = layout_of("a", "b", "c")
    layout = msgspec.structs.replace(layout, members={**layout.members, "kube-scheduler": (ComponentInstance("cp0"),)})
    found = plan_search.plan_repair(layout, [LOSE_A_HOST])
    assert (found.starts, found.moves, found.adds, found.passes) == ((("kube-scheduler", "cp1"),), (), (), True)


def test_etcd_on_nodes_of_its_own():
    layout = layout_of("a", "b")
    etcd = tuple(AuditNode(name=f"e{i}", roles=("etcd",), domains={HOST: h}) for i, h in enumerate("cd"))
    members = {**layout.members, ETCD: (ComponentInstance("e0"), ComponentInstance("e1"))}
    layout = msgspec.structs.replace(layout, nodes=(*layout.nodes, *etcd), members=members)
    found = plan_search.plan_repair(layout, [LOSE_A_HOST])
    assert [(move.node, move.components, move.target) for move in found.adds] == [("new-etcd-1", (ETCD,), {HOST: "a"})]
    assert found.passes


def test_unknown_locations_must_be_labelled_first():
    found = plan_search.plan_repair(layout_of("z/a", "z/", "z/"), [LOSE_A_HOST])
    assert (found.unknown, found.moves, found.passes) == (("cp1", "cp2"), (), False)
    assert plan_search.plan_repair(layout_of("z1/", "z2/", "z3/"), [LOSE_A_HOST]).passes  # the zones decide it


def test_the_planned_layout_knows_the_other_levels_of_the_new_place():
    layout = layout_of("z1/a", "z1/a", "z2/b", workers=("z3/c",), keys={HOST: "host-id"}, labels={"host-id": "a"})
    found = plan_search.plan_repair(layout, [LOSE_A_HOST])
    node = plans.layout_after(layout, found).by_name()["cp0"]
    assert (node.at(HOST), node.at(ZONE), node.labels) == ("c", "z3", {"host-id": "c"})
    layout = layout_of("z1/a", "z1/a", "z2/b")
    node = plans.layout_after(layout, plan_search.plan_repair(layout, [LOSE_A_HOST])).by_name()["cp0"]
    assert (node.at(HOST), node.at(ZONE)) == ("new host 1", "z1")
    layout = layout_of("z1/a", "z1/a")
    after = plans.layout_after(layout, plan_search.plan_repair(layout, [LOSE_A_ZONE, LOSE_A_HOST]))
    assert after.by_name()["new-control-plane-1"].is_control_plane
    assert sorted(node.at(ZONE) for node in after.control_plane) == ["new zone 1", "new zone 2", "z1"]


def test_unmoved_nodes_keep_domains_inferred_from_other_nodes():
    layout = layout_of("z1/a", "/a", "z2/b")
    found = plan_search.plan_repair(layout, [LOSE_A_HOST], keep=frozenset({"cp1"}))
    assert [move.node for move in found.moves] == ["cp0"]
    assert plans.layout_after(layout, found).by_name()["cp1"].at(ZONE) == "z1"


def test_duplicates_need_no_labels():
    found = plan_search.plan_repair(layout_of("z/"), [SpreadDemand(HOST, TWICE)])
    assert (found.passes, len(found.adds), found.moves) == (True, 2, ())
    assert instructions.summary(found)[1].endswith("on any machine")


def test_a_hidden_control_plane_is_reported():
    layout = Layout(nodes=(AuditNode(name="w", roles=(WORKER,)),))
    assert plan_search.plan_repair(layout, [LOSE_A_HOST]).notes == ("no control plane is visible: ask its operator",)


def test_a_search_too_large_still_finds_a_plan(monkeypatch):
    monkeypatch.setattr(plan_search, "MAX_TRIED_ASSIGNMENTS", 3)
    found = plan_search.plan_repair(layout_of("z1/a", "z1/a", "z1/a", "z2/b", "z2/b"), [LOSE_A_HOST, LOSE_A_ZONE])
    assert found.passes
    assert not found.exact


def shortest(layout, demands):
    """The fewest moves of any plan, by trying every place for every node; new places enough for all of them."""
    nodes = layout.control_plane
    zones = sorted({node.domains[ZONE] for node in layout.nodes})
    spots = {(node.domains[HOST], node.domains[ZONE]) for node in layout.nodes}
    n = len(nodes)
    spots |= {(f"{zone} more {i}", zone) for zone in zones for i in range(n - 1)}
    spots |= {(f"far {i}", f"far {i}") for i in range(n - 1)}
    here = [(node.domains[HOST], node.domains[ZONE]) for node in nodes]
    best = n + 1
    for chosen in itertools.product(sorted(spots), repeat=n):
        cost = sum(a != b for a, b in zip(here, chosen, strict=True))
        if cost < best and all(meets(chosen, demand) for demand in demands):
            best = cost
    return best


def meets(spots, demand):
    n = len(spots)
    fullest = max(Counter(spot[0 if demand.level == HOST else 1] for spot in spots).values())
    if demand.rule == SEPARATE:
        return fullest < n
    return fullest <= (n + 1) // 2 if demand.rule == HALF else n - fullest >= n // 2 + 1


ANY_DEMANDS = st.lists(
    st.builds(SpreadDemand, st.sampled_from((HOST, ZONE)), st.sampled_from((SEPARATE, HALF, LOSS))),
    min_size=1,
    max_size=3,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=3, max_size=4), ANY_DEMANDS)
def test_no_plan_is_shorter(hosts, demands):
    # Hosts 0 and 1 are in one zone, 2 and 3 in another; an empty host is in the first.
    layout = layout_of(*(f"z{host // 2}/h{host}" for host in hosts), workers=("z0/h9",))
    found = plan_search.plan_repair(layout, demands)
    assert found.passes
    assert found.exact
    assert plans.meets(plans.layout_after(layout, found), demands)
    assert len(found.moves) == (0 if not found.moves else shortest(layout, demands))
    if not found.moves:
        assert all(meets([(f"h{host}", f"z{host // 2}") for host in hosts], demand) for demand in demands)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=3, max_size=7), st.sets(st.integers(0, 6), max_size=2))
def test_no_step_goes_below_the_majority(hosts, down):
    layout = layout_of(*(f"h{host}" for host in hosts), down=tuple(f"cp{i}" for i in down))
    found = plan_search.plan_repair(layout, [LOSE_A_HOST])
    assert found.passes
    cap = (len(hosts) - 1) // 2
    assert len(found.moves) == sum(max(count - cap, 0) for count in Counter(hosts).values())
    healthy = {f"cp{i}" for i in range(len(hosts)) if i not in down}
    n = len(hosts)
    for move in found.moves:
        if move.how == plans.ADD_FIRST:
            assert len(healthy) >= (n + 1) // 2 + 1
        elif move.how == plans.REMOVE_FIRST:
            assert len(healthy - {move.node}) >= n // 2 + 1
        else:
            assert not found.safe
        healthy.add(move.node)
    if not down:
        assert found.safe


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=5), st.sampled_from(("scs-0214-v2", "scs-0213", "ha")))
def test_the_audit_itself_passes_the_planned_layout(hosts, name):
    layout = labelled(hosts)
    weighed = profiles.PROFILES[name]
    judged = auditing.run_audit(layout, weighed)
    demands = plans.demands_of(result.id for result in judged.results if result.required)
    found = plan_search.plan_repair(layout, demands)
    after = auditing.run_audit(plans.layout_after(layout, found), weighed)
    assert after.passed(), [result for result in after.results if result.gates]
    if judged.passed():
        assert not found.n_changes


def labelled(hosts):
    """A stacked control plane with every label, two hosts to a zone."""
    keys = {HOST: "topology.scs.community/host-id", ZONE: "topology.kubernetes.io/zone"}
    keys |= {REGION: "topology.kubernetes.io/region"}
    nodes = []
    for i, host in enumerate(hosts):
        domains = {HOST: f"h{host}", ZONE: f"z{host // 2}", REGION: "r"}
        labels = {keys[level]: value for level, value in domains.items()}
        nodes.append(
            AuditNode(
                name=f"cp{i}", roles=(CONTROL_PLANE,), domains=domains, labels=labels, keys=keys, role_labels=True
            )
        )
    members = dict.fromkeys(COMPONENTS, tuple(ComponentInstance(node.name) for node in nodes))
    return Layout(nodes=tuple(nodes), members=members, component_evidence=dict.fromkeys(COMPONENTS, "observed"))


def test_the_demands_of_checks():
    asked = plans.demands_of(
        ["fd-quorum-etcd-zone", "fd-n1-component-zone", "lbl-host-present", "scs-0214-cp-machines"]
    )
    assert asked == [SpreadDemand(HOST, SEPARATE), LOSE_A_ZONE]


def test_the_texts_name_machines_servers_and_labels():
    annotations = {"cluster.x-k8s.io/machine": "kcp-x", "cluster.x-k8s.io/cluster-namespace": "tenant"}
    layout = layout_of(
        "a", "a", "b", annotations=annotations, provider_id="openstack:///1234", keys={HOST: "topology.openstack.org/host-id"}
    )  # fmt: skip
    found = plan_search.plan_repair(layout, [LOSE_A_HOST])
    after = plans.layout_after(layout, found)
    capi, cloud = instructions.cluster_api(found, layout, after), instructions.openstack(found, layout, after)
    assert 'kubectl -n tenant annotate machine kcp-x cluster.x-k8s.io/delete-machine=""' in capi
    assert "openstack server migrate --live-migration --host HYPERVISOR --wait 1234" in cloud
    assert "kubectl label node cp0 topology.openstack.org/host-id=new-host-1 --overwrite" in cloud
    grown = layout_of("a", annotations={"cluster.x-k8s.io/owner-name": "kcp"})
    found = plan_search.plan_repair(grown, [LOSE_A_HOST])
    text = instructions.cluster_api(found, grown, plans.layout_after(grown, found))
    assert "kubectl scale kubeadmcontrolplane kcp --replicas=3" in text


def test_a_name_from_a_dump_cannot_leave_its_quotes():
    layout = layout_of("a", "a", "b", provider_id="openstack:///1; rm -rf ~\n", keys={HOST: "k"})
    found = plan_search.plan_repair(layout, [LOSE_A_HOST])
    lines = instructions.openstack(found, layout, plans.layout_after(layout, found))
    assert "openstack server migrate --live-migration --host HYPERVISOR --wait '1; rm -rf ~'" in lines
    assert not any("\n" in line for line in lines)


def test_how_a_member_is_replaced():
    groups = survivability.component_groups(layout_of("a", "b", "c").members)
    assert plan_search.how_to_replace("cp0", groups) == plans.ADD_FIRST
    groups = survivability.component_groups(layout_of("a", "b", "c", down=("cp2",)).members)
    assert plan_search.how_to_replace("cp2", groups) == plans.REMOVE_FIRST
    assert plan_search.how_to_replace("cp0", groups) == plans.NOT_YET


def test_a_name_that_looks_like_an_option_is_a_name():
    assert instructions.kubectl_words("node", "--all") == ["node/--all"]
    assert instructions.kubectl_words("node", "cp0") == ["node", "cp0"]
