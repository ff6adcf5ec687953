"""The design document's terms: both options, both directions, preferences, domains, namespaces, configured keys."""

import json

import pytest

from reference import fleet

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
AFFINITY, ANTI_AFFINITY = "workloadAffinity", "workloadAntiAffinity"
GROUP = {"labelSelector": {}, "matchLabelKeys": ["group"]}
WEB = {"labelSelector": {"matchLabels": {"app": "web"}}}
SWITCH = {"affinityEnabled": True}
ALL = {"a1", "a2", "b1"}


def cluster(name, zones, region, **labels):
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"zones": zones, "region": region},
        "status": {"apiEnablements": [{"groupVersion": "x/v1", "resources": [{"kind": "Flink"}]}]},
    }


CLUSTERS = [
    cluster("a1", ["z1", "z2"], "eu", rack="r1"),
    cluster("a2", ["z2"], "eu"),
    cluster("b1", ["z3"], "us", rack="r1"),
]


def binding(name, labels=None, on=(), namespace="default", tasks=(), groups=None, **lists):
    """`lists` are the required ones by sign."""
    return {
        "metadata": {
            "name": f"{name}-flink",
            "namespace": namespace,
            "annotations": {"bayplan.io/workload-labels": json.dumps(labels or {})},
        },
        "spec": {
            "resource": {"apiVersion": "x/v1", "kind": "Flink", "namespace": namespace, "name": name},
            "placement": {sign: {REQUIRED: terms} for sign, terms in lists.items()},
            "clusters": [{"name": each} for each in on],
            "gracefulEvictionTasks": [{"fromCluster": each} for each in tasks],
            "workloadAffinityGroups": groups or {},
        },
    }


def fits(new, *others, **options):
    answer = fleet.answer({"clusters": CLUSTERS, "bindings": list(others), "binding": new, "options": options})
    return {target["name"] for target in answer["clusters"]} or answer["reason"]


NONE = "NoClusterFit"
G1, G2 = {"group": "g1", "app": "web"}, {"group": "g2", "app": "web"}


@pytest.mark.parametrize("term, mine, peer, expected", [
    (GROUP,                                G1, G1,              {"b1"}),
    (GROUP,                                G1, G2,              ALL),
    (GROUP,                                {}, {},              ALL),   # a key that I lack means no peer
    (WEB,                                  {}, G1,              {"b1"}),
    (WEB,                                  {}, {"app": "db"},   ALL),
    ({},                                   G1, G1,              ALL),   # a null selector matches nothing
    ({"matchLabelKeys": ["group"]},        G1, G1,              ALL),
    ({**WEB, "topologyKey": "zone"},       {}, G1,              {"b1"}),
    ({**WEB, "topologyKey": "region"},     {}, G1,              {"b1"}),
    ({**WEB, "topologyKey": "rack"},       {}, G1,              {"a2"}),  # no rack, no domain
    ({**WEB, "topologyKey": "cluster"},    {}, G1,              {"a2", "b1"}),
])  # fmt: skip
def test_anti_affinity_in_both_directions(term, mine, peer, expected):
    placed = ["a1"] if "topologyKey" in term else ["a1", "a2"]
    assert fits(binding("new", mine, workloadAntiAffinity=[term]), binding("old", peer, placed)) == expected
    assert fits(binding("new", peer), binding("old", mine, placed, workloadAntiAffinity=[term])) == expected


@pytest.mark.parametrize("term, mine, peers, expected", [
    (WEB,   {},            {"a1": G1},              {"a1"}),
    (WEB,   {},            {"a1": G1, "b1": G2},    {"a1", "b1"}),  # any matching peer will do
    (WEB,   {},            {},                      NONE),
    (WEB,   G1,            {},                      ALL),           # the first of a self-matching set
    (WEB,   G1,            {"b1": G2},              {"b1"}),
    (GROUP, G1,            {"a1": G2},              ALL),
    (GROUP, {"app": "x"},  {"a1": G2},              NONE),          # no key, no peer, not its own either
    ({},    G1,            {"a1": G1},              NONE),
    ({**WEB, "topologyKey": "zone"},   {}, {"a2": G1}, {"a1", "a2"}),
    ({**WEB, "topologyKey": "rack"},   {}, {"b1": G1}, {"a1", "b1"}),
    ({**WEB, "topologyKey": "rack"},   G1, {},         {"a1", "b1"}),  # the first needs the key all the same
    ({**WEB, "topologyKey": "topology.karmada.io/region"}, {}, {"a1": G1}, {"a1", "a2"}),
])  # fmt: skip
def test_affinity(term, mine, peers, expected):
    others = [binding(f"w{i}", labels, [where]) for i, (where, labels) in enumerate(peers.items())]
    assert fits(binding("new", mine, workloadAffinity=[term]), *others) == expected


def test_each_affinity_term_may_be_met_by_another_peer():
    new = binding("new", workloadAffinity=[WEB, {"labelSelector": {"matchLabels": {"app": "db"}}}])
    assert fits(new, binding("w", {"app": "web"}, ["a1", "b1"]), binding("d", {"app": "db"}, ["b1"])) == {"b1"}


@pytest.mark.parametrize("scope, expected", [
    ({},                                        ALL),
    ({"namespaces": ["other"]},                 {"b1"}),
    ({"namespaceSelector": {}},                 {"b1"}),
    ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, ALL),
])  # fmt: skip
def test_namespaces(scope, expected):
    peer = binding("old", G1, ["a1", "a2"], namespace="other")
    assert fits(binding("new", workloadAntiAffinity=[{**WEB, **scope}]), peer) == expected


@pytest.mark.parametrize("term, keys, mine, expected", [
    (SWITCH, ["group"],        G1,               {"b1"}),
    (SWITCH, ["group"],        G2,               ALL),
    (SWITCH, ["group", "app"], {"group": "g1"},  ALL),               # several keys must all match
    (SWITCH, None,             G1,               "SchedulerError"),  # nothing to switch on
    (GROUP,  ["group"],        G1,               {"b1"}),
    (GROUP,  ["app"],          G1,               "SchedulerError"),  # no key that is indexed
    (WEB,    ["app"],          {},               {"b1"}),
    ({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}}, ["app"], {}, {"b1"}),
    ({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}, ["app"], {}, {"b1"}),
    ({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "x"]}]}}, ["app"], {}, {"b1"}),
    ({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x"]}]}}, ["app"], {}, "SchedulerError"),
    ({"affinityEnabled": False}, ["group"], G1, ALL),
    ({"affinityEnabled": False}, None,      G1, ALL),
    ({},                         None,      G1, ALL),               # a null selector matches nothing
])  # fmt: skip
def test_configured_keys(term, keys, mine, expected):
    options = {} if keys is None else {"antiAffinityLabelKeys": keys, "affinityLabelKeys": keys}
    assert (
        fits(binding("new", mine, workloadAntiAffinity=[term]), binding("old", G1, ["a1", "a2"]), **options) == expected
    )


def test_the_message_for_a_rejected_term_names_the_flag():
    question = {"clusters": CLUSTERS, "binding": binding("new", G1, workloadAffinity=[GROUP])}
    answer = fleet.answer({**question, "options": {"affinityLabelKeys": []}})
    path = f"placement.workloadAffinity.{REQUIRED}[0]"
    assert answer["errors"] == [f"{path}: no key of the term is in --affinity-label-keys"]


def test_a_cluster_that_holds_it_already_passes():
    assert fits(binding("new", on=["a1"], workloadAntiAffinity=[WEB]), binding("old", G1, ["a1", "a2"])) == {"a1", "b1"}


@pytest.mark.parametrize("sign, expected", [(AFFINITY, "a2"), (ANTI_AFFINITY, "a1")])
def test_preferences_rank_the_clusters(sign, expected):
    new = binding("new")
    new["spec"]["placement"] = {
        "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
        sign: {PREFERRED: [{"weight": 5, "workloadAffinityTerm": WEB}]},
    }
    assert fits(new, binding("old", G1, ["a2"])) == {expected}


@pytest.mark.parametrize("lists", [{"workloadAntiAffinity": [WEB]}, {"groups": {"antiAffinityGroup": "app=web"}}])
@pytest.mark.parametrize("semantics, expected", [("upstream", ALL), ("design", {"a2", "b1"})])
def test_a_draining_copy_counts(lists, semantics, expected):
    peer = binding("old", G1, [], tasks=["a1"], groups={"antiAffinityGroup": "app=web"})
    assert fits(binding("new", **lists), peer, semantics=semantics) == expected


@pytest.mark.parametrize("lists", [{"workloadAffinity": [WEB]}, {"groups": {"affinityGroup": "app=web"}}])
@pytest.mark.parametrize("moved, semantics, expected", [
    ([],     "upstream", NONE),
    ([],     "design",   {"a2", "b1"}),  # the first to leave is free to choose
    (["b1"], "design",   {"b1"}),        # the next ones follow
])  # fmt: skip
def test_a_group_moves_together(lists, moved, semantics, expected):
    groups = {"affinityGroup": "app=web"}
    others = [binding("stays", G1, ["a1"], groups=groups), *[binding("gone", G1, [to], groups=groups) for to in moved]]
    assert fits(binding("new", G1, tasks=["a1"], **lists), *others, semantics=semantics) == expected


@pytest.mark.parametrize("constraints, expected", [
    ([{"spreadByField": "zone", "minGroups": 3}],                                     ALL),
    ([{"spreadByField": "zone", "minGroups": 2, "maxGroups": 2}],                     {"a1", "a2"}),
    ([{"spreadByField": "zone", "minGroups": 1, "maxGroups": 1}],                     {"a2"}),
    ([{"spreadByField": "zone", "minGroups": 2}, {"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}], {"a1"}),
    ([{"spreadByField": "zone", "minGroups": 2, "maxGroups": 2}, {"spreadByField": "region", "minGroups": 2}], {"a2", "b1"}),
    ([{"spreadByField": "zone", "minGroups": 4}],                                     "SchedulerError"),
    ([{"spreadByLabel": "rack", "minGroups": 1, "maxGroups": 1}],                     {"a1", "b1"}),
])  # fmt: skip
def test_spreading_by_every_field(constraints, expected):
    new = binding("new")
    new["spec"]["placement"] = {"spreadConstraints": constraints}
    assert fits(new, semantics="design") == expected
