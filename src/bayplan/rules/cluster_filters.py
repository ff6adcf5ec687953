"""The plain filters of a cluster: deletion, enabled APIs, taints, properties for spread constraints, evictions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import At
from bayplan.model.labels import Toleration
from bayplan.model.reasons import Codes, DocumentedReason, Reason, StatusCode
from bayplan.model.targets import FIELD_KEYS, PROVIDER, REGION, ZONE, ClusterFacts
from bayplan.model.workloads import Workload
from bayplan.rules.rule import Failure, PartRule, Rule
from bayplan.rules.taint_toleration import first_untolerated

LEAVING = Reason("cluster-leaving", "cluster(s) is being deleted", StatusCode.UNRESOLVABLE)
NO_API = Reason("api-missing", "cluster(s) did not have the API resource", StatusCode.UNRESOLVABLE)
EVICTING = Reason("cluster-evicting", "cluster(s) is in the process of eviction", StatusCode.UNSCHEDULABLE)
UNTOLERATED = Reason("cluster-taint", "cluster(s) had untolerated taint {<taint>}", StatusCode.UNRESOLVABLE)
NO_PROVIDER = Reason("provider-missing", "cluster(s) did not have provider property", StatusCode.UNRESOLVABLE)
NO_REGION = Reason("region-missing", "cluster(s) did not have region property", StatusCode.UNRESOLVABLE)
NO_ZONES = Reason("zone-missing", "cluster(s) did not have zones property", StatusCode.UNRESOLVABLE)
NO_LABEL = Reason("label-missing", "cluster(s) did not have label <key>", StatusCode.UNRESOLVABLE)
PROPERTIES = {FIELD_KEYS[PROVIDER]: NO_PROVIDER, FIELD_KEYS[REGION]: NO_REGION, FIELD_KEYS[ZONE]: NO_ZONES}


class ClusterLeaving(PartRule[str]):
    """Clusters that are being deleted. Karmada skips them without a message, so its message does not count them."""

    name = "ClusterLeaving"
    id = "cluster-leaving"
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
        return _codes_of(index, at, lambda facts: int(facts.terminating))

    def evidence(self, state: str, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del state, workload, slot, index
        return [Failure(self.id, LEAVING.text)]


class ApiEnablementRule(PartRule[tuple[str, str]]):
    name = "APIEnablement"
    id = "api-missing"
    reasons_by_code = (NO_API,)
    follows_workloads = False
    exempts_assigned = True
    documented = (
        DocumentedReason(
            NO_API,
            means=(
                "The cluster's status.apiEnablements does not list the apiVersion and kind of the template, so the "
                "member cluster cannot create it."
            ),
            to_do=(
                "Install the CustomResourceDefinition in the member cluster, or propagate it first. For input from "
                "files, include the status of the clusters: kubectl get clusters -o yaml."
            ),
        ),
    )

    def part(self, workload: Workload, index: PlacementIndex) -> tuple[str, str]:
        del index
        assert workload.binding is not None
        version = workload.binding.api_version
        # As Karmada parses it: more than one slash is no version at all.
        return "" if version.count("/") > 1 else version.removeprefix("/"), workload.binding.kind

    def reject(self, state: tuple[str, str], index: PlacementIndex, at: At) -> Codes:
        return _codes_of(index, at, lambda facts: int(state not in facts.apis))

    def evidence(self, state: tuple[str, str], workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload, slot, index
        return [Failure(self.id, NO_API.text, detail=f"{state[0]} {state[1]} is not served there", term=state[1])]


class TaintState:
    """The tolerations, and the texts of the untolerated taints, numbered in the order in which they were found."""

    def __init__(self, tolerations: tuple[Toleration, ...]) -> None:
        self.tolerations = tolerations
        self.texts: list[str] = []
        self._codes: dict[str, int] = {}

    def code(self, index: PlacementIndex, slot: int) -> int:
        target = index.slots.targets[slot]
        taint = first_untolerated(target.taints, self.tolerations) if target is not None and target.taints else None
        if taint is None:
            return 0
        text = str(taint)
        if text not in self._codes:
            self.texts.append(text)
            self._codes[text] = len(self.texts)
        return self._codes[text]


class ClusterTaints(Rule[tuple[Toleration, ...], TaintState]):
    """Each taint has its own reason: a code is the number of the taint's text among those found so far."""

    name = "TaintToleration"
    id = "cluster-taint"
    follows_workloads = False
    exempts_assigned = True
    documented = (
        DocumentedReason(
            UNTOLERATED,
            means=(
                "The cluster has a taint with the effect NoSchedule or NoExecute that no clusterToleration of the "
                "placement matches. Karmada taints clusters that are not ready or not reachable."
            ),
            to_do=(
                "For cluster.karmada.io/not-ready or unreachable, check the cluster first. If the workload may run "
                "there anyway, add a toleration to placement.clusterTolerations."
            ),
        ),
    )

    def part(self, workload: Workload, index: PlacementIndex) -> tuple[Toleration, ...]:
        del index
        assert workload.binding is not None
        return workload.binding.placement.tolerations

    def prepare(self, part: tuple[Toleration, ...], index: PlacementIndex) -> TaintState:
        del index
        return TaintState(part)

    def reject(self, state: TaintState, index: PlacementIndex, at: At) -> Codes:
        slots = range(index.slots.capacity) if isinstance(at, slice) else at.tolist()
        return np.fromiter((state.code(index, slot) for slot in slots), np.int64, len(slots))

    def reasons(self, state: TaintState, code: int) -> tuple[Reason, ...]:
        return (UNTOLERATED.filled(taint=state.texts[code - 1]),)

    def evidence(self, state: TaintState, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload
        text = state.texts[state.code(index, slot) - 1]
        return [Failure(self.id, UNTOLERATED.filled(taint=text).text, term=text)]


class SpreadProperty(PartRule[tuple[str, ...]]):
    """Code i+1: the i-th constrained property is missing."""

    name = "SpreadConstraint"
    id = "spread-property"
    follows_workloads = False
    documented = (
        DocumentedReason(
            NO_PROVIDER,
            means="A spread constraint uses the provider, and the cluster's spec.provider is empty.",
            to_do="Set spec.provider on the cluster, or remove the constraint.",
        ),
        DocumentedReason(
            NO_REGION,
            means="A spread constraint uses the region, and the cluster's spec.region is empty.",
            to_do="Set spec.region on the cluster, or remove the constraint.",
        ),
        DocumentedReason(
            NO_ZONES,
            means="A spread constraint uses the zone, and the cluster's spec.zones is empty.",
            to_do="Set spec.zones on the cluster, or remove the constraint.",
        ),
        DocumentedReason(
            NO_LABEL,
            means=(
                "A spread constraint uses this label, and the cluster does not have it. Karmada does not spread by "
                "label; only --semantics design does."
            ),
            to_do="Label the cluster, or remove the constraint.",
        ),
    )

    def part(self, workload: Workload, index: PlacementIndex) -> tuple[str, ...] | None:
        assert workload.binding is not None
        fields = [FIELD_KEYS.get(c.field, "") for c in workload.binding.placement.spread]
        if index.semantics.spread_by_every_field:
            labels = [c.label for c in workload.binding.placement.spread]
            fields = [field or label for field, label in zip(fields, labels, strict=True)]
        return tuple(field for field in fields if field) or None

    def reject(self, state: tuple[str, ...], index: PlacementIndex, at: At) -> Codes:
        codes = np.zeros(len(index.slots.alive[at]), np.int64)
        for position in reversed(range(len(state))):  # the code of the first that is missing overwrites the others
            codes[~index.column(state[position]).present(at)] = position + 1
        return codes

    def reasons(self, state: tuple[str, ...], code: int) -> tuple[Reason, ...]:
        key = state[code - 1]
        return (PROPERTIES.get(key) or NO_LABEL.filled(key=key),)

    def evidence(self, state: tuple[str, ...], workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload
        code = int(self.reject(state, index, np.array([slot]))[0])
        (reason,) = self.reasons(state, code)
        return [Failure(self.id, reason.text, term=f"spreadConstraints {state[code - 1].removeprefix(chr(0))}")]


class ClusterEviction(PartRule[tuple[str, ...]]):
    name = "ClusterEviction"
    id = "cluster-evicting"
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


def _codes_of(index: PlacementIndex, at: At, code: Callable[[ClusterFacts], int]) -> Codes:
    """A code per cluster from its facts; 0 for empty slots."""
    targets = index.slots.targets
    slots = range(index.slots.capacity) if isinstance(at, slice) else at.tolist()
    found = (targets[slot] for slot in slots)
    return np.fromiter((code(t.cluster) if t is not None and t.cluster else 0 for t in found), np.int64, len(slots))
