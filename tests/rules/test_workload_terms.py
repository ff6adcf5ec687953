"""Bayplan's workload affinity by label selector, which Karmada does not have: docs/reference/rules/workload-terms.md."""

import pytest

from bayplan.rules.workload_terms import WorkloadTermAffinity, WorkloadTermAntiAffinity
from rules.shorthand import PREFERRED, REQUIRED, binding, each, peers, pod_term, run_fleet

NO_PEER = "UU cluster(s) did not match workload affinity rules"
PEER = "U cluster(s) did not match workload anti-affinity rules"
OWNER = "U cluster(s) did not satisfy existing workloads anti-affinity rules"
FLEET = "c1 region=eu zones=a,b rack=r; c2 region=eu zones=b,c; c3 region=us zones=d rack=r; bare"
EVERY = {"c1", "c2", "c3", "bare"}


def asking(text, *, near=(), away=(), prefers=(), avoids=(), **short):
    def weighted(one):
        weight, _, rest = one.partition(" ")
        return {"weight": int(weight), "workloadAffinityTerm": pod_term(rest)}

    placement = {
        "workloadAffinity": {REQUIRED: each(pod_term, near), PREFERRED: each(weighted, prefers)},
        "workloadAntiAffinity": {REQUIRED: each(pod_term, away), PREFERRED: each(weighted, avoids)},
    }
    return binding(text, placement=placement, **short)


DB = binding("db app=db", runs="c1")
CACHE = binding("cache app=cache", runs="c2")


@pytest.mark.parametrize(
    "asked, others, left",
    [
        (asking("new", near="app=db by cluster"), [DB], "c1"),
        (asking("new", near="app=db by "), [DB], "c1"),  # without a key: the cluster
        (asking("new", near="app=db by region"), [DB], "c1 c2"),
        (asking("new", near="app=db by zone"), [DB], "c1 c2"),  # both are in zone b
        (asking("new", near="app=db by zone"), [binding("db app=db", runs="c3")], "c3"),
        (asking("new", near="app=db by rack"), [DB], "c1 c3"),  # a label
        (asking("new", near="app=db by cluster"), [], ""),
        (asking("new", near="app=db by cluster"), [binding("db app=db")], ""),
        (asking("new", near="app=db by cluster"), [binding("shop/db app=db", runs="c1")], ""),
        (asking("new", near="app=db by cluster in shop"), [binding("shop/db app=db", runs="c1")], "c1"),
        (asking("new", near="nothing by cluster"), [DB], ""),
        (asking("new app=web", near="app=web by cluster"), [], "c1 c2 c3 bare"),  # the first of its set
        (asking("new app=web", near="app=web by region"), [], "c1 c2 c3"),  # in a domain
        (asking("new app=web", near="app=web by cluster"), [binding("w app=web", runs="c3")], "c3"),
        (asking("new", near=("app=db by region", "app=cache by cluster")), [DB, CACHE], "c2"),  # by different peers
        (asking("new", near=("app=db by cluster", "app=cache by cluster")), [DB, CACHE], ""),
        (asking("new app=web", near=("app=web by cluster", "app=db by cluster")), [DB], "c1"),  # the first per term
        (asking("new", near="app=db by cluster", runs="c3"), [DB], "c1 c3"),  # it is on c3 already
        (asking("new app=web", near="app=web by cluster"), [asking("db", away="app=web by cluster", runs="c1")], "c1 c2 c3 bare"),
        (asking("new", away="app=db by cluster"), [DB], "c1 c2 c3 bare"),
    ],
)  # fmt: skip
def test_required_affinity(asked, others, left):
    found = run_fleet(WorkloadTermAffinity(), asked, FLEET, others)
    assert found.rejected == dict.fromkeys(EVERY - set(left.split()), NO_PEER)


@pytest.mark.parametrize(
    "asked, others, out",
    [
        (asking("new", away="app=db by cluster"), [DB], "c1"),
        (asking("new", away="app=db by region"), [DB], "c1 c2"),
        (asking("new", away="app=db by zone"), [DB], "c1 c2"),
        (asking("new", away="app=db by rack"), [DB], "c1 c3"),
        (asking("new", away="app=db by region"), [binding("db app=db", runs="bare")], ""),
        (asking("new", away="app=db by cluster"), [], ""),
        (asking("new", away="nothing by cluster"), [DB], ""),
        (asking("new", away=("app=db by cluster", "app=cache by cluster")), [DB, CACHE], "c1 c2"),
        (asking("new", away="app=db by cluster", runs="c1"), [DB], ""),
        (asking("new", near="app=x by cluster"), [DB], ""),
    ],
)
def test_required_anti_affinity(asked, others, out):
    found = run_fleet(WorkloadTermAntiAffinity(), asked, FLEET, others)
    assert found.rejected == dict.fromkeys(out.split(), PEER)


@pytest.mark.parametrize(
    "owner, asked, out",
    [
        (asking("db", away="app=web by cluster", runs="c1"), "new app=web", "c1"),
        (asking("db", away="app=web by region", runs="c1"), "new app=web", "c1 c2"),
        (asking("db", away="app=web by cluster", runs="c1"), "new app=api", ""),
        (asking("db", away="app=web by cluster", runs="c1"), "shop/new app=web", ""),
        (asking("db", away="app=web by cluster"), "new app=web", ""),
        (asking("db", near="app=web by cluster", runs="c1"), "new app=web", ""),
        (asking("db", avoids="5 app=web by cluster", runs="c1"), "new app=web", ""),
    ],
)
def test_anti_affinity_of_existing_workloads(owner, asked, out):
    found = run_fleet(WorkloadTermAntiAffinity(), binding(asked), FLEET, [owner])
    assert found.rejected == dict.fromkeys(out.split(), OWNER)


def test_its_own_anti_affinity_gives_the_reason_first():
    owner = asking("db app=db", away="app=web by cluster", runs="c1")
    found = run_fleet(WorkloadTermAntiAffinity(), asking("new app=web", away="app=db by cluster"), FLEET, [owner])
    assert found.rejected == {"c1": PEER}
    assert [failure.reason for failure in found.failures["c1"]] == [PEER[2:], OWNER[2:]]


@pytest.mark.parametrize(
    "asked, scores",
    [
        (asking("new", prefers="10 app=db by cluster"), {"c1": 100, "c2": 0, "c3": 0, "bare": 0}),
        (asking("new", prefers="10 app=db by region"), {"c1": 100, "c2": 100, "c3": 0, "bare": 0}),
        (asking("new", avoids="10 app=db by cluster"), {"c1": 0, "c2": 100, "c3": 100, "bare": 100}),
        (
            asking("new", prefers="10 app=db by cluster", avoids="20 app=cache by cluster"),
            {"c1": 100, "c2": 0, "c3": 66, "bare": 66},  # in percent of all weights, rounded down
        ),
        (
            asking("new", prefers=("1 app=db by cluster", "2 app=no by cluster")),
            {"c1": 33, "c2": 0, "c3": 0, "bare": 0},
        ),
        (asking("new"), None),
        (asking("new app=web", near="app=web by cluster"), None),
    ],
)
def test_preferred_terms(asked, scores):
    """A term counts once, however many peers match it; the terms of existing workloads do not count."""
    others = [DB, binding("db-2 app=db", runs="c1"), CACHE, asking("like", prefers="5 app=web by cluster", runs="c3")]
    assert run_fleet(WorkloadTermAffinity(), asked, FLEET, others).raw == scores


def test_evidence_names_the_term_the_domain_and_the_peers():
    near = run_fleet(WorkloadTermAffinity(), asking("new", near="app=db by cluster"), FLEET, [DB]).failures["c3"]
    assert [(f.term, f.peers) for f in near] == [(f"workloadAffinity.{REQUIRED}[0]", ("default/db-deployment",))]
    asked = asking("new", away=("app=no by cluster", "app=db by zone"))
    away = run_fleet(WorkloadTermAntiAffinity(), asked, FLEET, [DB]).failures
    assert peers(away["c1"]) == [("zone=a, zone=b", ("default/db-deployment",))]
    assert away["c2"][0].term == f"workloadAntiAffinity.{REQUIRED}[1]"
    owner = asking("db", away="app=web by cluster", runs="c1")
    existing = run_fleet(WorkloadTermAntiAffinity(), binding("new app=web"), FLEET, [owner]).failures["c1"]
    assert peers(existing) == [("cluster=c1", ("default/db-deployment",))]
