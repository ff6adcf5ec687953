"""VolumeBinding: bound volumes tie a pod to nodes, waiting claims to nodes where a volume can be had."""

from __future__ import annotations

import numpy as np

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import At
from bayplan.model.decisions import Codes, Mask, Reason, Status
from bayplan.model.node_selectors import NodeTerm
from bayplan.model.volumes import Claim, Volume
from bayplan.model.workloads import Workload
from bayplan.rules import volume_supply
from bayplan.rules.claims import ClaimRule, Part, missing_claim, part_of
from bayplan.rules.rule import Failure

UNBOUND = Reason("claim-unbound", "pod has unbound immediate PersistentVolumeClaims", Status.UNRESOLVABLE)
ELSEWHERE = Reason("volume-elsewhere", "node(s) didn't match PersistentVolume's node affinity", Status.UNRESOLVABLE)
NO_VOLUME = Reason("volume-none", "node(s) didn't find available persistent volumes to bind", Status.UNRESOLVABLE)
GONE = Reason(
    "volume-gone",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
    Status.UNRESOLVABLE,
)
NO_SPACE = Reason("volume-space", "node(s) did not have enough free storage", Status.UNRESOLVABLE)
BITS = ((1, ELSEWHERE), (2, NO_VOLUME), (4, GONE), (8, NO_SPACE))
WAITS = "WaitForFirstConsumer"


class VolumeBinding(ClaimRule):
    name = "VolumeBinding"
    id = "volume-binding"

    def refuse(self, plan: Part, index: PlacementIndex) -> Reason | None:
        missing = missing_claim(plan, index)
        if missing is not None:
            return missing
        for claim in plan.known(index):
            if claim.lost:
                text = f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{claim.volume}"'
                return Reason("claim-lost", text, Status.UNRESOLVABLE)
            if claim.terminating:
                text = f'persistentvolumeclaim "{claim.name}" is being deleted'
                return Reason("claim-deleted", text, Status.UNRESOLVABLE)
        immediate = any(not claim.bound and not _waits(claim, index) for claim in plan.known(index))
        return UNBOUND if immediate else None

    def reject(self, plan: Part, index: PlacementIndex, at: At) -> Codes:
        """Bits: a bound volume is elsewhere, a waiting claim finds none, a bound volume is gone."""
        codes = np.zeros(index.slots.capacity, np.int64)
        waiting = []
        for claim in plan.known(index):
            if not claim.bound:
                waiting.append(claim)
                continue
            volume = index.storage.volumes.get(claim.volume)
            if volume is None:
                codes |= 4
            elif volume.required is not None:
                codes |= np.where(_fits(volume, index), 0, 1)
        if waiting:
            could, spacious = volume_supply.can_bind(waiting, index)
            codes |= np.where(could, 0, 2) | np.where(could & ~spacious, 8, 0)
        # A volume that is gone is the whole answer: nothing else is looked at.
        return np.where(codes & 4, 4, codes)[at]

    def reasons(self, plan: Part, code: int) -> tuple[Reason, ...]:
        del plan
        return tuple(reason for bit, reason in BITS if code & bit)

    def evidence(self, plan: Part, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload
        code = int(self.reject(plan, index, np.array([slot]))[0])
        failures = []
        for claim in plan.known(index):
            volume = index.storage.volumes.get(claim.volume)
            if code & 1 and volume is not None and volume.required is not None and not _fits(volume, index)[slot]:
                detail = f"claim {claim.key} is bound to {volume.name}, which wants {_either(volume.required)}"
                failures.append(Failure(self.id, ELSEWHERE.text, detail=detail, term=claim.key))
            if code & 2 and not claim.bound:
                detail = f"no volume for claim {claim.key} of class {claim.storage_class} can be had here"
                failures.append(Failure(self.id, NO_VOLUME.text, detail=detail, term=claim.key))
            if code & 4 and claim.bound and volume is None:
                detail = f"claim {claim.key} is bound to {claim.volume}, which does not exist"
                failures.append(Failure(self.id, GONE.text, detail=detail, term=claim.key))
        return failures


def _waits(claim: Claim, index: PlacementIndex) -> bool:
    """Whether the claim is bound only once its pod has a node; one that names a volume is not."""
    storage_class = index.storage.classes.get(claim.storage_class)
    return not claim.volume and storage_class is not None and storage_class.binding_mode == WAITS


def _fits(volume: Volume, index: PlacementIndex) -> Mask:
    mask = np.zeros(index.slots.capacity, np.bool_)
    mask[volume_supply.reach(volume, index)] = True
    return mask


def reaches(volume: Volume, slot: int, index: PlacementIndex) -> bool:
    """Whether the volume can be reached from this node."""
    return bool(_fits(volume, index)[slot])


def volumes_for(workload: Workload, slot: int, index: PlacementIndex) -> list[tuple[Claim, str]]:
    """Each waiting claim of the workload with the volume it gets on this node, "" for one that is yet to be made."""
    waiting = [claim for claim in part_of(workload).known(index) if not claim.bound]
    return [
        (claim, volumes[number].name if (number := int(chosen[slot])) >= 0 else "")
        for claim, volumes, chosen in volume_supply.chosen(waiting, index)
    ]


def _either(terms: tuple[NodeTerm, ...]) -> str:
    return " or ".join(str(term) for term in terms)
