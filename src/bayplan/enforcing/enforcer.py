"""
Keeps the timers of broken rules and the books of evictions between one look and the next.

Driven from outside: told what is broken, asked what is due, told what became of it. Reads no clock. A new one, after a
take-over or a restart, knows of no rule that has been broken for long, so it waits rather longer than shorter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from bayplan.enforcing import planning
from bayplan.enforcing.eviction_gate import MINUTE
from bayplan.enforcing.planning import Plan, Settings, State
from bayplan.enforcing.victims import Standing
from bayplan.enforcing.violations import Violation, ViolationId
from bayplan.model.workloads import WorkloadKey


class Enforcer:
    """One for as long as enforcement is on. Times are seconds by any clock that never goes back."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._violations: tuple[Violation, ...] = ()
        self._since: dict[ViolationId, float] = {}
        self._started: list[float] = []
        self._leaving: set[WorkloadKey] = set()
        self._refused: dict[WorkloadKey, tuple[float, str]] = {}
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
        standing: Mapping[WorkloadKey, Standing],
        placeable: Callable[[WorkloadKey], bool] | None = None,
    ) -> Plan:
        """What to do now. Nothing is taken for done until `evicted` or `refused` says so."""
        self._started = [start for start in self._started if start > now - MINUTE]
        self._refused = {key: refusal for key, refusal in self._refused.items() if refusal[0] > now}
        state = State(since=self._since, started=self._started, leaving=frozenset(self._leaving), refused=self._refused)
        return planning.plan(self._violations, now, self.settings, state, standing, placeable=placeable)

    def evicted(self, victim: WorkloadKey, now: float) -> None:
        """The eviction was accepted: the victim is on its way out until `gone`."""
        self._started.append(now)
        self._leaving.add(victim)
        self._refused.pop(victim, None)

    def refused(self, victim: WorkloadKey, why: str, now: float) -> None:
        """The eviction was not accepted: the victim is left in peace for a while."""
        self._refused[victim] = now + self.settings.retry_after, why

    def gone(self, victim: WorkloadKey) -> None:
        """The victim is no longer there: its disruption is over."""
        self._leaving.discard(victim)

    def switch_off(self) -> None:
        """Cancel everything that is not under way yet, and take note of nothing from now on."""
        self._on = False
        self.observe((), 0.0)
        self._refused.clear()

    def switch_on(self) -> None:
        """Begin anew: every grace time starts with the next look."""
        self._on = True
