"""Violations are tracked by judging only the owners that a change concerns: counted, never timed."""

import msgspec
import pytest

from bayplan.enforcing import planning
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


def crowd(n, *, namespace="default", index=None, priority=lambda i: 0):
    """Pods of one zone of which each excludes all others, the first one the oldest."""
    index = index or cluster(1, 0, None)
    for i in range(n):
        made = workload(f"web-{i:04}", namespace, anti_affinity(namespace, ZONE))
        made = msgspec.structs.replace(
            made, namespace=namespace, started=f"2026-01-01T00:{i // 60:02}:{i % 60:02}Z", priority=priority(i)
        )
        index.add(made, "n0")
    return index


def test_pods_that_all_exclude_each_other_are_judged_in_turns():
    """All of them would name 3,000 times 2,999 peers; what tenants write must not decide how much is looked up."""
    index = crowd(3000)
    tracker = ViolationTracker(index)
    judged, later = tracker.judged_violations(10_000)
    assert len(judged) == 3
    assert sum(len(violation.peers) for violation in judged) <= 10_000
    assert {violation.owner for violation in judged} == {f"default/web-{i}" for i in (2997, 2998, 2999)}
    assert len(later) == 2997
    assert later.isdisjoint(violation.id for violation in judged)
    assert tracker.n_by_type() == {RuleType.ANTI_AFFINITY: 3000}


def test_a_namespace_with_many_violations_leaves_others_their_turn():
    index = crowd(300)
    crowd(2, namespace="quiet", index=index)
    judged, _ = ViolationTracker(index).judged_violations(700)
    assert {violation.owner for violation in judged} >= {"quiet/web-0000", "quiet/web-0001"}


@pytest.mark.parametrize("priority", [lambda i: 0, lambda i: i % 3, lambda i: -i])
def test_who_stays_in_the_end_does_not_depend_on_the_turns(priority):
    def survivors(max_peers):
        index = crowd(40, priority=priority)
        tracker = ViolationTracker(index)
        while True:
            judged, later = tracker.judged_violations(max_peers)
            if not judged:
                assert not later
                return set(index.records)
            found, _ = planning.evictions_for(judged, tracker.precedence(judged))
            for victim in found:
                index.remove(victim)

    assert survivors(100) == survivors(10**9)
    assert len(survivors(100)) == 1


def test_few_violations_are_judged_at_once():
    tracker = ViolationTracker(crowd(5))
    judged, later = tracker.judged_violations(25)
    assert set(judged) == set(tracker.violations())
    assert not later


def test_the_ids_of_violations_that_are_judged_later_are_those_that_they_have_then():
    index = crowd(9)
    tracker = ViolationTracker(index)
    _, later = tracker.judged_violations(10)
    assert later
    assert later < {violation.id for violation in tracker.violations()}


def test_a_pod_stays_that_conflicts_only_with_one_that_is_evicted_for_a_higher_priority():
    index = cluster(1, 0, None)
    for name, priority, other in (("low", 0, "mid"), ("mid", 1, "high"), ("high", 2, None)):
        made = workload(name, name, anti_affinity(other) if other else None)
        index.add(msgspec.structs.replace(made, priority=priority), "n0")
    tracker = ViolationTracker(index)
    judged, _ = tracker.judged_violations(1)
    assert [violation.owner for violation in judged] == ["default/mid"]
