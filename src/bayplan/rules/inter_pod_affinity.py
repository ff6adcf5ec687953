"""
InterPodAffinity: who may, must, should and should not stand beside whom, in both directions.

Filter and score read counters by domain, never workloads. `docs/differences.md` lists what the semantics switch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.classes import VisibleLabels, WorkloadClass
from bayplan.indexing.evaluations import SharedDomains, Touched
from bayplan.indexing.journal import Change, ChangeType
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ALL, At, ValueColumn
from bayplan.indexing.term_table import OwnerRule, Reach, Role, TermEntry
from bayplan.model.reasons import Codes, Mask, Reason, Scores, StatusCode
from bayplan.model.semantics import Semantics
from bayplan.model.terms import AffinityTerms, PeerTerm, ResolvedTerm, ResolvedTerms, resolve
from bayplan.model.workloads import Workload, label_keys
from bayplan.rules.rule import MAX_REMEMBERED_CLASSES, MAX_SCORE, Failure, Rule, Scaling, common_column

AFFINITY_NOT_MATCHED = Reason("pod-affinity", "node(s) didn't match pod affinity rules", StatusCode.UNRESOLVABLE)
ANTI_AFFINITY_NOT_MATCHED = Reason(
    "pod-anti-affinity", "node(s) didn't match pod anti-affinity rules", StatusCode.UNSCHEDULABLE
)
EXISTING_ANTI_AFFINITY_NOT_SATISFIED = Reason(
    "existing-anti-affinity", "node(s) didn't satisfy existing pods anti-affinity rules", StatusCode.UNSCHEDULABLE
)
REASONS = (AFFINITY_NOT_MATCHED, ANTI_AFFINITY_NOT_MATCHED, EXISTING_ANTI_AFFINITY_NOT_SATISFIED)
EVERYWHERE = ("\0everywhere",)  # in place of topology keys: a change that may matter on any target


class InterPodAffinityPart(msgspec.Struct, frozen=True):
    """What terms can see of the workload, and its own terms."""

    namespace: str
    labels: VisibleLabels
    affinity: AffinityTerms


class RequiredAffinity(msgspec.Struct, frozen=True):
    """
    A required affinity term: one of the peers that `term` selects must be near.

    Upstream wants one pod that meets all required terms, so there `term` is their conjunction. `kind` counts who meets
    this term alone, where the first pod of a set is judged by that.
    """

    use: ResolvedTerm
    term: PeerTerm
    reach: Reach
    self_matching: bool
    kind: Reach | None


class CountedTerm(msgspec.Struct, frozen=True):
    """A term of the pod's own, hard or soft, with its matches counted."""

    reach: Reach
    use: ResolvedTerm


class ExistingPodTerm(msgspec.Struct, frozen=True):
    """A rule held by placed workloads, and how many match it, where that makes a difference."""

    rule: OwnerRule
    matches: Reach | None


class InterPodAffinityState(msgspec.Struct):
    """
    Everything looked up.

    `compares`: what neighbours hold depends on how many match it. `effects` remembers per class in which topology keys
    its comings and goings matter, `alone` for each of `near` whether there was no peer when targets were last judged.
    """

    part: InterPodAffinityPart
    near: tuple[RequiredAffinity, ...]
    apart: tuple[CountedTerm, ...]
    liked: tuple[CountedTerm, ...]
    disliked: tuple[CountedTerm, ...]
    refusing: tuple[ExistingPodTerm, ...]
    pulling: tuple[ExistingPodTerm, ...]
    held: list[TermEntry]
    generation: int
    compares: bool
    effects: dict[int, tuple[str, ...]]
    first_by_term: tuple[bool, ...] = ()


class InterPodAffinity(Rule):
    name = "InterPodAffinity"
    id = "pod-affinity"
    scaling = Scaling.BY_EXTREMES

    def __init__(self, hard_weight: int = 1, *, ignore_preferred_terms_of_existing_pods: bool = False) -> None:
        self.hard_weight = hard_weight
        self.ignore_preferred_terms_of_existing_pods = ignore_preferred_terms_of_existing_pods

    def part(self, workload: Workload, index: PlacementIndex) -> InterPodAffinityPart:
        affinity = workload.needs.affinity
        return InterPodAffinityPart(
            workload.namespace, index.peer_index.visible(workload.labels, label_keys(workload.needs)), affinity
        )

    def prepare(self, part: InterPodAffinityPart, index: PlacementIndex) -> InterPodAffinityState:
        return _StateBuilder(self, part, index).state()

    def stale(self, state: InterPodAffinityState, index: PlacementIndex) -> bool:
        return state.generation != index.peer_index.generation

    def release(self, state: InterPodAffinityState, index: PlacementIndex) -> None:
        for entry in state.held:
            index.peer_index.release(entry)

    def judges_by(self, state: InterPodAffinityState, index: PlacementIndex) -> ValueColumn | None:
        return common_column((column for reach in _reaches(state) for column in reach.columns), index)

    def reject(self, state: InterPodAffinityState, index: PlacementIndex, at: At) -> Codes | None:
        if not (state.near or state.apart or state.refusing):
            return None
        codes = np.zeros(len(index.slots.alive[at]), np.int64)
        # Later checks first, so that the one kube-scheduler makes first has the last word.
        for neighbours in state.refusing:
            codes[rejected_by_existing(neighbours, at)] = 3
        for wish in state.apart:
            codes[wish.reach.counts(at) > wish.use.limit] = 2
        state.first_by_term = first_by_term(state)
        for near, first in zip(state.near, state.first_by_term, strict=True):
            codes[~meets_affinity(near, at, first=first)] = 1
        return codes

    def score(self, state: InterPodAffinityState, index: PlacementIndex, at: At) -> Scores | None:
        if not (state.liked or state.disliked or state.pulling):
            return None
        raw = np.zeros(len(index.slots.alive[at]), np.int64)
        for wish in state.liked:
            raw += wish.use.weight * _seen(wish, index.semantics, at)
        for wish in state.disliked:
            raw += wish.use.weight * _missed(wish, index.semantics, at)
        for neighbours in state.pulling:
            raw += self._pull(neighbours.rule) * _pulled(neighbours, at)
        return raw

    def scaled(self, raw: Any, lowest: int, highest: int) -> Any:
        """The one float expression of the plugin, truncated as Go converts."""
        if highest == lowest:
            return raw * 0
        scaled = MAX_SCORE * ((raw - lowest) / float(highest - lowest))
        return int(scaled) if isinstance(raw, int) else scaled.astype(np.int64)

    def at_one(self, state: InterPodAffinityState, index: PlacementIndex, slot: int) -> tuple[int, int] | None:
        if state.compares:
            return None
        code = 0
        for neighbours in state.refusing:
            if neighbours.rule.reach.count_at(slot):
                code = 3
        for wish in state.apart:
            if wish.reach.count_at(slot) > wish.use.limit:
                code = 2
        state.first_by_term = first_by_term(state)
        for near, first in zip(state.near, state.first_by_term, strict=True):
            if not near.reach.is_present(slot) or not (first or near.reach.count_at(slot)):
                code = 1
        return code, self._score_one(state, index.semantics, slot)

    def _score_one(self, state: InterPodAffinityState, semantics: Semantics, slot: int) -> int:
        once, raw = semantics.soft_terms_count_once, 0
        for wish in state.liked:
            count = wish.reach.count_at(slot)
            raw += wish.use.weight * (min(count, 1) if once else count)
        for wish in state.disliked:
            count = wish.reach.count_at(slot)
            raw += wish.use.weight * (1 - min(count, 1) if once else -count)
        for neighbours in state.pulling:
            raw += self._pull(neighbours.rule) * neighbours.rule.reach.count_at(slot)
        return raw

    def touched(self, state: InterPodAffinityState, change: Change, index: PlacementIndex) -> Touched:
        cls = change.member_of
        if cls is None:
            return self._touched_by_others(state, change)
        if state.first_by_term != first_by_term(state):
            return ALL  # whether there is any such peer at all decides about the first pod, everywhere
        if not change.slots:  # on unknown targets alone
            return None
        keys = state.effects.get(cls.id)
        if keys is None:
            if len(state.effects) == MAX_REMEMBERED_CLASSES:
                state.effects.clear()
            keys = state.effects[cls.id] = self._effects(state, cls, index)
        if not keys:
            return None
        return ALL if keys is EVERYWHERE else SharedDomains(keys, change.slots)

    def _touched_by_others(self, state: InterPodAffinityState, change: Change) -> Touched:
        """Where something that is no workload on a target matters."""
        if change.moves_domains:
            return ALL  # who came or went there before did so in domains that are no longer known
        if change.type in (ChangeType.TARGET_ADDED, ChangeType.TARGET_CHANGED):
            return change.slots
        if change.type is ChangeType.NAMESPACE_CHANGED:
            state.effects.clear()
            return ALL
        return None

    def reasons(self, state: InterPodAffinityState, code: int) -> tuple[Reason, ...]:
        del state
        return (REASONS[code - 1],)

    def evidence(
        self, state: InterPodAffinityState, workload: Workload, slot: int, index: PlacementIndex
    ) -> list[Failure]:
        from bayplan.rules import inter_pod_evidence  # which reads plans, so it cannot be imported above

        del workload
        return inter_pod_evidence.failures(state, slot, index)

    def _pull(self, rule: OwnerRule) -> int:
        if rule.role is Role.REQUIRED:
            return self.hard_weight
        return rule.weight if rule.role is Role.PREFERRED else -rule.weight

    def _effects(self, state: InterPodAffinityState, cls: WorkloadClass, index: PlacementIndex) -> tuple[str, ...]:
        """The topology keys in whose domains members of the class change what the pod finds."""
        peer_index, keys = index.peer_index, set[str]()
        for near in state.near:
            if peer_index.class_matches(near.term, cls):
                keys.update(near.reach.keys)
        for wish in (*state.apart, *state.liked, *state.disliked):
            if peer_index.class_matches(wish.use.term, cls):
                keys.update(wish.reach.keys)
        labels = dict(state.part.labels)
        for rule in cls.owner_rules:
            if peer_index.matches(rule.entry.term, labels, state.part.namespace):
                keys.update(rule.reach.keys)
        for neighbours in (*state.refusing, *state.pulling):  # what its owners see of this class may matter too
            if neighbours.matches and peer_index.class_matches(neighbours.rule.entry.term, cls):
                if len(neighbours.matches.keys) > 1:
                    return EVERYWHERE  # owners near the change reach further than the change itself
                keys.update(neighbours.matches.keys)
        return tuple(sorted(keys))


def _reaches(state: InterPodAffinityState) -> Iterator[Reach]:
    """Everything whose counts decide about a target."""
    for near in state.near:
        yield near.reach
    for wish in (*state.apart, *state.liked, *state.disliked):
        yield wish.reach
    for neighbours in (*state.refusing, *state.pulling):
        yield neighbours.rule.reach
        if neighbours.matches is not None:
            yield neighbours.matches


# Filtering, per target


def meets_affinity(near: RequiredAffinity, at: At, *, first: bool) -> Mask:
    """Where a peer is near, or none is needed as the pod is the first of its kind; never without the topology."""
    present = near.reach.present(at)
    return present if first else present & (near.reach.counts(at) > 0)


def first_by_term(state: InterPodAffinityState) -> tuple[bool, ...]:
    """For each required term, whether the pod is the first of a set that wants to be together and so need not be."""
    if not state.near:
        return ()
    if state.near[0].kind is not None:
        return tuple([n.self_matching and n.kind is not None and n.kind.counter.anywhere == 0 for n in state.near])
    first = True
    for near in state.near:
        first = first and near.self_matching and not near.reach.occupied
    return (first,) * len(state.near)


def rejected_by_existing(neighbours: ExistingPodTerm, at: At) -> Mask:
    """Where somebody who holds the rule would get more peers than it allows."""
    rule = neighbours.rule
    if neighbours.matches is None:
        refused: Mask = rule.reach.counts(at) > 0
        return refused
    # The owner itself is not counted, the newcomer is.
    crowded = neighbours.matches.counts(ALL) - rule.self_matching + 1 > rule.limit
    return rule.reach.counts(at, only=crowded) > 0


# Scoring, per target


def _seen(wish: CountedTerm, semantics: Semantics, at: At) -> NDArray[np.int64]:
    counts = wish.reach.counts(at)
    return np.minimum(counts, 1) if semantics.soft_terms_count_once else counts


def _missed(wish: CountedTerm, semantics: Semantics, at: At) -> NDArray[np.int64]:
    """The seed rewards every domain without a match; kube-scheduler punishes each match."""
    seen = _seen(wish, semantics, at)
    return 1 - seen if semantics.soft_terms_count_once else -seen


def _pulled(neighbours: ExistingPodTerm, at: At) -> NDArray[np.int64]:
    """How many owners of the rule are near each target; under the seed only those whose wish would change."""
    rule = neighbours.rule
    if neighbours.matches is None:
        return rule.reach.counts(at)
    # An owner that matches its own term is among the matches and is not its own peer.
    lonely = neighbours.matches.counts(ALL) - rule.self_matching <= 0
    return rule.reach.counts(at, only=lonely)


# Planning


class _StateBuilder:
    """Looks up what a part needs, holding every term whose matches it counts."""

    def __init__(self, rule: InterPodAffinity, part: InterPodAffinityPart, index: PlacementIndex) -> None:
        self.rule, self.part, self.index = rule, part, index
        self.peer_index, self.semantics = index.peer_index, index.semantics
        self.held: list[TermEntry] = []

    def state(self) -> InterPodAffinityState:
        part = self.part
        own = resolve(part.affinity, part.namespace, self.semantics, incoming=True)
        near = self._near(own)
        apart, liked, disliked = (
            tuple(CountedTerm(self._reach(use.term, use.keys), use) for use in uses)
            for uses in (own.anti_required, own.preferred, own.anti_preferred)
        )
        refusing, pulling = self._neighbours()
        compares = any(neighbours.matches is not None for neighbours in (*refusing, *pulling))
        generation = self.peer_index.generation
        return InterPodAffinityState(
            part, near, apart, liked, disliked, refusing, pulling, self.held, generation, compares, {}
        )

    def _near(self, own: ResolvedTerms) -> tuple[RequiredAffinity, ...]:
        found = []
        for use in own.required:
            together = own.conjunction is not None and not self.semantics.affinity_terms_met_apart
            term = own.conjunction if together and own.conjunction else use.term
            kind = self._reach(use.term, use.keys) if self.semantics.first_pod_per_term else None
            found.append(RequiredAffinity(use, term, self._reach(term, use.keys), self._matches_self(use.term), kind))
        return tuple(found)

    def _neighbours(self) -> tuple[tuple[ExistingPodTerm, ...], tuple[ExistingPodTerm, ...]]:
        rules = list(self.peer_index.owner_rules(dict(self.part.labels), self.part.namespace))
        refusing = tuple(self._held_against(rule) for rule in rules if rule.role is Role.ANTI_REQUIRED)
        has_wishes = self.part.affinity.preferred or self.part.affinity.anti_preferred
        if self.rule.ignore_preferred_terms_of_existing_pods and not has_wishes:
            return refusing, ()
        return refusing, tuple(self._held_against(rule) for rule in rules if self._pulls(rule))

    def _pulls(self, rule: OwnerRule) -> bool:
        if rule.role is Role.REQUIRED:
            return self.rule.hard_weight > 0
        if rule.role is Role.ANTI_PREFERRED:
            return self.semantics.soft_anti_affinity_symmetric
        return rule.role is Role.PREFERRED

    def _held_against(self, rule: OwnerRule) -> ExistingPodTerm:
        hard = rule.role is Role.ANTI_REQUIRED
        compares = rule.limit > 0 if hard else self.semantics.neighbours_count_when_changed
        return ExistingPodTerm(rule, self._reach(rule.entry.term, rule.reach.keys) if compares else None)

    def _reach(self, term: PeerTerm, keys: tuple[str, ...]) -> Reach:
        entry = self.peer_index.hold(term)
        self.held.append(entry)
        return self.peer_index.match_reach(entry, keys)

    def _matches_self(self, term: PeerTerm) -> bool:
        return self.peer_index.matches(term, dict(self.part.labels), self.part.namespace)
