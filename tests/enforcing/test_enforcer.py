"""Timers, limits and state of enforcement, driven by events with given times."""

import math

import msgspec

from bayplan.enforcing.enforcer import OVERDUE_SECONDS, Enforcer, checking_other_targets
from bayplan.enforcing.execution_rules import RuleType
from bayplan.enforcing.planning import (
    CHECKED_LATER,
    LOWER_PRIORITY,
    NO_OTHER_TARGET,
    OWNS_AFFINITY,
    OWNS_RULE,
    EnforcementSettings,
)
from bayplan.enforcing.victims import Precedence
from bayplan.enforcing.violations import Violation
from bayplan.engine.engine import Engine
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping.pods import EMPTY_SPREAD_CONTEXT
from bayplan.model.labels import equals
from bayplan.model.targets import Target
from bayplan.model.terms import HOSTNAME, ZONE, AffinityTerms, PodTerm
from bayplan.model.workloads import Needs, Requests, Workload
from bayplan.rules import profiles

GRACE = EnforcementSettings(affinity_grace=100, anti_affinity_grace=10, per_minute=1000, at_once=1000)


def violation_of(owner, *peers, rule_type=RuleType.ANTI_AFFINITY, uid="1"):
    return Violation(
        owner=owner,
        uid=uid,
        rule_type=rule_type,
        term="term",
        shown="app=x",
        topology_key="zone",
        domain="zone=a",
        target="n1",
        peers=peers,
    )


def precedence(*violations, **priorities):
    involved = {key for v in violations for key in (v.owner, *v.peers)}
    return {key: Precedence(priorities.get(key, 0)) for key in involved}


def evicted(plan):
    return [eviction.victim for eviction in plan.evict]


def test_each_rule_type_has_its_grace_period():
    affinity, anti_affinity = violation_of("n", rule_type=RuleType.AFFINITY), violation_of("o", "p")
    enforcer = Enforcer(GRACE)
    enforcer.observe([affinity, anti_affinity], 0)
    plan = enforcer.due(9.9, precedence(affinity, anti_affinity))
    assert evicted(plan) == []
    assert sorted(end for _, end in plan.in_grace) == [10, 100]
    assert plan.next_at == 10
    plan = enforcer.due(10, precedence(affinity, anti_affinity))
    assert [(e.victim, e.why) for e in plan.evict] == [("o", OWNS_RULE)]
    plan = enforcer.due(100, precedence(affinity, anti_affinity))
    assert [(e.victim, e.why) for e in plan.evict] == [("n", OWNS_AFFINITY), ("o", OWNS_RULE)]


def test_an_affinity_eviction_lists_all_violations_it_resolves():
    lonely = msgspec.structs.replace(
        violation_of("lonely", "mate", rule_type=RuleType.AFFINITY), lone_member_without=(frozenset({"mate"}),)
    )
    mate, rival = violation_of("mate", rule_type=RuleType.AFFINITY), violation_of("rival", "lonely")
    at_odds = violation_of("rival", "another", "third")
    all_of_them = (lonely, mate, rival, at_odds)
    enforcer = Enforcer(GRACE)
    enforcer.observe(all_of_them, 0)
    plan = enforcer.due(100, precedence(*all_of_them, rival=5, mate=5))
    causes = {eviction.victim: eviction.causes for eviction in plan.evict}
    # Once its mate is evicted it is the lone member and could stay, except for the rival.
    assert causes["lonely"] == (lonely, rival)
    assert causes["mate"] == (mate,)
    assert set(causes) == {"lonely", "mate", "another", "third"}


def test_a_resolved_violation_that_returns_starts_a_new_grace_period():
    violation = violation_of("o", "p")
    enforcer = Enforcer(GRACE)
    enforcer.observe([violation], 0)
    enforcer.observe([], 5)
    enforcer.observe([violation], 6)
    assert enforcer.since(violation) == 6
    assert evicted(enforcer.due(15, precedence(violation))) == []
    assert evicted(enforcer.due(16, precedence(violation))) == ["o"]


def test_other_peers_of_the_same_violation_do_not_restart_the_grace_period():
    enforcer = Enforcer(GRACE)
    enforcer.observe([violation_of("o", "p")], 0)
    now_with_q = violation_of("o", "q")
    enforcer.observe([now_with_q], 9)
    assert evicted(enforcer.due(10, precedence(now_with_q))) == ["o"]


def test_a_recreated_pod_of_the_same_name_has_its_own_grace_period():
    enforcer = Enforcer(GRACE)
    enforcer.observe([violation_of("o", "p", uid="1")], 0)
    successor = violation_of("o", "p", uid="2")
    enforcer.observe([successor], 9)
    assert evicted(enforcer.due(15, precedence(successor))) == []


def test_after_a_take_over_every_grace_period_starts_with_the_first_observation():
    violation = violation_of("o", "p")
    first, second = Enforcer(GRACE), Enforcer(GRACE)
    first.observe([violation], 0)
    second.observe([violation], 9)
    assert evicted(first.due(10, precedence(violation))) == ["o"]
    assert evicted(second.due(10, precedence(violation))) == []
    assert evicted(second.due(19, precedence(violation))) == ["o"]


def test_a_terminating_pod_is_not_evicted_again_and_resolves_its_violations():
    one, other = violation_of("o", "p"), violation_of("p", "o")
    enforcer = Enforcer(GRACE)
    enforcer.observe([one, other], 0)
    (victim,) = evicted(enforcer.due(10, precedence(one, other)))
    enforcer.evicted(victim, 10)
    plan = enforcer.due(11, precedence(one, other))
    assert not plan.evict
    assert not plan.waiting
    enforcer.gone(victim)
    enforcer.observe([], 12)
    assert enforcer.due(1000, {}).next_at == math.inf


def test_a_rejected_eviction_is_retried_later():
    violation = violation_of("o", "p")
    enforcer = Enforcer(GRACE)
    enforcer.observe([violation], 0)
    enforcer.rejected("o", "PodDisruptionBudget x allows no disruption", 10)
    plan = enforcer.due(11, precedence(violation))
    assert not plan.evict
    assert [(d.victim, d.why, d.until) for d in plan.spared] == [
        ("o", "PodDisruptionBudget x allows no disruption", 40)
    ]
    assert evicted(enforcer.due(40, precedence(violation))) == ["o"]


def test_an_eviction_without_an_answer_counts_as_started():
    violations = [violation_of(f"o{i}", f"p{i}") for i in range(3)]
    enforcer = Enforcer(EnforcementSettings(anti_affinity_grace=0, per_minute=2, at_once=10))
    enforcer.observe(violations, 0)
    assert evicted(enforcer.due(0, precedence(*violations))) == ["o0", "o1"]
    enforcer.rejected("o0", "no answer", 0, outcome_unknown=True)
    enforcer.rejected("o1", "a budget", 0)
    plan = enforcer.due(1, precedence(*violations))
    assert evicted(plan) == ["o2"]
    enforcer.evicted("o2", 1)
    assert [delay.until for delay in enforcer.due(40, precedence(*violations)).waiting] == [60, 60]


def test_of_two_equals_the_one_without_a_budget_is_evicted():
    one, other = violation_of("a", "b"), violation_of("b", "a")
    enforcer = Enforcer(GRACE)
    enforcer.observe([one, other], 0)
    (first,) = evicted(enforcer.due(10, precedence(one, other)))
    enforcer.rejected(first, "a budget", 10)
    assert evicted(enforcer.due(11, precedence(one, other))) == [{"a": "b", "b": "a"}[first]]


def test_a_higher_priority_is_not_evicted_in_place_of_a_spared_pod():
    violation = violation_of("o", "p")
    enforcer = Enforcer(GRACE)
    enforcer.observe([violation], 0)
    enforcer.rejected("p", "a budget", 10)
    plan = enforcer.due(11, precedence(violation, o=5))
    assert not plan.evict
    assert [delay.victim for delay in plan.spared] == ["p"]


def test_priority_is_the_reported_reason():
    violation = violation_of("o", "p")
    enforcer = Enforcer(GRACE)
    enforcer.observe([violation], 0)
    plan = enforcer.due(10, precedence(violation, o=5))
    assert [(e.victim, e.why) for e in plan.evict] == [("p", LOWER_PRIORITY)]


def test_five_hundred_evictions_keep_to_the_rate_limit():
    violations = {f"o{i:03}": violation_of(f"o{i:03}", f"p{i:03}") for i in range(500)}
    enforcer = Enforcer(EnforcementSettings(anti_affinity_grace=10, per_minute=30, at_once=10))
    now, starts = 0.0, []
    enforcer.observe(violations.values(), now)
    while violations:
        plan = enforcer.due(now, precedence(*violations.values()))
        assert len(plan.evict) <= 10
        for eviction in plan.evict:
            enforcer.evicted(eviction.victim, now)
            starts.append(now)
            del violations[eviction.victim]
        for eviction in plan.evict:  # gone at once
            enforcer.gone(eviction.victim)
        enforcer.observe(violations.values(), now)
        if not plan.evict:
            assert plan.next_at > now
            now = plan.next_at
    assert len(starts) == 500
    assert all(sum(now - 60 < other <= now for other in starts) <= 30 for now in starts)
    assert starts[-1] - starts[0] >= 60 * (500 // 30)


def test_no_eviction_starts_while_too_many_are_in_progress():
    violations = [violation_of(f"o{i}", f"p{i}") for i in range(5)]
    enforcer = Enforcer(EnforcementSettings(anti_affinity_grace=0, per_minute=100, at_once=2))
    enforcer.observe(violations, 0)
    plan = enforcer.due(0, precedence(*violations))
    assert evicted(plan) == ["o0", "o1"]
    assert {delay.why for delay in plan.waiting} == {"2 evictions are in progress, which is the limit"}
    for victim in evicted(plan):
        enforcer.evicted(victim, 0)
    assert evicted(enforcer.due(1, precedence(*violations))) == []
    enforcer.gone("o0")
    enforcer.observe(violations[1:], 2)
    assert evicted(enforcer.due(2, precedence(*violations))) == ["o2"]


def test_pods_that_never_end_do_not_stop_enforcement_for_others():
    """A tenant may give its pods a finalizer, or a year to terminate, and have them break its own rule."""
    own = [violation_of(f"tenant/o{i}", f"tenant/p{i}") for i in range(4)]
    other = violation_of("web/o", "web/p")
    enforcer = Enforcer(EnforcementSettings(anti_affinity_grace=0, per_minute=100, at_once=2))
    enforcer.observe(own, 0)
    for victim in evicted(enforcer.due(0, precedence(*own))):
        enforcer.evicted(victim, 0)
    enforcer.observe([*own, other], 10)
    assert evicted(enforcer.due(10, precedence(*own, other))) == [], "two are in progress"
    assert evicted(enforcer.due(OVERDUE_SECONDS, precedence(*own, other)))[0] == "web/o"


def test_namespaces_take_turns_within_the_limits():
    own = [violation_of(f"tenant/o{i}", f"tenant/p{i}") for i in range(9)]
    others = [violation_of(f"{name}/o", f"{name}/p") for name in ("web", "zoo")]
    enforcer = Enforcer(EnforcementSettings(anti_affinity_grace=0, per_minute=4, at_once=10))
    enforcer.observe([*own, *others], 0)
    first = evicted(enforcer.due(0, precedence(*own, *others)))
    assert first == ["tenant/o0", "web/o", "zoo/o", "tenant/o1"]


def test_a_namespace_whose_pods_are_evicted_all_the_time_leaves_room_for_another():
    """Its controller creates them again on the same node, and they have the lowest priority of all."""
    enforcer = Enforcer(EnforcementSettings(anti_affinity_grace=0, per_minute=2, at_once=10))
    turn, now, other = 0, 0.0, violation_of("web/o", "web/p")
    evictions = []
    while now < 100:
        own = [violation_of(f"tenant/o{turn}-{i}", f"tenant/p{i}") for i in range(3)]
        low = {victim: Precedence(-5) for v in own for victim in (v.owner, *v.peers)}
        enforcer.observe([*own, other] if now >= 30 else own, now)
        for victim in evicted(enforcer.due(now, precedence(other) | low)):
            enforcer.evicted(victim, now)
            enforcer.gone(victim)
            evictions.append(victim)
        turn, now = turn + 1, now + 10
    assert evictions.index("web/o") == 2, "the first that started after its rule was broken"


def test_while_switched_off_nothing_is_due_and_nothing_is_recorded():
    violation = violation_of("o", "p")
    enforcer = Enforcer(GRACE)
    enforcer.observe([violation], 0)
    enforcer.switch_off()
    assert evicted(enforcer.due(10, precedence(violation))) == []
    enforcer.observe([violation], 11)
    assert evicted(enforcer.due(1000, precedence(violation))) == []
    enforcer.switch_on()
    enforcer.observe([violation], 1000)
    assert evicted(enforcer.due(1009, precedence(violation))) == []
    assert evicted(enforcer.due(1010, precedence(violation))) == ["o"]


def test_of_a_separated_set_all_but_one_are_evicted():
    members = ["a", "b", "c"]
    violations = [
        Violation(
            owner=m,
            uid="1",
            rule_type=RuleType.AFFINITY,
            term="t",
            shown="set=x",
            topology_key="zone",
            domain=f"zone={m}",
            target=m,
            peers=tuple(o for o in members if o != m),
            lone_member_without=(frozenset(members),),
        )
        for m in members
    ]
    enforcer = Enforcer(GRACE)
    enforcer.observe(violations, 0)
    assert evicted(enforcer.due(100, precedence(*violations, a=1))) == ["b", "c"]


def test_a_violation_resolved_during_the_choice_evicts_no_pod():
    one, other = violation_of("o", "p"), violation_of("x", "y")
    enforcer = Enforcer(GRACE)
    enforcer.observe([one, other], 0)
    chosen = enforcer.choosing(10, precedence(one, other))()
    enforcer.observe([other], 11)
    assert evicted(enforcer.plan(chosen, 11)) == ["x"]
    enforcer.switch_off()
    assert evicted(enforcer.plan(chosen, 11)) == []


def test_other_targets_are_checked_a_few_at_a_time_and_every_victim_in_turn():
    violations = [violation_of(f"o{i}", f"p{i}") for i in range(5)]
    enforcer = Enforcer(EnforcementSettings(anti_affinity_grace=0, at_once=2, retry_after=30, only_if_placeable=True))
    enforcer.observe(violations, 0)
    asked = []

    def placeable(key):
        asked.append(key)
        return key == "o4"

    plan = enforcer.due(0, precedence(*violations), placeable)
    assert asked == ["o0", "o1"]
    assert [(delay.victim, delay.why, delay.until) for delay in plan.spared] == [
        ("o0", NO_OTHER_TARGET, 30),
        ("o1", NO_OTHER_TARGET, 30),
    ]
    assert [(delay.victim, delay.why, delay.until) for delay in plan.waiting] == [
        ("o2", CHECKED_LATER, 0),
        ("o3", CHECKED_LATER, 0),
        ("o4", CHECKED_LATER, 0),
    ]
    enforcer.due(0, precedence(*violations), placeable)
    assert evicted(enforcer.due(1, precedence(*violations), placeable)) == ["o4"]
    assert asked == ["o0", "o1", "o2", "o3", "o4"]
    enforcer.evicted("o4", 1)
    enforcer.gone("o4")  # there may be room where it was
    enforcer.observe(violations[:4], 2)
    enforcer.due(2, precedence(*violations), placeable)
    assert asked[5:] == ["o0", "o1"]


def test_whether_a_victim_fits_elsewhere_is_decided_for_the_pod_that_replaces_it():
    """A pod on b rejects pods with the label of zone x, which binding wrote on the victim."""
    index = PlacementIndex()
    rejecting = AffinityTerms(anti_required=(PodTerm(equals({ZONE: "x"}), HOSTNAME),))
    for name, zone in (("a", "x"), ("b", "y")):
        resources = (("cpu", 1000), ("pods", 10))
        index.add_target(Target(name=name, labels={HOSTNAME: name, ZONE: zone}, allocatable=resources))
    small, large = (Needs(requests=Requests(*[(("cpu", cpu),)] * 3)) for cpu in (100, 600))
    index.add(Workload(namespace="shop", name="web", labels={ZONE: "x"}, needs=large), "a")
    index.add(Workload(namespace="shop", name="other", labels={ZONE: "x"}, needs=large), "a")
    strict = msgspec.structs.replace(small, affinity=rejecting)
    index.add(Workload(namespace="shop", name="strict", labels={}, needs=strict), "b")
    before = {key: (record.workload, record.shares) for key, record in index.records.items()}
    with checking_other_targets(Engine(index, profiles.pod_rules()), EMPTY_SPREAD_CONTEXT) as fits_elsewhere:
        assert fits_elsewhere("shop/web")
        assert index.records["shop/web"].shares == (("b", 1),)
        assert index.records["shop/web"].workload.labels == {ZONE: "y"}
        assert not fits_elsewhere("shop/other")  # the room is given once
        assert index.records["shop/other"].shares == (("a", 1),)
    assert {key: (record.workload, record.shares) for key, record in index.records.items()} == before
