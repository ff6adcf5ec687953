"""
Required affinity when others go: whether a peer is still near, or none is needed any more.

The one thing that gets worse when workloads go, and that no number says: see `allowances` for the rest.
"""

from __future__ import annotations

import numpy as np

from bayplan.indexing.slots import ALL
from bayplan.model.decisions import Mask
from bayplan.model.terms import PeerTerm
from bayplan.preempting import peers
from bayplan.preempting.allowances import Amounts
from bayplan.preempting.case import Case
from bayplan.rules import inter_pod_affinity
from bayplan.rules.inter_pod_affinity import Plan


class Nearness:
    """
    `now` says where required affinity holds, shape (capacity,); `by_guests` where those who are to come would do.

    `judged_apart`: the first of a set is judged term by term, by peers that need not be near: no number says what
    becomes of that. Nor of `half_met`, the targets where guests meet some of the terms and not all.
    """

    def __init__(self, position: int, plan: Plan, case: Case) -> None:
        self.position, self.index = position, case.index
        self.near = plan.near
        self.judged_apart = any(near.kind is not None for near in plan.near)
        self.now: Mask = np.ones(case.index.slots.capacity, np.bool_)
        self.present: Mask = self.now.copy()
        for near, first in zip(plan.near, inter_pod_affinity.alone(plan), strict=True):
            self.now &= inter_pod_affinity.near_enough(near, ALL, first=first)
            self.present &= near.reach.present(ALL)
        self.by_guests, self.half_met = np.zeros_like(self.now), list[int]()
        for slot, guests in case.guests.items():
            met = [any(peers.selects(near.term, guest, case.index) for guest in guests) for near in plan.near]
            self.by_guests[slot] = all(met) and self.present[slot]
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
        np.add.at(lost, self.index.roster.slot[self._selected({term}) & lower], 1)
        return lost

    def _selected(self, terms: set[PeerTerm]) -> Mask:
        return peers.rows_of([cls for term in terms for cls in peers.matching(term, self.index)], self.index)
