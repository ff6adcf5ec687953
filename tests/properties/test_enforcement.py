"""
After enforcement settles, the only violations left are those whose evictions are withheld for lack of consent, and only
pods involved in violations were evicted, by rules that may evict them.
"""

import pytest
from hypothesis import given, settings

from bayplan.enforcing import enforcer, planning
from bayplan.enforcing.consent import namespace_of
from bayplan.enforcing.enforcer import Enforcer
from bayplan.enforcing.eviction_limits import EvictionBudgets
from bayplan.enforcing.execution_rules import RuleType
from bayplan.enforcing.planning import EnforcementSettings
from bayplan.engine.engine import Engine
from bayplan.mapping.pods import EMPTY_SPREAD_CONTEXT
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.labels import equals
from bayplan.rules import profiles
from properties.test_violations import OPTIONS, SEEDS, drawn
from reference import violations as reference_implementation

GRACE = EnforcementSettings(affinity_grace=100, anti_affinity_grace=20, per_minute=3, at_once=2, retry_after=30)


class Trial:
    """A cluster under enforcement, with evictions carried out at once or rejected by a budget."""

    def __init__(self, cluster, settings, budgets=(), engine=None):
        self.cluster, self.enforcer, self.engine = cluster, Enforcer(settings), engine
        self.budgets = EvictionBudgets(budgets)
        self.now, self.evicted, self.spared = 0.0, [], {}

    def run(self, max_steps=400):
        """Run until nothing more is due."""
        for _ in range(max_steps):
            plan = self.step()
            if not plan.evict and not plan.in_grace and not plan.waiting:
                self.spared = {delay.victim: delay.why for delay in plan.spared}
                return plan
            self.now = max(self.now, min(plan.next_at, self.now + 30.0)) if not plan.evict else self.now
        raise AssertionError("enforcement never settles")

    def step(self):
        """Carry out what is due now."""
        broken = self.broken()
        plan = self.plan()
        for eviction in plan.evict:
            assert all(name_of(cause) in broken for cause in eviction.causes)
            self.carry_out(eviction)
        return plan

    def broken(self):
        return {found[:4] for found in reference_implementation.broken(self.cluster.question())}

    def plan(self):
        tracker = self.cluster.tracker
        self.enforcer.observe(tracker.violations(), self.now)
        if self.engine is None:
            return self.enforcer.due(self.now, tracker.precedence())
        precedence = tracker.precedence()
        with enforcer.checking_other_targets(self.engine, EMPTY_SPREAD_CONTEXT) as fits_elsewhere:
            return self.enforcer.due(self.now, precedence, fits_elsewhere)

    def carry_out(self, eviction):
        victim = eviction.victim
        # After the evictions before it, a violation is still left that this eviction resolves.
        assert {name_of(cause) for cause in eviction.causes} & self.broken()
        for cause in eviction.causes:
            assert victim == cause.owner or (victim in cause.peers and cause.rule_type is RuleType.ANTI_AFFINITY)
            assert victim == cause.owner or self.cluster.consents(namespace_of(cause.owner), namespace_of(victim))
            assert self.now >= self.enforcer.since(cause) + self.enforcer.settings.grace(cause.rule_type)
        workload = self.cluster.index.records[victim].workload
        rejection = self.budgets.rejection(workload)
        if rejection:
            self.enforcer.rejected(victim, rejection, self.now)
            return
        self.budgets.charge(workload)
        self.enforcer.evicted(victim, self.now)
        self.evicted.append((self.now, victim))
        del self.cluster.pods[workload.name]
        self.cluster.index.remove(victim)
        self.enforcer.gone(victim)


def left(cluster):
    return {found[:4] for found in reference_implementation.broken(cluster.question())}


def withheld(plan):
    return {name_of(one.violation) for one in plan.withheld}


def name_of(violation):
    return violation.owner, violation.rule_type.value, violation.term, violation.topology_key


@pytest.mark.parametrize("preset", OPTIONS)
@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_every_resolvable_violation_is_resolved(preset, seed):
    cluster = drawn(seed, preset, n_pods=16)
    trial = Trial(cluster, GRACE)
    plan = trial.run()
    assert left(cluster) == withheld(plan)
    assert preset != "design" or not plan.withheld


@pytest.mark.parametrize("preset", OPTIONS)
@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_violations_are_resolved_whatever_changes_meanwhile(preset, seed):
    """Pods, nodes and namespaces are relabelled, pods and nodes are removed, pods are bound; evictions continue."""
    cluster = drawn(seed, preset, n_pods=10)
    trial = Trial(cluster, GRACE)
    for _ in range(25):
        cluster.step()
        trial.step()
        trial.now += cluster.chance.choice((0.0, 5.0, 30.0))
    assert withheld(trial.run()) == left(cluster)


@pytest.mark.parametrize("preset", OPTIONS)
@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_only_budgets_leave_violations(preset, seed):
    cluster = drawn(seed, preset, n_pods=16)
    forbids = DisruptionBudget(namespace="default", name="web", selector=equals({"app": "web"}), allowed=0)
    few = DisruptionBudget(namespace="default", name="db", selector=equals({"app": "db"}), allowed=1)
    trial = Trial(cluster, GRACE, [forbids, few])
    trial.run()
    precedence = cluster.tracker.precedence()
    still = planning.enforceable(cluster.tracker.violations(), precedence)
    chosen, _ = planning.evictions_for(still, precedence)
    assert bool(still) == bool(chosen)
    for victim in chosen:
        assert trial.budgets.rejection(cluster.index.records[victim].workload)


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS)
def test_a_pod_that_fits_nowhere_else_is_spared_if_configured(seed):
    cluster = drawn(seed, "design", n_pods=16)
    engine = Engine(cluster.index, profiles.pod_rules())
    trial = Trial(
        cluster, EnforcementSettings(affinity_grace=0, anti_affinity_grace=0, only_if_placeable=True), engine=engine
    )
    before = cluster.tracked()
    trial.plan()
    assert cluster.tracked() == before  # planning changes nothing
    trial.run()
    for victim, why in trial.spared.items():
        assert why == planning.NO_OTHER_TARGET
        with enforcer.checking_other_targets(engine, EMPTY_SPREAD_CONTEXT) as fits_elsewhere:
            assert not fits_elsewhere(victim)
    assert bool(trial.spared) == bool(cluster.tracker.violations())


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS)
def test_no_minute_has_more_evictions_than_allowed(seed):
    cluster = drawn(seed, "design", n_pods=25)
    trial = Trial(cluster, GRACE)
    trial.run()
    times = [now for now, _ in trial.evicted]
    assert all(sum(now - 60 < other <= now for other in times) <= GRACE.per_minute for now in times)
