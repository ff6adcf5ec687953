"""
Constraints from InterPodAffinity and PodTopologySpread: how many peers each target's domain may hold.

Required affinity is different: evictions may make it fail, and it is not a number, so it is an `AffinityConstraint`.
Workloads are found from terms through their classes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable

import numpy as np

from bayplan.engine.evaluations import RuleResult
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
    """The classes whose members a term selects. The term must be held, so that classes distinguish its labels."""
    peer_index = index.peer_index
    return [cls for cls in peer_index.classes.candidates(anchors_of(term)) if peer_index.class_matches(term, cls)]


def classes_owning(rule: OwnerRule, index: PlacementIndex) -> list[WorkloadClass]:
    """The classes whose members own a rule, each as often as it does: a pod may have the same term twice."""
    return [cls for cls in index.peer_index.classes.by_id.values() for held in cls.owner_rules if held is rule]


def member_rows(classes: Iterable[WorkloadClass], index: PlacementIndex) -> Mask:
    """The members of the classes, by row of the pod table."""
    pod_table = index.pod_table
    members: Mask = np.isin(pod_table.class_id, [cls.id for cls in classes]) & (pod_table.slot != FREE_ROW)
    return members


# Limits on the number of peers


class PeerConstraint(CapacityConstraint, ABC):
    """A limit on the workloads of some classes in the target's domain."""

    def __init__(self, position: int, code: int, remaining: Amounts, index: PlacementIndex) -> None:
        super().__init__(position, code, remaining)
        self.index = index

    @abstractmethod
    def classes(self) -> list[WorkloadClass]:
        """The classes whose members count, each as often as they count."""

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

    def __init__(self, position: int, term: CountedTerm, index: PlacementIndex) -> None:
        super().__init__(position, ANTI_AFFINITY_CODE, term.use.limit - term.reach.counts(ALL), index)
        (self.column,) = term.reach.columns
        self.use = term.use

    def classes(self) -> list[WorkloadClass]:
        return classes_matching(self.use.term, self.index)

    def amount_of(self, nominated: Workload, slot: int) -> int:
        there = self.column is not None and bool(self.column.domains(slot))
        return int(there and selects(self.use.term, nominated, self.index))


class ExistingAntiAffinity(PeerConstraint):
    """Required anti-affinity of placed workloads."""

    def __init__(self, position: int, rule: OwnerRule, index: PlacementIndex) -> None:
        super().__init__(position, EXISTING_ANTI_AFFINITY_CODE, -rule.reach.counts(ALL), index)
        (self.column,) = rule.reach.columns
        self.rule = rule

    def classes(self) -> list[WorkloadClass]:
        return classes_owning(self.rule, self.index)


class LimitedExistingAntiAffinity(PeerConstraint):
    """Required anti-affinity of placed workloads with a limit above 0: it depends on the owners and the matches."""

    needs_dry_run = True

    def __init__(self, position: int, existing: ExistingPodTerm, index: PlacementIndex) -> None:
        rejected = inter_pod_affinity.rejected_by_existing(existing, ALL)
        super().__init__(position, EXISTING_ANTI_AFFINITY_CODE, np.where(rejected, -1, 0), index)
        (self.column,) = existing.rule.reach.columns
        self.rule = existing.rule

    def classes(self) -> list[WorkloadClass]:
        return classes_owning(self.rule, self.index)


class NominatedAntiAffinity(FixedConstraint):
    """Required anti-affinity of the pods that are nominated for the target."""

    def __init__(self, position: int, case: PreemptionCase) -> None:
        super().__init__(position, EXISTING_ANTI_AFFINITY_CODE, np.zeros(case.index.slots.capacity, np.int64))
        for slot, nominated_pods in case.nominated_pods.items():
            self.remaining[slot] = -sum(
                len(anti_affinity_against(case, nominated, slot)) for nominated in nominated_pods
            )


def anti_affinity_against(case: PreemptionCase, nominated: Workload, slot: int) -> list[ResolvedTerm]:
    """The required anti-affinity terms of a nominated pod that select the workload and whose key the target has."""
    workload, index = case.workload, case.index
    terms = resolve(nominated.needs.affinity, nominated.namespace, index.semantics, incoming=False).anti_required
    return [
        use
        for use in terms
        if selects(use.term, workload, index) and any(index.column(key).domains(slot) for key in use.keys)
    ]


def inter_pod_constraints(result: RuleResult, position: int, case: PreemptionCase) -> list[CapacityConstraint]:
    """InterPodAffinity except required affinity; the checks that kube-scheduler makes first come last."""
    state: InterPodAffinityState = result.evaluation.state
    found: list[CapacityConstraint] = [NominatedAntiAffinity(position, case)] if case.nominated_pods else []
    found += [
        ExistingAntiAffinity(position, one.rule, case.index)
        if one.matches is None
        else LimitedExistingAntiAffinity(position, one, case.index)
        for one in state.existing_anti_affinity
    ]
    found += [OwnAntiAffinity(position, term, case.index) for term in state.required_anti_affinity]
    return found


# Skew


class SkewConstraint(PeerConstraint):
    """A hard spread constraint: how many more peers the target's domain may hold while other domains keep theirs."""

    def __init__(self, position: int, code: int, counted: CountedConstraint, index: PlacementIndex) -> None:
        constraint, column = counted.constraint, counted.column
        counts, domains = counted.count_by_domain(), counted.eligible_domains()
        minimum = np.zeros(column.n_domains, np.int64)  # over the other domains
        if len(domains) >= constraint.min_domains:
            minimum[:] = counts[domains].min()
            lowest = domains[counts[domains].argmin()]
            others = counts[domains[domains != lowest]]
            minimum[lowest] = others.min() if len(others) else UNLIMITED
        most = constraint.max_skew - counted.self_matching
        here = column.of_slot
        # Evictions on a target that is not eligible change no count, so its own domain counts for the minimum.
        smallest = np.where(counted.eligible, minimum[here], counted.global_minimum(counts))
        remaining = np.where(here == ABSENT, 0, most + smallest - counts[here])
        super().__init__(position, code, remaining, index)
        self.term, self.eligible = counted.term, counted.eligible

    def classes(self) -> list[WorkloadClass]:
        return [] if self.term is None else classes_matching(self.term, self.index)

    def amounts(self) -> Amounts:
        return super().amounts() * self.index.pod_table.on(self.eligible)

    def amount_of(self, nominated: Workload, slot: int) -> int:
        if self.term is None or not self.eligible[slot]:
            return 0
        return int(selects(self.term, nominated, self.index))


def spread_constraints(result: RuleResult, position: int, case: PreemptionCase) -> list[CapacityConstraint]:
    """PodTopologySpread, in reverse order: the code of the first constraint that fails overwrites the others."""
    found: list[CapacityConstraint] = []
    for i, counted in reversed(list(enumerate(result.evaluation.state.hard))):
        present = counted.column.present(ALL)
        found.append(SkewConstraint(position, 2 * i + 1, counted, case.index))
        found.append(FixedConstraint(position, 2 * i + 2, np.where(present, 0, -1)))
    return found


def selects(term: PeerTerm, workload: Workload, index: PlacementIndex) -> bool:
    return index.peer_index.matches(term, workload.labels, workload.namespace, terminating=workload.terminating)


# Required affinity


class AffinityConstraint:
    """
    Required affinity while others are evicted.

    `now` says where it holds, shape (capacity,); `by_nominated` where nominated pods would meet it. Sums show neither
    what becomes of the first-pod exception where it applies per term (`first_pod_per_term`), nor of the targets where
    nominated pods meet only some of the terms (`partly_met`).
    """

    def __init__(self, position: int, state: InterPodAffinityState, case: PreemptionCase) -> None:
        self.position, self.index = position, case.index
        self.terms = state.required_affinity
        self.first_pod_per_term = any(term.own_reach is not None for term in self.terms)
        self.now: Mask = np.ones(case.index.slots.capacity, np.bool_)
        self.present: Mask = self.now.copy()
        for term, first in zip(self.terms, inter_pod_affinity.first_by_term(state), strict=True):
            self.now &= inter_pod_affinity.meets_affinity(term, ALL, first=first)
            self.present &= term.reach.present(ALL)
        self.by_nominated, self.partly_met = np.zeros_like(self.now), list[int]()
        for slot, pods in case.nominated_pods.items():
            met = [any(selects(term.term, pod, case.index) for pod in pods) for term in self.terms]
            self.by_nominated[slot] = all(met) and self.present[slot]
            if any(met) and not all(met):
                self.partly_met.append(slot)

    def partners(self) -> Mask:
        """The workloads that required affinity selects, by row of the pod table."""
        return self._selected({term.term for term in self.terms})

    def related(self) -> Mask:
        """Those and the workloads that the first-pod exception depends on, by row of the pod table."""
        return self._selected({selecting for term in self.terms for selecting in (term.term, term.use.term)})

    def after(self, evicted: Mask) -> Mask:
        """Where it still holds without the workloads `evicted` (by row) of that target, shape (capacity,)."""
        lost = {term.term: np.zeros(len(self.now), np.int64) for term in self.terms}
        for selecting, counts in lost.items():
            np.add.at(counts, self.index.pod_table.slot[self._selected({selecting}) & evicted], 1)
        has_peers = np.ones(len(self.now), np.bool_)
        first = np.full(len(self.now), all(term.self_matching for term in self.terms))
        for term in self.terms:
            has_peers &= term.reach.counts(ALL) > lost[term.term]
            first &= sum(term.reach.counter.by_domain.values()) == lost[term.term]
        holds: Mask = self.present & (has_peers | first)
        return holds

    def _selected(self, terms: set[PeerTerm]) -> Mask:
        return member_rows([cls for term in terms for cls in classes_matching(term, self.index)], self.index)
