"""ClusterAffinity: which clusters a placement selects, by labels, fields, names and exclusion, in any of its tiers."""

import pytest

from bayplan.rules.cluster_affinity import ClusterAffinityRule
from rules.shorthand import binding, requirements, run_fleet, selector

NOT_MATCHED = "U cluster(s) did not match the placement cluster affinity constraint"
FLEET = "eu region=eu zones=a,b provider=aws tier=gold; us region=us zones=c tier=silver; bare"
EVERY = {"eu", "us", "bare"}


def left(placement, group=0, **short):
    found = run_fleet(ClusterAffinityRule(), binding("web", placement=placement, **short), FLEET, group=group)
    assert set(found.rejected.values()) <= {NOT_MATCHED}
    return " ".join(sorted(EVERY - set(found.rejected)))


def fields(text):
    return {"fieldSelector": {"matchExpressions": requirements(text)}}


@pytest.mark.parametrize(
    "affinity, clusters",
    [
        ({}, "bare eu us"),  # an empty affinity selects every cluster
        ({"clusterNames": ["eu"]}, "eu"),
        ({"clusterNames": ["eu", "gone"]}, "eu"),
        ({"clusterNames": []}, "bare eu us"),
        ({"clusterNames": ["gone"]}, ""),
        ({"exclude": ["eu"]}, "bare us"),
        ({"exclude": ["gone"]}, "bare eu us"),
        ({"clusterNames": ["eu", "us"], "exclude": ["eu"]}, "us"),  # exclusion wins
        ({"labelSelector": {}}, "bare eu us"),
        ({"labelSelector": selector("tier=gold")}, "eu"),
        ({"labelSelector": selector("tier in (gold,silver)")}, "eu us"),
        ({"labelSelector": selector("tier notin (gold)")}, "bare us"),  # an absent key is not in the set either
        ({"labelSelector": selector("tier")}, "eu us"),
        ({"labelSelector": selector("!tier")}, "bare"),
        ({"labelSelector": selector("tier in ()")}, ""),  # an invalid selector selects nothing
        ({"labelSelector": selector("tier=gold"), "clusterNames": ["us"]}, ""),  # all conditions
        (fields("region=eu"), "eu"),
        (fields("region!=eu"), "bare us"),  # an unset field is an absent key
        (fields("provider=aws"), "eu"),
        (fields("provider!=aws"), "bare us"),
        (fields("provider"), "eu"),
        (fields("!provider"), "bare us"),
        (fields("region=eu,provider=gcp"), ""),
        (fields("zone in (b,c)"), "eu us"),  # one of its zones is enough
        (fields("zone notin (a)"), "bare us"),  # none of its zones may be listed
        (fields("zone notin (b)"), "bare us"),
        (fields("zone"), "eu us"),
        (fields("!zone"), "bare"),
        ({**fields("region=eu"), "exclude": ["eu"]}, ""),
        ({**fields("region"), "labelSelector": selector("tier=silver")}, "us"),
    ],
)
def test_one_affinity(affinity, clusters):
    assert left({"clusterAffinity": affinity}) == clusters


def test_without_an_affinity_every_cluster_is_selected():
    assert left({}) == "bare eu us"


TERMS = [
    {
        "affinityName": "first",
        "clusterNames": ["eu"],
        "overflowAffinities": [{"affinityName": "more", "clusterNames": ["us"]}],
    },
    {"affinityName": "second", "clusterNames": ["bare"]},
]
AGGREGATED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}


@pytest.mark.parametrize(
    "group, short, clusters",
    [
        (0, {"replicas": 1}, "eu us"),  # the term and all its tiers
        (0, {"kind": "ConfigMap"}, "eu"),  # without replicas the first tier only
        (1, {"replicas": 1}, "bare"),
        (1, {"kind": "ConfigMap"}, "bare"),
    ],
)
def test_several_affinities(group, short, clusters):
    assert left({"clusterAffinities": TERMS, "replicaScheduling": AGGREGATED}, group, **short) == clusters


def test_a_cluster_that_has_the_workload_is_rejected_too():
    asked = binding("web", runs="us", placement={"clusterAffinity": {"clusterNames": ["eu"]}})
    assert set(run_fleet(ClusterAffinityRule(), asked, FLEET).rejected) == {"us", "bare"}


@pytest.mark.parametrize(
    "placement, term",
    [
        ({"clusterAffinity": {"clusterNames": ["eu"]}}, "clusterAffinity"),
        ({"clusterAffinities": TERMS, "replicaScheduling": AGGREGATED}, "affinity first"),
    ],
)
def test_evidence_names_the_affinity(placement, term):
    (failure,) = run_fleet(ClusterAffinityRule(), binding("web", placement=placement), FLEET).failures["bare"]
    assert failure.term == term
