"""
The state of enforcement between two rounds: the timers of violations and the record of evictions.

Driven from outside: it is given the violations, returns the evictions that are due, and is given their outcome. Reads
no clock. After a take-over or a restart all grace periods start again, so evictions are late rather than early.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

import msgspec

from bayplan.enforcing import planning
from bayplan.enforcing.consent import namespace_of
from bayplan.enforcing.eviction_limits import MINUTE
from bayplan.enforcing.planning import EnforcementSettings, EnforcementState, Eviction, EvictionChoice, EvictionPlan
from bayplan.enforcing.victims import Precedence
from bayplan.enforcing.violations import Violation, ViolationId
from bayplan.engine.engine import Engine
from bayplan.mapping.pods import SpreadContext
from bayplan.model.workloads import WorkloadKey
from bayplan.placing import recreating

# Pods may take as long to terminate as their owners like, or for ever with a finalizer; rules of others do not wait.
OVERDUE_SECONDS = 300.0
REMEMBERED_SECONDS = 10 * MINUTE  # evictions, for the turns of namespaces


class Enforcer:
    """One per enforcement loop. Times are seconds of any monotonic clock."""

    def __init__(self, settings: EnforcementSettings) -> None:
        self.settings = settings
        self._violations: tuple[Violation, ...] = ()
        self._since: dict[ViolationId, float] = {}
        self._started: list[tuple[float, str]] = []  # with the namespace
        self._terminating: dict[WorkloadKey, float] = {}  # since when
        self._rejected: dict[WorkloadKey, tuple[float, str]] = {}
        self._no_place: dict[WorkloadKey, float] = {}
        self._on = True

    def observe(self, violations: Iterable[Violation], now: float, later: Iterable[ViolationId] = ()) -> None:
        """
        Record the violations now: new timers start, those of resolved violations are removed.

        `later` are violations that exist and are not judged this time: their timers run.
        """
        self._violations = tuple(violations) if self._on else ()
        ids = [*(v.id for v in self._violations), *(later if self._on else ())]
        self._since = {known: self._since.get(known, now) for known in ids}

    def since(self, violation: Violation) -> float | None:
        """When the violation was first observed."""
        return self._since.get(violation.id)

    def due(
        self,
        now: float,
        precedence: Mapping[WorkloadKey, Precedence],
        placeable: Callable[[WorkloadKey], bool] | None = None,
    ) -> EvictionPlan:
        """The evictions to start now. They count only once `evicted` or `rejected` is called."""
        return self.plan(self.choosing(now, precedence)(), now, placeable)

    def choosing(self, now: float, precedence: Mapping[WorkloadKey, Precedence]) -> Callable[[], EvictionChoice]:
        """A function that chooses the victims; it may run in any thread: nothing that it reads is changed in place."""
        return functools.partial(
            planning.choose_evictions, self._violations, now, self.settings, self._state(now), {**precedence}
        )

    def plan(
        self, chosen: EvictionChoice, now: float, placeable: Callable[[WorkloadKey], bool] | None = None
    ) -> EvictionPlan:
        """The evictions to start now, of the chosen victims whose violations still exist."""
        current = {violation.id: violation for violation in self._violations}
        still = tuple(e for e in chosen.evictions if any(_still_evicts(e, current.get(v.id)) for v in e.causes))
        withheld = tuple(one for one in chosen.withheld if one.violation.id in current)
        choice = msgspec.structs.replace(chosen, evictions=still, withheld=withheld)
        plan = planning.plan_evictions(choice, now, self.settings, self._state(now), placeable=placeable)
        self._no_place.update({d.victim: d.until for d in plan.spared if d.why == planning.NO_OTHER_TARGET})
        return plan

    def _state(self, now: float) -> EnforcementState:
        self._started = [(start, namespace) for start, namespace in self._started if start > now - REMEMBERED_SECONDS]
        self._rejected = {key: rejection for key, rejection in self._rejected.items() if rejection[0] > now}
        self._no_place = {key: until for key, until in self._no_place.items() if until > now}
        return EnforcementState(
            since=self._since,
            started=tuple(start for start, _ in self._started),
            n_started=Counter(namespace for _, namespace in self._started),
            terminating=frozenset(self._terminating),
            overdue=frozenset(key for key, since in self._terminating.items() if since <= now - OVERDUE_SECONDS),
            rejected={**self._rejected},
            no_place={**self._no_place},
        )

    def evicted(self, victim: WorkloadKey, now: float) -> None:
        """The eviction was accepted."""
        self._started.append((now, namespace_of(victim)))
        self.mark_terminating(victim, now)

    def mark_terminating(self, victim: WorkloadKey, now: float) -> None:
        """The victim is terminating until `gone`, whatever the cause."""
        self._terminating.setdefault(victim, now)
        self._rejected.pop(victim, None)
        self._no_place.clear()

    def rejected(self, victim: WorkloadKey, why: str, now: float, *, outcome_unknown: bool = False) -> None:
        """
        The eviction was rejected: it is not tried again for a while.

        `outcome_unknown`: no answer came. It then counts as started, so that the rate limit is not exceeded.
        """
        self._rejected[victim] = now + self.settings.retry_after, why
        self._no_place.clear()
        if outcome_unknown:
            self._started.append((now, namespace_of(victim)))

    def gone(self, victim: WorkloadKey) -> None:
        """The victim no longer exists: its disruption is over."""
        self._terminating.pop(victim, None)
        self._no_place.clear()  # there may be room now

    def switch_off(self) -> None:
        """Cancel everything that is not in progress, and record nothing from now on."""
        self._on = False
        self.observe((), 0.0)
        self._rejected.clear()
        self._no_place.clear()

    def switch_on(self) -> None:
        """Record violations again: every grace period starts with the next `observe`."""
        self._on = True


def _still_evicts(eviction: Eviction, violation: Violation | None) -> bool:
    """Whether the violation still exists, and its rule may still evict this victim."""
    return violation is not None and eviction.victim not in violation.protected


@contextmanager
def checking_other_targets(engine: Engine, spread_context: SpreadContext) -> Iterator[Callable[[WorkloadKey], bool]]:
    """
    A function that says whether a workload fits on another target, to be called while the context lasts.

    A workload that does is moved there on the index, so that no room is given twice. The index is restored in the end.
    """
    index = engine.index

    def fits_elsewhere(key: WorkloadKey) -> bool:
        before, mark = index.records[key].shares, index.mark()
        target = recreating.place_again(key, engine, spread_context).target
        if target and target not in dict(before):
            index.forget(mark)
            return True
        index.undo_to(mark)
        return False

    with index.tentatively():
        yield fits_elsewhere
