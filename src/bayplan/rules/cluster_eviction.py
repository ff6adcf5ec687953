"""ClusterEviction: a workload does not return to a cluster from which it is being evicted."""

from __future__ import annotations

import numpy as np

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import At
from bayplan.model.reasons import Codes, DocumentedReason, Reason, StatusCode
from bayplan.model.workloads import Workload
from bayplan.rules.rule import Failure, LiftedBy, PartRule

EVICTING = Reason("cluster-evicting", "cluster(s) is in the process of eviction", StatusCode.UNSCHEDULABLE)


class ClusterEviction(PartRule[tuple[str, ...]]):
    name = "ClusterEviction"
    id = "cluster-evicting"
    lifted_by = LiftedBy.TARGET
    reasons_by_code = (EVICTING,)
    follows_workloads = False
    documented = (
        DocumentedReason(
            EVICTING,
            means=(
                "The binding has a task in spec.gracefulEvictionTasks for this cluster: the workload is being evicted."
            ),
            to_do="Wait until the new replicas are healthy or the grace period is over; Karmada then removes the task.",
        ),
    )

    def part(self, workload: Workload, index: PlacementIndex) -> tuple[str, ...] | None:
        del index
        assert workload.binding is not None
        return workload.binding.evicted_from or None

    def reject(self, state: tuple[str, ...], index: PlacementIndex, at: At) -> Codes:
        codes = np.zeros(index.slots.capacity, np.int64)
        codes[[index.slots.by_name[name] for name in state if name in index.slots.by_name]] = 1
        return codes[at]

    def evidence(self, state: tuple[str, ...], workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del state, workload, slot, index
        return [Failure(self.id, EVICTING.text, term="gracefulEvictionTasks")]
