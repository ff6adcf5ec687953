"""Tiers mean the same in all five forms; under Duplicated and static weight the design document's four do."""

import json

import pytest

from reference import fleet

FIRST, SECOND = {"clusterNames": ["idc"]}, {"clusterNames": ["cloud-1", "cloud-2"]}
THIRD = {"clusterNames": ["idc", "far"]}  # the first tier that names a cluster counts
NAMED = [{"affinityName": f"t{i}", **tier} for i, tier in enumerate((FIRST, SECOND, THIRD))]

OVERFLOW = {"clusterAffinities": [{**NAMED[0], "overflowAffinities": NAMED[1:]}]}
DESIGN_FORMS = {
    "supplements": {"clusterAffinity": {**FIRST, "supplements": [SECOND, THIRD]}},
    "supplements of a term": {"clusterAffinities": [{**NAMED[0], "supplements": [SECOND, THIRD]}]},
    "inherited": {"clusterAffinities": NAMED, "affinityStrategy": {"mode": "Inherited"}},
    "preferred": {"preferredClusterAffinities": NAMED},
}
FORMS = {"overflow": OVERFLOW, **DESIGN_FORMS}

DUPLICATED = None
AGGREGATED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
WEIGHTED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}
DYNAMIC = {**WEIGHTED, "weightPreference": {"dynamicWeight": "AvailableReplicas"}}
STRATEGIES = {"Duplicated": DUPLICATED, "Aggregated": AGGREGATED, "static": WEIGHTED, "dynamic": DYNAMIC}


def cluster(name, pods=10, **spec):
    return {
        "metadata": {"name": name},
        "spec": spec,
        "status": {
            "apiEnablements": [{"groupVersion": "apps/v1", "resources": [{"kind": "Deployment"}]}],
            "resourceSummary": {"allocatable": {"pods": str(pods)}},
        },
    }


CLUSTERS = [cluster("idc"), cluster("cloud-1"), cluster("cloud-2"), cluster("far")]


def ask(placement, replicas=3, previous=None, clusters=CLUSTERS, annotations=None, options=None, kind="Deployment"):
    spec = {
        "resource": {"apiVersion": "apps/v1", "kind": kind, "namespace": "default", "name": "shop"},
        "replicas": replicas,
        "placement": placement,
        "clusters": [{"name": name, "replicas": number} for name, number in (previous or {}).items()],
    }
    metadata = {"name": "shop-deployment", "namespace": "default", "annotations": annotations or {}}
    return fleet.answer(
        {"clusters": clusters, "binding": {"metadata": metadata, "spec": spec}, "options": options or {}}
    )


def placed(placement, **scene):
    answer = ask(placement, **scene)
    return {target["name"]: target["replicas"] for target in answer["clusters"]} or answer["reason"]


def with_strategy(placement, strategy):
    scheduling = STRATEGIES[strategy]
    return placement if scheduling is None else {**placement, "replicaScheduling": scheduling}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("strategy, replicas, expected", [
    ("Aggregated", 3,  {"idc": 3}),
    ("Aggregated", 15, {"idc": 10, "cloud-1": 5}),
    ("Aggregated", 35, {"idc": 10, "cloud-1": 10, "cloud-2": 10, "far": 5}),
    ("Aggregated", 41, "Unschedulable"),
    ("dynamic",    15, {"idc": 10, "cloud-1": 3, "cloud-2": 2}),
    ("dynamic",    35, {"idc": 10, "cloud-1": 10, "cloud-2": 10, "far": 5}),
])  # fmt: skip
def test_all_forms_fill_in_order(form, strategy, replicas, expected):
    assert placed(with_strategy(FORMS[form], strategy), replicas=replicas) == expected


@pytest.mark.parametrize("form", DESIGN_FORMS)
@pytest.mark.parametrize("strategy, gone, expected", [
    ("Duplicated", [],      {"idc": 20}),                       # capacity is ignored
    ("Duplicated", ["idc"], {"cloud-1": 20, "cloud-2": 20}),
    ("static",     [],      {"idc": 20}),
    ("static",     ["idc"], {"cloud-1": 10, "cloud-2": 10}),
    ("static",     ["idc", "cloud-1", "cloud-2"], {"far": 20}),
])  # fmt: skip
def test_the_first_tier_alone_where_capacity_plays_no_part(form, strategy, gone, expected):
    clusters = [each for each in CLUSTERS if each["metadata"]["name"] not in gone]
    assert placed(with_strategy(DESIGN_FORMS[form], strategy), replicas=20, clusters=clusters) == expected


@pytest.mark.parametrize("form", DESIGN_FORMS)
@pytest.mark.parametrize("least, most, expected", [
    (1, 1, {"idc"}),
    (1, 2, {"idc"}),
    (2, 2, {"idc", "cloud-1"}),                 # the first tier does not meet it alone: further ones are added
    (3, 3, {"idc", "cloud-1", "cloud-2"}),
    (5, 5, "SchedulerError"),
])  # fmt: skip
def test_duplicated_tiers_meet_spread_constraints(form, least, most, expected):
    constraint = {"spreadByField": "cluster", "minGroups": least, "maxGroups": most}
    found = placed({**DESIGN_FORMS[form], "spreadConstraints": [constraint]})
    assert (found if isinstance(found, str) else set(found)) == expected


def test_karmadas_own_field_under_duplicated_is_as_upstream_unless_switched():
    assert placed(OVERFLOW, replicas=20) == {"idc": 10, "cloud-1": 10, "cloud-2": 10}
    assert placed(OVERFLOW, replicas=20, options={"semantics": "design"}) == {"idc": 20}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("strategy", ["Aggregated", "dynamic"])
def test_hybrid_cloud_fills_and_drains_in_order(form, strategy):
    placement = with_strategy(FORMS[form], strategy)
    small = placed(placement, replicas=3)
    assert small == {"idc": 3}
    large = placed(placement, replicas=30, previous=small, clusters=[cluster("idc", 7), *CLUSTERS[1:]])
    assert large == {"idc": 10, "cloud-1": 10, "cloud-2": 10}
    middle = placed(
        placement, replicas=12, previous=large, clusters=[cluster(c["metadata"]["name"], 0) for c in CLUSTERS]
    )
    assert middle["idc"] == 10
    assert sum(middle.values()) == 12
    assert placed(placement, replicas=3, previous=large) == {"idc": 3}


@pytest.mark.parametrize("form, observed", [
    ("overflow", "t0"), ("supplements", ""), ("supplements of a term", "t0"), ("inherited", "t0"), ("preferred", "t0"),
])  # fmt: skip
def test_the_observed_name(form, observed):
    assert ask(FORMS[form])["observedAffinityName"] == observed


@pytest.mark.parametrize("form", DESIGN_FORMS)
def test_things_without_replicas_follow_the_duplicated_rule(form):
    assert placed(DESIGN_FORMS[form], replicas=0) == {"idc": 0}
    assert placed(DESIGN_FORMS[form], replicas=0, clusters=CLUSTERS[1:]) == {"cloud-1": 0, "cloud-2": 0}


@pytest.mark.parametrize("base, annotation", [
    ({"clusterAffinity": FIRST}, {"supplements": [SECOND, THIRD]}),
    ({"clusterAffinities": NAMED[:1]}, {"supplements": [SECOND, THIRD]}),
    ({"clusterAffinities": NAMED[:1]}, {"supplements": {"t0": [SECOND, THIRD]}}),
    ({"clusterAffinities": NAMED}, {"affinityStrategy": {"mode": "Inherited"}}),
    ({}, {"preferredClusterAffinities": NAMED}),
])  # fmt: skip
def test_the_annotation_says_the_same(base, annotation):
    placement = {**base, "replicaScheduling": AGGREGATED}
    expected = {"idc": 10, "cloud-1": 5}
    assert placed(placement, replicas=15, annotations={"bayplan.io/placement": json.dumps(annotation)}) == expected


@pytest.mark.parametrize("placement, annotation, words", [
    ({"clusterAffinities": [{**NAMED[0], "overflowAffinities": NAMED[1:], "supplements": [SECOND]}]}, None, "more than one form"),
    ({"clusterAffinity": {**FIRST, "supplements": [{**SECOND, "supplements": [THIRD]}]}}, None, "nested"),
    ({"clusterAffinities": NAMED, "affinityStrategy": {"mode": "Both"}}, None, "Exclusive or Inherited"),
    ({"affinityStrategy": {"mode": "Inherited"}}, None, "needs clusterAffinities"),
    ({"clusterAffinity": FIRST, "preferredClusterAffinities": NAMED}, None, "cannot co-exist"),
    ({}, "[", "expected YAML or JSON"),
    ({}, "- a", "expected a mapping"),
    ({}, "tiers: []", "no such field"),
    ({"clusterAffinities": NAMED}, "supplements: {gone: []}", "no term"),
    ({}, "supplements: []", "needs clusterAffinity"),
])  # fmt: skip
def test_what_makes_no_sense_is_unplaceable(placement, annotation, words):
    answer = ask(placement, annotations={"bayplan.io/placement": annotation} if annotation else None)
    assert (answer["reason"], answer["clusters"]) == ("SchedulerError", [])
    assert words in answer["errors"][0]
