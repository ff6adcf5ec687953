"""What the volume rules share: the PersistentVolumeClaims that a workload names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from bayplan.indexing.journal import Change, ChangeType
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ALL
from bayplan.model.reasons import Reason, StatusCode
from bayplan.model.volumes import AvailableSpace, Claim, Volume
from bayplan.model.workloads import Claims, Workload
from bayplan.rules.rule import PartRule, Touched

CLAIM_MISSING = Reason("claim-missing", 'persistentvolumeclaim "<name>" not found', StatusCode.UNRESOLVABLE)
CLAIM_AWAITED = Reason(
    "claim-missing",
    'waiting for ephemeral volume controller to create the persistentvolumeclaim "<name>"',
    StatusCode.UNRESOLVABLE,
)


class ClaimPart(msgspec.Struct, frozen=True):
    namespace: str
    names: Claims

    def claims(self) -> Iterator[str]:
        """The claims by `namespace/name`."""
        return (f"{self.namespace}/{name}" for name in self.names.names)

    def known(self, index: PlacementIndex) -> list[Claim]:
        """The claims as objects, without those that do not exist."""
        return [index.storage.claims[claim] for claim in self.claims() if claim in index.storage.claims]

    def named(self) -> ClaimPart:
        """The claims that the pod names itself, without those of its ephemeral volumes."""
        return ClaimPart(self.namespace, Claims(self.names.named)) if self.names.ephemeral else self


def claim_part(workload: Workload) -> ClaimPart:
    return ClaimPart(workload.namespace, workload.needs.claims)


def has_claims(workload: Workload) -> bool:
    """Whether the workload has claims, or disks that it names without a claim."""
    return bool(workload.needs.claims)


def missing_claim(part: ClaimPart, index: PlacementIndex) -> Reason | None:
    """The reason to reject every node because a claim that the pod names does not exist, if one does not."""
    for name in part.names.named:
        if f"{part.namespace}/{name}" not in index.storage.claims:
            return CLAIM_MISSING.filled(name=name)
    return None


class ClaimRule(PartRule[ClaimPart]):
    """A rule that applies to workloads with claims, and to disks if it reads them; it depends on storage objects."""

    reads_disks: ClassVar[bool] = False

    def part(self, workload: Workload, index: PlacementIndex) -> ClaimPart | None:
        del index
        claims = workload.needs.claims
        return claim_part(workload) if claims.names or (self.reads_disks and claims.disks) else None

    def touched(self, state: ClaimPart, change: Change, index: PlacementIndex) -> Touched:
        if change.type is ChangeType.STORAGE_CHANGED:
            return ALL if is_affected(state, change, index) else None
        return super().touched(state, change, index)


def is_affected(part: ClaimPart, change: Change, index: PlacementIndex) -> bool:
    """Whether a storage change may concern these claims: their state, or the volumes that they can get."""
    if change.table == "claims":
        return change.name in part.claims()
    known = part.known(index)
    match change.table:
        case "volumes":
            classes = {each.storage_class for each in (change.before, change.after) if isinstance(each, Volume)}
            return any(claim.volume == change.name or claim.storage_class in classes for claim in known)
        case "classes":
            return any(claim.storage_class == change.name for claim in known)
        case "space":
            spaces = (each for each in (change.before, change.after) if isinstance(each, AvailableSpace))
            return any(claim.storage_class == space.storage_class for space in spaces for claim in known)
        case "metering_drivers" | "required_drivers":
            return bool(known)
    return False
