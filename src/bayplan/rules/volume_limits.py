"""
NodeVolumeLimits: a storage driver attaches only so many volumes to a node.

A volume that several pods of a node use is attached once. One that is still attached although no pod of the node uses
it any more counts too, and as in kube-scheduler it counts again for a pod that requests it.
"""

from __future__ import annotations

import numpy as np

from bayplan.indexing.journal import Change, ChangeType
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ALL, At
from bayplan.mapping.disks import DRIVER_OF_PROVISIONER
from bayplan.model.kubernetes_versions import V1_37
from bayplan.model.reasons import Codes, DocumentedReason, Mask, Reason, StatusCode
from bayplan.model.volumes import Attachment, VolumeHandle
from bayplan.model.workloads import Workload
from bayplan.rules.arguments import Arguments
from bayplan.rules.evictions import EvictionEffect, Preemptor
from bayplan.rules.rule import Failure, LiftedBy, Touched
from bayplan.rules.volume_claims import ClaimPart, ClaimRule, claim_part, has_claims, is_affected

TOO_MANY = Reason("volume-limits", "node(s) exceed max volume count", StatusCode.UNSCHEDULABLE)

DRIVER_MISSING = Reason("driver-missing", "<driver> CSI driver is not installed on the node", StatusCode.UNSCHEDULABLE)

Handles = dict[str, set[VolumeHandle]]  # by driver


class VolumeLimits(ClaimRule):
    name = "NodeVolumeLimits"
    id = "volume-limits"
    extends = ("preFilter", "filter")
    lifted_by = LiftedBy.NEIGHBOURS
    reads_disks = True
    documented = (
        DocumentedReason(
            DRIVER_MISSING,
            means=(
                "A volume of the pod needs a CSI driver that does not run on the node, and the CSIDriver object says "
                "that pods wait for it (preventPodSchedulingIfMissing). Since Kubernetes 1.37."
            ),
            to_do="Install the driver on the node, or wait until its daemon has registered there (CSINode).",
        ),
        DocumentedReason(
            TOO_MANY,
            means=(
                "With the pod's volumes, the node would exceed the number of volumes that the storage driver can "
                "attach to it (CSINode, allocatable.count)."
            ),
            to_do=(
                "Add nodes, move pods with volumes of that driver to other nodes, or use one volume for several "
                "directories."
            ),
        ),
    )

    def __init__(self, arguments: Arguments | None = None) -> None:
        super().__init__(arguments)
        self._drivers: list[str] = []  # that were missing somewhere, in the order of their codes

    def reject(self, state: ClaimPart, index: PlacementIndex, at: At) -> Codes:
        """1 where volumes are too many; from 2 on, where a driver is missing: the code of that driver."""
        codes = np.zeros(index.slots.capacity, np.int64)
        handles = _handles(state, index)
        for driver in handles:
            exceeded = _exceeded(driver, handles[driver], index)
            if exceeded is not None:
                codes |= exceeded
        for driver in sorted(handles, reverse=True):
            if _is_required(driver, index):
                codes[_lacking(driver, state, index)] = self._code_of(driver)
        return codes[at]

    def _code_of(self, driver: str) -> int:
        if driver not in self._drivers:
            self._drivers.append(driver)
        return 2 + self._drivers.index(driver)

    def reasons(self, state: ClaimPart, code: int) -> tuple[Reason, ...]:
        del state
        return (TOO_MANY,) if code == 1 else (DRIVER_MISSING.filled(driver=self._drivers[code - 2]),)

    def touched(self, state: ClaimPart, change: Change, index: PlacementIndex) -> Touched:
        if change.workload is not None and has_claims(change.workload):
            return change.slots
        if change.type is ChangeType.STORAGE_CHANGED:
            return self._touched_by_storage(state, change, index)
        return super().touched(state, change, index)

    def may_lift(self, state: ClaimPart, rejected: Workload, change: Change, index: PlacementIndex) -> bool:
        """A workload that is added lifts it where it has one of the volumes attached: that counts once."""
        if change.type is not ChangeType.WORKLOAD_ADDED or change.workload is None:
            return super().may_lift(state, rejected, change, index)
        needed = _attached_for(state, index)
        return bool(needed) and not needed.isdisjoint(_attached_for(claim_part(change.workload), index))

    def evidence(self, state: ClaimPart, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload
        found = []
        for driver, handles in _handles(state, index).items():
            if _is_required(driver, index) and _lacking(driver, state, index)[slot]:
                missing = DRIVER_MISSING.filled(driver=driver).text
                found.append(Failure(self.id, missing, detail=f"the CSINode does not list {driver}", term=driver))
            exceeded = _exceeded(driver, handles, index)
            if exceeded is not None and exceeded[slot]:
                limits, counts = index.attachments.limits(driver), index.attachments.counts(driver)
                assert limits is not None, "without a limit nothing is exceeded"
                detail = f"{driver} attaches {limits[slot]} volumes at most, and {counts[slot]} are there"
                found.append(Failure(self.id, TOO_MANY.text, detail=detail, term=driver))
        return found

    def eviction_effect(self, state: ClaimPart, codes: Codes | None, preemptor: Preemptor) -> EvictionEffect:
        """Evictions may help where volumes are too many, and make it worse only where they share volumes."""
        assert codes is not None, "this rule always has codes"
        changes = codes != 0
        changes[list(preemptor.nominated_pods)] = True
        changes[_slots_sharing_volumes(state, preemptor.index)] = True
        return EvictionEffect(codes, needs_dry_run=changes)

    def _touched_by_storage(self, state: ClaimPart, change: Change, index: PlacementIndex) -> Touched:
        if is_affected(state, change, index):
            return ALL
        match change.table:
            case "attach_limits":
                names = {change.name}
            case "attachments":
                names = {each.node for each in (change.before, change.after) if isinstance(each, Attachment)}
            case "claims" | "volumes" | "classes":  # pods on the node may now use other volumes than before
                return ALL
            case "required_drivers":
                return ALL
            case _:
                return None
        return tuple(index.slots.by_name[name] for name in names if name in index.slots.by_name)


def _is_required(driver: str, index: PlacementIndex) -> bool:
    return index.semantics.kubernetes_version >= V1_37 and driver in index.storage.required_drivers


def _lacking(driver: str, part: ClaimPart, index: PlacementIndex) -> Mask:
    """Where the driver is not installed; without a CSINode, disks that a driver took over do not need it."""
    lacking = index.slots.alive.copy()
    by_name = index.slots.by_name
    if not any(handle.driver == driver for handle in _handles(part, index, migrated=False).get(driver, ())):
        lacking[:] = False
        lacking[[by_name[name] for name in index.storage.attach_limits if name in by_name]] = True
    lacking[
        [by_name[name] for name, has in index.storage.attach_limits.items() if driver in has and name in by_name]
    ] = False
    return lacking


def _slots_sharing_volumes(state: ClaimPart, index: PlacementIndex) -> list[int]:
    """The targets with a limit where other pods use some of these volumes: evicting them may leave fewer attached."""
    handles = (handle for some in _handles(state, index).values() for handle in some)
    return [slot for handle in handles for slot in index.attachments.users(handle)]


def _exceeded(driver: str, handles: set[VolumeHandle], index: PlacementIndex) -> Mask | None:
    """Where attaching these would exceed the driver's limit, shape (capacity,); None if it has no limit anywhere."""
    limits = index.attachments.limits(driver)
    if limits is None:
        return None
    new = np.full(index.slots.capacity, len(handles), np.int64)
    for handle in handles:
        for slot in index.attachments.users(handle):
            new[slot] -= 1
    exceeded: Mask = (new > 0) & (index.attachments.counts(driver) + new > limits)
    return exceeded


def _attached_for(part: ClaimPart, index: PlacementIndex) -> set[VolumeHandle]:
    """The volumes that are attached for the claims, of any driver."""
    return {handle for handles in _handles(part, index).values() for handle in handles}


def _handles(part: ClaimPart, index: PlacementIndex, *, migrated: bool = True) -> Handles:
    """The volumes that would be attached for the claims and disks; without `migrated` those that name their driver."""
    handles = [index.storage.handle_of(one) for one in part.claims() if migrated or not _is_migrated(one, index)]
    if migrated:
        handles += [disk.handle for disk in part.names.disks]
    found: Handles = {}
    for handle in handles:
        if handle is not None:
            found.setdefault(handle.driver, set()).add(handle)
    return found


def _is_migrated(key: str, index: PlacementIndex) -> bool:
    claim = index.storage.claims.get(key)
    volume = index.storage.volumes.get(claim.volume) if claim is not None else None
    if volume is not None:
        return volume.migrated
    storage_class = index.storage.classes.get(claim.storage_class) if claim is not None else None
    return storage_class is not None and storage_class.provisioner in DRIVER_OF_PROVISIONER
