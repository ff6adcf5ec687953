"""The input of preemption: a workload that fits nowhere, and the results of all rules for it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bayplan.engine.engine import Engine
from bayplan.engine.evaluations import RuleResult
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload
from bayplan.rules.evictions import NominatedPods, Preemptor


class PreemptionCase(msgspec.Struct, frozen=True):
    preemptor: Preemptor
    engine: Engine
    results: tuple[RuleResult, ...]

    @property
    def workload(self) -> Workload:
        return self.preemptor.workload

    @property
    def index(self) -> PlacementIndex:
        return self.preemptor.index

    @property
    def nominated_pods(self) -> NominatedPods:
        return self.preemptor.nominated_pods


def preemptor_of(workload: Workload, nominated: Iterable[tuple[Workload, str]], index: PlacementIndex) -> Preemptor:
    """The workload with the nominated pods that count against it: of the same or a higher priority, not bound yet."""
    found: NominatedPods = {}
    for other, target in nominated:
        slot = index.slots.by_name.get(target)
        if slot is None or other.key == workload.key or other.priority < workload.priority:
            continue
        if other.key not in index.records:
            found.setdefault(slot, []).append(other)
    return Preemptor(workload, index, found)
