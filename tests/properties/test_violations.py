"""The tracker finds the same violations as plain loops over all pairs of pods."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.enforcing import bind_review
from bayplan.enforcing.execution_rules import RuleType
from bayplan.enforcing.tracking import ViolationTracker
from bayplan.engine.engine import Engine
from bayplan.indexing import journal
from bayplan.model.semantics import DESIGN, UPSTREAM
from bayplan.placing import place_pods
from bayplan.rules import profiles
from properties.breaking import BreakingCluster, violations_of
from reference import violations as reference_implementation
from reference.strategies import HOSTNAME

SEEDS = st.integers(0, 2**32)
MIXED = {"affinityTermsMetApart": True, "emptyTopologyKeyMeansAny": True}
OPTIONS = {
    "upstream": {"semantics": "upstream"},
    "design": {"semantics": "design"},
    "mixed": {"semantics": "upstream", "switches": MIXED},
}
SEMANTICS = {
    "upstream": UPSTREAM,
    "design": DESIGN,
    "mixed": msgspec.convert({**msgspec.to_builtins(UPSTREAM), **MIXED}, type(UPSTREAM)),
}
ALL = pytest.mark.parametrize("preset", OPTIONS)


def drawn(seed, preset, **how):
    return BreakingCluster(seed, SEMANTICS[preset], OPTIONS[preset], **how)


@ALL
@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_tracker_finds_what_plain_loops_find(preset, seed):
    cluster = drawn(seed, preset)
    assert cluster.tracked() == reference_implementation.broken(cluster.question())
    for _ in range(25):
        cluster.step()
        if cluster.maybe(0.6):  # not after each change, so that there are several to catch up with
            assert cluster.tracked() == reference_implementation.broken(cluster.question())
    assert cluster.tracked() == reference_implementation.broken(cluster.question())


@ALL
@settings(max_examples=25, deadline=None)
@given(seed=SEEDS)
def test_undone_changes_violate_nothing(preset, seed):
    cluster = drawn(seed, preset, n_pods=12)
    before, kept = cluster.tracked(), (dict(cluster.nodes), dict(cluster.pods), dict(cluster.namespaces))
    with cluster.index.tentatively():
        for _ in range(8):
            cluster.step()
        if cluster.maybe(0.5):
            assert cluster.tracked() == reference_implementation.broken(cluster.question())
    cluster.nodes, cluster.pods, cluster.namespaces = kept
    assert cluster.tracked() == before
    cluster.step()
    assert cluster.tracked() == reference_implementation.broken(cluster.question())


@ALL
@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_a_violation_knows_which_evictions_resolve_it(preset, seed):
    cluster = drawn(seed, preset, n_pods=14)
    for violation in cluster.tracker.violations():
        involved = [violation.owner, *violation.peers]
        gone = set(cluster.chance.sample(involved, cluster.chance.randint(0, len(involved))))
        if cluster.maybe(0.3):
            gone = set(violation.peers)
        if violation.lone_member_without and cluster.maybe(0.5):
            gone = set(cluster.chance.choice(violation.lone_member_without)) - {violation.owner}
        question = cluster.question()
        left = [pod for pod in question["pods"] if cluster.workload(pod).key not in gone]
        broken = [found[:4] for found in reference_implementation.broken({**question, "pods": left})]
        still = (violation.owner, violation.rule_type.value, violation.term, violation.topology_key) in broken
        assert violation.resolved_without(gone) == (not still)


@ALL
@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_no_pod_violates_a_rule_where_it_was_just_placed(preset, seed):
    """Otherwise enforcement would evict what the scheduler places again."""
    cluster = drawn(seed, preset, n_pods=10)
    engine = Engine(cluster.index, profiles.pod_rules())
    for _ in range(6):
        before = {(violation.owner, violation.term) for violation in cluster.tracker.violations()}
        cluster.serial += 1
        newcomer = cluster.draw_pod(f"new{cluster.serial}")
        workload = cluster.workload(newcomer)
        if place_pods.place(workload, engine).target:
            after = {(violation.owner, violation.term) for violation in cluster.tracker.violations()}
            assert not [broken for broken in after if broken[0] == workload.key]
            assert {broken for broken in after - before if "podAntiAffinity" in broken[1]} == set()


@ALL
@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_a_bind_is_rejected_for_the_rules_over_nodes_that_it_would_violate(preset, seed):
    """The webhook reports beforehand what the tracker would find afterwards."""
    cluster = drawn(seed, preset, n_pods=14)
    for _ in range(8):
        cluster.serial += 1
        workload, node = cluster.workload(cluster.draw_pod("new")), cluster.chance.choice(sorted(cluster.nodes))
        said = {(rule.owner, rule.path) for rule in bind_review.broken_rules(workload, node, cluster.index)}
        # What is violated already rejects nothing under `design`.
        before = [v for v in cluster.tracker.violations() if v.topology_key == HOSTNAME]
        known = {(v.owner, v.term) for v in before if v.owner != workload.key}
        known = known if cluster.index.semantics.neighbours_reject_when_satisfied else set()
        with cluster.index.tentatively():
            cluster.index.add(workload, node)
            over_nodes = [v for v in cluster.tracker.violations() if v.topology_key == HOSTNAME]
            conflicting = [v for v in over_nodes if v.rule_type is RuleType.ANTI_AFFINITY and workload.key in v.peers]
            found = {(v.owner, v.term) for v in (*(v for v in over_nodes if v.owner == workload.key), *conflicting)}
        assert said == found - known
        cluster.step()


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS)
def test_a_tracker_that_fell_behind_evaluates_all_again(seed):
    cluster = drawn(seed, "design")
    for _ in range(2 * journal.MIN_KEPT_CHANGES // 8 + 50):
        cluster.index.set_namespace("busy", {"n": "1"})
        cluster.index.set_namespace("busy", None)
    for _ in range(5):
        cluster.step()
    for _ in range(journal.MIN_KEPT_CHANGES):
        cluster.index.set_namespace("busy", {"n": "1"})
        cluster.index.set_namespace("busy", None)
    assert cluster.index.journal.since(0) is None
    assert (
        cluster.tracked()
        == reference_implementation.broken(cluster.question())
        == violations_of(ViolationTracker(cluster.index))
    )
    for _ in range(10):
        cluster.step()
        assert cluster.tracked() == reference_implementation.broken(cluster.question())


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS)
def test_a_released_tracker_leaves_no_terms_behind(seed):
    cluster = drawn(seed, "design")
    for _ in range(15):
        cluster.step()
        cluster.tracked()
    cluster.tracker.release()
    for key in list(cluster.index.records):
        cluster.index.remove(key)
    assert len(cluster.index.peer_index.terms) == 0
