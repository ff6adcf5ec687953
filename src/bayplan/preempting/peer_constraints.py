"""
What InterPodAffinity and PodTopologySpread leave on each target: how many peers may be there.

Workloads are found from terms through their classes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable

import numpy as np

from bayplan.engine.filtering import RuleResult
from bayplan.indexing.classes import WorkloadClass
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.pod_table import FREE_ROW
from bayplan.indexing.slots import ABSENT, ALL
from bayplan.indexing.term_table import OwnerRule, anchors_of
from bayplan.model.reasons import Mask
from bayplan.model.terms import PeerTerm, ResolvedTerm, resolve
from bayplan.model.workloads import Workload
from bayplan.preempting.capacity_constraints import Amounts, CapacityConstraint, FixedConstraint
from bayplan.preempting.preemption_case import PreemptionCase
from bayplan.rules import inter_pod_affinity
from bayplan.rules.inter_pod_affinity import CountedTerm, ExistingPodTerm, InterPodAffinityState
from bayplan.rules.topology_spread import CountedConstraint

AFFINITY_CODE, ANTI_AFFINITY_CODE, EXISTING_ANTI_AFFINITY_CODE = 1, 2, 3  # codes of InterPodAffinity
UNLIMITED = 1 << 40


# Finding workloads


def classes_matching(term: PeerTerm, index: PlacementIndex) -> list[WorkloadClass]:
    """The classes whose members a term selects. Somebody must hold the term, or classes do not know its labels."""
    peer_index = index.peer_index
    return [cls for cls in peer_index.classes.candidates(anchors_of(term)) if peer_index.class_matches(term, cls)]


def classes_owning(rule: OwnerRule, index: PlacementIndex) -> list[WorkloadClass]:
    """The classes whose members hold a rule, as often as they do: nothing keeps a pod from saying a thing twice."""
    return [cls for cls in index.peer_index.classes.by_id.values() for held in cls.owner_rules if held is rule]


def member_rows(classes: Iterable[WorkloadClass], index: PlacementIndex) -> Mask:
    """The members of the classes, by row of the roster."""
    pod_table = index.pod_table
    members: Mask = np.isin(pod_table.class_id, [cls.id for cls in classes]) & (pod_table.slot != FREE_ROW)
    return members


# Peers that may be there


class PeerConstraint(CapacityConstraint, ABC):
    """Workloads of some classes in the target's domain: so many and no more."""

    def __init__(self, position: int, code: int, left: Amounts, index: PlacementIndex) -> None:
        super().__init__(position, code, left)
        self.index = index

    @abstractmethod
    def classes(self) -> list[WorkloadClass]:
        """Whose members count, each class as often as they do."""

    def amounts(self) -> Amounts:
        by_times: dict[int, list[WorkloadClass]] = {}
        for cls, times in Counter(self.classes()).items():
            by_times.setdefault(times, []).append(cls)
        found = np.zeros(len(self.index.pod_table), np.int64)
        for times, classes in by_times.items():
            found[member_rows(classes, self.index)] = times
        return found


class OwnAntiAffinity(PeerConstraint):
    """The workload's own required anti-affinity."""

    def __init__(self, position: int, wish: CountedTerm, index: PlacementIndex) -> None:
        super().__init__(position, ANTI_AFFINITY_CODE, wish.use.limit - wish.reach.counts(ALL), index)
        (self.column,) = wish.reach.columns
        self.use = wish.use

    def classes(self) -> list[WorkloadClass]:
        return classes_matching(self.use.term, self.index)

    def asked_by(self, nominated: Workload, slot: int) -> int:
        there = self.column is not None and bool(self.column.domains(slot))
        return int(there and selects(self.use.term, nominated, self.index))


class ExistingAntiAffinity(PeerConstraint):
    """Required anti-affinity of those who are there."""

    def __init__(self, position: int, rule: OwnerRule, index: PlacementIndex) -> None:
        super().__init__(position, EXISTING_ANTI_AFFINITY_CODE, -rule.reach.counts(ALL), index)
        (self.column,) = rule.reach.columns
        self.rule = rule

    def classes(self) -> list[WorkloadClass]:
        return classes_owning(self.rule, self.index)


class LimitedExistingAntiAffinity(PeerConstraint):
    """Required anti-affinity of those who are there that allows some peers: whether it is met depends on both."""

    entangles = True

    def __init__(self, position: int, neighbours: ExistingPodTerm, index: PlacementIndex) -> None:
        refused = inter_pod_affinity.rejected_by_existing(neighbours, ALL)
        super().__init__(position, EXISTING_ANTI_AFFINITY_CODE, np.where(refused, -1, 0), index)
        (self.column,) = neighbours.rule.reach.columns
        self.rule = neighbours.rule

    def classes(self) -> list[WorkloadClass]:
        return classes_owning(self.rule, self.index)


class NominatedAntiAffinity(FixedConstraint):
    """Required anti-affinity of those who were promised the target."""

    def __init__(self, position: int, case: PreemptionCase) -> None:
        super().__init__(position, EXISTING_ANTI_AFFINITY_CODE, np.zeros(case.index.slots.capacity, np.int64))
        for slot, nominated_pods in case.nominated_pods.items():
            self.left[slot] = -sum(len(anti_affinity_against(case, nominated, slot)) for nominated in nominated_pods)


def anti_affinity_against(case: PreemptionCase, nominated: Workload, slot: int) -> list[ResolvedTerm]:
    """The required anti-affinity of a guest that selects the workload, as far as the target is in a domain of it."""
    workload, index = case.workload, case.index
    terms = resolve(nominated.needs.affinity, nominated.namespace, index.semantics, incoming=False).anti_required
    return [
        use
        for use in terms
        if selects(use.term, workload, index) and any(index.column(key).domains(slot) for key in use.keys)
    ]


def inter_pod_constraints(judged: RuleResult, position: int, case: PreemptionCase) -> list[CapacityConstraint]:
    """InterPodAffinity but for required affinity; the checks that kube-scheduler makes first come last."""
    state: InterPodAffinityState = judged.state
    found: list[CapacityConstraint] = [NominatedAntiAffinity(position, case)] if case.nominated_pods else []
    found += [
        ExistingAntiAffinity(position, one.rule, case.index)
        if one.matches is None
        else LimitedExistingAntiAffinity(position, one, case.index)
        for one in state.existing_anti_affinity
    ]
    found += [OwnAntiAffinity(position, wish, case.index) for wish in state.required_anti_affinity]
    return found


# Skew


class SkewConstraint(PeerConstraint):
    """A hard spread constraint: how many more peers the target's domain may hold, as long as the others keep theirs."""

    def __init__(self, position: int, code: int, spreading: CountedConstraint, index: PlacementIndex) -> None:
        constraint, column = spreading.constraint, spreading.column
        counts, domains = spreading.count_by_domain(), spreading.eligible_domains()
        fewest = np.zeros(column.n_domains, np.int64)
        if len(domains) >= constraint.min_domains:
            fewest[:] = counts[domains].min()
            lowest = domains[counts[domains].argmin()]
            others = counts[domains[domains != lowest]]
            fewest[lowest] = others.min() if len(others) else UNLIMITED
        most = constraint.max_skew - spreading.self_matching
        here = column.of_slot
        # Nobody on a target that does not count can make a difference, so its own domain is one of the others.
        smallest = np.where(spreading.eligible, fewest[here], spreading.global_minimum(counts))
        left = np.where(here == ABSENT, 0, most + smallest - counts[here])
        super().__init__(position, code, left, index)
        self.term, self.eligible = spreading.term, spreading.eligible

    def classes(self) -> list[WorkloadClass]:
        return [] if self.term is None else classes_matching(self.term, self.index)

    def amounts(self) -> Amounts:
        return super().amounts() * self.index.pod_table.on(self.eligible)

    def asked_by(self, nominated: Workload, slot: int) -> int:
        if self.term is None or not self.eligible[slot]:
            return 0
        return int(selects(self.term, nominated, self.index))


def spread_constraints(judged: RuleResult, position: int, case: PreemptionCase) -> list[CapacityConstraint]:
    """PodTopologySpread: the first constraint that fails has the last word."""
    found: list[CapacityConstraint] = []
    for i, spreading in reversed(list(enumerate(judged.state.hard))):
        present = spreading.column.present(ALL)
        found.append(SkewConstraint(position, 2 * i + 1, spreading, case.index))
        found.append(FixedConstraint(position, 2 * i + 2, np.where(present, 0, -1)))
    return found


def selects(term: PeerTerm, workload: Workload, index: PlacementIndex) -> bool:
    return index.peer_index.matches(term, workload.labels, workload.namespace, terminating=workload.terminating)


# RF merged from preempting.nearness: Required affinity when others go: whether a peer is still near, or none is
# needed any more. The one thing that gets worse when workloads go, and that no number says: see `allowances` for the
# rest.


class AffinityConstraint:
    """
    `now` says where required affinity holds, shape (capacity,); `by_nominated` where those who are to come would do.

    `judged_apart`: the first of a set is judged term by term, by peers that need not be near: no number says what
    becomes of that. Nor of `half_met`, the targets where guests meet some of the terms and not all.
    """

    def __init__(self, position: int, state: InterPodAffinityState, case: PreemptionCase) -> None:
        self.position, self.index = position, case.index
        self.near = state.required_affinity
        self.judged_apart = any(near.own_reach is not None for near in state.required_affinity)
        self.now: Mask = np.ones(case.index.slots.capacity, np.bool_)
        self.present: Mask = self.now.copy()
        for near, first in zip(state.required_affinity, inter_pod_affinity.first_by_term(state), strict=True):
            self.now &= inter_pod_affinity.meets_affinity(near, ALL, first=first)
            self.present &= near.reach.present(ALL)
        self.by_nominated, self.half_met = np.zeros_like(self.now), list[int]()
        for slot, nominated_pods in case.nominated_pods.items():
            met = [
                any(selects(near.term, nominated, case.index) for nominated in nominated_pods)
                for near in state.required_affinity
            ]
            self.by_nominated[slot] = all(met) and self.present[slot]
            if any(met) and not all(met):
                self.half_met.append(slot)

    def partners(self) -> Mask:
        """The workloads that the incoming one wants to be near, by row of the roster."""
        return self._selected({near.term for near in self.near})

    def judged_by(self) -> Mask:
        """Those and all by whom it is judged to be the first of its set, by row of the roster."""
        return self._selected({term for near in self.near for term in (near.term, near.use.term)})

    def after(self, lower: Mask) -> Mask:
        """Where it still holds once the workloads `lower` (by row) have left their target, shape (capacity,)."""
        lost = {near.term: self._lost(near.term, lower) for near in self.near}
        near_enough = np.ones(len(self.now), np.bool_)
        first = np.full(len(self.now), all(near.self_matching for near in self.near))
        for near in self.near:
            near_enough &= near.reach.counts(ALL) > lost[near.term]
            first &= sum(near.reach.counter.by_domain.values()) == lost[near.term]
        holds: Mask = self.present & (near_enough | first)
        return holds

    def _lost(self, term: PeerTerm, lower: Mask) -> Amounts:
        """How many peers would go from each target."""
        lost = np.zeros(len(self.now), np.int64)
        np.add.at(lost, self.index.pod_table.slot[self._selected({term}) & lower], 1)
        return lost

    def _selected(self, terms: set[PeerTerm]) -> Mask:
        return member_rows([cls for term in terms for cls in classes_matching(term, self.index)], self.index)
