"""
What enforcement would do about the present violations, once their grace periods are over.

Nothing is carried out. Evictions are requested one by one as in the live loop, budgets answer as the API server would,
and a pod whose eviction is rejected is passed over. Rate limits decide when a pod is evicted, not which, and are
ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import msgspec

from bayplan.enforcing import planning
from bayplan.enforcing.enforcer import Enforcer, checking_other_targets
from bayplan.enforcing.eviction_limits import EvictionBudgets
from bayplan.enforcing.execution_rules import RuleType
from bayplan.enforcing.planning import EnforcementSettings, Eviction, EvictionPlan, WithheldEviction
from bayplan.enforcing.tracking import ViolationTracker
from bayplan.enforcing.victims import Precedence
from bayplan.enforcing.violations import Violation
from bayplan.engine.engine import Engine
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping.pods import EMPTY_SPREAD_CONTEXT, SpreadContext
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.workloads import WorkloadKey

NO_RATE_LIMIT = 10**9


class EnforcementOutcome(msgspec.Struct, frozen=True):
    """A workload whose eviction would resolve the violation: why this one, and what spares it, if anything."""

    victim: WorkloadKey
    why: str
    spared: str = ""


class EnforcementVerdict(msgspec.Struct, frozen=True):
    """A violation and its outcomes."""

    violation: Violation
    outcomes: tuple[EnforcementOutcome, ...]


class EnforcementPreview(msgspec.Struct, frozen=True):
    """All violations with their outcomes. `exact`: no choice of victims is better."""

    verdicts: tuple[EnforcementVerdict, ...]
    exact: bool
    precedence: dict[WorkloadKey, Precedence]

    def priority_of(self, key: WorkloadKey) -> int:
        return self.precedence[key].priority


def preview_pods(
    engine: Engine,
    settings: EnforcementSettings,
    budgets: Sequence[DisruptionBudget] = (),
    spread_context: SpreadContext = EMPTY_SPREAD_CONTEXT,
) -> EnforcementPreview:
    """All violations of pods, and the evictions that would follow."""
    index = engine.index
    tracker = ViolationTracker(index, settings.granted)
    violations, precedence = tracker.violations(), tracker.precedence()
    enforcer = Enforcer(msgspec.structs.replace(settings, per_minute=NO_RATE_LIMIT, at_once=NO_RATE_LIMIT))
    enforcer.observe(violations, 0.0)
    now = max(settings.affinity_grace, settings.anti_affinity_grace)
    while True:
        with checking_other_targets(engine, spread_context) as placeable:
            plan = enforcer.due(now, precedence, placeable)
        if not _reject_by_budgets(plan, enforcer, now, index, budgets):
            break
    tracker.release()
    # Why a spared workload is a victim is known from the choice without any protection.
    choice, _ = planning.evictions_for(planning.enforceable(violations, precedence), precedence)
    reasons = {key: eviction.why for key, eviction in choice.items()}
    spared = [EnforcementOutcome(delay.victim, reasons.get(delay.victim, ""), delay.why) for delay in plan.spared]
    return EnforcementPreview(_verdicts(violations, plan.evict, spared, plan.withheld), plan.exact, precedence)


def _reject_by_budgets(
    plan: EvictionPlan, enforcer: Enforcer, now: float, index: PlacementIndex, budgets: Sequence[DisruptionBudget]
) -> bool:
    """Report every eviction that a budget rejects to the enforcer; whether there was one."""
    left, rejected = EvictionBudgets(budgets), False
    for eviction in plan.evict:
        workload = index.records[eviction.victim].workload
        rejection = left.rejection(workload)
        if rejection:
            enforcer.rejected(eviction.victim, rejection, now)
            rejected = True
        else:
            left.charge(workload)
    return rejected


def preview_fleet(index: PlacementIndex) -> EnforcementPreview:
    """All violations in a fleet, and the evictions that would resolve them. No component acts on them yet."""
    tracker = ViolationTracker(index)
    violations, precedence = tracker.violations(), tracker.precedence()
    chosen, exact = planning.evictions_for(violations, precedence)
    tracker.release()
    return EnforcementPreview(_verdicts(violations, tuple(chosen.values()), []), exact, precedence)


def _verdicts(
    violations: Sequence[Violation],
    evictions: Sequence[Eviction],
    spared: Sequence[EnforcementOutcome],
    withheld: Sequence[WithheldEviction] = (),
) -> tuple[EnforcementVerdict, ...]:
    outcomes = {e.victim: EnforcementOutcome(e.victim, e.why) for e in evictions} | {o.victim: o for o in spared}
    withheld_by_violation = {one.violation.id: one.peers for one in withheld}
    found = []
    for v in violations:
        resolving = [outcomes[key] for key in sorted(_resolving(v, outcomes.keys()))]
        why = planning.no_consent(v)
        resolving += [
            EnforcementOutcome(peer, planning.LOWER_PRIORITY, why) for peer in withheld_by_violation.get(v.id, ())
        ]
        found.append(EnforcementVerdict(v, tuple(resolving)))
    return tuple(found)


def _resolving(violation: Violation, evicted: AbstractSet[WorkloadKey]) -> AbstractSet[WorkloadKey]:
    """The workloads whose eviction resolves the violation, or helps to."""
    if violation.rule_type is RuleType.ANTI_AFFINITY:
        return ({violation.owner, *violation.peers} - violation.protected) & evicted
    if violation.owner in evicted:
        return {violation.owner}
    return frozenset().union(*violation.lone_member_without) & evicted
