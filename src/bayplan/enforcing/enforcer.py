"""
Keeps the timers of broken rules and the books of evictions between one look and the next.

Driven from outside: told what is broken, asked what is due, told what became of it. Reads no clock. A new one, after a
take-over or a restart, knows of no rule that has been broken for long, so it waits rather longer than shorter.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping

import msgspec

from bayplan.enforcing import planning
from bayplan.enforcing.eviction_limits import MINUTE
from bayplan.enforcing.planning import Chosen, EnforcementSettings, EvictionPlan, State
from bayplan.enforcing.victims import Precedence
from bayplan.enforcing.violations import Violation, ViolationId
from bayplan.model.workloads import WorkloadKey


class Enforcer:
    """One for as long as enforcement is on. Times are seconds by any clock that never goes back."""

    def __init__(self, settings: EnforcementSettings) -> None:
        self.settings = settings
        self._violations: tuple[Violation, ...] = ()
        self._since: dict[ViolationId, float] = {}
        self._started: list[float] = []
        self._leaving: set[WorkloadKey] = set()
        self._refused: dict[WorkloadKey, tuple[float, str]] = {}
        self._no_place: dict[WorkloadKey, float] = {}
        self._on = True

    def observe(self, violations: Iterable[Violation], now: float) -> None:
        """Take note of what is broken now: new timers start, those of mended rules are forgotten."""
        self._violations = tuple(violations) if self._on else ()
        self._since = {v.id: self._since.get(v.id, now) for v in self._violations}

    def since(self, violation: Violation) -> float | None:
        """When the rule was first seen broken."""
        return self._since.get(violation.id)

    def due(
        self,
        now: float,
        standing: Mapping[WorkloadKey, Precedence],
        placeable: Callable[[WorkloadKey], bool] | None = None,
    ) -> EvictionPlan:
        """What to do now. Nothing is taken for done until `evicted` or `refused` says so."""
        return self.plan(self.choosing(now, standing)(), now, placeable)

    def choosing(self, now: float, standing: Mapping[WorkloadKey, Precedence]) -> Callable[[], Chosen]:
        """The choice of who has to go, made when called; in any thread, since nothing that it reads changes."""
        return functools.partial(planning.chosen, self._violations, now, self.settings, self._state(now), {**standing})

    def plan(self, chosen: Chosen, now: float, placeable: Callable[[WorkloadKey], bool] | None = None) -> EvictionPlan:
        """What to do now about those who were chosen, as far as what they were chosen for is still broken."""
        still = tuple(e for e in chosen.evictions if any(cause.id in self._since for cause in e.causes))
        choice = msgspec.structs.replace(chosen, evictions=still)
        plan = planning.plan(choice, now, self.settings, self._state(now), placeable=placeable)
        self._no_place.update({d.victim: d.until for d in plan.spared if d.why == planning.NOWHERE_ELSE})
        return plan

    def _state(self, now: float) -> State:
        self._started = [start for start in self._started if start > now - MINUTE]
        self._refused = {key: refusal for key, refusal in self._refused.items() if refusal[0] > now}
        self._no_place = {key: until for key, until in self._no_place.items() if until > now}
        return State(
            since=self._since,
            started=tuple(self._started),
            leaving=frozenset(self._leaving),
            refused={**self._refused},
            no_place={**self._no_place},
        )

    def evicted(self, victim: WorkloadKey, now: float) -> None:
        """The eviction was accepted."""
        self._started.append(now)
        self.leaves(victim)

    def leaves(self, victim: WorkloadKey) -> None:
        """The victim is on its way out until `gone`, whoever sent it."""
        self._leaving.add(victim)
        self._refused.pop(victim, None)
        self._no_place.clear()

    def refused(self, victim: WorkloadKey, why: str, now: float, *, perhaps_not: bool = False) -> None:
        """
        The eviction was not accepted: the victim is left in peace for a while.

        `perhaps_not`: nobody knows, since no answer came. Then it counts as begun, lest more go than the limit allows.
        """
        self._refused[victim] = now + self.settings.retry_after, why
        self._no_place.clear()
        if perhaps_not:
            self._started.append(now)

    def gone(self, victim: WorkloadKey) -> None:
        """The victim is no longer there: its disruption is over."""
        self._leaving.discard(victim)
        self._no_place.clear()  # now there may be room

    def switch_off(self) -> None:
        """Cancel everything that is not under way yet, and take note of nothing from now on."""
        self._on = False
        self.observe((), 0.0)
        self._refused.clear()
        self._no_place.clear()

    def switch_on(self) -> None:
        """Begin anew: every grace time starts with the next look."""
        self._on = True
