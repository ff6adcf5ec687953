"""
What enforcement would do about the rules that are broken now, once their grace times are over.

Nothing is carried out. Evictions are asked for one by one as the live loop would, budgets answer as the API server
would, and whoever is refused is passed over. Limits on how many may go in a minute decide when, not who, and are left
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import msgspec

from bayplan.enforcing import enforcer as enforcing
from bayplan.enforcing import planning
from bayplan.enforcing.enforcer import Enforcer
from bayplan.enforcing.eviction_limits import EvictionBudgets
from bayplan.enforcing.execution_rules import RuleType
from bayplan.enforcing.planning import EnforcementSettings, Eviction, EvictionPlan
from bayplan.enforcing.tracking import ViolationTracker
from bayplan.enforcing.victims import Precedence
from bayplan.enforcing.violations import Violation
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.workloads import WorkloadKey
from bayplan.rules.rule import Rule

NO_RATE_LIMIT = 10**9


class EnforcementOutcome(msgspec.Struct, frozen=True):
    """One whose going would mend the rule: why it is this one, and what spares it, if anything does."""

    victim: WorkloadKey
    why: str
    spared: str = ""


class EnforcementVerdict(msgspec.Struct, frozen=True):
    """A broken rule and what would come of it."""

    violation: Violation
    outcomes: tuple[EnforcementOutcome, ...]


class EnforcementPreview(msgspec.Struct, frozen=True):
    """`exact`: nobody could choose better who has to go."""

    verdicts: tuple[EnforcementVerdict, ...]
    exact: bool
    precedence: dict[WorkloadKey, Precedence]

    def priority_of(self, key: WorkloadKey) -> int:
        return self.precedence[key].priority


def preview_pods(
    index: PlacementIndex,
    rules: Sequence[Rule],
    settings: EnforcementSettings,
    budgets: Sequence[DisruptionBudget] = (),
) -> EnforcementPreview:
    """Everything that is broken, and who would go for it."""
    tracker = ViolationTracker(index)
    violations, precedence = tracker.violations(), tracker.precedence()
    enforcer = Enforcer(msgspec.structs.replace(settings, per_minute=NO_RATE_LIMIT, at_once=NO_RATE_LIMIT))
    enforcer.observe(violations, 0.0)
    now = max(settings.affinity_grace, settings.anti_affinity_grace)
    while True:
        with enforcing.checking_other_targets(index, rules) as placeable:
            plan = enforcer.due(now, precedence, placeable)
        if not _refused_by_budgets(plan, enforcer, now, index, budgets):
            break
    tracker.release()
    # Of those who are spared, why it is they who would have to go is known from the choice without any protection.
    whys = {key: eviction.why for key, eviction in planning.evictions_for(violations, precedence)[0].items()}
    spared = [EnforcementOutcome(delay.victim, whys.get(delay.victim, ""), delay.why) for delay in plan.spared]
    return EnforcementPreview(_verdicts(violations, plan.evict, spared), plan.exact, precedence)


def _refused_by_budgets(
    plan: EvictionPlan, enforcer: Enforcer, now: float, index: PlacementIndex, budgets: Sequence[DisruptionBudget]
) -> bool:
    """Ask the budgets about everybody who would go; whether one said no."""
    books, said_no = EvictionBudgets(budgets), False
    for eviction in plan.evict:
        workload = index.records[eviction.victim].workload
        refusal = books.refusal(workload)
        if refusal:
            enforcer.refused(eviction.victim, refusal, now)
            said_no = True
        else:
            books.charge(workload)
    return said_no


def preview_fleet(index: PlacementIndex) -> EnforcementPreview:
    """Everything that is broken in a fleet, and whose going would mend it. Nobody acts on that yet."""
    tracker = ViolationTracker(index)
    violations, precedence = tracker.violations(), tracker.precedence()
    chosen, exact = planning.evictions_for(violations, precedence)
    tracker.release()
    return EnforcementPreview(_verdicts(violations, tuple(chosen.values()), []), exact, precedence)


def _verdicts(
    violations: Sequence[Violation], evictions: Sequence[Eviction], spared: Sequence[EnforcementOutcome]
) -> tuple[EnforcementVerdict, ...]:
    outcomes = {e.victim: EnforcementOutcome(e.victim, e.why) for e in evictions} | {o.victim: o for o in spared}
    return tuple(
        EnforcementVerdict(v, tuple(outcomes[key] for key in sorted(_resolving(v, outcomes.keys()))))
        for v in violations
    )


def _resolving(violation: Violation, going: AbstractSet[WorkloadKey]) -> AbstractSet[WorkloadKey]:
    """Those of them whose going mends the rule, or helps to."""
    if violation.rule_type is RuleType.ANTI_AFFINITY:
        return {violation.owner, *violation.peers} & going
    if violation.owner in going:
        return {violation.owner}
    return frozenset().union(*violation.lone_member_without) & going
