"""TaintToleration: untolerated NoSchedule and NoExecute taints reject a node, PreferNoSchedule lowers its score."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ALL, TAINTS, At
from bayplan.model.labels import HARD_EFFECTS, PREFER_NO_SCHEDULE, Taint, Toleration, tolerated
from bayplan.model.reasons import Codes, DocumentedReason, Mask, Reason, Scores, StatusCode
from bayplan.model.targets import Target
from bayplan.model.workloads import Workload
from bayplan.rules.remedies import (
    NODE,
    Alternatives,
    Manifest,
    Remedy,
    Revision,
    change_needs,
    child,
    items,
    on_workload,
)
from bayplan.rules.rule import MAX_SCORE, Failure, LiftedBy, PartRule, Raw, Scaling

UNTOLERATED = Reason("taint", "node(s) had untolerated taint(s)", StatusCode.UNRESOLVABLE)

Tolerations = tuple[Toleration, ...]

# The condition of the node sets and unsets these (Go: pkg/controller/nodelifecycle, cloud-provider), so removing one
# does not last, and a pod that tolerates it does not run there.
CONDITION_TAINTS = frozenset({
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/out-of-service",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.cloudprovider.kubernetes.io/shutdown",
})  # fmt: skip


class TaintToleration(PartRule[Tolerations]):
    name = "TaintToleration"
    id = "taint"
    extends = ("filter", "preScore", "score")
    score_needs_pre_score = True
    lifted_by = LiftedBy.TARGET
    default_weight = 3
    reasons_by_code = (UNTOLERATED,)
    follows_workloads = False
    reads_template_only = True
    scaling = Scaling.BY_EXTREMES
    documented = (
        DocumentedReason(
            UNTOLERATED,
            means="The node has a taint with the effect NoSchedule or NoExecute that no toleration of the pod matches.",
            to_do=(
                "If the pod may run there, add a toleration for the taint. If the taint is obsolete, remove it: "
                "kubectl taint nodes NODE KEY-."
            ),
        ),
    )

    def part(self, workload: Workload, index: PlacementIndex) -> Tolerations:
        del index
        return workload.needs.tolerations

    def reject(self, state: Tolerations, index: PlacementIndex, at: At) -> Codes:
        untolerated = index.taints.untolerated(state, HARD_EFFECTS)
        return index.column(TAINTS).gather((untolerated > 0).astype(np.int64), at)

    def score(self, state: Tolerations, index: PlacementIndex, at: At) -> Scores:
        """The number of untolerated PreferNoSchedule taints."""
        soft = [toleration for toleration in state if toleration.effect in ("", PREFER_NO_SCHEDULE)]
        return index.column(TAINTS).gather(index.taints.untolerated(soft, (PREFER_NO_SCHEDULE,)), at)

    def scaled(self, raw: Raw, lowest: int, highest: int) -> Raw:
        """The fewer the better: 100 less the share of the highest (kube-scheduler: DefaultNormalizeScore, reversed)."""
        del lowest
        return MAX_SCORE - raw * MAX_SCORE // highest if highest else raw * 0 + MAX_SCORE

    def evidence(self, state: Tolerations, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload
        return [
            Failure(self.id, UNTOLERATED.text, detail=f"{taint} is not tolerated", term=str(taint))
            for taint in _untolerated(index.slots.at(slot).taints, state)
        ]

    def remedies(self, state: Tolerations, workload: Workload, slot: int, index: PlacementIndex) -> list[Alternatives]:
        del workload
        target = index.slots.at(slot)
        return [_remedies_for(taint, slot, target) for taint in _untolerated(target.taints, state)]


def _untolerated(taints: tuple[Taint, ...], tolerations: Tolerations) -> Iterator[Taint]:
    """The NoSchedule and NoExecute taints that are not tolerated."""
    return (t for t in taints if t.effect in HARD_EFFECTS and not tolerated(t, tolerations))


def _remedies_for(taint: Taint, slot: int, target: Target) -> Alternatives:
    """Tolerating the taint, or removing it; neither lasts or helps where a condition of the node sets it."""
    if taint.key in CONDITION_TAINTS:
        return []
    toleration = Toleration(taint.key, "Equal" if taint.value else "Exists", taint.value, taint.effect)

    def tolerate(workload: Workload, index: PlacementIndex) -> Workload:
        return change_needs(tolerations=(*workload.needs.tolerations, toleration))(workload, index)

    def revise_pod(pod: Manifest, _: Manifest) -> None:
        written = {"key": taint.key, "operator": toleration.operator, "value": taint.value, "effect": taint.effect}
        items(child(pod, "spec"), "tolerations").append({name: text for name, text in written.items() if text})

    def remove(workload: Workload, index: PlacementIndex) -> Workload:
        here = index.slots.at(slot)
        index.update_target(msgspec.structs.replace(here, taints=tuple(t for t in here.taints if t != taint)))
        return workload

    def revise_node(node: Manifest, _: Manifest) -> None:
        spec = child(node, "spec")
        spec["taints"] = [one for one in spec.get("taints") or () if _written_taint(one) != taint]

    return [
        Remedy(f"tolerate {taint}", tolerate, revisions=on_workload(revise_pod)),
        Remedy(f"remove taint {taint} from {target.name}", remove, NODE, (Revision(revise_node, node=target.name),)),
    ]


def _written_taint(one: Manifest) -> Taint:
    return Taint(one.get("key") or "", one.get("value") or "", one.get("effect") or "")


def first_untolerated(taints: tuple[Taint, ...], tolerations: Tolerations) -> Taint | None:
    """The first NoSchedule or NoExecute taint that is not tolerated, if any."""
    return next(_untolerated(taints, tolerations), None)


def tolerated_mask(tolerations: Tolerations, index: PlacementIndex) -> Mask:
    """Which targets have every NoSchedule and NoExecute taint tolerated, shape (capacity,)."""
    mask: Mask = TaintToleration().reject(tolerations, index, ALL) == 0
    return mask
