"""VolumeRestrictions: one pod uses a ReadWriteOncePod claim; pods of a node do not share a disk that they write."""

from __future__ import annotations

import numpy as np

from bayplan.indexing.journal import Change, ChangeType
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ALL, At
from bayplan.model.reasons import Codes, DocumentedReason, Reason, StatusCode
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.rules.evictions import Amounts, CapacityConstraint, EvictionEffect, Preemptor
from bayplan.rules.remedies import Alternatives, move_pods
from bayplan.rules.rule import Failure, LiftedBy, Touched
from bayplan.rules.volume_claims import ClaimPart, ClaimRule, claim_part, has_claims, missing_claim

IN_USE = Reason(
    "claim-in-use",
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
    StatusCode.UNSCHEDULABLE,
)
DISK_CONFLICT = Reason("disk-conflict", "node(s) had no available disk", StatusCode.UNSCHEDULABLE)
ONE_POD = "ReadWriteOncePod"


class VolumeRestrictions(ClaimRule):
    name = "VolumeRestrictions"
    id = "volume-restrictions"
    extends = ("preFilter", "filter")
    filter_needs_pre_filter = True
    lifted_by = LiftedBy.PEERS
    reasons_by_code = (IN_USE, DISK_CONFLICT)
    reads_disks = True
    documented = (
        DocumentedReason(
            DISK_CONFLICT,
            means="Another pod on the node uses a disk that the pod names, and one of the two writes to it.",
            to_do="Use the disk through a PersistentVolumeClaim, mount it read-only in both pods, or use other nodes.",
        ),
        DocumentedReason(
            IN_USE,
            means="Another pod uses a claim that only one pod at a time can use.",
            to_do="Wait until the other pod ends, or use the access mode ReadWriteOnce or ReadWriteMany.",
        ),
    )

    def pre_filter(self, state: ClaimPart, index: PlacementIndex) -> Reason | None:
        return missing_claim(state, index)

    def reject(self, state: ClaimPart, index: PlacementIndex, at: At) -> Codes:
        codes = np.full(index.slots.capacity, 1 if self._conflicts(state, index) else 0, np.int64)
        for _, slots in _disk_conflicts(state, index):
            codes[list(slots)] = 2  # kube-scheduler looks at the disks first
        return codes[at]

    def touched(self, state: ClaimPart, change: Change, index: PlacementIndex) -> Touched:
        if change.workload is not None and has_claims(change.workload):
            return ALL
        return super().touched(state, change, index)

    def may_lift(self, state: ClaimPart, rejected: Workload, change: Change, index: PlacementIndex) -> bool:
        if change.workload is not None:
            if change.type is not ChangeType.WORKLOAD_REMOVED:
                return False
            theirs = change.workload.needs.claims.disks
            shares_disk = any(disk.conflicts_with(other) for disk in state.names.disks for other in theirs)
            return shares_disk or not set(state.claims()).isdisjoint(claim_part(change.workload).claims())
        return super().may_lift(state, rejected, change, index)

    def evidence(self, state: ClaimPart, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload
        at_disk = [
            Failure(self.id, DISK_CONFLICT.text, detail="the pod on the node uses the same disk", peers=(key,))
            for key, slots in _disk_conflicts(state, index)
            if slot in slots
        ]
        return at_disk + [
            Failure(self.id, IN_USE.text, detail=f"claim {claim} is ReadWriteOncePod", term=claim, peers=users)
            for claim, users in self._conflicts(state, index)
        ]

    def remedies(self, state: ClaimPart, workload: Workload, slot: int, index: PlacementIndex) -> list[Alternatives]:
        """A ReadWriteOncePod claim, and a disk on its node, is free once its pod has been moved."""
        users = {key for claim in state.named().claims() for key in index.claim_users.users(claim)}
        users |= {key for key, slots in _disk_conflicts(state, index) if slot in slots}
        return [move_pods(sorted(users), workload, index)]

    def eviction_effect(self, state: ClaimPart, codes: Codes | None, preemptor: Preemptor) -> EvictionEffect:
        if state.names.disks:
            return super().eviction_effect(state, codes, preemptor)
        index = preemptor.index
        claims = [claim for claim in dict.fromkeys(state.named().claims()) if serves_one_pod(claim, index)]
        return EvictionEffect(capacity_constraints=tuple(ClaimConstraint(claim, index) for claim in claims))

    def _conflicts(self, state: ClaimPart, index: PlacementIndex) -> list[tuple[str, tuple[str, ...]]]:
        """The ReadWriteOncePod claims that are in use, with their users."""
        found: list[tuple[str, tuple[str, ...]]] = []
        for claim in state.named().claims():
            users = index.claim_users.users(claim)
            if users and serves_one_pod(claim, index):
                found.append((claim, tuple(sorted(users))))
        return found


def _disk_conflicts(state: ClaimPart, index: PlacementIndex) -> list[tuple[WorkloadKey, tuple[int, ...]]]:
    """The pods that use a disk in conflict with the pod's own disks, and where they run."""
    found = {}
    for disk in state.names.disks:
        for key in index.claim_users.users_of_disk(disk):
            record = index.records[key]
            if any(disk.conflicts_with(other) for other in record.workload.needs.claims.disks):
                found[key] = record.slots
    return sorted(found.items())


class ClaimConstraint(CapacityConstraint):
    """A ReadWriteOncePod claim has no other user, on any target."""

    def __init__(self, claim: str, index: PlacementIndex) -> None:
        self.claim, self.index = claim, index
        n_users = len(index.claim_users.users(claim))
        super().__init__(1, np.full(index.slots.capacity, -n_users, np.int64))

    def amounts(self) -> Amounts:
        taken = np.zeros(len(self.index.pod_table), np.int64)
        taken[[self.index.records[key].row for key in self.index.claim_users.users(self.claim)]] = 1
        return taken

    def amount_of(self, nominated: Workload, slot: int) -> int:
        del slot
        return int(self.claim in (f"{nominated.namespace}/{name}" for name in nominated.needs.claims.named))


def serves_one_pod(claim: str, index: PlacementIndex) -> bool:
    """Whether no second pod may use the claim, by `namespace/name`."""
    known = index.storage.claims.get(claim)
    return known is not None and ONE_POD in known.access_modes
