"""NodeAffinity: which nodes a pod's nodeSelector and node affinity admit, and which it prefers."""

import pytest

from bayplan.model.node_selectors import NodeAffinity, NodeRequirement, NodeTerm, PreferredNodeTerm
from bayplan.rules.node_affinity import NodeAffinityArguments, NodeAffinityRule
from rules.shorthand import labels, node_term, pod, run

NOT_MATCHED = "UU node(s) didn't match Pod's node affinity/selector"
NOT_ENFORCED = "UU node(s) didn't match scheduler-enforced node affinity"
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
YES, NO = True, False


def asking(terms=None, preferred=None, selector=""):
    """A pod with these required terms, and preferred ones such as `5 disk=ssd`."""
    affinity = {}
    if terms is not None:
        affinity[REQUIRED] = {"nodeSelectorTerms": [node_term(one) for one in terms]}
    if preferred is not None:
        split = [one.partition(" ") for one in preferred]
        affinity[PREFERRED] = [{"weight": int(w), "preference": node_term(term)} for w, _, term in split]
    return pod("web", affinity={"nodeAffinity": affinity}, nodeSelector=labels(selector))


@pytest.mark.parametrize("asked, node, fits", [
    ("disk in (ssd,nvme)",   "disk=ssd",    YES),
    ("disk in (ssd,nvme)",   "disk=hdd",    NO),
    ("disk in (ssd,nvme)",   "",            NO),
    ("disk in (ssd)",        "disk=",       NO),
    ("disk=",                "disk=",       YES),
    ("disk notin (hdd)",     "disk=ssd",    YES),
    ("disk notin (hdd)",     "disk=hdd",    NO),
    ("disk notin (hdd)",     "",            YES),  # an absent key is not in the set either
    ("disk",                 "disk=",       YES),
    ("disk",                 "",            NO),
    ("!disk",                "",            YES),
    ("!disk",                "disk=",       NO),
    ("cores>8",              "cores=9",     YES),
    ("cores>8",              "cores=8",     NO),
    ("cores>8",              "cores=10",    YES),  # as integers, not as text
    ("cores>8",              "cores=8.5",   NO),   # a label that is no integer never matches
    ("cores>8",              "cores=many",  NO),
    ("cores>8",              "cores=",      NO),
    ("cores>8",              "",            NO),
    ("cores>few",            "cores=9",     NO),
    ("cores>8",              "cores=99999999999999999999", NO),  # beyond 64 bits
    ("cores<8",              "cores=7",     YES),
    ("cores<8",              "cores=8",     NO),
    ("cores<8",              "cores=many",  NO),
    ("cores<8",              "",            NO),
    ("cores<few",            "cores=1",     NO),
    ("disk=ssd,cores>8",     "disk=ssd cores=9", YES),
    ("disk=ssd,cores>8",     "disk=ssd",    NO),   # all requirements of a term
    ("@a1",                  "",            YES),
    ("!@a1",                 "",            NO),
    ("!@other",              "",            YES),
    ("@a1,disk=ssd",         "",            NO),
    ("",                     "disk=ssd",    NO),   # an empty term matches no node
])  # fmt: skip
def test_one_required_term(asked, node, fits):
    found = run(NodeAffinityRule(), asking([asked]), f"a1 {node}")
    assert found.rejected == ({} if fits else {"a1": NOT_MATCHED})


@pytest.mark.parametrize(
    "terms, selector, left",
    [
        (["disk=ssd", "zone=b"], "", "a b c"),  # terms are ORed
        (["disk=ssd", ""], "", "a c"),
        ([""], "", ""),
        ([], "", ""),  # an empty list of terms matches no node
        (["nic>x", "zone=b"], "", "b c"),
        (None, "disk=ssd", "a c"),
        (None, "disk=ssd zone=b", "c"),  # all pairs
        (None, "disk=", ""),
        (["zone=b"], "disk=ssd", "c"),  # selector and terms
    ],
)
def test_terms_and_node_selector(terms, selector, left):
    on = "a disk=ssd zone=a; b disk=hdd zone=b; c disk=ssd zone=b"
    found = run(NodeAffinityRule(), asking(terms, selector=selector), on)
    assert found.rejected == dict.fromkeys({"a", "b", "c"} - set(left.split()), NOT_MATCHED)


@pytest.mark.parametrize(
    "terms, only",
    [
        (["@a1"], ["a1"]),
        (["@a1", "@b1"], ["a1", "b1"]),
        (["@a1", "zone=b"], None),  # a term without a name leaves all nodes to the filter
        (["!@a1"], None),
        (["@gone"], []),
        (["@a1,zone=b"], ["a1"]),
        (None, None),
    ],
)
def test_nodes_by_name_are_the_only_candidates(terms, only):
    assert run(NodeAffinityRule(), asking(terms), "a1 zone=a; b1 zone=b").only == only


def test_names_that_exclude_each_other():
    found = run(NodeAffinityRule(), asking(["@a1,@b1"]), "a1; b1")
    assert found.all == "UU pod affinity terms conflict"
    assert run(NodeAffinityRule(), asking(["@a1,@b1", "@b1"]), "a1; b1").only == ["b1"]


@pytest.mark.parametrize(
    "preferred, raw, scores",
    [
        (["5 disk=ssd"], "5 0", "100 0"),
        (["1 disk=ssd"], "1 0", "100 0"),
        (["5 disk=ssd", "3 zone=b"], "5 3", "100 60"),
        (["5 disk", "3 zone=b"], "5 8", "62 100"),
        (["5 disk=none"], "0 0", "0 0"),
        (["5 "], "0 0", "0 0"),  # an empty preferred term is skipped
        (["5 ", "2 disk=ssd"], "2 0", "100 0"),
        (["5 !@a1"], "0 5", "0 100"),
        ([], None, None),
        (None, None, None),
    ],
)
def test_preferred_terms(preferred, raw, scores):
    found = run(NodeAffinityRule(), asking(preferred=preferred), "a1 disk=ssd zone=a; b1 disk=hdd zone=b")
    assert found.raw == (raw and dict(zip(("a1", "b1"), map(int, raw.split()), strict=True)))
    assert found.scores == (scores and dict(zip(("a1", "b1"), map(int, scores.split()), strict=True)))
    assert found.rejected == {}


def added(required=None, preferred=()):
    term = NodeTerm((NodeRequirement("zone", "In", ("a",)),))
    weighted = tuple(PreferredNodeTerm(weight, term) for weight in preferred)
    added = NodeAffinity(required=(term,) if required else None, preferred=weighted or None)
    return NodeAffinityRule(NodeAffinityArguments(added))


@pytest.mark.parametrize(
    "terms, rejected",
    [
        (None, {"b1": NOT_ENFORCED}),
        (["disk=ssd"], {"b1": NOT_ENFORCED}),
        (["disk=hdd"], {"a1": NOT_MATCHED, "b1": NOT_ENFORCED}),  # the configuration's affinity is checked first
    ],
)
def test_added_affinity(terms, rejected):
    assert run(added(required=True), asking(terms), "a1 disk=ssd zone=a; b1 disk=x zone=b").rejected == rejected


@pytest.mark.parametrize("preferred, raw", [(None, {"a1": 7, "b1": 0}), (["2 zone=b"], {"a1": 7, "b1": 2})])
def test_added_preferred_terms(preferred, raw):
    assert run(added(preferred=[7]), asking(preferred=preferred), "a1 zone=a; b1 zone=b").raw == raw


@pytest.mark.parametrize(
    "asked, failures",
    [
        (asking(selector="disk=ssd"), [("nodeSelector disk=ssd", "the node has disk=hdd")]),
        (asking(selector="rack=1"), [("nodeSelector rack=1", "the node has no label rack")]),
        (asking(["disk=ssd"]), [("disk In (ssd)", "disk In (ssd) does not hold: the node has disk=hdd")]),
        (asking(["cores>8"]), [("cores Gt (8)", "cores Gt (8) does not hold: the node has no label cores")]),
        (asking(["!@a1"]), [("metadata.name NotIn (a1)", "metadata.name NotIn (a1) does not hold: the node is a1")]),
        (asking([""]), [("nothing", "an empty term matches no node")]),
        (asking([]), [("", "no node selector term is given, so no node matches")]),
        (
            asking(["disk=ssd", "rack"]),
            [
                ("disk In (ssd)", "disk In (ssd) does not hold: the node has disk=hdd"),
                ("rack Exists", "rack Exists does not hold: the node has no label rack"),
            ],
        ),
        (asking(["disk=hdd"], selector="rack=1"), [("nodeSelector rack=1", "the node has no label rack")]),
    ],
)
def test_evidence_names_what_is_missing(asked, failures):
    found = run(NodeAffinityRule(), asked, "a1 disk=hdd").failures["a1"]
    assert [(failure.term, failure.detail) for failure in found] == failures
