"""PodTopologySpread: how uneven matching pods may be over the domains of a key."""

import pytest

from bayplan.model.workloads import SpreadConstraint
from bayplan.rules.topology_spread import TopologySpread, TopologySpreadArguments
from rules.shorthand import labels, node, peers, pod, requirements, run, selector

SKEWED = "U node(s) didn't match pod topology spread constraints"
MISSING = "UU node(s) didn't match pod topology spread constraints (missing required label)"
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
WEB = "app=web"
AB = "a1 zone=a; a2 zone=a; b1 zone=b"


def spread(text, **more):
    """`1 by zone of app=web`, hard unless it starts with `soft`."""
    soft, text = text.startswith("soft "), text.removeprefix("soft ")
    skew, key, selected = text.replace(" of ", " by ").split(" by ")
    action = "ScheduleAnyway" if soft else "DoNotSchedule"
    chosen = selector({"everything": "", "nothing": None}.get(selected, selected))
    return {"maxSkew": int(skew), "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": chosen, **more}


def ask(on, placed, constraints, own=WEB, rule=None, objects=(), **spec):
    written = [spread(one) if isinstance(one, str) else one for one in constraints]
    asked = pod(f"new {own}", topologySpreadConstraints=written, **spec)
    return run(rule or TopologySpread(), asked, on, placed, objects)


def spread_by_default(constraint):
    return TopologySpread(TopologySpreadArguments((constraint,), system=False))


def pods(text):
    """`a1:2 b1:1` is two pods app=web on a1 and one on b1."""
    counts = [one.split(":") for one in text.split()]
    return [f"{on}-{i}@{on} app=web" for on, number in counts for i in range(int(number))]


@pytest.mark.parametrize(
    "constraint, own, placed, out",
    [
        ("1 by zone of app=web", WEB, "", ""),
        ("1 by zone of app=web", WEB, "a1:1", "a1 a2"),
        ("1 by zone of app=web", WEB, "a1:1 b1:1", ""),
        ("1 by zone of app=web", WEB, "a1:1 a2:1 b1:1", "a1 a2"),
        ("1 by zone of app=web", "", "a1:1", ""),  # the pod is not counted, as it does not match
        ("1 by zone of app=web", "", "a1:2", "a1 a2"),
        ("2 by zone of app=web", WEB, "a1:1", ""),  # exactly maxSkew
        ("2 by zone of app=web", WEB, "a1:2", "a1 a2"),
        (f"1 by {HOST} of app=web", WEB, "a1:1", "a1"),
        (f"1 by {HOST} of app=web", WEB, "a1:1 a2:1 b1:1", ""),
        ("1 by zone of app!=db", "", "a1:1", "a1 a2"),
        ("1 by zone of app in (web,db)", WEB, "a1:1", "a1 a2"),
        ("1 by zone of everything", WEB, "a1:3", ""),  # an empty selector counts no pod
        ("1 by zone of nothing", WEB, "a1:3", ""),
        ("1 by zone of app=db", WEB, "a1:3", ""),
    ],
)
def test_max_skew(constraint, own, placed, out):
    assert ask(AB, pods(placed), [constraint], own).rejected == dict.fromkeys(out.split(), SKEWED)


@pytest.mark.parametrize(
    "fewest_domains, placed, out",
    [
        (None, "a1:1 b1:1", ""),
        (1, "a1:1 b1:1", ""),
        (2, "a1:1 b1:1", ""),  # as many as there are
        (3, "a1:1 b1:1", "a1 a2 b1"),  # too few, so the fewest counts as 0
        (3, "a1:1", "a1 a2"),
        (3, "", ""),
    ],
)
def test_min_domains(fewest_domains, placed, out):
    constraint = spread("1 by zone of app=web", minDomains=fewest_domains)
    assert ask(AB, pods(placed), [constraint]).rejected == dict.fromkeys(out.split(), SKEWED)


@pytest.mark.parametrize(
    "on, constraints, placed, rejected",
    [
        ("a1 zone=a; bare", ["1 by zone of app=web"], "", {"bare": MISSING}),
        ("a1 zone=a; bare", ["1 by zone of app=web"], "a1:1 bare:5", {"bare": MISSING}),
        ("bare", ["1 by zone of app=web"], "", {"bare": MISSING}),
        ("a1 zone=", ["1 by zone of app=web"], "", {}),  # an empty value is a value
        # Only nodes that have all keys are counted: b1 has no rack, so there is one zone.
        ("a1 zone=a rack=r; b1 zone=b", ["1 by zone of app=web", "1 by rack of app=web"], "a1:1", {"b1": MISSING}),
        (
            "a1 zone=a rack=r; b1 zone=b rack=s",
            ["1 by zone of app=web", "5 by rack of app=web"],
            "a1:1",
            {"a1": SKEWED},
        ),
        ("a1 zone=a rack=r; b1 rack=s", ["1 by rack of app=web", "1 by zone of app=web"], "b1:9", {"b1": MISSING}),
        ("a1 zone=a; b1 zone=b", ["soft 1 by rack of app=web"], "", {}),  # a soft constraint rejects no node
    ],
)
def test_nodes_without_a_key(on, constraints, placed, rejected):
    assert ask(on, pods(placed), constraints).rejected == rejected


@pytest.mark.parametrize(
    "policies, spec, out",
    [
        ({}, {}, "a1"),
        ({}, {"nodeSelector": {"pool": "x"}}, ""),  # nodeAffinityPolicy is Honor by default
        ({"nodeAffinityPolicy": "Honor"}, {"nodeSelector": {"pool": "x"}}, ""),
        ({"nodeAffinityPolicy": "Ignore"}, {"nodeSelector": {"pool": "x"}}, "a1"),
        ({"nodeTaintsPolicy": "Honor"}, {}, ""),  # b1 is tainted, so its zone does not count
        ({"nodeTaintsPolicy": "Ignore"}, {}, "a1"),
        ({"nodeTaintsPolicy": "Honor"}, {"tolerations": [{"operator": "Exists"}]}, "a1"),
    ],
)
def test_node_inclusion_policies(policies, spec, out):
    tainted = node("b1 zone=b", taints=[{"key": "spot", "effect": "NoSchedule"}])
    on = [node("a1 zone=a pool=x"), tainted]
    constraint = spread("1 by zone of app=web", **policies)
    assert ask(on, pods("a1:1"), [constraint], **spec).rejected == dict.fromkeys(out.split(), SKEWED)


def test_required_node_affinity_is_honored_and_preferred_is_not():
    def affinity(kind, terms):
        return {"nodeAffinity": {f"{kind}DuringSchedulingIgnoredDuringExecution": terms}}

    term = {"matchExpressions": requirements("pool=x")}
    on, constraints = "a1 zone=a pool=x; b1 zone=b", ["1 by zone of app=web"]
    required = affinity("required", {"nodeSelectorTerms": [term]})
    assert ask(on, pods("a1:1"), constraints, affinity=required).rejected == {}
    preferred = affinity("preferred", [{"weight": 1, "preference": term}])
    assert ask(on, pods("a1:1"), constraints, affinity=preferred).rejected == {"a1": SKEWED}


@pytest.mark.parametrize(
    "placed, out",
    [
        (["x@a1 app=web"], "a1"),
        (["shop/x@a1 app=web"], ""),  # pods of other namespaces do not count
        ([pod("x@a1 app=web", terminating=True)], ""),  # terminating pods do not count
        (["x@a1 app=web rev=2"], "a1"),
    ],
)
def test_which_pods_count(placed, out):
    found = ask("a1 zone=a; b1 zone=b", placed, ["1 by zone of app=web"])
    assert found.rejected == dict.fromkeys(out.split(), SKEWED)


@pytest.mark.parametrize("own, out", [("app=web rev=1", "a1"), ("app=web rev=2", ""), ("app=web", "a1")])
def test_match_label_keys(own, out):
    """A key that the pod lacks is ignored."""
    constraint = spread("1 by zone of app=web", matchLabelKeys=["rev"])
    found = ask("a1 zone=a; b1 zone=b", ["x@a1 app=web rev=1"], [constraint], own)
    assert found.rejected == dict.fromkeys(out.split(), SKEWED)


@pytest.mark.parametrize(
    "constraints, failures",
    [
        (["1 by zone of app=web"], [("zone=a", ("default/a1-0", "default/a2-0"))]),
        (["3 by zone of app=web", f"1 by {HOST} of app=web"], [(f"{HOST}=a1", ("default/a1-0",))]),
        (["1 by rack of app=web", "1 by zone of app=web"], [("", ())]),
        (
            ["1 by zone of app=web", f"1 by {HOST} of app=web"],
            [("zone=a", ("default/a1-0", "default/a2-0")), (f"{HOST}=a1", ("default/a1-0",))],
        ),
    ],
)
def test_evidence_names_the_domain_and_its_pods(constraints, failures):
    found = ask(AB, pods("a1:1 a2:1"), constraints)
    assert peers(found.failures["a1"]) == failures


@pytest.mark.parametrize(
    "constraint, placed, detail",
    [
        (
            spread("1 by zone of app=web"),
            "a1:2 b1:1",
            "zone=a would hold 3 while the fewest elsewhere is 1; maxSkew is 1",
        ),
        (
            spread("1 by zone of app=web", minDomains=3),
            "a1:1 b1:1",
            "zone=a would hold 2 while only 2 of 3 domains exist, so the fewest counts as 0; maxSkew is 1",
        ),
        (spread("1 by rack of app=web"), "", "the node has no label rack"),
    ],
)
def test_the_detail_gives_the_numbers(constraint, placed, detail):
    assert ask(AB, pods(placed), [constraint]).failures["a1"][0].detail == detail


# weight = ln(domains + 2), raw = round(sum of count * weight + maxSkew - 1), score = 100 * (max + min - raw) // max


@pytest.mark.parametrize(
    "on, constraints, placed, scores",
    [
        ("a zone=a; b zone=b; c zone=c", ["soft 1 by zone of app=web"], "a:2 b:1", "0 33 100"),  # raw 3 2 0
        ("a zone=a; b zone=b; c zone=c", ["soft 3 by zone of app=web"], "a:2 b:1", "40 60 100"),  # raw 5 4 2
        ("a zone=a; b zone=b", ["soft 1 by zone of app=web"], "", "100 100"),
        ("a zone=a; b zone=b", ["soft 5 by zone of app=web"], "", "100 100"),
        ("a zone=a; b zone=b", ["soft 1 by zone of app=web"], "a:1 b:1", "100 100"),
        ("a zone=a; b zone=b; c", ["soft 1 by zone of app=web"], "a:1", "0 100 0"),  # without the key: 0
        ("a zone=a; b zone=a; c zone=b", ["soft 1 by zone of app=web"], "a:1", "0 0 100"),
        ("a zone=a; b zone=a", [f"soft 1 by {HOST} of app=web"], "a:1", "0 100"),
        ("a; b; c; d; e", [f"soft 1 by {HOST} of app=web"], "a:2 b:1", "0 50 100 100 100"),  # ln 7: raw 4 2 0 0 0
        ("a zone=a; b zone=b", ["soft 1 by zone of app=web", f"soft 1 by {HOST} of app=web"], "a:1", "0 100"),
        (
            "a zone=a; b zone=b; c zone=b",
            ["soft 1 by zone of app=web", f"soft 1 by {HOST} of app=web"],
            "b:1",
            "100 0 66",
        ),
        # c is ignored, so it is no domain by host name either: raw 8 and 3
        ("a zone=a; b zone=b; c", ["soft 1 by zone of app=web", f"soft 1 by {HOST} of app=web"], "a:3 b:1", "37 100 0"),
        ("a zone=a; b zone=b", ["soft 1 by zone of everything"], "a:3", "100 100"),
        ("a; b", ["soft 1 by zone of app=web"], "", "0 0"),
        ("a zone=a; b zone=b", ["1 by zone of app=web"], "a:1", None),  # a hard constraint does not score
    ],
)
def test_scores(on, constraints, placed, scores):
    found = ask(on, pods(placed), constraints)
    assert found.scores == (None if scores is None else dict(zip("abcde", map(int, scores.split()), strict=False)))


def test_scores_are_scaled_over_the_feasible_nodes():
    """Zone c is rejected, so there are two domains: raw 3 for a and 1 for b."""
    constraints = [f"4 by {HOST} of app=web", "soft 1 by zone of app=web"]
    found = ask("a zone=a; b zone=b; c zone=c", pods("a:2 b:1 c:9"), constraints)
    assert found.rejected == {"c": SKEWED}
    assert found.scores == {"a": 33, "b": 100}


def test_hard_and_soft_constraints_together():
    found = ask("a zone=a; b zone=b", pods("a:1"), ["1 by zone of app=web", f"soft 1 by {HOST} of app=web"])
    assert (found.rejected, found.scores) == ({"a": SKEWED}, {"b": 100})


@pytest.mark.parametrize(
    "constraints, reason",
    [
        (["1 by zone of app=web", "9 by rack of app=web"], SKEWED),
        (["9 by rack of app=web", "1 by zone of app=web"], MISSING),
    ],
)
def test_the_first_constraint_that_fails_gives_the_reason(constraints, reason):
    found = ask("a1 zone=a rack=s; b1 zone=b; b2 zone=b rack=r", pods("b2:5"), constraints)
    assert found.rejected == {"b1": reason, "b2": SKEWED}


def test_a_soft_constraint_honors_its_policies():
    on = [node("a1 zone=a pool=x"), node("a2 zone=a"), node("b1 zone=b pool=x")]
    honors = ask(on, pods("a2:1"), ["soft 1 by zone of app=web"], nodeSelector={"pool": "x"})
    assert honors.scores == {"a1": 100, "a2": 100, "b1": 100}
    ignores = spread("soft 1 by zone of app=web", nodeAffinityPolicy="Ignore")
    assert ask(on, pods("a2:1"), [ignores], nodeSelector={"pool": "x"}).scores == {"a1": 0, "a2": 0, "b1": 100}


SERVICE = {"kind": "Service", "metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": labels(WEB)}}


@pytest.mark.parametrize(
    "on, placed, scores",
    [
        (f"a {ZONE}=a; b {ZONE}=b", "", {"a": 100, "b": 100}),
        (f"a {ZONE}=a; b {ZONE}=b", "a:1", {"a": 66, "b": 100}),  # raw 9 and 6
        (
            f"a {ZONE}=a; b",
            "a:1",
            {"a": 22, "b": 100},
        ),  # b is scored without a zone, which is a domain more: raw 9 and 2
    ],
)
def test_system_defaults(on, placed, scores):
    found = ask(on, pods(placed), [], objects=[SERVICE])
    assert (found.rejected, found.scores) == ({}, scores)


def test_no_selector_no_defaults():
    assert ask(f"a {ZONE}=a; b {ZONE}=b", pods("a:1"), []).scores is None
    assert ask(f"a {ZONE}=a; b {ZONE}=b", pods("a:1"), [], own="app=db", objects=[SERVICE]).scores is None


def test_own_constraints_replace_the_defaults():
    """Also if they are hard, and so do not score."""
    found = ask(f"a {ZONE}=a; b {ZONE}=b", pods("a:1"), [f"5 by {ZONE} of app=web"], objects=[SERVICE])
    assert found.scores is None


def test_configured_defaults():
    """They may be hard, and unlike with the system's a node without the key scores 0."""
    hard = spread_by_default(SpreadConstraint(1, "zone", hard=True, selector=None))
    assert ask("a zone=a; b zone=b", pods("a:1"), [], rule=hard, objects=[SERVICE]).rejected == {"a": SKEWED}
    soft = spread_by_default(SpreadConstraint(1, "zone", hard=False, selector=None))
    assert ask("a zone=a; b zone=b; c", pods("a:1"), [], rule=soft, objects=[SERVICE]).scores == {
        "a": 0,
        "b": 100,
        "c": 0,
    }
