"""
From broken rules to evictions: who goes now, who waits and until when, who is spared and why.

Affinity takes the owner of the rule, always; anti-affinity takes whom `victims` chooses. Each only once its rule has
been broken for the grace time of its kind, and no more at once than the limits allow. Pure: the time is a number that
comes from outside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from bayplan.enforcing import victims
from bayplan.enforcing.eviction_limits import EvictionRateLimit
from bayplan.enforcing.execution_rules import RuleType
from bayplan.enforcing.victims import Conflict, Precedence
from bayplan.enforcing.violations import Violation, ViolationId
from bayplan.model.workloads import WorkloadKey

NOWHERE_ELSE = "no other place for it"
CHECKED_LATER = "a place for it is looked for after the others"
OWNS_AFFINITY = "its affinity is not met"
LOWEST = "lowest priority in the conflict"
OWNER = "owner of the broken rule, at equal priority"
RESOLVES_MOST = "its going mends the most at equal priority"


class EnforcementSettings(msgspec.Struct, frozen=True, kw_only=True):
    """
    How evictions are held back; times in seconds.

    `per_minute` and `at_once` limit how many are started and how many are under way. `only_if_placeable` spares
    whoever has no other place to go.
    """

    affinity_grace: float = 300.0
    anti_affinity_grace: float = 60.0
    per_minute: int = 30
    at_once: int = 10
    retry_after: float = 30.0
    only_if_placeable: bool = False

    def grace(self, rule_type: RuleType) -> float:
        return self.anti_affinity_grace if rule_type is RuleType.ANTI_AFFINITY else self.affinity_grace


class EnforcementState(msgspec.Struct, frozen=True, kw_only=True):
    """
    What happened before: since when rules are broken, when evictions were started, who is on the way out.

    `refused` says until when and why a workload cannot be evicted, `no_place` until when not to ask again whether there
    is another place for it.
    """

    since: Mapping[ViolationId, float]
    started: Sequence[float] = ()
    terminating: frozenset[WorkloadKey] = frozenset()
    refused: Mapping[WorkloadKey, tuple[float, str]] = {}
    no_place: Mapping[WorkloadKey, float] = {}


class Eviction(msgspec.Struct, frozen=True):
    """One who goes now, why he, and the broken rules that this is for."""

    victim: WorkloadKey
    why: str
    causes: tuple[Violation, ...]


class Delay(msgspec.Struct, frozen=True):
    """One who does not go now. `until` is when to look again; infinite if only a change of something else can help."""

    victim: WorkloadKey
    why: str
    causes: tuple[Violation, ...]
    until: float = math.inf


class EvictionChoice(msgspec.Struct, frozen=True):
    """
    Who has to go, the first first, whether or not the limits let them. `in_grace` are the broken rules within their
    grace time, each with the end of it. `exact`: nobody could choose better.
    """

    evictions: tuple[Eviction, ...] = ()
    in_grace: tuple[tuple[Violation, float], ...] = ()
    exact: bool = True


class EvictionPlan(msgspec.Struct, frozen=True):
    """
    Of those who are chosen, who goes now. `waiting` are victims that the limits hold back, `spared` those that a budget
    or the lack of a place protects.
    """

    evict: tuple[Eviction, ...] = ()
    in_grace: tuple[tuple[Violation, float], ...] = ()
    waiting: tuple[Delay, ...] = ()
    spared: tuple[Delay, ...] = ()
    exact: bool = True

    @property
    def next_at(self) -> float:
        """When the next thing may be due, if nothing else happens."""
        times = [end for _, end in self.in_grace] + [delay.until for delay in (*self.waiting, *self.spared)]
        return min(times, default=math.inf)


def choose_evictions(
    violations: Iterable[Violation],
    now: float,
    settings: EnforcementSettings,
    state: EnforcementState,
    precedence: Mapping[WorkloadKey, Precedence],
) -> EvictionChoice:
    """Who has to go for the rules that have been broken for long enough. Most of the work is here."""
    broken = [v for v in violations if not v.resolved_without(state.terminating)]
    ends = {v.id: state.since.get(v.id, now) + settings.grace(v.rule_type) for v in broken}
    ripe = [v for v in broken if ends[v.id] <= now]
    found, exact = evictions_for(ripe, _with_protection(precedence, state, now), state.terminating)
    began = {id(v): state.since.get(v.id, math.inf) for v in ripe}
    since = {key: min(began[id(v)] for v in eviction.causes) for key, eviction in found.items()}
    order = sorted(found, key=lambda key: (precedence[key].priority, since[key], key))
    in_grace = tuple((v, ends[v.id]) for v in broken if ends[v.id] > now)
    return EvictionChoice(tuple(found[key] for key in order), in_grace, exact)


def plan_evictions(
    choice: EvictionChoice,
    now: float,
    settings: EnforcementSettings,
    state: EnforcementState,
    *,
    placeable: Callable[[WorkloadKey], bool] | None = None,
) -> EvictionPlan:
    """Which of them go now. `placeable` says whether there is another place for a workload."""
    evict, waiting, spared = [], [], []
    gate = EvictionRateLimit(
        now,
        per_minute=settings.per_minute,
        at_once=settings.at_once,
        started=state.started,
        under_way=len(state.terminating),
    )
    search = _EvictionSearch(placeable if settings.only_if_placeable else None, settings.at_once)
    for eviction in choice.evictions:
        victim, causes = eviction.victim, eviction.causes
        until, why = state.refused.get(victim, (-math.inf, ""))
        if until > now:
            spared.append(Delay(victim, why, causes, until))
        elif not gate.open:
            waiting.append(Delay(victim, gate.why, causes, gate.until))
        elif state.no_place.get(victim, -math.inf) > now:
            spared.append(Delay(victim, NOWHERE_ELSE, causes, state.no_place[victim]))
        elif search.tired:
            waiting.append(Delay(victim, CHECKED_LATER, causes, now))
        elif not search.finds_a_place(victim):
            spared.append(Delay(victim, NOWHERE_ELSE, causes, now + settings.retry_after))
        else:
            gate.pass_one()
            evict.append(eviction)
    return EvictionPlan(tuple(evict), choice.in_grace, tuple(waiting), tuple(spared), choice.exact)


class _EvictionSearch:
    """
    Asks for other places, where that is wished. No more often in vain than `patience` says, since each takes its time:
    the others have their turn in the next look, in which those who were asked for are known.
    """

    def __init__(self, placeable: Callable[[WorkloadKey], bool] | None, patience: int) -> None:
        self._placeable, self._patience = placeable, patience

    @property
    def tired(self) -> bool:
        return self._patience <= 0

    def finds_a_place(self, victim: WorkloadKey) -> bool:
        found = self._placeable is None or self._placeable(victim)
        self._patience -= not found
        return found


def evictions_for(
    violations: Sequence[Violation],
    precedence: Mapping[WorkloadKey, Precedence],
    terminating: frozenset[WorkloadKey] = frozenset(),
) -> tuple[dict[WorkloadKey, Eviction], bool]:
    """Whose going would mend all these broken rules, each with the reason, and whether nobody could choose better."""
    far = [v for v in violations if v.rule_type is not RuleType.ANTI_AFFINITY]
    owned = _by_participant(far, lambda v: (v.owner,))
    chosen: dict[WorkloadKey, Eviction] = {}
    gone = set(terminating)
    # From the least wanted on: without him, others of his set may be in no violation any more.
    for v in sorted(far, key=lambda v: victims.retention_order(v.owner, precedence[v.owner]), reverse=True):
        if not v.resolved_without(gone):
            gone.add(v.owner)
            chosen[v.owner] = Eviction(v.owner, OWNS_AFFINITY, tuple(owned[v.owner]))
    apart = [v for v in violations if v.rule_type is RuleType.ANTI_AFFINITY]
    near = [v for v in apart if not v.resolved_without(gone)]
    choice = victims.choose((Conflict(v.owner, frozenset(v.peers) - gone, v.limit) for v in near), precedence)
    gone |= choice.victims
    for v in sorted(far, key=lambda v: victims.retention_order(v.owner, precedence[v.owner])):
        # The others of his set may go for reasons of their own, and then he is alone and can stay.
        if not v.lone_member_without or v.owner not in chosen:
            continue
        others = gone - {v.owner}
        if all(w.resolved_without(others) for w in violations):
            gone = others
            del chosen[v.owner]
    entangled = _by_participant(apart, lambda v: (v.owner, *v.peers))
    for owner in chosen.keys() & entangled.keys():
        also = (v for v in entangled[owner] if not v.resolved_without(gone - {owner}))
        chosen[owner] = Eviction(owner, OWNS_AFFINITY, (*owned[owner], *also))
    involved = _by_participant(near, lambda v: (v.owner, *v.peers))
    for victim in choice.victims:
        causes = tuple(involved[victim])
        chosen[victim] = Eviction(victim, _why(victim, causes, choice.victims, precedence), causes)
    return chosen, choice.exact


def _by_participant(
    violations: Iterable[Violation], parties: Callable[[Violation], Iterable[WorkloadKey]]
) -> dict[WorkloadKey, list[Violation]]:
    found: dict[WorkloadKey, list[Violation]] = {}
    for violation in violations:
        for key in parties(violation):
            found.setdefault(key, []).append(violation)
    return found


def _why(
    victim: WorkloadKey,
    causes: Sequence[Violation],
    gone: frozenset[WorkloadKey],
    precedence: Mapping[WorkloadKey, Precedence],
) -> str:
    """In words, why it is this one who goes."""
    beside = {key for v in causes for key in ((v.owner,) if victim != v.owner else v.peers)} - gone
    if any(precedence[key].priority > precedence[victim].priority for key in beside):
        return LOWEST
    return OWNER if any(v.owner == victim for v in causes) else RESOLVES_MOST


def _with_protection(
    precedence: Mapping[WorkloadKey, Precedence], state: EnforcementState, now: float
) -> Mapping[WorkloadKey, Precedence]:
    """Whoever cannot be evicted just now is the last to be chosen among equals."""
    refused = {key for key, (until, _) in state.refused.items() if until > now and key in precedence}
    return {**precedence, **{key: msgspec.structs.replace(precedence[key], spared=True) for key in refused}}
