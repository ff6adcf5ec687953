"""
Keeps the timers of broken rules and the books of evictions between one look and the next.

Driven from outside: told what is broken, asked what is due, told what became of it. Reads no clock. A new one, after a
take-over or a restart, knows of no rule that has been broken for long, so it waits rather longer than shorter.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from bayplan import schedule_pod
from bayplan.enforcing import planning
from bayplan.enforcing.eviction_limits import MINUTE
from bayplan.enforcing.planning import EnforcementSettings, EnforcementState, EvictionChoice, EvictionPlan
from bayplan.enforcing.victims import Precedence
from bayplan.enforcing.violations import Violation, ViolationId
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import WorkloadKey
from bayplan.rules.rule import Rule


class Enforcer:
    """One for as long as enforcement is on. Times are seconds by any clock that never goes back."""

    def __init__(self, settings: EnforcementSettings) -> None:
        self.settings = settings
        self._violations: tuple[Violation, ...] = ()
        self._since: dict[ViolationId, float] = {}
        self._started: list[float] = []
        self._terminating: set[WorkloadKey] = set()
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
        precedence: Mapping[WorkloadKey, Precedence],
        placeable: Callable[[WorkloadKey], bool] | None = None,
    ) -> EvictionPlan:
        """What to do now. Nothing is taken for done until `evicted` or `refused` says so."""
        return self.plan(self.choosing(now, precedence)(), now, placeable)

    def choosing(self, now: float, precedence: Mapping[WorkloadKey, Precedence]) -> Callable[[], EvictionChoice]:
        """The choice of who has to go, made when called; in any thread, since nothing that it reads changes."""
        return functools.partial(
            planning.choose_evictions, self._violations, now, self.settings, self._state(now), {**precedence}
        )

    def plan(
        self, chosen: EvictionChoice, now: float, placeable: Callable[[WorkloadKey], bool] | None = None
    ) -> EvictionPlan:
        """What to do now about those who were chosen, as far as what they were chosen for is still broken."""
        still = tuple(e for e in chosen.evictions if any(cause.id in self._since for cause in e.causes))
        choice = msgspec.structs.replace(chosen, evictions=still)
        plan = planning.plan_evictions(choice, now, self.settings, self._state(now), placeable=placeable)
        self._no_place.update({d.victim: d.until for d in plan.spared if d.why == planning.NOWHERE_ELSE})
        return plan

    def _state(self, now: float) -> EnforcementState:
        self._started = [start for start in self._started if start > now - MINUTE]
        self._refused = {key: refusal for key, refusal in self._refused.items() if refusal[0] > now}
        self._no_place = {key: until for key, until in self._no_place.items() if until > now}
        return EnforcementState(
            since=self._since,
            started=tuple(self._started),
            terminating=frozenset(self._terminating),
            refused={**self._refused},
            no_place={**self._no_place},
        )

    def evicted(self, victim: WorkloadKey, now: float) -> None:
        """The eviction was accepted."""
        self._started.append(now)
        self.mark_terminating(victim)

    def mark_terminating(self, victim: WorkloadKey) -> None:
        """The victim is on its way out until `gone`, whoever sent it."""
        self._terminating.add(victim)
        self._refused.pop(victim, None)
        self._no_place.clear()

    def refused(self, victim: WorkloadKey, why: str, now: float, *, outcome_unknown: bool = False) -> None:
        """
        The eviction was not accepted: the victim is left in peace for a while.

        `outcome_unknown`: nobody knows, since no answer came. Then it counts as begun, lest more go than the limit allows.
        """
        self._refused[victim] = now + self.settings.retry_after, why
        self._no_place.clear()
        if outcome_unknown:
            self._started.append(now)

    def gone(self, victim: WorkloadKey) -> None:
        """The victim is no longer there: its disruption is over."""
        self._terminating.discard(victim)
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


# RF merged from enforcing.other_targets: Whether there is another place for a workload that would have to go, asked
# of the engine itself.


@contextmanager
def checking_other_targets(index: PlacementIndex, rules: Sequence[Rule]) -> Iterator[Callable[[WorkloadKey], bool]]:
    """
    A question that can be put for one workload after another while the context lasts.

    Whoever has another place is taken to stand there from then on, so that no two are promised the same room. In the
    end the index is as it was.
    """

    def has_another(key: WorkloadKey) -> bool:
        shares = index.records[key].shares
        workload = index.remove(key)
        slot, _ = schedule_pod.choose(workload, index, rules)
        target = index.slots.at(slot).name if slot >= 0 else ""
        moves = bool(target) and target not in dict(shares)
        index.add_shares(workload, ((target, 1),) if moves else shares)
        return moves

    with index.tentatively():
        yield has_another
