"""Violations are tracked by judging only the owners that a change concerns: counted, never timed."""

import msgspec
import pytest

from bayplan.enforcing.execution_rules import RuleType
from bayplan.enforcing.tracking import ViolationTracker
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.labels import equals
from bayplan.model.targets import Target
from bayplan.model.terms import HOSTNAME, ZONE, AffinityTerms, PodTerm
from bayplan.model.workloads import Needs, Workload


def target(i, zone=None):
    return Target(name=f"n{i}", labels={HOSTNAME: f"n{i}", ZONE: zone or f"z{i % 3}"})


def workload(name, app, terms=None):
    needs = Needs(affinity=terms or AffinityTerms())
    return Workload(namespace="default", name=name, uid=name, labels={"app": app}, needs=needs)


def anti_affinity(app, key=HOSTNAME, limit=0):
    term = PodTerm(equals({"app": app}), key, limit=limit, during_execution=True, path="anti")
    return AffinityTerms(anti_required=(term,))


def affinity(app, key=ZONE):
    return AffinityTerms(required=(PodTerm(equals({"app": app}), key, during_execution=True, path="with"),))


def cluster(n_targets, n_workloads, terms):
    """`n_workloads` owners of a rule, evenly over nodes in three zones."""
    index = PlacementIndex()
    for i in range(n_targets):
        index.add_target(target(i))
    for i in range(n_workloads):
        index.add(workload(f"web-{i}", "web", terms), f"n{i % n_targets}")
    return index


def n_evaluated(tracker, change):
    """How many owners were evaluated because of a change."""
    before = tracker.n_evaluated
    change()
    tracker.catch_up()
    return tracker.n_evaluated - before


@pytest.mark.parametrize("n_targets", [10, 200])
def test_a_change_on_one_node_evaluates_only_the_owners_on_that_node(n_targets):
    index = cluster(n_targets, 2 * n_targets, anti_affinity("batch"))
    tracker = ViolationTracker(index)
    assert n_evaluated(tracker, lambda: index.add(workload("job", "batch"), "n3")) == 2
    assert {violation.owner for violation in tracker.violations()} == {
        "default/web-3",
        f"default/web-{n_targets + 3}",
    }
    assert n_evaluated(tracker, lambda: index.remove("default/job")) == 2
    assert tracker.violations() == ()


def test_a_count_that_crosses_no_level_evaluates_no_owner():
    index = cluster(30, 300, anti_affinity("batch", ZONE, limit=2))
    tracker = ViolationTracker(index)
    for i in range(2):
        assert n_evaluated(tracker, lambda i=i: index.add(workload(f"job-{i}", "batch"), "n0")) == 0
    # The third exceeds the limit, the fourth also for owners that the rule matches itself.
    assert n_evaluated(tracker, lambda: index.add(workload("job-2", "batch"), "n0")) == 100
    assert len(tracker.violations()) == 100
    assert n_evaluated(tracker, lambda: index.add(workload("job-3", "batch"), "n0")) == 100
    for i in range(4, 30):
        assert n_evaluated(tracker, lambda i=i: index.add(workload(f"job-{i}", "batch"), "n0")) == 0


def test_peers_added_and_removed_beside_others_evaluate_no_owner():
    index = cluster(30, 300, affinity("cache"))
    for i in range(9):
        index.add(workload(f"cache-{i}", "cache"), f"n{i}")
    tracker = ViolationTracker(index)
    assert tracker.violations() == ()
    assert n_evaluated(tracker, lambda: index.remove("default/cache-0")) == 0  # two of three are left in its zone
    assert n_evaluated(tracker, lambda: index.add(workload("other", "other"), "n0")) == 0
    n_evaluated(tracker, lambda: index.remove("default/cache-3"))
    assert n_evaluated(tracker, lambda: index.remove("default/cache-6")) == 100
    assert {violation.domain for violation in tracker.violations()} == {f"{ZONE}=z0"}


def test_a_node_that_changes_zone_evaluates_its_own_pods_and_the_two_zones():
    index = cluster(30, 300, anti_affinity("batch", ZONE))
    index.add(workload("job", "batch"), "n0")
    tracker = ViolationTracker(index)
    assert len(tracker.violations()) == 100
    moved = n_evaluated(tracker, lambda: index.update_target(target(1, "z0")))  # ten pods of the second zone
    assert moved == 10
    assert len(tracker.violations()) == 110
    moved = n_evaluated(tracker, lambda: index.update_target(target(0, "z2")))  # with the job and ten pods
    assert moved <= 10 + 100 + 100
    assert len(tracker.violations()) == 110  # the first zone no longer has the job, the third zone does


def test_a_pod_without_rules_that_no_rule_matches_evaluates_no_owner():
    index = cluster(30, 300, anti_affinity("batch"))
    tracker = ViolationTracker(index)
    assert n_evaluated(tracker, lambda: index.add(workload("plain", "plain"), "n0")) == 0


def test_five_hundred_violations_are_found_by_judging_five_hundred_owners():
    index = cluster(500, 500, anti_affinity("batch"))
    for i in range(500):
        index.add(workload(f"job-{i}", "tool"), f"n{i}")
    tracker = ViolationTracker(index)

    def relabel_all():
        for i in range(500):
            index.replace(workload(f"job-{i}", "batch"))

    assert n_evaluated(tracker, relabel_all) == 500
    assert len(tracker.violations()) == 500


def test_a_violation_names_rule_domain_and_peers():
    index = cluster(3, 1, anti_affinity("batch"))
    index.add(workload("job", "batch"), "n0")
    (violation,) = ViolationTracker(index).violations()
    assert violation.owner == "default/web-0"
    assert violation.rule_type is RuleType.ANTI_AFFINITY
    assert (violation.term, violation.shown) == ("anti", "app=batch")
    assert (violation.topology_key, violation.domain, violation.target) == (HOSTNAME, f"{HOSTNAME}=n0", "n0")
    assert violation.peers == ("default/job",)


def test_the_same_name_with_another_uid_is_another_violation():
    index = cluster(3, 1, anti_affinity("batch"))
    index.add(workload("job", "batch"), "n0")
    tracker = ViolationTracker(index)
    (before,) = tracker.violations()
    index.replace(msgspec.structs.replace(workload("web-0", "web", anti_affinity("batch")), uid="again"))
    (after,) = tracker.violations()
    assert before.id != after.id
