"""What evictions change about PodTopologySpread: they take peers from a domain and so lower its skew."""

from __future__ import annotations

import numpy as np

from bayplan.indexing.classes import WorkloadClass
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ABSENT, ALL
from bayplan.model.workloads import Workload
from bayplan.rules.evictions import Amounts, CapacityConstraint, EvictionEffect, FixedConstraint
from bayplan.rules.peer_constraints import PeerConstraint, classes_matching, selects
from bayplan.rules.topology_spread.state import CountedConstraint, SpreadState

UNLIMITED = 1 << 40


def eviction_effect(state: SpreadState, index: PlacementIndex) -> EvictionEffect:
    """The hard constraints in reverse order: the code of the first constraint that fails overwrites the others."""
    found: list[CapacityConstraint] = []
    for i, counted in reversed(list(enumerate(state.hard))):
        present = counted.column.present(ALL)
        found.append(SkewConstraint(2 * i + 1, counted, index))
        found.append(FixedConstraint(2 * i + 2, np.where(present, 0, -1)))
    return EvictionEffect(capacity_constraints=tuple(found))


class SkewConstraint(PeerConstraint):
    """A hard spread constraint: how many more peers the target's domain may hold while other domains keep theirs."""

    compares_domains = True

    def __init__(self, code: int, counted: CountedConstraint, index: PlacementIndex) -> None:
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
        super().__init__(code, remaining, index)
        self.term, self.eligible = counted.term, counted.eligible

    def classes(self) -> list[WorkloadClass]:
        return [] if self.term is None else classes_matching(self.term, self.index)

    def amounts(self) -> Amounts:
        return super().amounts() * self.index.pod_table.on(self.eligible)

    def amount_of(self, nominated: Workload, slot: int) -> int:
        if self.term is None or not self.eligible[slot]:
            return 0
        return int(selects(self.term, nominated, self.index))
