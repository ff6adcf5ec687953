"""The plain filters of a cluster: deletion, enabled APIs, taints, properties for spread constraints, evictions."""

import pytest

from bayplan.rules.cluster_filters import (
    ApiEnablementRule,
    ClusterEviction,
    ClusterLeaving,
    ClusterTaints,
    SpreadProperty,
)
from rules.shorthand import binding, cluster, run_fleet, taints, tolerations

NO_API = "UU cluster(s) did not have the API resource"
EVICTING = "U cluster(s) is in the process of eviction"


def test_clusters_that_are_being_deleted():
    found = run_fleet(ClusterLeaving(), binding("web", runs="c1"), [cluster("c1", deleting=True), cluster("c2")])
    assert set(found.rejected) == {"c1"}  # also one that has the workload
    assert ClusterLeaving.silent  # Karmada's message counts no reason for them


@pytest.mark.parametrize(
    "short, served, fits",
    [
        ({}, ["Deployment"], True),
        ({}, ["Job"], False),
        ({}, [], False),
        ({"kind": "Job"}, ["Deployment", "Job"], True),
        ({"apiVersion": "apps/v1beta1"}, ["Deployment"], False),  # of that version
        ({"apiVersion": "batch/v1", "kind": "Deployment"}, ["Deployment", "Job"], False),
        ({"kind": "ConfigMap"}, ["ConfigMap"], True),  # the core group
        ({"runs": "c1"}, [], True),  # a cluster that has the workload is exempt
    ],
)
def test_enabled_apis(short, served, fits):
    found = run_fleet(ApiEnablementRule(), binding("web", **short), [cluster("c1", apis=served)])
    assert found.rejected == ({} if fits else {"c1": NO_API})


def test_evidence_of_a_missing_api():
    (failure,) = run_fleet(ApiEnablementRule(), binding("web"), [cluster("c1", apis=[])]).failures["c1"]
    assert (failure.term, failure.detail) == ("Deployment", "apps/v1 Deployment is not served there")


@pytest.mark.parametrize("tainted, tolerated, text", [
    ("",                          "",               None),
    ("a=1:NoSchedule",            "",               "a=1:NoSchedule"),
    ("a:NoSchedule",              "",               "a:NoSchedule"),   # without a value there is no `=`
    ("a:NoExecute",               "",               "a:NoExecute"),
    ("a:PreferNoSchedule",        "",               None),
    ("a=1:NoSchedule",            "a=1:NoSchedule", None),
    ("a=1:NoSchedule",            "a=2:NoSchedule", "a=1:NoSchedule"),
    ("a=1:NoSchedule",            "a",              None),
    ("a=1:NoSchedule",            "a:NoExecute",    "a=1:NoSchedule"),
    ("a=1:NoSchedule",            ":",              None),             # no key and Exists: every taint
    ("a:NoExecute",               ":NoSchedule",    "a:NoExecute"),
    ("a:NoSchedule,b:NoExecute",  "",               "a:NoSchedule"),   # the first untolerated taint
    ("a:NoSchedule,b:NoExecute",  "a",              "b:NoExecute"),
    ("p:PreferNoSchedule,b:NoExecute", "",          "b:NoExecute"),
])  # fmt: skip
def test_taints(tainted, tolerated, text):
    asked = binding("web", placement={"clusterTolerations": tolerations(tolerated)})
    found = run_fleet(ClusterTaints(), asked, [cluster("c1", taints=taints(tainted)), cluster("c2")])
    assert found.rejected == ({} if text is None else {"c1": f"UU cluster(s) had untolerated taint {{{text}}}"})
    assert [failure.term for failures in found.failures.values() for failure in failures] == [text][
        : len(found.failures)
    ]


def test_each_taint_has_its_own_reason():
    on = [
        cluster(f"c{i}", taints=taints(text)) for i, text in enumerate(("a:NoSchedule", "b:NoSchedule", "a:NoSchedule"))
    ]
    found = run_fleet(ClusterTaints(), binding("web", runs="c2"), on)
    texts = {
        name: f"UU cluster(s) had untolerated taint {{{key}:NoSchedule}}" for name, key in (("c0", "a"), ("c1", "b"))
    }
    assert found.rejected == texts  # c2 has the workload


PROVIDER, REGION, ZONES = (f"UU cluster(s) did not have {name} property" for name in ("provider", "region", "zones"))


@pytest.mark.parametrize(
    "by, rejected",
    [
        ([], {}),
        (["cluster"], {}),
        (["region"], {"bare": REGION, "p": REGION}),
        (["provider"], {"bare": PROVIDER, "r": PROVIDER, "z": PROVIDER}),
        (["zone"], {"bare": ZONES, "p": ZONES, "r": ZONES}),
        (["cluster", "region"], {"bare": REGION, "p": REGION}),
        (["region", "zone"], {"bare": REGION, "p": REGION, "r": ZONES}),  # the first that is missing
        (["zone", "region"], {"bare": ZONES, "p": ZONES, "r": ZONES}),
    ],
)
def test_properties_for_spread_constraints(by, rejected):
    constraints = [{"spreadByField": field, "minGroups": 1, "maxGroups": 1} for field in by]
    on = "bare; p provider=aws; r region=eu; z region=eu zones=a"
    asked = binding("web", runs="bare", placement={"spreadConstraints": constraints})  # which is not exempt
    assert run_fleet(SpreadProperty(), asked, on).rejected == rejected


@pytest.mark.parametrize("semantics, rejected", [
    ("upstream", {}),
    ("design", {"c2": "UU cluster(s) did not have label rack"}),
])  # fmt: skip
def test_spreading_by_label(semantics, rejected):
    asked = binding("web", placement={"spreadConstraints": [{"spreadByLabel": "rack", "minGroups": 1, "maxGroups": 1}]})
    assert run_fleet(SpreadProperty(), asked, "c1 rack=r; c2", semantics=semantics).rejected == rejected


def test_evidence_names_the_constraint():
    asked = binding("web", placement={"spreadConstraints": [{"spreadByField": "zone", "minGroups": 1, "maxGroups": 1}]})
    (failure,) = run_fleet(SpreadProperty(), asked, "c1").failures["c1"]
    assert failure.term == "spreadConstraints zone"


@pytest.mark.parametrize("evicting, out", [([], ""), (["c1"], "c1"), (["c1", "c3"], "c1 c3"), (["gone"], "")])
def test_evictions(evicting, out):
    found = run_fleet(ClusterEviction(), binding("web", evicting=evicting, runs="c2"), "c1; c2; c3")
    assert found.rejected == dict.fromkeys(out.split(), EVICTING)
