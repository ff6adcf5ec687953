"""InterPodAffinity: who may be near whom, in both directions, and what that is worth."""

import pytest

from bayplan.rules.inter_pod_affinity import InterPodAffinity, InterPodAffinityArguments
from rules.shorthand import peers, pod, run

NEAR = "UU node(s) didn't match pod affinity rules"
AWAY = "U node(s) didn't match pod anti-affinity rules"
EXISTING = "U node(s) didn't satisfy existing pods anti-affinity rules"

ZONES = "a1 zone=a; a2 zone=a; b1 zone=b; bare"
HOST = "kubernetes.io/hostname"


def rejected(text, reason):
    return dict.fromkeys(text.split(), reason)


@pytest.mark.parametrize(
    "near, own, placed, left",
    [
        ("app=db by zone", "", "db@a1 app=db", "a1 a2"),
        ("app=db by " + HOST, "", "db@a1 app=db", "a1"),
        ("app=db by zone", "", "", ""),
        ("app=db by zone", "", "db@bare app=db", ""),  # it is in no zone
        ("app=db by rack", "", "db@a1 app=db", ""),
        ("app in (db,cache) by zone", "", "c@b1 app=cache", "b1"),
        ("app!=web by zone", "", "c@b1", "b1"),  # an absent key is not web either
        ("!app by zone", "", "c@b1; db@a1 app=db", "b1"),
        ("everything by zone", "", "c@b1", "b1"),
        ("nothing by zone", "", "c@b1", ""),  # a null selector matches no pod
        ("app=db by zone", "", "shop/db@a1 app=db", ""),  # another namespace
        ("app=db by zone in shop", "", "shop/db@a1 app=db; db@b1 app=db", "a1 a2"),
        ("app=db by zone where team=x", "", "shop/db@a1 app=db; db@b1 app=db", "a1 a2"),
        ("app=db by zone where everything", "", "shop/db@a1 app=db; other/db@b1 app=db", "a1 a2 b1"),
        ("app=db by zone in default where team=x", "", "shop/db@a1 app=db; db@b1 app=db", "a1 a2 b1"),
        # The first pod of a set that matches its own term.
        ("app=web by zone", "app=web", "", "a1 a2 b1"),
        ("app=web by zone", "app=web", "web@a1 app=web", "a1 a2"),
        ("app=web by zone", "app=web", "web@bare app=web", "a1 a2 b1"),  # a pod in no zone is not counted
        ("app=web by zone", "app=web", "shop/web@a1 app=web", "a1 a2 b1"),
        ("app=web by zone in shop", "app=web", "", ""),  # its own namespace is not selected, so it is not in the set
        ("everything by zone", "", "", "a1 a2 b1"),
        ("nothing by zone", "app=web", "", ""),
        (("app=web by zone", "app=db by zone"), "app=web", "", ""),  # it must match all of its terms
        (("app=web by zone", "tier=x by zone"), "app=web tier=x", "", "a1 a2 b1"),
        (("app=web by zone", "tier=x by zone"), "app=web tier=x", "web@b1 app=web", "a1 a2 b1"),  # no pod matches both
        # Several terms: one pod must match all of them.
        (("app=db by zone", "tier=x by zone"), "", "db@a1 app=db; x@a1 tier=x", ""),
        (("app=db by zone", "tier=x by zone"), "", "db@a1 app=db tier=x", "a1 a2"),
        (("app=db by zone", "tier=x by " + HOST), "", "db@a1 app=db tier=x", "a1"),
        (("app=db by zone", "app=db by " + HOST), "", "db@a1 app=db", "a1"),
        (("app=db by zone", "app=db by rack"), "", "db@a1 app=db", ""),
    ],
)
def test_required_affinity(near, own, placed, left):
    found = run(InterPodAffinity(), pod(f"web-1 {own}", near=near), ZONES, placed, namespaces=["shop team=x"])
    assert found.rejected == rejected(" ".join({"a1", "a2", "b1", "bare"} - set(left.split())), NEAR)


@pytest.mark.parametrize(
    "away, placed, out",
    [
        ("app=web by zone", "web@a1 app=web", "a1 a2"),
        ("app=web by " + HOST, "web@a1 app=web", "a1"),
        ("app=web by zone", "web@bare app=web", ""),  # a node without the key violates nothing
        ("app=web by rack", "web@a1 app=web", ""),
        ("app=web by zone", "", ""),
        ("app=web by zone", "db@a1 app=db", ""),
        ("nothing by zone", "web@a1 app=web", ""),
        ("everything by zone", "db@b1 app=db", "b1"),
        ("app=web by zone", "shop/web@a1 app=web", ""),
        ("app=web by zone in shop", "shop/web@a1 app=web; web@b1 app=web", "a1 a2"),
        (("app=web by zone", "app=db by " + HOST), "web@b1 app=web; db@a2 app=db", "a2 b1"),  # each term on its own
        (("app=web by zone", "tier=x by zone"), "web@b1 app=web", "b1"),
    ],
)
def test_required_anti_affinity(away, placed, out):
    assert run(InterPodAffinity(), pod("web-1", away=away), ZONES, placed).rejected == rejected(out, AWAY)


@pytest.mark.parametrize(
    "owner, asked, out",
    [
        (pod("db@a1", away="app=web by zone"), "web app=web", "a1 a2"),
        (pod("db@a1", away="app=web by " + HOST), "web app=web", "a1"),
        (pod("db@bare", away="app=web by zone"), "web app=web", ""),
        (pod("db@a1", away="app=web by zone"), "web app=api", ""),
        (pod("db@a1", away="app=web by zone"), "shop/web app=web", ""),  # the namespace of the term's owner
        (pod("db@a1", away="app=web by zone in shop"), "shop/web app=web", "a1 a2"),
        (pod("db@a1", away="app=web by zone where team=x"), "shop/web app=web", "a1 a2"),
        (pod("db@a1", away="app=web by zone where team!=x"), "shop/web app=web", ""),
        (pod("db@a1", away="app=web by zone where team!=x"), "other/web app=web", "a1 a2"),  # unknown: no labels
        (pod("db@a1", away=("app=api by zone", "app=web by " + HOST)), "web app=web", "a1"),
        (pod("db@a1", avoids="100 app=web by zone"), "web app=web", ""),
        (pod("db@a1", near="app=web by zone"), "web app=web", ""),  # affinity has no hard symmetry
        (pod("db@a1", away="app=web by zone", terminating=True), "web app=web", "a1 a2"),  # terminating pods count
    ],
)
def test_anti_affinity_of_existing_pods(owner, asked, out):
    found = run(InterPodAffinity(), pod(asked), ZONES, [owner], namespaces=["shop team=x"])
    assert found.rejected == rejected(out, EXISTING)


def test_several_existing_pods_with_the_same_term():
    owners = [pod(f"db-{on}@{on}", away="app=web by zone", prefers="1 app=web by zone") for on in ("a1", "b1")]
    found = run(InterPodAffinity(), pod("web app=web"), "a1 zone=a; b1 zone=b; c1 zone=c", owners)
    assert found.rejected == {"a1": EXISTING, "b1": EXISTING}
    assert found.raw == {"a1": 1, "b1": 1, "c1": 0}


def test_a_finished_pod_does_not_count_and_a_terminating_one_does():
    finished = pod("old@a1 app=web")
    finished["status"]["phase"] = "Succeeded"
    leaving = pod("leaving@b1 app=web", terminating=True)
    asked = pod("web-1", away="app=web by zone")
    assert run(InterPodAffinity(), asked, ZONES, [finished, leaving]).rejected == {"b1": AWAY}
    asked = pod("web-1", near="app=web by zone")
    assert run(InterPodAffinity(), asked, ZONES, [finished, leaving]).rejected == rejected("a1 a2 bare", NEAR)


@pytest.mark.parametrize(
    "asked, owner, reason",
    [
        # Affinity is checked first, then the pod's own anti-affinity, then that of existing pods.
        (
            pod("w app=web", near="app=x by zone", away="app=db by zone"),
            pod("d@a1 app=db", away="app=web by zone"),
            NEAR,
        ),
        (pod("w app=web", away="app=db by zone"), pod("d@a1 app=db", away="app=web by zone"), AWAY),
        (pod("w app=web"), pod("d@a1 app=db", away="app=web by zone"), EXISTING),
    ],
)
def test_the_first_failing_check_gives_the_reason(asked, owner, reason):
    found = run(InterPodAffinity(), asked, "a1 zone=a", [owner])
    assert found.rejected == {"a1": reason}


@pytest.mark.parametrize(
    "selected, out",
    [
        ("team=x", "a1 a2"),
        ("team!=x", "a1 a2 b1"),  # kubernetes#141526: a selector of only negative requirements matches every namespace
        ("!team", "a1 a2 b1"),
        ("team!=x,team", "b1"),
    ],
)
def test_a_namespace_selector_of_the_incoming_pod(selected, out):
    asked = pod("web", away=f"app=db by zone where {selected}")
    found = run(
        InterPodAffinity(), asked, ZONES, "shop/d@a1 app=db; ops/d@b1 app=db", (), ["shop team=x", "ops team=y"]
    )
    assert found.rejected == rejected(out, AWAY)


def test_a_negative_namespace_selector_means_what_it_says_in_the_design_preset():
    asked = pod("web", away="app=db by zone where team!=x")
    spaces = ["shop team=x", "ops team=y"]
    found = run(InterPodAffinity(), asked, ZONES, "shop/d@a1 app=db; ops/d@b1 app=db", (), spaces, "design")
    assert found.rejected == {"b1": AWAY, "bare": f"U{AWAY} (missing required label)"}


@pytest.mark.parametrize(
    "asked, placed, failures",
    [
        (pod("w", away="app=web by zone"), "x@a1 app=web; y@a2 app=web", [("zone=a", ("default/x", "default/y"))]),
        (pod("w app=web"), [pod("d@a2", away="app=web by zone")], [("zone=a", ("default/d",))]),
        (pod("w", near="app=db by zone"), "d@b1 app=db", [("zone=a", ())]),
        (pod("w", near="app=db by rack"), "d@b1 app=db", [("", ())]),
        (
            pod("w", away=("app=web by zone", "app=web by " + HOST)),
            "x@a1 app=web; y@a2 app=web",
            [("zone=a", ("default/x", "default/y")), (f"{HOST}=a1", ("default/x",))],
        ),
        (
            pod("w app=web", away="app=db by zone"),  # every obstacle, although the message counts only the first
            [pod("d@a1 app=db", away="app=web by zone")],
            [("zone=a", ("default/d",)), ("zone=a", ("default/d",))],
        ),
    ],
)
def test_evidence_names_the_domain_and_the_pods(asked, placed, failures):
    found = run(InterPodAffinity(), asked, ZONES, placed).failures["a1"]
    assert peers(found) == failures


NO_KEY = f"U{AWAY} (missing required label)"


@pytest.mark.parametrize(
    "asked, placed, found",
    [
        # A node without the topology key does not meet required anti-affinity; evictions do not change that.
        (pod("w", away="app=db by zone"), "d@a1 app=db", {"a1": AWAY, "a2": AWAY, "bare": NO_KEY}),
        (pod("w", away="app=db by rack"), "d@a1 app=db", dict.fromkeys(("a1", "a2", "b1", "bare"), NO_KEY)),
        (pod("w", near="app=db by zone", away="app=x by zone"), "d@a1 app=db", {"b1": NEAR, "bare": NEAR}),
        # The first pod of a set needs no topology key, for the terms that it is the first of.
        (pod("w app=web", near="app=web by zone"), "", {}),
        (pod("w app=web", near=("app=web by rack", "app=db by zone")), "d@a1 app=db", {"b1": NEAR, "bare": NEAR}),
        (pod("w app=web", near="app=web by zone"), "w1@bare app=web", rejected("a1 a2 b1 bare", NEAR)),
        # A term of an existing pod rejects while it is satisfied.
        (pod("w app=web"), [pod("d@a1", away="app=web by zone")], {"a1": EXISTING, "a2": EXISTING}),
        (pod("w app=web"), [pod("d@a1", away="app=web by zone"), "w1@a2 app=web"], {}),
        (pod("w app=web"), [pod("d@a1", away=("app=web by zone", f"app=web by {HOST}")), "w1@a2 app=web"], {"a1": EXISTING}),
        (pod("w app=web"), [pod("w1@a1 app=web", away="app=web by zone")], {"a1": EXISTING, "a2": EXISTING}),
        (pod("w app=web"), [pod(f"w{i}@a{i} app=web", away="app=web by zone") for i in (1, 2)], {}),
    ],
)  # fmt: skip
def test_the_design_document_on_unlabelled_nodes_and_violated_terms(asked, placed, found):
    assert run(InterPodAffinity(), asked, ZONES, placed, semantics="design").rejected == found


def test_the_detail_of_a_missing_topology_key():
    asked = pod("w", away=("app=db by zone", "app=db by rack"))
    (zone, rack), (only_rack,) = (
        run(InterPodAffinity(), asked, ZONES, "d@b1 app=db", semantics="design").failures[name]
        for name in ("bare", "a1")
    )
    assert [one.detail for one in (zone, rack)] == ["the node has no label zone", "the node has no label rack"]
    assert only_rack.detail == "the node has no label rack"


@pytest.mark.parametrize(
    "near, placed, detail",
    [
        ("app=db by zone", "", "no placed pod matches app=db"),
        ("app=db by rack", "d@b1 app=db", "the node has no label rack"),
        ("app=db by zone", "d@b1 app=db", "no pod in zone=a matches app=db; they are in b"),
        (("app=db by zone", "x by zone"), "d@a1 app=db", "no placed pod matches all of app=db and x at once"),
        ("app=db by zone in shop", "d@b1 app=db", "no placed pod matches app=db in namespace shop"),
        ("app=db by zone where everything", "", "no placed pod matches app=db in any namespace"),
        ("nothing by zone", "", "no placed pod matches nothing (a null selector)"),
        ("app=db by zone", "d@bare app=db", "no pod in zone=a matches app=db; they are in nodes without zone"),
    ],
)
def test_the_detail_of_a_missing_peer(near, placed, detail):
    found = run(InterPodAffinity(), pod("w", near=near), ZONES, placed).failures["a1"]
    assert found[0].detail == detail


def test_the_detail_names_three_domains():
    on = "x zone=x; a zone=a; b zone=b; c zone=c; d zone=d; e zone=e"
    for names, end in (("abc", "a, b, c"), ("abcd", "a, b, c and 1 more"), ("abcde", "a, b, c and 2 more")):
        placed = ";".join(f"{name}@{name} app=db" for name in names)
        found = run(InterPodAffinity(), pod("w", near="app=db by zone"), on, placed).failures["x"]
        assert found[0].detail == f"no pod in zone=x matches app=db; they are in {end}"


@pytest.mark.parametrize(
    "asked, placed, raw, scores",
    [
        (pod("w", prefers="10 app=db by zone"), "d@a1 app=db", "10 10 0 0", "100 100 0 0"),
        (pod("w", prefers="1 app=db by zone"), "d@a1 app=db", "1 1 0 0", "100 100 0 0"),  # scaled: weights are relative
        (pod("w", prefers="10 app=db by zone"), "d@a1 app=db; e@a2 app=db; f@b1 app=db", "20 20 10 0", "100 100 50 0"),
        (pod("w", avoids="10 app=db by zone"), "d@a1 app=db", "-10 -10 0 0", "0 0 100 100"),
        (pod("w", avoids="3 app=db by zone"), "d@a1 app=db; e@b1 app=db; f@b1 app=db", "-3 -3 -6 0", "50 50 0 100"),
        (pod("w", prefers="2 app=db by zone", avoids="3 app=x by zone"), "d@a1 app=db; x@b1 app=x", "2 2 -3 0", "100 100 0 60"),
        (pod("w", prefers="1 app=db by zone"), "d@a1 app=db;e@a1 app=db;f@a1 app=db;g@b1 app=db", "3 3 1 0", "100 100 33 0"),
        (pod("w", prefers=("1 app=db by zone", f"5 app=db by {HOST}")), "d@a1 app=db", "6 1 0 0", "100 16 0 0"),  # truncated
        (pod("w", prefers="10 app=db by zone"), "", "0 0 0 0", "0 0 0 0"),
        (pod("w", prefers="10 app=db by zone"), "d@bare app=db", "0 0 0 0", "0 0 0 0"),
        (pod("w", prefers="10 nothing by zone"), "d@a1 app=db", "0 0 0 0", "0 0 0 0"),
        (pod("w", prefers="10 app=db by zone"), "shop/d@a1 app=db", "0 0 0 0", "0 0 0 0"),
        # The terms of existing pods.
        (pod("w app=web"), [pod("d@a1", near="app=web by zone")], "1 1 0 0", "100 100 0 0"),  # hardPodAffinityWeight
        (pod("w app=web"), [pod("d@a1", near=("app=web by zone", "x by zone"))], "1 1 0 0", "100 100 0 0"),
        (pod("w app=web"), [pod("d@a1", prefers="7 app=web by zone")], "7 7 0 0", "100 100 0 0"),
        (pod("w app=web"), [pod("d@a1", avoids="7 app=web by zone")], "-7 -7 0 0", "0 0 100 100"),
        (pod("w app=web"), [pod("d@a1", avoids="7 app=x by zone")], None, None),
        (pod("shop/w app=web"), [pod("d@a1", prefers="7 app=web by zone")], None, None),
        (pod("w app=web"), [pod("d@b1", prefers="7 app=web by zone"), pod("e@b1", avoids="2 app=web by zone")], "0 0 5 0", "0 0 100 0"),
        (pod("w"), "d@a1 app=db", None, None),
    ],
)  # fmt: skip
def test_scores(asked, placed, raw, scores):
    found = run(InterPodAffinity(), asked, ZONES, placed)
    assert found.raw == (None if raw is None else numbered(raw))
    assert found.scores == (None if scores is None else numbered(scores))


def numbered(text):
    return dict(zip(("a1", "a2", "b1", "bare"), map(int, text.split()), strict=True))


def test_required_anti_affinity_of_an_existing_pod_never_scores():
    found = run(InterPodAffinity(), pod("w app=web"), ZONES, [pod("d@a1", away="app=web by zone")])
    assert found.raw is None


def test_scores_are_scaled_over_the_feasible_nodes():
    asked = pod("w", prefers="1 app=db by zone", away="app=no by zone")
    on = "a zone=a; b zone=b; c zone=c"
    found = run(InterPodAffinity(), asked, on, "d@a app=db; e@a app=db; n@a app=no; f@b app=db")
    assert found.scores == {"b": 100, "c": 0}


@pytest.mark.parametrize("weight, raw", [(0, None), (1, {"a1": 1}), (100, {"a1": 100})])
def test_hard_pod_affinity_weight(weight, raw):
    assert (
        run(
            InterPodAffinity(InterPodAffinityArguments(weight)),
            pod("w app=web"),
            "a1 zone=a",
            [pod("d@a1", near="app=web by zone")],
        ).raw
        == raw
    )


@pytest.mark.parametrize(
    "asked, raw",
    [
        (pod("w app=web"), None),
        (pod("w app=web", prefers="1 x by zone"), {"a1": 7}),  # with own preferred terms those of existing pods count
        (pod("w app=web", avoids="1 x by zone"), {"a1": 7}),
    ],
)
def test_preferred_terms_of_existing_pods_can_be_ignored(asked, raw):
    rule = InterPodAffinity(InterPodAffinityArguments(ignore_preferred_terms_of_existing_pods=True))
    assert run(rule, asked, "a1 zone=a", [pod("d@a1", prefers="7 app=web by zone")]).raw == raw
