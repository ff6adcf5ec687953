"""
The loop that enforces execution-time rules: what is due is evicted, what is withheld or refused is told.

`enforcing` chooses the victims. What can be evicted, pods or copies of workloads on clusters, and how is up to the
subclass. A dry run logs the evictions instead. When enforcement is switched off, everything that has not started is
cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping

import msgspec

from bayplan.enforcing.enforcer import Enforcer
from bayplan.enforcing.execution_rules import RuleType
from bayplan.enforcing.planning import EnforcementSettings, Eviction, EvictionChoice, EvictionPlan
from bayplan.enforcing.tracking import ViolationTracker
from bayplan.enforcing.victims import Precedence
from bayplan.enforcing.violations import Violation, ViolationId
from bayplan.explaining.peer_names import PeerNames
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.live.cluster_writer import ObjectRef, PodGoneError, RejectedError, UnknownOutcomeError
from bayplan.live.events import EventRecorder
from bayplan.live.metrics import CommonMetrics
from bayplan.model.workloads import Workload, WorkloadKey

log = logging.getLogger("bayplan.enforcement")
MAX_CHECK_INTERVAL_SECONDS = 30.0  # between two checks if nothing changes
MAX_PEERS_NOTIFIED = 3  # per eviction: among many mutually exclusive pods there would be too many events

# The label values of the metric, which are older than the names of the types.
_METRIC_LABELS = {RuleType.AFFINITY: "near", RuleType.ANTI_AFFINITY: "apart", RuleType.GROUP_AFFINITY: "with_all"}


class PostponedError(RejectedError):
    """The victim is not evicted now, for a reason that passes by itself: nobody needs to be told."""


class EnforcementTools(msgspec.Struct, frozen=True):
    """What the loop works with. `names` says how events name workloads of other namespaces."""

    index: PlacementIndex
    events: EventRecorder
    metrics: CommonMetrics
    clock: Callable[[], float]
    names: PeerNames


class EnforcementLoop:
    """
    Evicts what the rules require. `changed` must be called after every change in the cluster.

    `noun` is what the victims are called.
    """

    noun = "pod"

    def __init__(self, tools: EnforcementTools, settings: EnforcementSettings, *, dry_run: bool) -> None:
        self._index, self._events, self._metrics = tools.index, tools.events, tools.metrics
        self._clock, self._names = tools.clock, tools.names
        self._dry_run = dry_run
        self._tracker = ViolationTracker(tools.index, settings.granted)
        self._enforcer = Enforcer(settings)
        self._activity = asyncio.Event()
        self._reported: set[WorkloadKey] = set()  # victims that the dry run has logged
        self._withheld: frozenset[ViolationId] = frozenset()  # violations reported because their evictions are withheld
        self.on = True
        self._metrics.gauge(
            "bayplan_violations", "Number of violated execution-time rules.", self._violation_counts, ("rule",)
        )

    # For subclasses

    def lasting_violations(self) -> list[Violation]:
        """Return the violations that what is terminating will not resolve, and that may evict something."""
        raise NotImplementedError

    def _judged_later(self) -> Iterable[ViolationId]:
        """The violations that are too many to be judged at once: their grace periods go on."""
        return ()

    def _ended(self) -> Iterable[WorkloadKey]:
        """The victims evicted so far whose disruption is over; each is returned once."""
        raise NotImplementedError

    def _precedence(self) -> Mapping[WorkloadKey, Precedence]:
        """The precedence of all victims that may be chosen."""
        return self._tracker.precedence()

    def _checking_other_targets(self) -> contextlib.AbstractContextManager[Callable[[WorkloadKey], bool]]:
        """A function that says whether a victim fits on another target."""
        raise NotImplementedError

    def _workload(self, victim: WorkloadKey) -> Workload | None:
        """The workload of a victim, None if it is gone."""
        record = self._index.records.get(victim)
        return None if record is None else record.workload

    def _subjects(self, workload: Workload) -> tuple[ObjectRef, ...]:
        """The objects that events about a workload are recorded on."""
        raise NotImplementedError

    async def _request(self, eviction: Eviction, workload: Workload) -> None:
        """Evict; raises PodGoneError, RejectedError or UnknownOutcomeError."""
        raise NotImplementedError

    def _began(self, victim: WorkloadKey, workload: Workload) -> None:
        """Note that an eviction is in progress, until `_ended` returns the victim."""
        raise NotImplementedError

    def _place(self, victim: WorkloadKey) -> str:
        """Where the victim is evicted from, for events: empty if its name says it."""
        del victim
        return ""

    def _why(self, eviction: Eviction) -> str:
        """Why this victim was chosen."""
        return eviction.why

    def _owner(self, violation: Violation) -> WorkloadKey:
        """The workload that has the violated rule."""
        return violation.owner

    # The loop

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
            wait = min(max(self._next_at(plan) - self._clock(), 0.0), MAX_CHECK_INTERVAL_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._activity.wait()

    def _next_at(self, plan: EvictionPlan) -> float:
        """When something is due if nothing changes."""
        return plan.next_at

    async def plan_evictions(self) -> EvictionPlan:
        """Return the evictions that are due. Victims are chosen in a thread: with many violations it takes a while."""
        chosen = await asyncio.to_thread(self._enforcer.choosing(self._observe(), self._precedence()))
        if self._dry_run:
            chosen = self._not_yet_reported(chosen)
        now = self._observe()  # violations resolved meanwhile need no eviction
        if not self._enforcer.settings.only_if_placeable:
            return self._enforcer.plan(chosen, now, None)
        with self._checking_other_targets() as placeable:
            return self._enforcer.plan(chosen, now, placeable)

    def _observe(self) -> float:
        """Pass the current violations and the victims that are gone to the enforcer. Return the time."""
        now = self._clock()
        for victim in self._ended():
            self._enforcer.gone(victim)
        self._enforcer.observe(self.lasting_violations(), now, self._judged_later())
        return now

    def _not_yet_reported(self, chosen: EvictionChoice) -> EvictionChoice:
        """Leave out victims already logged: a dry run evicts none of them, and the others must be logged too."""
        self._reported &= {eviction.victim for eviction in chosen.evictions}
        new = tuple(eviction for eviction in chosen.evictions if eviction.victim not in self._reported)
        return msgspec.structs.replace(chosen, evictions=new)

    # Evictions

    async def _evict(self, eviction: Eviction) -> None:
        victim, workload = eviction.victim, self._workload(eviction.victim)
        if workload is None:
            return
        facts = {self.noun: victim, "why": self._why(eviction), "rule": eviction.causes[0].shown}
        if self._dry_run:
            self._reported.add(victim)
            log.info("would evict", extra=facts)
            return
        now = self._clock()
        try:
            await self._request(eviction, workload)
        except PodGoneError:  # the watch has not reported it yet
            self._began(victim, workload)
            self._enforcer.mark_terminating(victim, now)
            return
        except PostponedError as error:
            self._enforcer.rejected(victim, str(error), now)
            return
        except (RejectedError, UnknownOutcomeError) as error:
            self._enforcer.rejected(victim, str(error), now, outcome_unknown=isinstance(error, UnknownOutcomeError))
            self._metrics.evictions.labels("refused").inc()
            log.warning("eviction rejected", extra={**facts, "error": str(error)})
            self._tell(
                workload,
                "EvictionRefused",
                f"not evicted{self._place(victim)}, although {self._why(eviction)}: {error}",
            )
            return
        self._enforcer.evicted(victim, now)
        self._began(victim, workload)
        self._metrics.evictions.labels("evicted").inc()
        log.info("evicted", extra=facts)
        self._record_eviction(eviction, workload)

    # Events

    def _tell(self, workload: Workload, reason: str, note: str, *, warning: bool = True) -> None:
        for subject in self._subjects(workload):
            self._events.record(subject, reason, note, action="Evicting", warning=warning)

    def report_withheld(self, plan: EvictionPlan) -> None:
        """Report each violation whose evictions are withheld, once for as long as it stays."""
        reported, self._withheld = self._withheld, frozenset(one.violation.id for one in plan.withheld)
        for one in plan.withheld:
            workload = self._workload(one.violation.owner)
            if one.violation.id in reported or workload is None:
                continue
            log.info(
                "eviction withheld",
                extra={self.noun: one.violation.owner, "rule": one.violation.shown, "victims": list(one.peers)},
            )
            if not self._dry_run:
                self._metrics.evictions.labels("withheld").inc(len(one.peers))
                rule = self._describe_rule(one.violation, workload.namespace)
                self._tell(
                    workload, "RuleNotEnforced", f"not enforced, because {self._why_withheld(one.peers)}: {rule}"
                )

    def _why_withheld(self, peers: tuple[WorkloadKey, ...]) -> str:
        shown = f"1 {self.noun}" if len(peers) == 1 else f"{len(peers)} {self.noun}s"
        return f"{shown} of namespaces without consent would be evicted"

    def _record_eviction(self, eviction: Eviction, workload: Workload) -> None:
        """Record the rule on the victim, and the eviction on the workloads at the other side of the violations."""
        place, namespace = self._place(eviction.victim), workload.namespace
        rule = self._describe_rule(eviction.causes[0], namespace)
        self._tell(workload, "RuleBroken", f"evicted{place} because {self._why(eviction)}: {rule}")
        for other in self._remaining_peers(eviction)[:MAX_PEERS_NOTIFIED]:
            rule = self._describe_rule(eviction.causes[0], other.namespace)
            victim = self._names.name(workload.key, other.namespace)
            text = f"{victim} was evicted{place}: {self._why(eviction)} ({rule})"
            self._tell(other, "NeighbourEvicted", text, warning=False)

    def _describe_rule(self, violation: Violation, reader: str) -> str:
        """Return the owner of the violated rule and what the rule requires, for readers of this namespace."""
        owner = self._names.name(self._owner(violation), reader)
        verb = "rejects" if violation.rule_type is RuleType.ANTI_AFFINITY else "requires"
        allowed = f" more than {violation.limit} of" if violation.limit else ""
        return f"{owner} {verb}{allowed} {violation.shown} in {violation.domain or violation.topology_key}"

    def _remaining_peers(self, eviction: Eviction) -> list[Workload]:
        """Return the workloads at the other side of the violations that are not evicted themselves."""
        sides = ((one.owner,) if one.owner != eviction.victim else one.peers for one in eviction.causes)
        others = sorted({key for side in sides for key in side})
        found = [self._workload(key) for key in others if not self._is_leaving(key)]
        return list({one.key: one for one in found if one is not None}.values())

    def _is_leaving(self, victim: WorkloadKey) -> bool:
        """Whether an eviction of it is in progress."""
        raise NotImplementedError

    def _violation_counts(self) -> list[tuple[tuple[str, ...], float]]:
        found = {_METRIC_LABELS[rule_type]: count for rule_type, count in self._tracker.n_by_type().items()}
        return [((name,), float(count)) for name, count in sorted(found.items())]
