"""
What evictions change about InterPodAffinity: they free anti-affinity and may end required affinity.

Anti-affinity limits the number of peers in a domain. Required affinity is no number, and evictions may make it fail.
"""

from __future__ import annotations

import numpy as np

from bayplan.indexing.classes import WorkloadClass
from bayplan.indexing.owner_rules import OwnerRule
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ALL
from bayplan.model.reasons import Mask
from bayplan.model.terms import PeerTerm, ResolvedTerm, resolve
from bayplan.model.workloads import Workload
from bayplan.rules.evictions import CapacityConstraint, EvictionEffect, FixedConstraint, PeerRequirement, Preemptor
from bayplan.rules.inter_pod_affinity.reasons import (
    AFFINITY_CODE,
    ANTI_AFFINITY_CODE,
    EXISTING_ANTI_AFFINITY_CODE,
    NO_ANTI_AFFINITY_KEY_CODE,
)
from bayplan.rules.inter_pod_affinity.state import (
    CountedTerm,
    ExistingPodTerm,
    InterPodAffinityState,
    first_by_term,
    has_needed_keys,
    meets_affinity,
    rejected_by_existing,
)
from bayplan.rules.peer_constraints import PeerConstraint, classes_matching, member_rows, selects


def eviction_effect(state: InterPodAffinityState, preemptor: Preemptor) -> EvictionEffect:
    """The terms in both directions; the checks that kube-scheduler makes first come last."""
    index, nominated_pods = preemptor.index, preemptor.nominated_pods
    constraints: list[CapacityConstraint] = [NominatedAntiAffinity(preemptor)] if nominated_pods else []
    constraints += [
        ExistingAntiAffinity(one.rule, index) if one.matches is None else LimitedExistingAntiAffinity(one, index)
        for one in state.existing_anti_affinity
    ]
    constraints += [OwnAntiAffinity(term, index) for term in state.required_anti_affinity]
    if state.needed_columns:
        missing = np.where(has_needed_keys(state, ALL), 0, -1)
        constraints.append(FixedConstraint(NO_ANTI_AFFINITY_KEY_CODE, missing))
    affinity = RequiredAffinityPeers(state, preemptor) if state.required_affinity else None
    needs_dry_run = np.zeros(index.slots.capacity, np.bool_)
    compares = any(one.matches is not None for one in state.existing_anti_affinity)
    if affinity is not None:
        needs_dry_run[affinity.partly_met] = True
        compares = compares or affinity.needs_dry_run
    for one in state.existing_anti_affinity:
        if one.while_satisfied:  # the eviction of a match may make a violated term a satisfied one
            needs_dry_run |= one.owners.counts(ALL) > 0
    while_satisfied = index.semantics.neighbours_reject_when_satisfied
    for slot, workloads in nominated_pods.items():
        against = (use for one in workloads for use in _anti_affinity_against(preemptor, one, slot))
        if compares or any(use.limit or while_satisfied for use in against):
            needs_dry_run[slot] = True
    return EvictionEffect(None, tuple(constraints), affinity, needs_dry_run)


class OwnAntiAffinity(PeerConstraint):
    """The workload's own required anti-affinity."""

    def __init__(self, term: CountedTerm, index: PlacementIndex) -> None:
        super().__init__(ANTI_AFFINITY_CODE, term.use.limit - term.reach.counts(ALL), index)
        (self.column,) = term.reach.columns
        self.use = term.use

    def classes(self) -> list[WorkloadClass]:
        return classes_matching(self.use.term, self.index)

    def amount_of(self, nominated: Workload, slot: int) -> int:
        there = self.column is not None and bool(self.column.domains(slot))
        return int(there and selects(self.use.term, nominated, self.index))


class ExistingAntiAffinity(PeerConstraint):
    """Required anti-affinity of placed workloads."""

    def __init__(self, rule: OwnerRule, index: PlacementIndex) -> None:
        super().__init__(EXISTING_ANTI_AFFINITY_CODE, -rule.reach.counts(ALL), index)
        (self.column,) = rule.reach.columns
        self.rule = rule

    def classes(self) -> list[WorkloadClass]:
        return _classes_owning(self.rule, self.index)


class LimitedExistingAntiAffinity(PeerConstraint):
    """Required anti-affinity of placed workloads that depends on the owners and the matches."""

    needs_dry_run = True

    def __init__(self, existing: ExistingPodTerm, index: PlacementIndex) -> None:
        rejected = rejected_by_existing(existing, ALL)
        super().__init__(EXISTING_ANTI_AFFINITY_CODE, np.where(rejected, -1, 0), index)
        (self.column,) = existing.rule.reach.columns
        self.rule = existing.rule

    def classes(self) -> list[WorkloadClass]:
        return _classes_owning(self.rule, self.index)


class NominatedAntiAffinity(FixedConstraint):
    """Required anti-affinity of the pods that are nominated for the target."""

    def __init__(self, preemptor: Preemptor) -> None:
        super().__init__(EXISTING_ANTI_AFFINITY_CODE, np.zeros(preemptor.index.slots.capacity, np.int64))
        for slot, nominated_pods in preemptor.nominated_pods.items():
            self.remaining[slot] = -sum(
                len(_anti_affinity_against(preemptor, nominated, slot)) for nominated in nominated_pods
            )


class RequiredAffinityPeers(PeerRequirement):
    """
    Required affinity while others are evicted.

    It needs a dry run where the first-pod exception applies per term. Sums do not show either what becomes of the
    targets where nominated pods meet only some of the terms (`partly_met`).
    """

    def __init__(self, state: InterPodAffinityState, preemptor: Preemptor) -> None:
        self.index, self.terms = preemptor.index, state.required_affinity
        now: Mask = np.ones(self.index.slots.capacity, np.bool_)
        self.present: Mask = now.copy()
        for term, first in zip(self.terms, first_by_term(state), strict=True):
            now &= meets_affinity(term, ALL, first=first)
            self.present &= term.reach.present(ALL)
        self.first_needs_key = any(term.first_needs_key for term in self.terms)
        by_nominated, self.partly_met = np.zeros_like(now), list[int]()
        for slot, pods in preemptor.nominated_pods.items():
            met = [any(selects(term.term, pod, self.index) for pod in pods) for term in self.terms]
            by_nominated[slot] = all(met) and self.present[slot]
            if any(met) and not all(met):
                self.partly_met.append(slot)
        first_pod_per_term = any(term.own_reach is not None for term in self.terms)
        super().__init__(AFFINITY_CODE, now, by_nominated, needs_dry_run=first_pod_per_term)

    def after(self, evicted: Mask) -> Mask:
        lost = {term.term: np.zeros(len(self.now), np.int64) for term in self.terms}
        for selecting, counts in lost.items():
            np.add.at(counts, self.index.pod_table.slot[self._selected({selecting}) & evicted], 1)
        has_peers = np.ones(len(self.now), np.bool_)
        first = np.full(len(self.now), all(term.self_matching for term in self.terms))
        for term in self.terms:
            has_peers &= term.reach.counts(ALL) > lost[term.term]
            first &= sum(term.reach.by_domain().values()) == lost[term.term]
        holds: Mask = self.present & (has_peers | first)
        return holds if self.first_needs_key else holds | first

    def partners(self) -> Mask:
        return self._selected({term.term for term in self.terms})

    def related(self) -> Mask:
        """The partners and the workloads that the first-pod exception depends on."""
        return self._selected({selecting for term in self.terms for selecting in (term.term, term.use.term)})

    def _selected(self, terms: set[PeerTerm]) -> Mask:
        return member_rows([cls for term in terms for cls in classes_matching(term, self.index)], self.index)


def _classes_owning(rule: OwnerRule, index: PlacementIndex) -> list[WorkloadClass]:
    """The classes whose members own a rule, each as often as it does: a pod may have the same term twice."""
    return [cls for cls in index.peer_index.classes.by_id.values() for held in cls.owner_rules if held is rule]


def _anti_affinity_against(preemptor: Preemptor, nominated: Workload, slot: int) -> list[ResolvedTerm]:
    """The required anti-affinity terms of a nominated pod that select the workload and whose key the target has."""
    workload, index = preemptor.workload, preemptor.index
    terms = resolve(nominated.needs.affinity, nominated.namespace, index.semantics, incoming=False).anti_required
    return [
        use
        for use in terms
        if selects(use.term, workload, index) and any(index.column(key).domains(slot) for key in use.keys)
    ]
