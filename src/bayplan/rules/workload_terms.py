"""
The seed's workload affinity: terms over peers in a fleet, in domains of clusters, zones, regions, providers or labels.

The same counters as for pods, read by the seed: every affinity term perhaps through another peer, the first of its set
anywhere, anti-affinity in both directions. Clusters that hold the workload already pass.
"""

from __future__ import annotations

import msgspec
import numpy as np

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import At
from bayplan.model.reasons import Reason, Scores, StatusCode
from bayplan.model.terms import AffinityTerms
from bayplan.model.workloads import Workload
from bayplan.rules.inter_pod_affinity import InterPodAffinity, InterPodAffinityPart, InterPodAffinityState
from bayplan.rules.rule import HIGHEST, Failure, Rule, assigned_slots

NO_PEER = Reason("workload-terms", "cluster(s) did not match workload affinity rules", StatusCode.UNRESOLVABLE)
PEER = Reason("workload-anti-terms", "cluster(s) did not match workload anti-affinity rules", StatusCode.UNSCHEDULABLE)
OWNER = Reason(
    "existing-workload-anti-affinity",
    "cluster(s) did not satisfy existing workloads anti-affinity rules",
    StatusCode.UNSCHEDULABLE,
)
REASONS = (NO_PEER, PEER, OWNER)


class _WorkloadTerms(InterPodAffinity):
    """What both signs share; a rule of one sign sees only its own terms."""

    exempt_slots = staticmethod(assigned_slots)
    judges_by = Rule.judges_by  # a cluster may be in several domains
    at_one = Rule.at_one  # scores are other ones here

    def reasons(self, state: InterPodAffinityState, code: int) -> tuple[Reason, ...]:
        del state
        return (REASONS[code - 1],)

    def evidence(
        self, state: InterPodAffinityState, workload: Workload, slot: int, index: PlacementIndex
    ) -> list[Failure]:
        from bayplan.rules import workload_evidence  # which reads our reasons, so it cannot be imported above

        del workload
        return workload_evidence.failures(self.id, state, slot, index)


class WorkloadTermAffinity(_WorkloadTerms):
    name = "WorkloadAffinity"
    id = "workload-terms"

    def part(self, workload: Workload, index: PlacementIndex) -> InterPodAffinityPart | None:  # type: ignore[override]
        affinity = workload.needs.affinity
        if affinity:
            affinity = msgspec.structs.replace(affinity, anti_required=())
        return super().part(_with(workload, affinity), index) if affinity else None

    def prepare(self, part: InterPodAffinityPart, index: PlacementIndex) -> InterPodAffinityState:
        state = super().prepare(part, index)
        state.refusing = state.pulling = ()
        return state

    def score(self, state: InterPodAffinityState, index: PlacementIndex, at: At) -> Scores | None:
        """100 times the weight of the wishes that a cluster meets over the weight of all; neighbours have no say."""
        total = sum(wish.use.weight for wish in (*state.liked, *state.disliked))
        if total <= 0:
            return None
        met = np.zeros(len(index.slots.alive[at]), np.int64)
        for wish in state.liked:
            met += wish.use.weight * (wish.reach.counts(at) > 0)
        for wish in state.disliked:
            met += wish.use.weight * (wish.reach.counts(at) == 0)
        return HIGHEST * met // total


class WorkloadTermAntiAffinity(_WorkloadTerms):
    name = "WorkloadAntiAffinity"
    id = "workload-anti-terms"

    def part(self, workload: Workload, index: PlacementIndex) -> InterPodAffinityPart | None:  # type: ignore[override]
        refused = workload.needs.affinity.anti_required
        if not refused and not index.peer_index.n_owner_rules:  # neither it nor anybody placed keeps others away
            return None
        return super().part(_with(workload, AffinityTerms(anti_required=refused)), index)

    def prepare(self, part: InterPodAffinityPart, index: PlacementIndex) -> InterPodAffinityState:
        state = super().prepare(part, index)
        state.pulling = ()
        return state

    def score(self, state: InterPodAffinityState, index: PlacementIndex, at: At) -> Scores | None:
        del state, index, at
        return None


def _with(workload: Workload, affinity: AffinityTerms) -> Workload:
    needs = msgspec.structs.replace(workload.needs, affinity=affinity)
    return msgspec.structs.replace(workload, needs=needs)
