"""NodeName: a pod that names its node fits on that node only."""

from __future__ import annotations

import msgspec
import numpy as np

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import At
from bayplan.model.kubernetes_versions import V1_37
from bayplan.model.reasons import Codes, DocumentedReason, Reason, StatusCode
from bayplan.model.workloads import Workload
from bayplan.rules.remedies import Alternatives, Manifest, Remedy, child, on_workload
from bayplan.rules.rule import Failure, LiftedBy, PartRule

OTHER_NODE = Reason("node-name", "node(s) didn't match the requested node name", StatusCode.UNRESOLVABLE)


class NodeName(PartRule[str]):
    name = "NodeName"
    id = "node-name"
    extends = ("preFilter", "filter")
    lifted_by = LiftedBy.TARGET
    reasons_by_code = (OTHER_NODE,)
    follows_workloads = False
    reads_template_only = True
    documented = (
        DocumentedReason(
            OTHER_NODE,
            means="The pod's spec.nodeName is another node.",
            to_do=(
                "Leave spec.nodeName empty and let the scheduler choose. To restrict a pod to one node, use node "
                "affinity."
            ),
        ),
    )

    def part(self, workload: Workload, index: PlacementIndex) -> str | None:
        del index
        return workload.requested_target or None

    def pre_filter(self, state: str, index: PlacementIndex) -> frozenset[str] | None:
        return frozenset((state,)) if index.semantics.kubernetes_version >= V1_37 else None

    def reject(self, state: str, index: PlacementIndex, at: At) -> Codes:
        codes = np.ones(index.slots.capacity, np.int64)
        slot = index.slots.by_name.get(state)
        if slot is not None:
            codes[slot] = 0
        return codes[at]

    def evidence(self, state: str, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload, slot, index
        return [Failure(self.id, OTHER_NODE.text, detail=f"spec.nodeName is {state}")]

    def remedies(self, state: str, workload: Workload, slot: int, index: PlacementIndex) -> list[Alternatives]:
        del workload, slot, index

        def edit(workload: Workload, index: PlacementIndex) -> Workload:
            del index
            return msgspec.structs.replace(workload, requested_target="")

        def revise(pod: Manifest, _: Manifest) -> None:
            child(pod, "spec").pop("nodeName", None)

        return [[Remedy(f"drop spec.nodeName {state}", edit, revisions=on_workload(revise))]]
