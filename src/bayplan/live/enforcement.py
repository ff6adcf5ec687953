"""
Enforces execution-time rules on running pods, through the Eviction API and within its limits.

The index knows which rules are violated and `enforcing` chooses the victims; here they are evicted. A dry run logs the
evictions instead. When enforcement is switched off, everything that has not started is cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter

import msgspec

from bayplan.enforcing import enforcer
from bayplan.enforcing.enforcer import Enforcer
from bayplan.enforcing.execution_rules import RuleType
from bayplan.enforcing.planning import EnforcementSettings, Eviction, EvictionChoice, EvictionPlan
from bayplan.enforcing.tracking import ViolationTracker
from bayplan.enforcing.violations import Violation, ViolationId, involved
from bayplan.engine.engine import Engine
from bayplan.live.cluster_writer import PodGoneError, PodRef, RejectedError, UnknownOutcomeError
from bayplan.live.context import SchedulerContext
from bayplan.model.workloads import Workload, WorkloadKey

log = logging.getLogger("bayplan.enforcement")
MAX_CHECK_INTERVAL_SECONDS = 30.0  # between two checks if nothing changes
MAX_PEERS_NOTIFIED = 3  # per eviction: among many mutually exclusive pods there would be too many events

# The label values of the metric, which are older than the names of the types.
_METRIC_LABELS = {RuleType.AFFINITY: "near", RuleType.ANTI_AFFINITY: "apart", RuleType.GROUP_AFFINITY: "with_all"}


class Enforcement:
    """Evicts what the rules require. `changed` must be called after every change in the cluster."""

    def __init__(
        self,
        context: SchedulerContext,
        engine: Engine,
        settings: EnforcementSettings,
        *,
        dry_run: bool,
    ) -> None:
        self._state, self._writer = context.state, context.writer
        self._events, self._metrics, self._clock = context.events, context.metrics, context.clock
        self._engine = engine
        self._dry_run = dry_run
        self._names = context.names
        self._tracker = ViolationTracker(context.state.index, settings.granted)
        self._enforcer = Enforcer(settings)
        self._activity = asyncio.Event()
        self._terminating: dict[WorkloadKey, str] = {}  # with the uid: a later pod may have the same name
        self._reported: set[WorkloadKey] = set()  # victims that the dry run has logged
        self._withheld: frozenset[ViolationId] = frozenset()  # violations reported because their evictions are withheld
        self.on = True
        self._metrics.gauge(
            "bayplan_violations", "Number of violated execution-time rules.", self._violation_counts, ("rule",)
        )

    def changed(self) -> None:
        self._activity.set()

    def switch(self, *, on: bool) -> None:
        """Start or stop to enforce. Grace periods start again."""
        self.on = on
        (self._enforcer.switch_on if on else self._enforcer.switch_off)()
        log.warning("enforcement switched %s", "on" if on else "off")
        self._activity.set()

    async def run(self) -> None:
        """Enforce until cancelled."""
        while True:
            self._activity.clear()
            plan = await self.plan_evictions()
            self.report_withheld(plan)
            await asyncio.gather(*(self._evict(eviction) for eviction in plan.evict))
            if plan.evict:
                continue  # the evictions may have changed more than the plan foresaw
            wait = min(max(plan.next_at - self._clock(), 0.0), MAX_CHECK_INTERVAL_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._activity.wait()

    async def plan_evictions(self) -> EvictionPlan:
        """Return the evictions that are due. Victims are chosen in a thread: with many violations it takes a while."""
        chosen = await asyncio.to_thread(self._enforcer.choosing(self._observe(), self._tracker.precedence()))
        if self._dry_run:
            chosen = self._not_yet_reported(chosen)
        now = self._observe()  # violations resolved meanwhile need no eviction
        if not self._enforcer.settings.only_if_placeable:
            return self._enforcer.plan(chosen, now, None)
        # The profile does not matter: whether a pod fits is the same for all, only their scores differ.
        with enforcer.checking_other_targets(self._engine, self._state.spread_context.current) as placeable:
            return self._enforcer.plan(chosen, now, placeable)

    def _observe(self) -> float:
        """Pass the current violations and the pods that are gone to the enforcer. Return the time."""
        now, records = self._clock(), self._state.index.records
        for key, uid in list(self._terminating.items()):
            if key not in records or records[key].workload.uid != uid:
                del self._terminating[key]
                self._enforcer.gone(key)
        self._enforcer.observe(self.lasting_violations(), now)
        return now

    def _not_yet_reported(self, chosen: EvictionChoice) -> EvictionChoice:
        """Leave out victims already logged: a dry run evicts none of them, and the others must be logged too."""
        self._reported &= {eviction.victim for eviction in chosen.evictions}
        new = tuple(eviction for eviction in chosen.evictions if eviction.victim not in self._reported)
        return msgspec.structs.replace(chosen, evictions=new)

    def lasting_violations(self) -> list[Violation]:
        """Return the violations that the termination of terminating pods will not resolve."""
        records = self._state.index.records
        violations = self._tracker.violations()
        terminating = {key for key in involved(violations) if key in records and records[key].workload.terminating}
        return [violation for violation in violations if not violation.resolved_without(terminating)]

    def report_withheld(self, plan: EvictionPlan) -> None:
        """Report each violation whose evictions are withheld, once for as long as it stays."""
        reported, self._withheld = self._withheld, frozenset(one.violation.id for one in plan.withheld)
        for one in plan.withheld:
            record = self._state.index.records.get(one.violation.owner)
            if one.violation.id in reported or record is None:
                continue
            log.info(
                "eviction withheld",
                extra={"pod": one.violation.owner, "rule": one.violation.shown, "victims": list(one.peers)},
            )
            if not self._dry_run:
                self._metrics.evictions.labels("withheld").inc(len(one.peers))
                peers = "1 pod" if len(one.peers) == 1 else f"{len(one.peers)} pods"
                note = f"not enforced, because {peers} of namespaces without consent would be evicted"
                note = f"{note}: {self._describe_rule(one.violation, record.workload.namespace)}"
                pod = PodRef.of(record.workload)
                self._events.record(pod, "RuleNotEnforced", note, action="Evicting", warning=True)

    async def _evict(self, eviction: Eviction) -> None:
        record = self._state.index.records.get(eviction.victim)
        if record is None:
            return
        facts = {"pod": eviction.victim, "why": eviction.why, "rule": eviction.causes[0].shown}
        if self._dry_run:
            self._reported.add(eviction.victim)
            log.info("would evict", extra=facts)
            return
        pod, now = PodRef.of(record.workload), self._clock()
        try:
            await self._writer.evict(pod)
        except PodGoneError:  # the watch has not reported it yet
            self._terminating[eviction.victim] = pod.uid
            self._enforcer.mark_terminating(eviction.victim, now)
            return
        except (RejectedError, UnknownOutcomeError) as error:
            self._enforcer.rejected(
                eviction.victim, str(error), now, outcome_unknown=isinstance(error, UnknownOutcomeError)
            )
            self._metrics.evictions.labels("refused").inc()
            log.warning("eviction rejected", extra={**facts, "error": str(error)})
            note = f"not evicted, although {eviction.why}: {error}"
            self._events.record(pod, "EvictionRefused", note, action="Evicting", warning=True)
            return
        self._enforcer.evicted(eviction.victim, now)
        self._terminating[eviction.victim] = pod.uid
        self._metrics.evictions.labels("evicted").inc()
        log.info("evicted", extra=facts)
        self._record_eviction(eviction, pod)

    def _record_eviction(self, eviction: Eviction, victim: PodRef) -> None:
        """Record the rule on the victim, and the eviction on the pods at the other side of the violations."""
        rule = self._describe_rule(eviction.causes[0], victim.namespace)
        note = f"evicted because {eviction.why}: {rule}"
        self._events.record(victim, "RuleBroken", note, action="Evicting", warning=True)
        for other in self._remaining_peers(eviction)[:MAX_PEERS_NOTIFIED]:
            rule = self._describe_rule(eviction.causes[0], other.namespace)
            text = f"{self._names.name(eviction.victim, other.namespace)} was evicted: {eviction.why} ({rule})"
            self._events.record(PodRef.of(other), "NeighbourEvicted", text, action="Evicting")

    def _describe_rule(self, violation: Violation, reader: str) -> str:
        """Return the owner of the violated rule and what the rule requires, for readers of this namespace."""
        owner = self._names.name(violation.owner, reader)
        verb = "rejects" if violation.rule_type is RuleType.ANTI_AFFINITY else "requires"
        allowed = f" more than {violation.limit} of" if violation.limit else ""
        return f"{owner} {verb}{allowed} {violation.shown} in {violation.domain or violation.topology_key}"

    def _remaining_peers(self, eviction: Eviction) -> list[Workload]:
        """Return the pods at the other side of the violations that are not evicted themselves."""
        sides = ((one.owner,) if one.owner != eviction.victim else one.peers for one in eviction.causes)
        found = (self._state.index.records.get(key) for key in sorted({key for side in sides for key in side}))
        return [r.workload for r in found if r is not None and r.workload.key not in self._terminating]

    def _violation_counts(self) -> list[tuple[tuple[str, ...], float]]:
        found = Counter(_METRIC_LABELS[violation.rule_type] for violation in self._tracker.violations())
        return [((name,), float(count)) for name, count in sorted(found.items())]
