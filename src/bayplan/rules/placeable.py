"""A workload whose own rules cannot be read is rejected everywhere: a malformed rule is never ignored."""

from __future__ import annotations

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.reasons import DocumentedReason, Reason, StatusCode
from bayplan.model.workloads import Workload
from bayplan.rules.rule import LiftedBy, PartRule

UNREADABLE = Reason("unreadable-rule", "<problem>", StatusCode.UNRESOLVABLE)
# Given before any rule is asked; no other rule is a better place for their pages.
GATED = Reason("scheduling-gates", "Scheduling is blocked due to non-empty scheduling gates", StatusCode.UNRESOLVABLE)
NO_NODES = Reason("no-nodes", "no nodes available to schedule pods", StatusCode.UNRESOLVABLE)


class Placeable(PartRule[str]):
    name = "Bayplan"
    id = "placeable"
    lifted_by = LiftedBy.TARGET
    follows_workloads = False
    documented = (
        DocumentedReason(
            UNREADABLE,
            means=(
                "The pod's annotation bayplan.io/affinity cannot be parsed; the message says where. It is never used "
                "in part, because a rule must not be ignored silently. Or the pod has more scheduling constraints than "
                "`bayplan run` accepts, so that one pod cannot hold up all others."
            ),
            to_do=(
                "Correct the annotation: `bayplan validate` reports every fault in it. Constraints are terms, their "
                "requirements, tolerations, ports and the like: use fewer, or raise --max-pod-constraints."
            ),
        ),
        DocumentedReason(
            GATED,
            means="The pod has spec.schedulingGates. It is not scheduled until all gates are removed.",
            to_do="The controller that set a gate removes it; the name of the gate shows which controller that is.",
            plugin="SchedulingGates",
        ),
        DocumentedReason(
            NO_NODES,
            means="The cluster has no nodes.",
            to_do="Add the nodes to the input: kubectl get nodes -o yaml > nodes.yaml, then -f nodes.yaml.",
        ),
    )

    def part(self, workload: Workload, index: PlacementIndex) -> str | None:
        """The fault, if there is one: API servers reject a term without a topology key, an annotation may hold it."""
        affinity = workload.needs.affinity
        if workload.unplaceable or index.semantics.empty_topology_key_means_any or not affinity:
            return workload.unplaceable or None
        terms = (*affinity.required, *affinity.anti_required, *affinity.preferred, *affinity.anti_preferred)
        path = next((term.path for term in terms if not term.topology_key), None)
        return None if path is None else f"{path}.topologyKey: Required value: can not be empty"

    def pre_filter(self, state: str, index: PlacementIndex) -> Reason:
        del index
        return UNREADABLE.filled(problem=state)
