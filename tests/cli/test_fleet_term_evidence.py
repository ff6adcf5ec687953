"""`explain` shows what a workload affinity term looked for, where that is, and what the workload lacks."""

import pytest
import yaml

from .test_fleet_unknown_labels import ONE_CLUSTER, cluster, pipeline, policy

DB = {"labelSelector": {"matchLabels": {"db": "x"}}}
GROUP = {"labelSelector": {"matchLabels": {"app.tier": "prod"}}, "matchLabelKeys": ["karmada.io/group"]}
CLUSTERS = [
    cluster("member1", region="eu"),
    cluster("member2", region="eu"),
    cluster("member3", region="us"),
    cluster("member4"),
]


def needing(field, **term):
    return {field: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def named(name, extra, clusters=()):
    """A policy for one pipeline."""
    placement = {**ONE_CLUSTER, **({"clusterAffinity": {"clusterNames": clusters}} if clusters else {})}
    found = policy(extra, placement, name=f"of-{name}")
    found["spec"]["resourceSelectors"][0]["name"] = name
    return found


@pytest.fixture
def details(run, tmp_path):
    """What `explain` says of the pipeline `new` by cluster, where `base` is on member1."""

    def explain(term, labels, old, of_old=None):
        objects = [*CLUSTERS, named("new", term), named("base", of_old, ["member1"])]
        (tmp_path / "all.yaml").write_text(
            yaml.safe_dump_all([*objects, pipeline("base", old), pipeline("new", labels)])
        )
        text = run("explain", "flinkdeployment/new", "-f", str(tmp_path), "--all-targets").stdout
        rows = [line.split(None, 2) for line in text.splitlines() if line.startswith("  member") and "fits" not in line]
        return {name: detail for name, _, detail in rows}, text

    return explain


def test_affinity_that_no_workload_meets(details):
    """The first of a set fits anywhere, so it matters what the workload itself lacks."""
    found, _ = details(needing("workloadAffinity", **DB), {"db": "v"}, {"db": "w"})
    assert set(found.values()) == {"no placed workload matches db=x, and its own labels lack it"}
    found, _ = details(needing("workloadAffinity", **GROUP), {"karmada.io/group": "a"}, {"app.tier": "prod"})
    expected = "no placed workload matches app.tier=prod,karmada.io/group=a, and its own labels lack app.tier=prod"
    assert set(found.values()) == {expected}
    found, _ = details(needing("workloadAffinity", **GROUP), {"app.tier": "prod"}, {"app.tier": "prod"})
    assert set(found.values()) == {
        "the term matches nothing: it has no selector, or selects by a label that the workload lacks"
    }
    elsewhere = needing("workloadAffinity", **DB, namespaces=["other"])
    found, _ = details(elsewhere, {"db": "x"}, {"db": "x"})
    assert set(found.values()) == {"no placed workload matches db=x in namespace other"}


def test_affinity_that_is_met_elsewhere(details):
    found, text = details(needing("workloadAffinity", **DB, topologyKey="region"), {"db": "x"}, {"db": "x"})
    assert found == {
        "member3": "no workload in region=us matches db=x; they are in eu",
        "member4": "the cluster has no region",
    }
    assert "peers: user-namespace/base-flinkdeployment" in text


def test_anti_affinity(details):
    found, _ = details(needing("workloadAntiAffinity", **DB, topologyKey="region"), {"app": "a"}, {"db": "x"})
    peer = "user-namespace/base-flinkdeployment in region=eu matches db=x"
    assert found == {"member1": peer, "member2": peer}
    found, _ = details(None, {"db": "x"}, {}, needing("workloadAntiAffinity", **DB))
    assert found == {"member1": "user-namespace/base-flinkdeployment in cluster=member1 has anti-affinity to db=x"}
