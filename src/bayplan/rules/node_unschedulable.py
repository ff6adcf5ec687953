"""NodeUnschedulable: cordoned nodes take only pods that tolerate it."""

from __future__ import annotations

import numpy as np

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import At
from bayplan.indexing.value_columns import TAINTS
from bayplan.model.reasons import Codes, Reason, StatusCode
from bayplan.model.taints import UNSCHEDULABLE, tolerated
from bayplan.model.workloads import Workload
from bayplan.rules.rule import Failure, Rule

CORDONED = Reason("node-unschedulable", "node(s) were unschedulable", StatusCode.UNRESOLVABLE)


class NodeUnschedulable(Rule):
    name = "NodeUnschedulable"
    id = "node-unschedulable"
    follows_workloads = False

    def part(self, workload: Workload, index: PlacementIndex) -> str | None:
        del index
        return None if tolerated(UNSCHEDULABLE, workload.needs.tolerations) else "not tolerated"

    def reject(self, state: str, index: PlacementIndex, at: At) -> Codes:
        del state
        column = index.column(TAINTS)
        cordoned = np.fromiter((value is not None and value[0] for value in column.values), np.int64)  # type: ignore[index]
        return column.gather(cordoned, at)

    def reasons(self, state: str, code: int) -> tuple[Reason, ...]:
        del state, code
        return (CORDONED,)

    def evidence(self, state: str, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del state, workload, slot, index
        return [Failure(self.id, CORDONED.text, detail="the node is cordoned (spec.unschedulable)")]
