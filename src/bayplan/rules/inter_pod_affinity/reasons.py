"""Why InterPodAffinity rejects a target, and the code of each reason."""

from __future__ import annotations

from bayplan.model.reasons import DocumentedReason, Reason, StatusCode

AFFINITY_NOT_MATCHED = Reason("pod-affinity", "node(s) didn't match pod affinity rules", StatusCode.UNRESOLVABLE)
ANTI_AFFINITY_NOT_MATCHED = Reason(
    "pod-anti-affinity", "node(s) didn't match pod anti-affinity rules", StatusCode.UNSCHEDULABLE
)
EXISTING_ANTI_AFFINITY_NOT_SATISFIED = Reason(
    "existing-anti-affinity", "node(s) didn't satisfy existing pods anti-affinity rules", StatusCode.UNSCHEDULABLE
)
NO_ANTI_AFFINITY_KEY = Reason(
    "pod-anti-affinity-key",
    "node(s) didn't match pod anti-affinity rules (missing required label)",
    StatusCode.UNRESOLVABLE,
)
AFFINITY_CODE, ANTI_AFFINITY_CODE, EXISTING_ANTI_AFFINITY_CODE, NO_ANTI_AFFINITY_KEY_CODE = 1, 2, 3, 4
REASONS_BY_CODE: tuple[Reason, ...] = (
    AFFINITY_NOT_MATCHED,
    ANTI_AFFINITY_NOT_MATCHED,
    EXISTING_ANTI_AFFINITY_NOT_SATISFIED,
    NO_ANTI_AFFINITY_KEY,
)
DOCUMENTED: tuple[DocumentedReason, ...] = (
    DocumentedReason(
        AFFINITY_NOT_MATCHED,
        means=(
            "The pod has required pod affinity (requiredDuringSchedulingIgnoredDuringExecution of podAffinity), "
            "and no pod in this node's topology domain matches all its terms. A topology domain is all nodes with "
            "the same value of the term's topologyKey; a node without that label is in no domain. If no pod in the "
            "cluster matches, only a pod that matches its own terms can be placed first."
        ),
        to_do=(
            "Compare the term's labelSelector and namespaces with the pods that it should match, and check that "
            "nodes have the topologyKey label. If the affinity is not essential, make the term a preferred one."
        ),
    ),
    DocumentedReason(
        ANTI_AFFINITY_NOT_MATCHED,
        means="A pod in this node's topology domain matches a required term of the pod's podAntiAffinity.",
        to_do=(
            "`bayplan explain` names the conflicting pods. Add nodes in other topology domains, move or scale down "
            "those pods, use a smaller topology domain (kubernetes.io/hostname instead of a zone), or make the "
            "term a preferred one."
        ),
    ),
    DocumentedReason(
        EXISTING_ANTI_AFFINITY_NOT_SATISFIED,
        means=(
            "An existing pod in this node's topology domain has a required anti-affinity term that matches this "
            "pod. Required anti-affinity is symmetric: the term of the existing pod applies although this pod has "
            "none."
        ),
        to_do=(
            "`bayplan explain` names the owners of the term. Change the labels or namespace of this pod so that "
            "the selector no longer matches it, narrow the selector, or add nodes in another topology domain."
        ),
    ),
    DocumentedReason(
        NO_ANTI_AFFINITY_KEY,
        means=(
            "The node lacks the topologyKey label of a required term of the pod's podAntiAffinity. Only the switch "
            "`antiAffinityNeedsTopologyKey`, which the preset `design` turns on, rejects such nodes."
        ),
        to_do="Add the label to the node, or turn the switch off.",
    ),
)
