"""
TaintToleration for fleets: a cluster with a taint that the placement does not tolerate is rejected.

Each taint has its own reason: a code is the number of the taint's text among those found so far.
"""

from __future__ import annotations

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import TAINTS, At
from bayplan.model.labels import Taint, Toleration
from bayplan.model.reasons import Codes, DocumentedReason, Reason, StatusCode
from bayplan.model.workloads import Workload
from bayplan.rules.cluster_facts import codes_by_value
from bayplan.rules.rule import Failure, LiftedBy, Rule
from bayplan.rules.taint_toleration import first_untolerated

UNTOLERATED = Reason("cluster-taint", "cluster(s) had untolerated taint {<taint>}", StatusCode.UNRESOLVABLE)


class TaintState:
    """The tolerations, and the texts of the untolerated taints, numbered in the order in which they were found."""

    def __init__(self, tolerations: tuple[Toleration, ...]) -> None:
        self.tolerations = tolerations
        self.texts: list[str] = []
        self._codes: dict[str, int] = {}

    def code(self, taints: tuple[Taint, ...]) -> int:
        taint = first_untolerated(taints, self.tolerations)
        if taint is None:
            return 0
        text = str(taint)
        if text not in self._codes:
            self.texts.append(text)
            self._codes[text] = len(self.texts)
        return self._codes[text]


class ClusterTaints(Rule[tuple[Toleration, ...], TaintState]):
    name = "TaintToleration"
    id = "cluster-taint"
    lifted_by = LiftedBy.TARGET
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
        return codes_by_value(index, TAINTS, at, lambda _, taints: state.code(taints))

    def reasons(self, state: TaintState, code: int) -> tuple[Reason, ...]:
        return (UNTOLERATED.filled(taint=state.texts[code - 1]),)

    def evidence(self, state: TaintState, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload
        text = state.texts[state.code(index.slots.at(slot).taints) - 1]
        return [Failure(self.id, UNTOLERATED.filled(taint=text).text, term=text)]
