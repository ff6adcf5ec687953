"""Interval verdicts equal brute force over all completions of missing labels."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.auditing import spread
from bayplan.auditing.layout import HOST, LEVELS, REGION, ZONE, AuditNode, Layout

RULES = (spread.separate, spread.half, spread.quorum)


def layout_of(rows):
    nodes = [
        AuditNode(name=f"n{i}", domains=dict(zip((HOST, ZONE, REGION), row, strict=True))) for i, row in enumerate(rows)
    ]
    return Layout(nodes=tuple(nodes))


def completions(rows, done=()):
    """
    Every way to fill in what is missing such that a host is in one zone and a zone in one region.

    The i-th node may use one of i + 1 new names: more would only rename.
    """
    if len(done) == len(rows):
        yield done
        return
    i = len(done)
    host, zone, region = rows[i]
    new = [f"new{j}" for j in range(i + 1)]
    for h in [host] if host else ["a", "b", *new]:
        for z in [zone] if zone else ["x", "y", *new]:
            for r in [region] if region else ["r", *new]:
                fits = all((h != dh or z == dz) and (z != dz or r == dr) for dh, dz, dr in done)
                if fits:
                    yield from completions(rows, (*done, (h, z, r)))


def fullest(values):
    values = list(values)
    return max(values.count(value) for value in values)


@st.composite
def hidden_rows(draw):
    """Up to four nodes with consistent labels, of which up to seven are missing."""
    zone_of = {host: draw(st.sampled_from("xy")) for host in "ab"}
    hosts = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=4))
    rows = [[host, zone_of.get(host) or draw(st.sampled_from("xy")), "r"] for host in hosts]
    cells = [(i, j) for i in range(len(rows)) for j in range(3)]
    for i, j in draw(st.lists(st.sampled_from(cells), max_size=7, unique=True)):
        rows[i][j] = None
    # A machine of its own has no name that another could share.
    return [(None if host == "c" else host, zone, region) for host, zone, region in rows]


@settings(max_examples=120, deadline=None)
@given(hidden_rows(), st.data())
def test_both_ends_equal_those_of_brute_force(rows, data):
    found = list(completions(rows))
    layout = layout_of(rows)
    # Several members may be on one node: they share whatever it is in.
    chosen = data.draw(st.lists(st.sampled_from(range(len(rows))), min_size=1, max_size=5))
    for index, level in enumerate((HOST, ZONE)):
        interval = spread.spread_over_domains(layout, [layout.nodes[i] for i in chosen], level)
        reached = {fullest(done[i][index] for i in chosen) for done in found}
        assert (interval.lo, interval.hi) == (min(reached), max(reached))
        n_domains = {len({done[i][index] for i in chosen}) for done in found}
        assert (interval.fewest, interval.most) == (min(n_domains), max(n_domains))
        for rule in RULES:
            answers = {rule(len(chosen), fullest(done[i][index] for i in chosen)) for done in found}
            assert interval.judge(rule) == (answers.pop() if len(answers) == 1 else None)


def formula(rows):
    """The bounds as the standard's analysis writes them, for members that all have a zone."""
    zones = {zone for _, zone, _ in rows}
    hi, hosts = 0, 0
    for zone in zones:
        here = [host for host, z, _ in rows if z == zone]
        known = [host for host in here if host]
        hi = max(hi, max((known.count(host) for host in known), default=0) + here.count(None))
        hosts += max(1, len(set(known)))
    known = [host for host, _, _ in rows if host]
    return max([1, *(known.count(host) for host in known)]), hi, hosts, len(set(known)) + len(rows) - len(known)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["1", "2", None]), st.sampled_from(["x", "y", "z"])), min_size=1, max_size=9))
def test_the_bounds_equal_those_of_the_formula(pairs):
    rows = [(host and f"{zone}{host}", zone, "r") for host, zone in pairs]
    layout = layout_of(rows)
    found = spread.spread_over_domains(layout, layout.nodes, HOST)
    assert (found.lo, found.hi, found.fewest, found.most) == formula(rows)


@pytest.mark.parametrize("rows, n_hosts, fullest_host", [
    ([("a", "x", "r"), ("a", "y", "r")], (1, 1), (2, 2)),
    ([("a", "x", "r"), ("a", "y", "r"), (None, "x", "r")], (1, 2), (2, 3)),  # x and y no longer prove anything
    ([(None, "x", "r"), (None, "x", "s")], (2, 2), (1, 1)),                  # the zone's identity is the pair
    ([(None, None, "r"), (None, None, "s")], (2, 2), (1, 1)),                # regions separate too
    ([(None, None, None), (None, "x", "r")], (1, 2), (1, 2)),
])  # fmt: skip
def test_contradictions_and_gaps(rows, n_hosts, fullest_host):
    layout = layout_of(rows)
    found = spread.spread_over_domains(layout, layout.nodes, HOST)
    assert (found.fewest, found.most) == n_hosts
    assert (found.lo, found.hi) == fullest_host


def test_a_contested_zone_is_no_zone():
    layout = layout_of([("a", "x", "r"), ("a", "y", "r"), ("b", "x", "r")])
    found = spread.spread_over_domains(layout, layout.nodes, ZONE)
    assert len(found.unknown) == 3
    assert (found.lo, found.hi) == (2, 3)  # nodes that share a host share the zone, whatever their labels


def test_levels_go_from_small_to_large():
    assert LEVELS[0] == HOST
    assert LEVELS.index(ZONE) < LEVELS.index(REGION)
