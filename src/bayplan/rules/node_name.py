"""NodeName: a pod that names its node goes there or nowhere."""

from __future__ import annotations

import numpy as np

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import At
from bayplan.model.reasons import Codes, Reason, StatusCode
from bayplan.model.workloads import Workload
from bayplan.rules.rule import Failure, Rule

OTHER_NODE = Reason("node-name", "node(s) didn't match the requested node name", StatusCode.UNRESOLVABLE)


class NodeName(Rule):
    name = "NodeName"
    id = "node-name"
    follows_workloads = False

    def part(self, workload: Workload, index: PlacementIndex) -> str | None:
        del index
        return workload.requested_target or None

    def reject(self, state: str, index: PlacementIndex, at: At) -> Codes:
        codes = np.ones(index.slots.capacity, np.int64)
        slot = index.slots.by_name.get(state)
        if slot is not None:
            codes[slot] = 0
        return codes[at]

    def reasons(self, state: str, code: int) -> tuple[Reason, ...]:
        del state, code
        return (OTHER_NODE,)

    def evidence(self, state: str, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload, slot, index
        return [Failure(self.id, OTHER_NODE.text, detail=f"spec.nodeName asks for {state}")]
