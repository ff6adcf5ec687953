"""Clusters that are being deleted."""

from bayplan.rules.cluster_leaving import ClusterLeaving
from rules.shorthand import binding, cluster, run_fleet


def test_clusters_that_are_being_deleted():
    found = run_fleet(ClusterLeaving(), binding("web", runs="c1"), [cluster("c1", deleting=True), cluster("c2")])
    assert set(found.rejected) == {"c1"}  # also one that has the workload
    assert ClusterLeaving.silent  # Karmada's message counts no reason for them
