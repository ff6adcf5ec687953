"""
Karmada's own workload affinity: one affinity and one anti-affinity group (`groupByLabelKey`), in the template's
namespace.

Affinity requires that the cluster holds every placed peer of the group, anti-affinity that it holds none. Both read one
counter, however many peers there are.
"""

from __future__ import annotations

from abc import abstractmethod

import msgspec
import numpy as np

from bayplan.indexing.journal import Change, ChangeType
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ALL, At
from bayplan.indexing.term_table import Reach, TermEntry
from bayplan.model.bindings import AFFINITY_GROUP, ANTI_AFFINITY_GROUP
from bayplan.model.labels import equals
from bayplan.model.reasons import Codes, DocumentedReason, Reason, StatusCode
from bayplan.model.terms import TARGET, PeerTerm, TermPart
from bayplan.model.workloads import Workload
from bayplan.rules.rule import Failure, LiftedBy, Rule, Touched

PEER_ELSEWHERE = Reason(
    "workload-affinity",
    "ResourceBinding with the same affinity group does not target this cluster",
    StatusCode.UNSCHEDULABLE,
)
PEER_HERE = Reason(
    "workload-anti-affinity",
    "cluster already has workload with the same anti-affinity group",
    StatusCode.UNSCHEDULABLE,
)


class GroupPart(msgspec.Struct, frozen=True):
    namespace: str
    group: str


class GroupState(msgspec.Struct, frozen=True):
    group: str
    entry: TermEntry
    peers: Reach


class _GroupRule(Rule[GroupPart, GroupState]):
    """What affinity and anti-affinity share: the peers of a group, counted per cluster."""

    label: str
    counts_leaving: bool  # whether draining copies are peers
    exempts_assigned = True
    lifted_by = LiftedBy.PEERS

    def part(self, workload: Workload, index: PlacementIndex) -> GroupPart | None:
        del index
        assert workload.binding is not None
        group = workload.labels.get(self.label)
        return GroupPart(workload.binding.namespace, group) if group else None

    def prepare(self, part: GroupPart, index: PlacementIndex) -> GroupState:
        scope = TermPart(equals({self.label: part.group}), (part.namespace,))
        term = PeerTerm((scope,), counts_terminating=self.counts_leaving)
        entry = index.peer_index.hold(term)
        return GroupState(part.group, entry, index.peer_index.match_reach(entry, (TARGET,)))

    def release(self, state: GroupState, index: PlacementIndex) -> None:
        index.peer_index.release(state.entry)

    def touched(self, state: GroupState, change: Change, index: PlacementIndex) -> Touched:
        if change.member_of is not None:
            matches = index.peer_index.class_matches(state.entry.term, change.member_of)
            return self._touched_by_peer(change) if matches else None
        # A change of a cluster does not move peers.
        return None if change.type is ChangeType.TARGET_CHANGED else super().touched(state, change, index)

    @abstractmethod
    def _touched_by_peer(self, change: Change) -> Touched:
        """Where it matters that a peer was added or removed."""

    def evidence(self, state: GroupState, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload
        domain = f"cluster={index.slots.at(slot).name}"
        peers = self._blocking(state, slot, index)
        return [Failure(self.id, self.reasons_by_code[0].text, term=state.group, domain=domain, peers=peers)]

    def _blocking(self, state: GroupState, slot: int, index: PlacementIndex) -> tuple[str, ...]:
        return index.peer_index.peers(state.entry.term, (slot,))


class WorkloadGroupAffinity(_GroupRule):
    name = "WorkloadAffinity"
    id = "workload-affinity"
    label = AFFINITY_GROUP
    counts_leaving = False
    reasons_by_code = (PEER_ELSEWHERE,)
    documented = (
        DocumentedReason(
            PEER_ELSEWHERE,
            means=(
                "Another workload of the same affinity group (workloadAffinity.affinity.groupByLabelKey) is placed, "
                "and not on this cluster. A cluster is feasible only if every placed member of the group is on it. For "
                "the first member, every cluster is feasible."
            ),
            to_do=(
                "`bayplan explain` names the members on other clusters. If they are on different clusters, no cluster "
                "is feasible for another member: move them to one cluster first, or give this workload another label "
                "value."
            ),
        ),
    )

    def reject(self, state: GroupState, index: PlacementIndex, at: At) -> Codes:
        del index
        return (state.peers.counts(at) < state.peers.counter.anywhere).astype(np.int64)

    def _touched_by_peer(self, change: Change) -> Touched:
        del change
        return ALL  # the number of peers that a cluster must hold changes

    def _blocking(self, state: GroupState, slot: int, index: PlacementIndex) -> tuple[str, ...]:
        here = set(super()._blocking(state, slot, index))
        return tuple(peer for peer in index.peer_index.all_peers(state.entry.term) if peer not in here)


class WorkloadGroupAntiAffinity(_GroupRule):
    name = "WorkloadAntiAffinity"
    id = "workload-anti-affinity"
    label = ANTI_AFFINITY_GROUP
    counts_leaving = True
    reasons_by_code = (PEER_HERE,)
    documented = (
        DocumentedReason(
            PEER_HERE,
            means=(
                "Another workload of the same anti-affinity group (workloadAffinity.antiAffinity.groupByLabelKey) is "
                "on this cluster."
            ),
            to_do=(
                "`bayplan explain` names the workload. A policy without a cluster spread constraint uses every cluster "
                "and leaves none for other members of the group: set maxGroups."
            ),
        ),
    )

    def reject(self, state: GroupState, index: PlacementIndex, at: At) -> Codes:
        del index
        return (state.peers.counts(at) > 0).astype(np.int64)

    def evaluate_one(self, state: GroupState, index: PlacementIndex, slot: int) -> tuple[int, int]:
        del index
        counter = state.peers.counter
        return int(int(counter.column.of_slot[slot]) in counter.by_domain), 0

    def _touched_by_peer(self, change: Change) -> Touched:
        return change.slots or None
