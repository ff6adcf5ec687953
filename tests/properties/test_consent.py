"""Rules of a namespace without consent have no influence on which pods of other namespaces are evicted."""

import random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.enforcing import planning
from bayplan.enforcing.consent import namespace_of
from bayplan.enforcing.execution_rules import RuleType
from bayplan.enforcing.victims import Precedence
from bayplan.enforcing.violations import Violation

SEEDS = st.integers(0, 2**32)
NAMESPACES = ("shop", "bank", "club")


class Draw:
    """Violations of anti-affinity among pods of three namespaces, of which some consent to evictions by others."""

    def __init__(self, seed):
        self.chance = chance = random.Random(seed)
        self.pods = [f"{chance.choice(NAMESPACES)}/p{i}" for i in range(chance.randint(2, 9))]
        self.tenants = [f"lab/t{i}" for i in range(chance.randint(1, 3))]
        self.precedence = {
            pod: Precedence(chance.choice((0, 0, 5, 10)), f"2026-01-0{chance.randint(1, 3)}")
            for pod in (*self.pods, *self.tenants)
        }
        pairs = [(rule, victim) for rule in NAMESPACES for victim in NAMESPACES]
        self.consents = {pair for pair in pairs if pair[0] == pair[1] or chance.random() < 0.4}
        self.violations = [self.violation(chance.choice(self.pods)) for _ in range(chance.randint(1, 7))]

    def violation(self, owner):
        others = [pod for pod in self.pods if pod != owner]
        peers = sorted(self.chance.sample(others, self.chance.randint(1, len(others))))
        limit = self.chance.choice((0, 0, min(1, len(peers) - 1)))
        rule = namespace_of(owner)
        return Violation(
            owner=owner,
            uid=str(self.chance.random()),
            rule_type=RuleType.ANTI_AFFINITY,
            term="term",
            shown="app=x",
            topology_key="zone",
            domain="zone=a",
            target="n1",
            peers=tuple(peers),
            limit=limit,
            protected=frozenset(peer for peer in peers if (rule, namespace_of(peer)) not in self.consents),
        )

    def victims(self, violations):
        enforceable = planning.enforceable(violations, self.precedence)
        return planning.evictions_for(enforceable, self.precedence)[0]


@settings(max_examples=300, deadline=None)
@given(seed=SEEDS)
def test_rules_of_a_tenant_without_consent_change_nothing_for_others(seed):
    draw = Draw(seed)
    attack = [draw.violation(draw.chance.choice(draw.tenants)) for _ in range(draw.chance.randint(1, 5))]
    before, after = draw.victims(draw.violations), draw.victims([*draw.violations, *attack])
    assert {victim for victim in after if victim not in draw.tenants} == set(before)


@settings(max_examples=300, deadline=None)
@given(seed=SEEDS)
def test_every_eviction_is_allowed_and_justified(seed):
    """A pod is evicted by a rule that may evict it and its own priority, or as the owner of a rule that an equal breaks."""
    draw = Draw(seed)
    found, priority = draw.victims(draw.violations), {key: one.priority for key, one in draw.precedence.items()}
    for victim, eviction in found.items():
        assert eviction.causes
        for cause in eviction.causes:
            assert victim == cause.owner or victim not in cause.protected
        if all(cause.owner == victim for cause in eviction.causes):
            assert any(
                peer not in cause.protected or priority[peer] >= priority[victim]
                for cause in eviction.causes
                for peer in cause.peers
            )


@settings(max_examples=300, deadline=None)
@given(seed=SEEDS)
def test_what_is_not_resolved_is_withheld(seed):
    draw = Draw(seed)
    gone = set(draw.victims(draw.violations))
    withheld = planning.withheld_evictions(draw.violations, draw.precedence, gone)
    left = [v for v in draw.violations if not v.resolved_without(gone)]
    assert [one.violation for one in withheld] == left
    for one in withheld:
        assert all(draw.precedence[peer].priority < draw.precedence[one.violation.owner].priority for peer in one.peers)


@settings(max_examples=200, deadline=None)
@given(seed=SEEDS)
def test_no_eviction_is_superfluous(seed):
    """Without any one of the evictions, a violation that can be enforced would stay."""
    draw = Draw(seed)
    enforceable = planning.enforceable(draw.violations, draw.precedence)
    gone = set(draw.victims(draw.violations))
    assert all(v.resolved_without(gone) for v in enforceable)
    for victim in gone:
        assert not all(v.resolved_without(gone - {victim}) for v in enforceable)


@settings(max_examples=200, deadline=None)
@given(seed=SEEDS)
def test_with_consent_everywhere_protection_makes_no_difference(seed):
    draw = Draw(seed)
    free = [msgspec.structs.replace(v, protected=frozenset()) for v in draw.violations]
    assert planning.enforceable(free, draw.precedence) == free
    assert planning.withheld_evictions(free, draw.precedence, set()) == ()
