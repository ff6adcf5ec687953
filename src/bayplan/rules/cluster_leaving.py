"""Clusters that are being deleted. Karmada skips them without a message, so its message does not count them."""

from __future__ import annotations

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import CLUSTER_FACTS, At
from bayplan.model.reasons import Codes, DocumentedReason, Reason, StatusCode
from bayplan.model.workloads import Workload
from bayplan.rules.cluster_facts import codes_by_value
from bayplan.rules.rule import Failure, LiftedBy, PartRule

LEAVING = Reason("cluster-leaving", "cluster(s) is being deleted", StatusCode.UNRESOLVABLE)


class ClusterLeaving(PartRule[str]):
    name = "ClusterLeaving"
    id = "cluster-leaving"
    lifted_by = LiftedBy.TARGET
    reasons_by_code = (LEAVING,)
    follows_workloads = False
    silent = True
    documented = (
        DocumentedReason(
            LEAVING,
            means=(
                "The Cluster object is deleted; it is removed when nothing is left on the cluster. Karmada skips such "
                "a cluster without a reason, so Karmada's own message does not count it."
            ),
            to_do=(
                "If the deletion is intended, nothing: divided replicas are moved to other clusters. Otherwise join "
                "the cluster again."
            ),
        ),
    )

    def part(self, workload: Workload, index: PlacementIndex) -> str:
        del workload, index
        return "any"

    def reject(self, state: str, index: PlacementIndex, at: At) -> Codes:
        del state
        return codes_by_value(index, CLUSTER_FACTS, at, lambda _, terminating: int(terminating))

    def evidence(self, state: str, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del state, workload, slot, index
        return [Failure(self.id, LEAVING.text)]
