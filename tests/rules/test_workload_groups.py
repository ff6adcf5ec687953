"""Karmada's workload affinity groups: on every cluster of the peers, or on none of them."""

import pytest

from bayplan.rules.workload_groups import WorkloadGroupAffinity, WorkloadGroupAntiAffinity
from rules.shorthand import binding, peers, run_fleet

ELSEWHERE = "U ResourceBinding with the same affinity group does not target this cluster"
HERE = "U cluster already has workload with the same anti-affinity group"
FLEET = "c1; c2; c3"
NEAR = {"affinityGroup": "app=web"}
AWAY = {"antiAffinityGroup": "app=web"}


@pytest.mark.parametrize(
    "asked, others, out",
    [
        (binding("new", groups=NEAR), [], ""),  # the first of its group
        (binding("new", groups=NEAR), [binding("x", groups=NEAR)], ""),  # a peer without clusters does not count
        (binding("new", groups=NEAR), [binding("x", groups=NEAR, runs="c1")], "c2 c3"),
        (binding("new", groups=NEAR), [binding("x", groups=NEAR, runs="c1 c2")], "c3"),
        # Every peer must be there.
        (binding("new", groups=NEAR), [binding("x", groups=NEAR, runs="c1 c2"), binding("y", groups=NEAR, runs="c2 c3")], "c1 c3"),
        (binding("new", groups=NEAR), [binding("x", groups=NEAR, runs="c1"), binding("y", groups=NEAR, runs="c2")], "c1 c2 c3"),
        (binding("new", groups=NEAR), [binding("x", groups={"affinityGroup": "app=db"}, runs="c1")], ""),
        (binding("new", groups=NEAR), [binding("shop/x", groups=NEAR, runs="c1")], ""),  # another namespace
        (binding("new", groups=NEAR), [binding("x app=web", runs="c1")], ""),  # the label alone is no membership
        (binding("new", groups=NEAR), [binding("x", groups=AWAY, runs="c1")], ""),  # the groups are separate
        (binding("new", groups=NEAR), [binding("x", groups=NEAR, runs="c1", kind="Job")], "c2 c3"),  # of any kind
        (binding("new", groups=NEAR, runs="c2"), [binding("x", groups=NEAR, runs="c1")], "c3"),  # it is on c2 already
        (binding("new"), [binding("x", groups=NEAR, runs="c1")], ""),
        (binding("new", groups=AWAY), [binding("x", groups=NEAR, runs="c1")], ""),
    ],
)  # fmt: skip
def test_affinity_groups(asked, others, out):
    found = run_fleet(WorkloadGroupAffinity(), asked, FLEET, others)
    assert found.rejected == dict.fromkeys(out.split(), ELSEWHERE)


@pytest.mark.parametrize(
    "asked, others, out",
    [
        (binding("new", groups=AWAY), [], ""),
        (binding("new", groups=AWAY), [binding("x", groups=AWAY)], ""),
        (binding("new", groups=AWAY), [binding("x", groups=AWAY, runs="c1")], "c1"),
        (binding("new", groups=AWAY), [binding("x", groups=AWAY, runs="c1"), binding("y", groups=AWAY, runs="c2")], "c1 c2"),
        (binding("new", groups=AWAY), [binding("x", groups={"antiAffinityGroup": "app=db"}, runs="c1")], ""),
        (binding("new", groups=AWAY), [binding("shop/x", groups=AWAY, runs="c1")], ""),
        (binding("new", groups=AWAY), [binding("x", groups=NEAR, runs="c1")], ""),
        (binding("new", groups=AWAY, runs="c1"), [binding("x", groups=AWAY, runs="c1 c2")], "c2"),
        (binding("new"), [binding("x", groups=AWAY, runs="c1")], ""),
        (binding("new", groups=AWAY), [binding("x", groups=AWAY, evicting=["c1"])], ""),  # no longer in spec.clusters
    ],
)  # fmt: skip
def test_anti_affinity_groups(asked, others, out):
    found = run_fleet(WorkloadGroupAntiAffinity(), asked, FLEET, others)
    assert found.rejected == dict.fromkeys(out.split(), HERE)


def test_a_peer_without_replicas_on_a_cluster_is_still_there():
    name, short = binding("x", groups=AWAY)
    found = run_fleet(
        WorkloadGroupAntiAffinity(), binding("new", groups=AWAY), FLEET, [(name, {**short, "runs": {"c1": 0}})]
    )
    assert found.rejected == {"c1": HERE}


def test_a_draining_copy_keeps_anti_affine_workloads_out_in_the_design_preset():
    others = [binding("x", groups=AWAY, evicting=["c1"])]
    found = run_fleet(WorkloadGroupAntiAffinity(), binding("new", groups=AWAY), FLEET, others, semantics="design")
    assert found.rejected == {"c1": HERE}


def test_a_draining_copy_does_not_satisfy_affinity():
    others = [binding("x", groups=NEAR, runs="c2", evicting=["c1"])]
    for semantics in ("upstream", "design"):
        found = run_fleet(WorkloadGroupAffinity(), binding("new", groups=NEAR), FLEET, others, semantics=semantics)
        assert found.rejected == {"c1": ELSEWHERE, "c3": ELSEWHERE}


def test_groups_follow_from_the_labels_of_the_template():
    placement = {"workloadAffinity": {"antiAffinity": {"groupByLabelKey": "app"}}}
    others = [binding("x app=web", placement=placement, runs="c1"), binding("y app=db", placement=placement, runs="c2")]
    found = run_fleet(WorkloadGroupAntiAffinity(), binding("new app=web", placement=placement), FLEET, others)
    assert found.rejected == {"c1": HERE}
    assert run_fleet(WorkloadGroupAntiAffinity(), binding("new", placement=placement), FLEET, others).rejected == {}


def test_evidence_names_the_group_the_cluster_and_the_peers():
    others = [binding("x", groups={**NEAR, **AWAY}, runs="c1"), binding("y", groups={**NEAR, **AWAY}, runs="c1 c2")]
    near = run_fleet(WorkloadGroupAffinity(), binding("new", groups=NEAR), FLEET, others).failures
    assert peers(near["c2"]) == [("cluster=c2", ("default/x-deployment",))]  # the peer that is not there
    assert peers(near["c3"]) == [("cluster=c3", ("default/x-deployment", "default/y-deployment"))]
    away = run_fleet(WorkloadGroupAntiAffinity(), binding("new", groups=AWAY), FLEET, others).failures
    assert peers(away["c1"]) == [("cluster=c1", ("default/x-deployment", "default/y-deployment"))]
    assert peers(away["c2"]) == [("cluster=c2", ("default/y-deployment",))]
    assert away["c2"][0].term == "app=web"
