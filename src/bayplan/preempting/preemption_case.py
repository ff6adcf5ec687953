"""The input of preemption: a workload that fits nowhere, and the results of all rules for it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bayplan.engine.engine import Engine
from bayplan.engine.evaluations import RuleResult
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload

NominatedPods = dict[int, list[Workload]]


class PreemptionCase(msgspec.Struct, frozen=True):
    """`nominated_pods`: slot → the workloads nominated for it whose priority is at least that of this one."""

    workload: Workload
    engine: Engine
    results: tuple[RuleResult, ...]
    nominated_pods: NominatedPods

    @property
    def index(self) -> PlacementIndex:
        return self.engine.index


def nominated_pods_of(
    workload: Workload, nominated: Iterable[tuple[Workload, str]], index: PlacementIndex
) -> NominatedPods:
    """The nominated pods that count against the workload, by slot: of the same or a higher priority, not bound yet."""
    found: NominatedPods = {}
    for other, target in nominated:
        slot = index.slots.by_name.get(target)
        if slot is None or other.key == workload.key or other.priority < workload.priority:
            continue
        if other.key not in index.records:
            found.setdefault(slot, []).append(other)
    return found
