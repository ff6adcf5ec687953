"""
What enforcement would do about the present violations, once their grace periods are over.

Nothing is carried out. Evictions are requested one by one as in the live loop, budgets answer as the API server would,
and a pod whose eviction is rejected is passed over. Rate limits decide when a pod is evicted, not which, and are
ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from bayplan.assigning.cluster_ranking import FleetEngine
from bayplan.enforcing import copies, planning
from bayplan.enforcing.copies import MayEvict
from bayplan.enforcing.enforcer import Enforcer, checking_other_targets
from bayplan.enforcing.eviction_limits import EvictionBudgets
from bayplan.enforcing.execution_rules import RuleType
from bayplan.enforcing.planning import EnforcementSettings, Eviction, EvictionPlan, WithheldEviction
from bayplan.enforcing.tracking import ViolationTracker
from bayplan.enforcing.victims import Precedence
from bayplan.enforcing.violations import Violation, ViolationId
from bayplan.engine.engine import Engine
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping.pods import EMPTY_SPREAD_CONTEXT, SpreadContext
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.workloads import WorkloadKey

NO_RATE_LIMIT = 10**9
OF_ANOTHER_SCHEDULER = "another scheduler places it"


class EnforcementOutcome(msgspec.Struct, frozen=True):
    """
    A workload whose eviction would resolve the violation: why this one, and what spares it, if anything.

    In a fleet it is evicted from one `cluster`, or, where that is empty, only reported: nothing evicts it.
    """

    victim: WorkloadKey
    why: str
    spared: str = ""
    cluster: str = ""


class EnforcementVerdict(msgspec.Struct, frozen=True):
    """A violation and its outcomes."""

    violation: Violation
    outcomes: tuple[EnforcementOutcome, ...]

    @property
    def evicted(self) -> tuple[EnforcementOutcome, ...]:
        """What is evicted for it."""
        return tuple(one for one in self.outcomes if not one.spared) if self.violation.enforced else ()


class EnforcementPreview(msgspec.Struct, frozen=True):
    """All violations with their outcomes, by these settings. `exact`: no choice of victims is better."""

    verdicts: tuple[EnforcementVerdict, ...]
    exact: bool
    precedence: dict[WorkloadKey, Precedence]
    settings: EnforcementSettings
    of_fleet: bool = False

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
    reasons: dict[WorkloadKey, str] = {}
    if plan.spared:  # why such a workload is a victim is known from the choice without any protection
        choice, _ = planning.evictions_for(planning.enforceable(violations, precedence), precedence)
        reasons = {key: eviction.why for key, eviction in choice.items()}
    spared = [EnforcementOutcome(delay.victim, reasons.get(delay.victim, ""), delay.why) for delay in plan.spared]
    verdicts = _verdicts(violations, plan.evict, spared, plan.withheld)
    return EnforcementPreview(verdicts, plan.exact, precedence, settings)


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


def preview_fleet(
    engine: FleetEngine, settings: EnforcementSettings, may_evict: MayEvict = lambda _key: True
) -> EnforcementPreview:
    """
    All violations in a fleet, and the evictions that would follow from those that are enforced.

    The others are reported with the workloads whose move would resolve them.
    """
    index = engine.index
    tracker = ViolationTracker(index, settings.granted)
    violations, precedence = tracker.violations(), tracker.precedence()
    of_copies = copies.enforceable(violations, index, may_evict)
    enforcer = Enforcer(msgspec.structs.replace(settings, per_minute=NO_RATE_LIMIT, at_once=NO_RATE_LIMIT))
    enforcer.observe(of_copies, 0.0)
    with copies.checking_other_clusters(engine) as placeable:
        now = max(settings.affinity_grace, settings.anti_affinity_grace)
        plan = enforcer.due(now, copies.precedence_of(of_copies, precedence), placeable)
    only_reported = [violation for violation in violations if not violation.enforced]
    suggested, exact = planning.evictions_for(only_reported, precedence)
    tracker.release()
    spared = [EnforcementOutcome(delay.victim, "", delay.why) for delay in plan.spared]

    def why_withheld(violation: Violation, copy: WorkloadKey) -> str:
        return planning.no_consent(violation) if may_evict(copies.workload_of(copy)) else OF_ANOTHER_SCHEDULER

    enforced = {
        (copies.workload_of(one.violation.owner), one.violation.id): one
        for one in _verdicts(of_copies, plan.evict, spared, plan.withheld, why_withheld)
    }
    reported = {one.violation.id: one for one in _verdicts(only_reported, tuple(suggested.values()), [])}
    found = tuple(_verdict_of_workloads(violation, enforced, reported) for violation in violations)
    return EnforcementPreview(found, plan.exact and exact, precedence, settings, of_fleet=True)


def _verdict_of_workloads(
    violation: Violation,
    enforced: Mapping[tuple[WorkloadKey, ViolationId], EnforcementVerdict],
    reported: Mapping[ViolationId, EnforcementVerdict],
) -> EnforcementVerdict:
    """The verdict about a violation, with workloads and clusters in place of their copies."""
    if not violation.enforced:
        return reported[violation.id]
    restated = msgspec.structs.replace(violation.id, owner=copies.copy_of(violation.owner, violation.target))
    known = enforced.get((violation.owner, restated))
    if known is None:  # its owner may not be evicted, or it is not certain that it is violated
        return EnforcementVerdict(violation, ())
    outcomes = tuple(
        EnforcementOutcome(
            copies.workload_of(one.victim), copies.reason(one.why), one.spared, copies.cluster_of(one.victim)
        )
        for one in known.outcomes
    )
    return EnforcementVerdict(violation, outcomes)


def _verdicts(
    violations: Sequence[Violation],
    evictions: Sequence[Eviction],
    spared: Sequence[EnforcementOutcome],
    withheld: Sequence[WithheldEviction] = (),
    why_withheld: Callable[[Violation, WorkloadKey], str] = lambda violation, _peer: planning.no_consent(violation),
) -> tuple[EnforcementVerdict, ...]:
    outcomes = {e.victim: EnforcementOutcome(e.victim, e.why) for e in evictions} | {o.victim: o for o in spared}
    withheld_by_violation = {one.violation.id: one.peers for one in withheld}
    found = []
    for v in violations:
        resolving = [outcomes[key] for key in sorted(_resolving(v, outcomes.keys()))]
        resolving += [
            EnforcementOutcome(peer, planning.LOWER_PRIORITY, why_withheld(v, peer))
            for peer in withheld_by_violation.get(v.id, ())
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
