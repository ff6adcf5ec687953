"""Broken rules are known at once, and by looking at those alone whom a change concerns: counted, never timed."""

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


def apart(app, key=HOSTNAME, limit=0):
    term = PodTerm(equals({"app": app}), key, limit=limit, during_execution=True, path="apart")
    return AffinityTerms(anti_required=(term,))


def near(app, key=ZONE):
    return AffinityTerms(required=(PodTerm(equals({"app": app}), key, during_execution=True, path="near"),))


def cluster(n_targets, n_workloads, terms):
    """So many owners of a rule, evenly over nodes in three zones."""
    index = PlacementIndex()
    for i in range(n_targets):
        index.add_target(target(i))
    for i in range(n_workloads):
        index.add(workload(f"web-{i}", "web", terms), f"n{i % n_targets}")
    return index


def judged(tracker, change):
    """How many owners were looked at because of a change."""
    before = tracker.n_judged
    change()
    tracker.catch_up()
    return tracker.n_judged - before


@pytest.mark.parametrize("n_targets", [10, 200])
def test_a_change_on_one_node_looks_at_the_owners_on_that_node(n_targets):
    index = cluster(n_targets, 2 * n_targets, apart("batch"))
    tracker = ViolationTracker(index)
    assert judged(tracker, lambda: index.add(workload("job", "batch"), "n3")) == 2
    assert {violation.owner for violation in tracker.violations()} == {
        "default/web-3",
        f"default/web-{n_targets + 3}",
    }
    assert judged(tracker, lambda: index.remove("default/job")) == 2
    assert tracker.violations() == ()


def test_a_count_that_makes_no_difference_makes_nobody_look():
    index = cluster(30, 300, apart("batch", ZONE, limit=2))
    tracker = ViolationTracker(index)
    for i in range(2):
        assert judged(tracker, lambda i=i: index.add(workload(f"job-{i}", "batch"), "n0")) == 0
    # The third is one too many, and the fourth too many for those who count themselves: nobody here, but who knows.
    assert judged(tracker, lambda: index.add(workload("job-2", "batch"), "n0")) == 100
    assert len(tracker.violations()) == 100
    assert judged(tracker, lambda: index.add(workload("job-3", "batch"), "n0")) == 100
    for i in range(4, 30):
        assert judged(tracker, lambda i=i: index.add(workload(f"job-{i}", "batch"), "n0")) == 0


def test_peers_that_come_and_go_beside_others_make_nobody_look():
    index = cluster(30, 300, near("cache"))
    for i in range(9):
        index.add(workload(f"cache-{i}", "cache"), f"n{i}")
    tracker = ViolationTracker(index)
    assert tracker.violations() == ()
    assert judged(tracker, lambda: index.remove("default/cache-0")) == 0  # two of three are left in its zone
    assert judged(tracker, lambda: index.add(workload("other", "other"), "n0")) == 0
    judged(tracker, lambda: index.remove("default/cache-3"))
    assert judged(tracker, lambda: index.remove("default/cache-6")) == 100
    assert {violation.domain for violation in tracker.violations()} == {f"{ZONE}=z0"}


def test_a_node_that_changes_zone_looks_at_its_own_pods_and_the_two_zones():
    index = cluster(30, 300, apart("batch", ZONE))
    index.add(workload("job", "batch"), "n0")
    tracker = ViolationTracker(index)
    assert len(tracker.violations()) == 100
    moved = judged(tracker, lambda: index.update_target(target(1, "z0")))  # ten pods come from the second zone
    assert moved == 10
    assert len(tracker.violations()) == 110
    moved = judged(tracker, lambda: index.update_target(target(0, "z2")))  # the job and ten pods leave
    assert moved <= 10 + 100 + 100
    assert len(tracker.violations()) == 110  # those who stay behind are free of the job, the third zone has it


def test_who_holds_no_rule_and_is_meant_by_none_costs_nothing():
    index = cluster(30, 300, apart("batch"))
    tracker = ViolationTracker(index)
    assert judged(tracker, lambda: index.add(workload("plain", "plain"), "n0")) == 0


def test_five_hundred_broken_rules_are_found_by_looking_at_five_hundred_owners():
    index = cluster(500, 500, apart("batch"))
    for i in range(500):
        index.add(workload(f"job-{i}", "tool"), f"n{i}")
    tracker = ViolationTracker(index)

    def storm():
        for i in range(500):
            index.replace(workload(f"job-{i}", "batch"))

    assert judged(tracker, storm) == 500
    assert len(tracker.violations()) == 500


def test_a_violation_says_all_there_is_to_know():
    index = cluster(3, 1, apart("batch"))
    index.add(workload("job", "batch"), "n0")
    (violation,) = ViolationTracker(index).violations()
    assert violation.owner == "default/web-0"
    assert violation.rule_type is RuleType.ANTI_AFFINITY
    assert (violation.term, violation.shown) == ("apart", "app=batch")
    assert (violation.topology_key, violation.domain, violation.target) == (HOSTNAME, f"{HOSTNAME}=n0", "n0")
    assert violation.peers == ("default/job",)


def test_the_same_name_with_another_uid_is_another_violation():
    index = cluster(3, 1, apart("batch"))
    index.add(workload("job", "batch"), "n0")
    tracker = ViolationTracker(index)
    (before,) = tracker.violations()
    index.replace(msgspec.structs.replace(workload("web-0", "web", apart("batch")), uid="again"))
    (after,) = tracker.violations()
    assert before.id != after.id
