"""
From violations to evictions: which pods are evicted now, which wait and until when, which are spared and why.

A violated affinity evicts the owner of the rule; a violated anti-affinity evicts the pods that `victims` chooses, of
those that the rule may evict: the evictions that the rule would need beyond these are withheld. A pod
is evicted only once its rule has been violated for the grace period of its type, within the limits of the settings.
Pure: the time is an argument.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from bayplan.enforcing import victims
from bayplan.enforcing.consent import namespace_of
from bayplan.enforcing.eviction_limits import EvictionRateLimit
from bayplan.enforcing.execution_rules import RuleType
from bayplan.enforcing.victims import Conflict, Precedence
from bayplan.enforcing.violations import Violation, ViolationId
from bayplan.model.workloads import WorkloadKey

NO_OTHER_TARGET = "no other place for it"
CHECKED_LATER = "another place for it is looked for after the others"
OWNS_AFFINITY = "its affinity is not met"
LOWER_PRIORITY = "lower priority than a pod that it conflicts with"
OWNS_RULE = "owner of the broken rule, at equal priority"
RESOLVES_MOST = "its eviction resolves the most at equal priority"


class EnforcementSettings(msgspec.Struct, frozen=True, kw_only=True):
    """
    The limits of evictions; times in seconds.

    `per_minute` limits how many are started, `at_once` how many are in progress. `only_if_placeable` spares pods that
    fit on no other node. The rules of the `granted` namespaces may evict pods of every namespace.
    """

    affinity_grace: float = 300.0
    anti_affinity_grace: float = 60.0
    per_minute: int = 30
    at_once: int = 10
    retry_after: float = 30.0
    only_if_placeable: bool = False
    granted: frozenset[str] = frozenset()

    def grace(self, rule_type: RuleType) -> float:
        return self.anti_affinity_grace if rule_type is RuleType.ANTI_AFFINITY else self.affinity_grace


class EnforcementState(msgspec.Struct, frozen=True, kw_only=True):
    """
    The history: since when rules are violated, when evictions were started, which workloads are terminating.

    `n_started` counts the evictions that were started lately, by namespace. `overdue` are workloads that have been
    terminating for so long that they no longer count as an eviction in progress. `rejected` says until when and why a
    workload cannot be evicted, `no_place` until when not to check again whether it fits elsewhere.
    """

    since: Mapping[ViolationId, float]
    started: Sequence[float] = ()
    n_started: Mapping[str, int] = {}
    terminating: frozenset[WorkloadKey] = frozenset()
    overdue: frozenset[WorkloadKey] = frozenset()
    rejected: Mapping[WorkloadKey, tuple[float, str]] = {}
    no_place: Mapping[WorkloadKey, float] = {}


class Eviction(msgspec.Struct, frozen=True):
    """A workload to evict, why this one, and the violations that its eviction resolves."""

    victim: WorkloadKey
    why: str
    causes: tuple[Violation, ...]


class DelayedEviction(msgspec.Struct, frozen=True):
    """A victim that is not evicted now. `until` is when to check again; infinite if only another change can help."""

    victim: WorkloadKey
    why: str
    causes: tuple[Violation, ...]
    until: float = math.inf


class WithheldEviction(msgspec.Struct, frozen=True):
    """A violation that stays, and the peers of lower priority that its rule would evict if they had consented."""

    violation: Violation
    peers: tuple[WorkloadKey, ...]


class EvictionChoice(msgspec.Struct, frozen=True):
    """
    The workloads to evict, in order, before any limits. `in_grace` are the violations within their grace period, each
    with its end. `exact`: no choice is better.
    """

    evictions: tuple[Eviction, ...] = ()
    withheld: tuple[WithheldEviction, ...] = ()
    in_grace: tuple[tuple[Violation, float], ...] = ()
    exact: bool = True


class EvictionPlan(msgspec.Struct, frozen=True):
    """
    The evictions to start now. `waiting` are victims held back by the limits, `spared` those protected by a budget or
    because they fit nowhere else.
    """

    evict: tuple[Eviction, ...] = ()
    withheld: tuple[WithheldEviction, ...] = ()
    in_grace: tuple[tuple[Violation, float], ...] = ()
    waiting: tuple[DelayedEviction, ...] = ()
    spared: tuple[DelayedEviction, ...] = ()
    exact: bool = True

    @property
    def next_at(self) -> float:
        """When the next eviction may be due, if nothing else changes."""
        times = [end for _, end in self.in_grace] + [delay.until for delay in (*self.waiting, *self.spared)]
        return min(times, default=math.inf)


def choose_evictions(
    violations: Iterable[Violation],
    now: float,
    settings: EnforcementSettings,
    state: EnforcementState,
    precedence: Mapping[WorkloadKey, Precedence],
) -> EvictionChoice:
    """The victims for the rules whose grace period is over. This is the expensive part."""
    broken = [v for v in violations if not v.resolved_without(state.terminating)]
    ends = {v.id: state.since.get(v.id, now) + settings.grace(v.rule_type) for v in broken}
    broken_for_long = [v for v in broken if ends[v.id] <= now]
    due = enforceable(broken_for_long, precedence)
    found, exact = evictions_for(due, _with_protection(precedence, state, now), state.terminating)
    withheld = withheld_evictions(broken_for_long, precedence, state.terminating | found.keys())
    began = {id(v): state.since.get(v.id, math.inf) for v in due}
    since = {key: min(began[id(v)] for v in eviction.causes) for key, eviction in found.items()}
    order = sorted(found, key=lambda key: (precedence[key].priority, since[key], key))
    in_grace = tuple((v, ends[v.id]) for v in broken if ends[v.id] > now)
    return EvictionChoice(tuple(found[key] for key in order), withheld, in_grace, exact)


def plan_evictions(
    choice: EvictionChoice,
    now: float,
    settings: EnforcementSettings,
    state: EnforcementState,
    *,
    placeable: Callable[[WorkloadKey], bool] | None = None,
) -> EvictionPlan:
    """Which of the chosen workloads are evicted now. `placeable` says whether a workload fits on another node."""
    evict, waiting, spared = [], [], []
    limit = EvictionRateLimit(
        now,
        per_minute=settings.per_minute,
        at_once=settings.at_once,
        started=state.started,
        in_progress=len(state.terminating - state.overdue),
    )
    check = _PlaceabilityCheck(placeable if settings.only_if_placeable else None, settings.at_once)
    for eviction in _by_turns(choice.evictions, state):
        victim, causes = eviction.victim, eviction.causes
        until, why = state.rejected.get(victim, (-math.inf, ""))
        if until > now:
            spared.append(DelayedEviction(victim, why, causes, until))
        elif not limit.open:
            waiting.append(DelayedEviction(victim, limit.why, causes, limit.until))
        elif state.no_place.get(victim, -math.inf) > now:
            spared.append(DelayedEviction(victim, NO_OTHER_TARGET, causes, state.no_place[victim]))
        elif check.exhausted:
            waiting.append(DelayedEviction(victim, CHECKED_LATER, causes, now))
        elif not check.fits_elsewhere(victim):
            spared.append(DelayedEviction(victim, NO_OTHER_TARGET, causes, now + settings.retry_after))
        else:
            limit.take()
            evict.append(eviction)
    return EvictionPlan(tuple(evict), choice.withheld, choice.in_grace, tuple(waiting), tuple(spared), choice.exact)


def _by_turns(evictions: Iterable[Eviction], state: EnforcementState) -> list[Eviction]:
    """
    The evictions of each namespace in their order, and those of namespaces that had fewer lately first.

    The limits are those of the whole cluster, and a tenant can have its own pods break its own rules all the time.
    """
    n_before = Counter(state.n_started) + Counter(map(namespace_of, state.terminating))

    def turn(eviction: Eviction) -> int:
        namespace = namespace_of(eviction.victim)
        n_before[namespace] += 1
        return n_before[namespace]

    return sorted(evictions, key=turn)


class _PlaceabilityCheck:
    """
    Checks whether victims fit on another node, if that is required.

    It is exhausted after `max_negative` negative answers, because each takes a while: the other victims are checked in
    the next round, in which these answers are known.
    """

    def __init__(self, placeable: Callable[[WorkloadKey], bool] | None, max_negative: int) -> None:
        self._placeable, self._negative_left = placeable, max_negative

    @property
    def exhausted(self) -> bool:
        return self._negative_left <= 0

    def fits_elsewhere(self, victim: WorkloadKey) -> bool:
        fits = self._placeable is None or self._placeable(victim)
        self._negative_left -= not fits
        return fits


def evictions_for(
    violations: Sequence[Violation],
    precedence: Mapping[WorkloadKey, Precedence],
    terminating: frozenset[WorkloadKey] = frozenset(),
) -> tuple[dict[WorkloadKey, Eviction], bool]:
    """The evictions that resolve all these violations, by victim, and whether no choice is better."""
    unmet = [v for v in violations if v.rule_type is not RuleType.ANTI_AFFINITY]
    owned = _by_participant(unmet, lambda v: (v.owner,))
    chosen: dict[WorkloadKey, Eviction] = {}
    gone = set(terminating)
    # From the least important on: without it, other members of its set may no longer violate their rules.
    for v in sorted(unmet, key=lambda v: victims.retention_order(v.owner, precedence[v.owner]), reverse=True):
        if not v.resolved_without(gone):
            gone.add(v.owner)
            chosen[v.owner] = Eviction(v.owner, OWNS_AFFINITY, tuple(owned[v.owner]))
    anti_affinity = [v for v in violations if v.rule_type is RuleType.ANTI_AFFINITY]
    conflicts = [v for v in anti_affinity if not v.resolved_without(gone)]
    exclusive, exact = _anti_affinity_victims(conflicts, precedence, gone)
    gone |= exclusive
    for v in sorted(unmet, key=lambda v: victims.retention_order(v.owner, precedence[v.owner])):
        # If the other members of its set are evicted for other reasons, it is the lone member and can stay.
        if not v.lone_member_without or v.owner not in chosen:
            continue
        others = gone - {v.owner}
        if all(w.resolved_without(others) for w in violations):
            gone = others
            del chosen[v.owner]
    # Only where it is needed: a thousand pods of which each excludes the others are a million pairs.
    conflicting = _by_participant(anti_affinity, _evictable) if chosen else {}
    for owner in chosen.keys() & conflicting.keys():
        also = (v for v in conflicting[owner] if not v.resolved_without(gone - {owner}))
        chosen[owner] = Eviction(owner, OWNS_AFFINITY, (*owned[owner], *also))
    involved = _by_participant(conflicts, _evictable)
    for victim in exclusive:
        causes = tuple(involved[victim])
        chosen[victim] = Eviction(victim, _why(victim, causes, exclusive, precedence), causes)
    return chosen, exact


def withheld_evictions(
    violations: Iterable[Violation], precedence: Mapping[WorkloadKey, Precedence], gone: AbstractSet[WorkloadKey]
) -> tuple[WithheldEviction, ...]:
    """The violations that stay once these workloads are gone because their rules may not evict some peers."""
    found = ((v, _tolerated(v, precedence) - gone) for v in violations if v.protected and not v.resolved_without(gone))
    return tuple(WithheldEviction(v, tuple(sorted(peers))) for v, peers in found if peers)


def no_consent(v: Violation) -> str:
    """Why protected peers of the violation stay."""
    return f"its namespace has not consented to evictions by rules of namespace {namespace_of(v.owner)}"


def enforceable(violations: Iterable[Violation], precedence: Mapping[WorkloadKey, Precedence]) -> list[Violation]:
    """
    The violations, without peers of lower priority that their rules may not evict.

    With consent such a peer would be evicted. Without it nothing else is evicted in its place, or else a pod of low
    priority could remove an important one from its node by breaking its rule.
    """
    found = []
    for v in violations:
        tolerated = _tolerated(v, precedence)
        if not tolerated:
            found.append(v)
        elif len(v.peers) - len(tolerated) > v.limit:
            peers = tuple(peer for peer in v.peers if peer not in tolerated)
            found.append(msgspec.structs.replace(v, peers=peers))
    return found


def _tolerated(v: Violation, precedence: Mapping[WorkloadKey, Precedence]) -> frozenset[WorkloadKey]:
    own = precedence[v.owner].priority
    return frozenset(peer for peer in v.protected if peer in precedence and precedence[peer].priority < own)


def _evictable(v: Violation) -> Iterable[WorkloadKey]:
    """The workloads that the rule may evict."""
    return (v.owner, *(peer for peer in v.peers if peer not in v.protected))


def _anti_affinity_victims(
    conflicts: Sequence[Violation], precedence: Mapping[WorkloadKey, Precedence], already_gone: AbstractSet[WorkloadKey]
) -> tuple[frozenset[WorkloadKey], bool]:
    """
    The workloads to evict so that no conflict remains, and whether no choice is better.

    A conflict whose protected peers alone are too many can only evict its owner. Each such owner is judged by its own
    rules, the least important first, so that rules of other namespaces have no influence on who is evicted.
    """
    with_protected = [v for v in conflicts if not v.protected.isdisjoint(v.peers)]
    gone = set(already_gone)
    for v in sorted(with_protected, key=lambda v: victims.retention_order(v.owner, precedence[v.owner]), reverse=True):
        if v.owner not in gone and _n_protected(v, gone) > v.limit:
            gone.add(v.owner)
    choice = victims.choose_victims(
        (
            Conflict(v.owner, frozenset(v.peers) - v.protected - gone, v.limit - _n_protected(v, gone))
            for v in conflicts
            if not v.resolved_without(gone)
        ),
        precedence,
    )
    gone |= choice.victims
    # A protected peer may be gone for another reason: then what was evicted because of it can stay.
    involved = _by_participant(conflicts, lambda v: (v.owner, *v.peers)) if with_protected else {}
    candidates = {key for v in with_protected for key in _evictable(v)} & gone - already_gone
    for key in sorted(candidates, key=lambda key: victims.retention_order(key, precedence[key])):
        if all(v.resolved_without(gone - {key}) for v in involved[key]):
            gone.discard(key)
    return frozenset(gone - already_gone), choice.exact


def _n_protected(v: Violation, gone: AbstractSet[WorkloadKey]) -> int:
    return sum(peer in v.protected and peer not in gone for peer in v.peers) if v.protected else 0


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
    """Why this workload is the victim."""
    conflicting = {key for v in causes for key in ((v.owner,) if victim != v.owner else v.peers)} - gone
    if any(precedence[key].priority > precedence[victim].priority for key in conflicting):
        return LOWER_PRIORITY
    return OWNS_RULE if any(v.owner == victim for v in causes) else RESOLVES_MOST


def _with_protection(
    precedence: Mapping[WorkloadKey, Precedence], state: EnforcementState, now: float
) -> Mapping[WorkloadKey, Precedence]:
    """Workloads that cannot be evicted now are marked as spared, so that an equal is chosen instead."""
    rejected = {key for key, (until, _) in state.rejected.items() if until > now and key in precedence}
    return {**precedence, **{key: msgspec.structs.replace(precedence[key], spared=True) for key in rejected}}
