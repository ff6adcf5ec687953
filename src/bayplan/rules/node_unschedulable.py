"""NodeUnschedulable: a cordoned node accepts only pods that tolerate it."""

from __future__ import annotations

import numpy as np

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import TAINTS, At
from bayplan.model.labels import UNSCHEDULABLE_TAINT
from bayplan.model.reasons import Codes, DocumentedReason, Reason, StatusCode
from bayplan.model.workloads import Workload
from bayplan.rules.remedies import NODE, Alternatives, Manifest, Remedy, Revision, change_target, child
from bayplan.rules.rule import Failure, LiftedBy, PartRule

CORDONED = Reason("node-unschedulable", "node(s) were unschedulable", StatusCode.UNRESOLVABLE)


class NodeUnschedulable(PartRule[str]):
    name = "NodeUnschedulable"
    id = "node-unschedulable"
    extends = ("filter",)
    lifted_by = LiftedBy.TARGET
    reasons_by_code = (CORDONED,)
    follows_workloads = False
    reads_template_only = True
    documented = (
        DocumentedReason(
            CORDONED,
            means="The node is cordoned: spec.unschedulable is true, and the pod does not tolerate it.",
            to_do="When the maintenance of the node is done: kubectl uncordon NODE.",
        ),
    )

    def part(self, workload: Workload, index: PlacementIndex) -> str | None:
        del index
        return (
            None if any(each.tolerates(UNSCHEDULABLE_TAINT) for each in workload.needs.tolerations) else "not tolerated"
        )

    def reject(self, state: str, index: PlacementIndex, at: At) -> Codes:
        del state
        column = index.column(TAINTS)
        cordoned = np.fromiter((value is not None and value[0] for value in column.values), np.int64)  # type: ignore[index]
        return column.gather(cordoned, at)

    def evidence(self, state: str, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del state, workload, slot, index
        return [Failure(self.id, CORDONED.text, detail="the node is cordoned (spec.unschedulable)")]

    def remedies(self, state: str, workload: Workload, slot: int, index: PlacementIndex) -> list[Alternatives]:
        del state, workload
        name = index.slots.at(slot).name

        def revise(node: Manifest, _: Manifest) -> None:
            child(node, "spec").pop("unschedulable", None)

        edit = change_target(slot, unschedulable=False)
        return [[Remedy(f"uncordon {name}", edit, NODE, (Revision(revise, node=name),))]]
