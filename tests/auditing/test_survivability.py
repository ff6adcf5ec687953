"""Tolerance, single points and blast vectors equal those found by evaluating every event."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.auditing import survivability as sv
from bayplan.auditing import survival
from bayplan.auditing.layout import HOST, REGION, ZONE, AuditNode, ComponentInstance, Layout
from bayplan.auditing.survivability import NODE, breaking_sets, failure_events, label_events


def spread_over(counts):
    """Node names and their host, for a layout such as 2+1."""
    return {f"cp{h}{i}": f"h{h}" for h, count in enumerate(counts) for i in range(count)}


# n is the sum; the half rule is tested elsewhere: (layout, tolerance if one is enough, tolerance of a majority)
LAYOUTS = [
    ((1,), 0, 0), ((2,), 0, 0), ((1, 1), 1, 0), ((3,), 0, 0), ((2, 1), 1, 0), ((1, 1, 1), 2, 1),
    ((3, 1), 1, 0), ((2, 2), 1, 0), ((2, 1, 1), 2, 0), ((1,) * 4, 3, 1), ((4, 1), 1, 0), ((3, 2), 1, 0),
    ((3, 1, 1), 2, 0), ((2, 2, 1), 2, 1), ((2, 1, 1, 1), 3, 1), ((1,) * 5, 4, 2), ((3, 3), 1, 0),
    ((2, 2, 2), 2, 1), ((1,) * 6, 5, 2), ((4, 3), 1, 0), ((3, 3, 1), 2, 1), ((3, 2, 2), 2, 1),
    ((2, 1, 1, 1, 1, 1), 5, 2), ((1,) * 7, 6, 3),
]  # fmt: skip


@pytest.mark.parametrize("counts, any_one, quorum", LAYOUTS)
def test_the_layout_table(counts, any_one, quorum):
    hosts = spread_over(counts)
    found_events = failure_events(HOST, hosts)
    members = tuple(map(ComponentInstance, hosts))
    assert (
        sv.group_tolerance(sv.InstanceGroup("apiserver", members), sv.domains_of_events(found_events)).tolerance
        == any_one
    )
    assert (
        sv.group_tolerance(sv.InstanceGroup("etcd", members, quorum=True), sv.domains_of_events(found_events)).tolerance
        == quorum
    )


def worst_case(group, found_events):
    """How many events may occur, whichever they are, found by trying every choice."""
    if not group.meets_need:
        return 0
    for size in range(1, len(found_events) + 1):
        for chosen in itertools.combinations(found_events, size):
            lost = frozenset().union(*(event.nodes for event in chosen))
            if sum(m.healthy and m.node not in lost for m in group.members) < group.need:
                return size - 1
    return len(found_events)


GROUPS = st.lists(st.tuples(st.integers(0, 4), st.booleans() | st.just(True)), min_size=1, max_size=6)


@settings(max_examples=300, deadline=None)
@given(GROUPS, st.booleans(), st.integers(1, 3))
def test_tolerance_equals_that_of_trying_every_set_of_events(rows, quorum, at_least):
    hosts = {f"n{i}": f"h{host}" for i, (host, _) in enumerate(rows)}
    group = sv.InstanceGroup(
        "g", tuple(ComponentInstance(f"n{i}", ok) for i, (_, ok) in enumerate(rows)), quorum, at_least
    )
    # The failure of domains without a healthy member has no effect: they are left out.
    alive = {
        node: hosts[node] for node in hosts if any(m.healthy and hosts[m.node] == hosts[node] for m in group.members)
    }
    found_events = failure_events(HOST, alive)
    found = sv.group_tolerance(group, sv.domains_of_events(found_events))
    assert found.tolerance == found.at_most == worst_case(group, found_events)
    if group.meets_need:
        breaking = [{e.domain for e in one} for one in breaking_sets(group, found_events, len(found_events))]
        assert found.tolerance == min(map(len, breaking), default=len(found_events) + 1) - 1
        assert {frozenset(one) for one in breaking if len(one) == 1} == {frozenset({d}) for d in found.single_points}
    assert found.single_points == tuple(
        e.domain for e in found_events if sum(m.healthy and m.node not in e.nodes for m in group.members) < group.need
    )  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1), st.none() | st.integers(0, 2)), min_size=1, max_size=5),
    st.booleans(),
)
def test_unknown_hosts_give_the_bounds_of_all_completions(rows, quorum):
    zones = {f"n{i}": f"z{zone}" for i, (zone, _) in enumerate(rows)}
    known = {f"n{i}": f"{zones[f'n{i}']}h{host}" for i, (_, host) in enumerate(rows) if host is not None}
    group = sv.InstanceGroup("g", tuple(map(ComponentInstance, zones)), quorum)
    missing = [node for node in zones if node not in known]
    choices = [
        sorted(
            {h for n, h in known.items() if zones[n] == zones[node]}
            | {f"{zones[node]}new{k}" for k in range(len(missing))}
        )
        for node in missing
    ]
    possible = [
        worst_case(group, failure_events(HOST, {**known, **dict(zip(missing, completed, strict=True))}))
        for completed in itertools.product(*choices)
    ]
    found = sv.group_tolerance(group, sv.domains_of_events(failure_events(HOST, known), zones), HOST)
    assert (found.tolerance, found.at_most) == (min(possible), max(possible))


def layout_of(**nodes):
    """cp1="z1/h1" and so on, a stacked control plane; a region before the zone is taken too."""
    made = []
    for name, place in nodes.items():
        *region, zone, host = place.split("/")
        domains = {ZONE: zone or None, HOST: host or None, REGION: region[0] if region else None}
        labels = {"feed": "a" if name in ("cp1", "cp2") else "b"}
        made.append(
            AuditNode(name=name, domains=domains, labels=labels, shares={"kernel": "6.1"}, roles=("control-plane",))
        )
    members = tuple(ComponentInstance(name) for name in nodes)
    return Layout(nodes=tuple(made), members=dict.fromkeys(("etcd", "kube-apiserver"), members))


def surveyed(layout, *levels):
    return {
        one.level: one.control_plane for one in survival.survey_losses(layout, levels=levels or survival.ALL_LEVELS)
    }


def test_three_nodes_on_two_machines_do_not_survive_one():
    by_level = surveyed(layout_of(cp1="z/h1", cp2="z/h1", cp3="z/h2"), *survival.ALL_LEVELS, "feed", "kernel")
    assert by_level[NODE].tolerance == 1
    assert by_level[HOST].tolerance == 0
    assert by_level[HOST].single_points == ("h1",)
    worst, other = by_level[HOST].blasts
    assert (worst.event.domain, worst.below_need, worst.degraded) == ("h1", ("etcd",), ("kube-apiserver",))
    assert (other.down, other.below_need, other.degraded) == ((), (), ("etcd", "kube-apiserver"))
    assert by_level[HOST].vector == (0, 2, 2)
    assert by_level["feed"].single_points == ("a",)
    assert by_level["kernel"].blasts[0].down == ("etcd", "kube-apiserver")
    assert list(by_level) == [NODE, HOST, ZONE, "feed", "kernel"]


def test_zones_decide_for_unlabelled_hosts():
    by_level = surveyed(layout_of(cp1="z1/", cp2="z2/", cp3="z3/"))
    assert (by_level[HOST].tolerance, by_level[HOST].at_most) == (1, 1)
    by_level = surveyed(layout_of(cp1="z1/", cp2="z1/", cp3="z2/"))
    assert (by_level[HOST].tolerance, by_level[HOST].at_most) == (0, 1)
    assert by_level[ZONE].tolerance == 0


def test_a_zone_name_in_two_regions_is_two_zones():
    by_level = surveyed(layout_of(cp1="r1/nova/a", cp2="r2/nova/b", cp3="r2/other/c"))
    assert [b.event.domain for b in by_level[ZONE].blasts] == ["other", "r1/nova", "r2/nova"]
    assert by_level[ZONE].tolerance == 1


def test_unhealthy_members_count_for_the_majority_and_do_not_survive():
    group = sv.InstanceGroup(
        "etcd", (ComponentInstance("a"), ComponentInstance("b"), ComponentInstance("c", healthy=False)), quorum=True
    )
    found = sv.group_tolerance(group, sv.domains_of_events(failure_events(HOST, {"a": "1", "b": "2", "c": "3"})))
    assert group.meets_need
    assert (found.n, found.need, found.tolerance, found.single_points) == (3, 2, 0, ("1", "2"))
    [designed] = sv.as_designed([group])
    assert (
        sv.group_tolerance(
            designed, sv.domains_of_events(failure_events(HOST, {"a": "1", "b": "2", "c": "3"}))
        ).tolerance
        == 1
    )


def test_blasts_come_worst_first_and_the_better_placement_has_the_smaller_vector():
    groups = [
        sv.InstanceGroup("web", (ComponentInstance("a"), ComponentInstance("b"))),
        sv.InstanceGroup("db", (ComponentInstance("a"), ComponentInstance("a"))),
        sv.InstanceGroup("x", (ComponentInstance("c"),)),
    ]
    found = sv.blasts(groups, failure_events(HOST, {"a": "h1", "b": "h2", "c": "h3", "d": "h4"}))
    assert [b.event.domain for b in found] == ["h1", "h3", "h2", "h4"]
    assert [(b.down, b.degraded, b.untouched, b.members_lost) for b in found] == [
        (("db",), ("web",), 1, 3), (("x",), (), 2, 1), ((), ("web",), 2, 1), ((), (), 3, 0),
    ]  # fmt: skip
    spread, heaped = ([sv.InstanceGroup("g", tuple(map(ComponentInstance, nodes)))] for nodes in ("abc", "aab"))
    found_events = failure_events(HOST, {n: n for n in "abc"})
    assert sv.blast_vector(spread, found_events) == (0, 0, 3) < sv.blast_vector(heaped, found_events) == (0, 1, 1)


def test_events_of_several_levels_break_together():
    group = sv.InstanceGroup("etcd", tuple(map(ComponentInstance, "abcde")), quorum=True)
    zones = failure_events(ZONE, dict(zip("abcde", "11223", strict=True)))
    feeds = label_events("feed", {"a": {"feed": "left"}, "c": {"feed": "left"}, "e": {}})
    found = [{(e.level, e.domain) for e in broken} for broken in breaking_sets(group, [*zones, *feeds])]
    assert {(ZONE, "1"), ("feed", "left")} in found
    assert {(ZONE, "3"), ("feed", "left")} in found
    assert all(len(broken) == 2 for broken in found)
