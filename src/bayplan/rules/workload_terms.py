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
from bayplan.indexing.term_table import Reach
from bayplan.model.reasons import Reason, Scores, StatusCode
from bayplan.model.terms import TARGET, AffinityTerms
from bayplan.model.workloads import Workload
from bayplan.rules.inter_pod_affinity import (
    InterPodAffinity,
    InterPodAffinityPart,
    InterPodAffinityState,
    first_by_term,
    meets_affinity,
    rejected_by_existing,
)
from bayplan.rules.rule import MAX_SCORE, Failure, Rule, assigned_slots

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
        # RF  # which reads our reasons, so it cannot be imported above

        del workload
        return term_failures(self.id, state, slot, index)


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
        return MAX_SCORE * met // total


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


# RF merged from rules.workload_evidence: Which workloads stand in the way of a workload's terms on one cluster: for
# people, on demand.


def term_failures(rule: str, state: InterPodAffinityState, slot: int, index: PlacementIndex) -> list[Failure]:
    """Everything that the terms of one sign have against the cluster."""
    at, peer_index = np.array([slot]), index.peer_index
    found = []
    for near, first in zip(state.near, first_by_term(state), strict=True):
        if not meets_affinity(near, at, first=first)[0]:
            peers = peer_index.all_peers(near.term)
            found.append(Failure(rule, NO_PEER.text, term=near.use.source.path, peers=peers))
    for wish in state.apart:
        if wish.reach.counts(at)[0] > wish.use.limit:
            peers = peer_index.peers(wish.use.term, wish.reach.slots_sharing_domains(slot).tolist())
            reason, domain = PEER.text, _domain(wish.reach, slot)
            found.append(Failure(rule, reason, term=wish.use.source.path, domain=domain, peers=peers))
    unwelcome = []
    for neighbours in state.refusing:
        if rejected_by_existing(neighbours, at)[0]:
            held, reach = neighbours.rule, neighbours.rule.reach
            peers = peer_index.owners(held, reach.slots_sharing_domains(slot).tolist())
            reason, domain = OWNER.text, _domain(reach, slot)
            unwelcome.append(Failure(rule, reason, term=held.source.path, domain=domain, peers=peers))
    return found + sorted(unwelcome, key=lambda failure: (failure.domain, failure.peers))


def _domain(reach: Reach, slot: int) -> str:
    """The cluster's domains as `key=value`."""
    pairs = [(column.key, column.values[domain]) for column in reach.columns for domain in column.domains(slot)]
    return ", ".join(f"{'cluster' if key == TARGET else key.removeprefix(chr(0))}={value}" for key, value in pairs)
