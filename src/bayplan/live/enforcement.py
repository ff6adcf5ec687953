"""
Execution-time rules held true while pods run: what is broken is known from the index, who must go is told by
`enforcing`, and here it is done, through the Eviction API and within the limits.

A dry run says what would be done and does nothing. Switched off, everything that is not under way is forgotten.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from bayplan.enforcing import enforcer
from bayplan.enforcing.enforcer import Enforcer
from bayplan.enforcing.execution_rules import RuleType
from bayplan.enforcing.planning import EnforcementSettings, Eviction, EvictionChoice, EvictionPlan
from bayplan.enforcing.tracking import ViolationTracker
from bayplan.enforcing.violations import Violation, involved
from bayplan.live.cluster_writer import ClusterWriter, PodGoneError, PodRef, RejectedError, UnknownOutcomeError
from bayplan.live.events import EventRecorder
from bayplan.live.metrics import Metrics
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.rules.rule import Rule
from bayplan.watching.cluster_state import ClusterState

log = logging.getLogger("bayplan.enforcement")
MAX_CHECK_INTERVAL_SECONDS = 30.0  # seconds between two looks, should nothing happen
MAX_PEERS_NOTIFIED = 3  # of those who learn that one went: a crowd in which all keep off all would drown in events

# The label values of the metric, which are older than the names of the types.
_METRIC_LABELS = {RuleType.AFFINITY: "near", RuleType.ANTI_AFFINITY: "apart", RuleType.GROUP_AFFINITY: "with_all"}


class Enforcement:
    """`changed` is called when something in the cluster is other than it was."""

    def __init__(
        self,
        state: ClusterState,
        profiles: Mapping[str, Sequence[Rule]],
        *,
        writer: ClusterWriter,
        events: EventRecorder,
        metrics: Metrics,
        settings: EnforcementSettings,
        clock: Callable[[], float],
        dry_run: bool = False,
    ) -> None:
        self._state = state
        self._profiles = profiles
        self._writer = writer
        self._events = events
        self._metrics = metrics
        self._clock = clock
        self._dry_run = dry_run
        self._tracker = ViolationTracker(state.index)
        self._enforcer = Enforcer(settings)
        self._activity = asyncio.Event()
        self._leaving: dict[WorkloadKey, str] = {}  # with the uid: a successor may have the same name
        self._reported: set[WorkloadKey] = set()
        self.on = True
        metrics.gauge("bayplan_violations", "Execution-time rules that are broken.", self._violation_counts, ("rule",))

    def changed(self) -> None:
        self._activity.set()

    def switch(self, *, on: bool) -> None:
        """Begin or cease to enforce, from now on; grace times begin anew."""
        self.on = on
        (self._enforcer.switch_on if on else self._enforcer.switch_off)()
        log.warning("enforcement switched %s", "on" if on else "off")
        self._activity.set()

    async def run(self) -> None:
        """Enforce for ever."""
        while True:
            self._activity.clear()
            plan = await self.plan_evictions()
            await asyncio.gather(*(self._evict(eviction) for eviction in plan.evict))
            if plan.evict:
                continue  # what was done may be more than the plan knew
            wait = min(max(plan.next_at - self._clock(), 0.0), MAX_CHECK_INTERVAL_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._activity.wait()

    async def plan_evictions(self) -> EvictionPlan:
        """What is due now. Choosing goes on beside everything else: in a storm it takes a while."""
        chosen = await asyncio.to_thread(self._enforcer.choosing(self._observe(), self._tracker.precedence()))
        if self._dry_run:
            chosen = self._not_yet_reported(chosen)
        now = self._observe()  # what was mended meanwhile costs nobody
        with self._placeability() as placeable:
            return self._enforcer.plan(chosen, now, placeable)

    def _observe(self) -> float:
        """Tell the enforcer what is broken now, and who is gone. Returns the time."""
        now, records = self._clock(), self._state.index.records
        for key, uid in list(self._leaving.items()):
            if key not in records or records[key].workload.uid != uid:
                del self._leaving[key]
                self._enforcer.gone(key)
        self._enforcer.observe(self.lasting_violations(), now)
        return now

    def _not_yet_reported(self, chosen: EvictionChoice) -> EvictionChoice:
        """Without those who were named before: nobody goes in a dry run, and the next ones have their turn."""
        self._reported &= {eviction.victim for eviction in chosen.evictions}
        new = tuple(eviction for eviction in chosen.evictions if eviction.victim not in self._reported)
        return msgspec.structs.replace(chosen, evictions=new)

    def lasting_violations(self) -> list[Violation]:
        """What is broken and would stay so: whoever is on its way out already mends it by going."""
        records = self._state.index.records
        violations = self._tracker.violations()
        going = {key for key in involved(violations) if key in records and records[key].workload.terminating}
        return [violation for violation in violations if not violation.resolved_without(going)]

    @contextlib.contextmanager
    def _placeability(self) -> Iterator[Callable[[WorkloadKey], bool] | None]:
        if not self._enforcer.settings.only_if_placeable:
            yield None
            return
        # Whose pods they are does not matter here: rooms are the same for all schedulers but for their weights.
        with enforcer.checking_other_targets(self._state.index, next(iter(self._profiles.values()))) as placeable:
            yield placeable

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
        except PodGoneError:  # which the watch has yet to tell
            self._leaving[eviction.victim] = pod.uid
            self._enforcer.mark_terminating(eviction.victim)
            return
        except (RejectedError, UnknownOutcomeError) as error:
            self._enforcer.refused(
                eviction.victim, str(error), now, outcome_unknown=isinstance(error, UnknownOutcomeError)
            )
            self._count("refused")
            log.warning("eviction refused", extra={**facts, "error": str(error)})
            note = f"not evicted, although {eviction.why}: {error}"
            self._events.record(pod, "EvictionRefused", note, action="Evicting", warning=True)
            return
        self._enforcer.evicted(eviction.victim, now)
        self._leaving[eviction.victim] = pod.uid
        self._count("evicted")
        log.info("evicted", extra=facts)
        self._record_events(eviction, record.workload)

    def _record_events(self, eviction: Eviction, victim: Workload) -> None:
        """The victim learns which rule it is for, and those on the other side of the conflict who went."""
        rule = _describe_rule(eviction.causes[0])
        note = f"evicted because {eviction.why}: {rule}"
        self._events.record(PodRef.of(victim), "RuleBroken", note, action="Evicting", warning=True)
        for other in self._others(eviction)[:MAX_PEERS_NOTIFIED]:
            text = f"{eviction.victim} was evicted: {eviction.why} ({rule})"
            self._events.record(PodRef.of(other), "NeighbourEvicted", text, action="Evicting")

    def _others(self, eviction: Eviction) -> list[Workload]:
        """Those on the other side of the conflicts that the victim goes for, as far as they stay."""
        sides = ((one.owner,) if one.owner != eviction.victim else one.peers for one in eviction.causes)
        found = (self._state.index.records.get(key) for key in sorted({key for side in sides for key in side}))
        return [r.workload for r in found if r is not None and r.workload.key not in self._leaving]

    def _count(self, outcome: str) -> None:
        self._metrics.evictions.labels(outcome).inc()

    def _violation_counts(self) -> list[tuple[tuple[str, ...], float]]:
        found = Counter(_METRIC_LABELS[violation.rule_type] for violation in self._tracker.violations())
        return [((name,), float(count)) for name, count in sorted(found.items())]


def _describe_rule(violation: Violation) -> str:
    """Whose rule it is, and what it says."""
    asks = "refuses" if violation.rule_type is RuleType.ANTI_AFFINITY else "asks for"
    allowed = f" more than {violation.limit} of" if violation.limit else ""
    return f"{violation.owner} {asks}{allowed} {violation.shown} in {violation.domain or violation.topology_key}"
