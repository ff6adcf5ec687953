"""
Volumes, claims and storage classes by name, which of them belong together, and which volumes are attached where.

Every change is counted when it is made, so that a query costs the same whatever the number of volumes. Knows nothing of
which pods need volumes next.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.slots import TargetSlots, grown
from bayplan.mapping import disks
from bayplan.model.volumes import Attachment, AvailableSpace, Claim, StorageClass, Volume, VolumeHandle
from bayplan.model.workloads import Workload

Groups = dict[str, set[str]]


class Storage(msgspec.Struct):
    """Claims by `namespace/name`, volumes and classes by name. Only `put` changes any of it."""

    claims: dict[str, Claim] = {}
    volumes: dict[str, Volume] = {}
    classes: dict[str, StorageClass] = {}
    attach_limits: dict[str, dict[str, int | None]] = {}  # node → driver → the largest number of volumes, if limited
    attachments: dict[str, Attachment] = {}
    metering_drivers: dict[str, bool] = {}  # those that report their available space
    required_drivers: dict[str, bool] = {}  # those without which a node gets none of their pods, since 1.37
    space: dict[str, AvailableSpace] = {}
    _claims_by_volume: Groups = {}
    _reserved: Groups = {}  # claim → volumes that name it
    _unclaimed: Groups = {}  # class → volumes that name no claim
    _space_by_class: Groups = {}
    _attachments_by_node: Groups = {}
    _attachments_by_volume: Groups = {}

    @property
    def tables(self) -> dict[str, dict[str, Any]]:
        return {
            "claims": self.claims,
            "volumes": self.volumes,
            "classes": self.classes,
            "attach_limits": self.attach_limits,
            "attachments": self.attachments,
            "metering_drivers": self.metering_drivers,
            "required_drivers": self.required_drivers,
            "space": self.space,
        }

    def put(self, table: str, name: str, value: object) -> object:
        """Set an entry of a table, or remove it with None; returns the previous entry."""
        stored = self.tables[table]
        before = stored.pop(name, None)
        for groups, key in self._groups(table, before):
            groups[key].discard(name)
            if not groups[key]:
                del groups[key]
        if value is not None:
            stored[name] = value
        for groups, key in self._groups(table, value):
            groups.setdefault(key, set()).add(name)
        return before

    def _groups(self, table: str, value: Any) -> tuple[tuple[Groups, str], ...]:
        """The groups that an entry of a table belongs to."""
        if value is None:
            return ()
        match table:
            case "claims":
                return ((self._claims_by_volume, value.volume),) if value.volume else ()
            case "volumes":
                return ((self._reserved, value.claim) if value.claim else (self._unclaimed, value.storage_class),)
            case "space":
                return ((self._space_by_class, value.storage_class),)
            case "attachments":
                return (self._attachments_by_node, value.node), (self._attachments_by_volume, value.volume)
        return ()

    # Queries

    def reserved_for(self, claim: Claim) -> Iterator[Volume]:
        """The volumes of the claim's class that name it, in the order of their names."""
        volumes = (self.volumes[name] for name in sorted(self._reserved.get(claim.key, ())))
        return (volume for volume in volumes if volume.storage_class == claim.storage_class)

    def unclaimed(self, storage_class: str) -> Iterator[Volume]:
        """The volumes of a class that name no claim, in the order of their names."""
        return (self.volumes[name] for name in sorted(self._unclaimed.get(storage_class, ())))

    def space_of_class(self, storage_class: str) -> list[AvailableSpace]:
        return [self.space[name] for name in self._space_by_class.get(storage_class, ())]

    def claims_bound_to(self, volume: str) -> Collection[str]:
        return self._claims_by_volume.get(volume, ())

    def attachments_on(self, node: str) -> Collection[str]:
        return self._attachments_by_node.get(node, ())

    def attachments_of(self, volume: str) -> Collection[str]:
        return self._attachments_by_volume.get(volume, ())

    def handle_of(self, key: str) -> VolumeHandle | None:
        """The volume attached for a claim; one that is not provisioned yet has the name of the claim."""
        claim = self.claims.get(key)
        if claim is None:
            return None
        volume = self.volumes.get(claim.volume)
        if volume is not None:
            return VolumeHandle(volume.driver, volume.handle) if volume.driver and volume.handle else None
        storage_class = self.classes.get(claim.storage_class)
        driver = disks.driver_of(storage_class.provisioner) if storage_class is not None else ""
        return VolumeHandle(driver, key) if driver else None

    def attached_handle(self, name: str) -> VolumeHandle | None:
        """The volume of a VolumeAttachment; None if it is unknown or not the volume of a CSI driver."""
        attachment = self.attachments.get(name)
        volume = self.volumes.get(attachment.volume) if attachment is not None else None
        if attachment is None or volume is None or not volume.driver or not attachment.driver or volume.migrated:
            return None
        return VolumeHandle(attachment.driver, volume.handle)


Amounts = NDArray[np.int64]
Uses = defaultdict[VolumeHandle, Counter[int]]  # how often a volume is used, by slot
UNLIMITED = 1 << 40


class Attachments:
    """
    The volumes attached to each target, counted by driver, and the number that a driver can attach there.

    A volume is attached where a placed workload claims it and where a VolumeAttachment names it. Claims are by
    `namespace/name`, and only those of placed workloads are here.
    """

    def __init__(self, storage: Storage, slots: TargetSlots) -> None:
        self._storage, self._slots = storage, slots
        self._claims: dict[str, tuple[VolumeHandle | None, Counter[int]]] = {}  # its volume, its users by slot
        self._used: Uses = defaultdict(Counter)  # by workloads
        self._attached: Uses = defaultdict(Counter)  # by VolumeAttachments
        self._counted_attachments: dict[str, tuple[VolumeHandle, int]] = {}  # what each VolumeAttachment counts for
        self._counts: dict[str, Amounts] = {}
        self._limits: dict[str, Amounts] = {}
        for node in storage.attach_limits:
            self._set_limits(node)
        for name in storage.attachments:
            self._count_attachment(name)

    # Queries

    def counts(self, driver: str) -> Amounts:
        """How many volumes of the driver are attached to each target, shape (capacity,)."""
        found = self._counts.get(driver)
        return np.zeros(self._slots.capacity, np.int64) if found is None else found

    def limits(self, driver: str) -> Amounts | None:
        """How many volumes of the driver each target can have, shape (capacity,); None if no target has a limit."""
        return self._limits.get(driver)

    def users(self, handle: VolumeHandle) -> Mapping[int, int]:
        """The slots where workloads use the volume."""
        return self._used.get(handle, {})

    # Changes

    def add(self, workload: Workload, slots: tuple[int, ...], times: int) -> None:
        """Count the claims of a workload that is added to the slots, or (`times` is -1) removed."""
        for name in workload.needs.claims.names:
            claim = f"{workload.namespace}/{name}"
            handle, users = self._claims.get(claim) or (self._storage.handle_of(claim), Counter())
            for slot in slots:
                self._use(handle, slot, times)
                users[slot] += times
                if not users[slot]:
                    del users[slot]
            if users:
                self._claims[claim] = handle, users
            else:
                self._claims.pop(claim, None)
        for disk in workload.needs.claims.disks:
            for slot in slots:
                self._use(disk.handle, slot, times)

    def storage_changed(self, table: str, name: str) -> None:
        """Count again what depends on an entry of the storage tables."""
        match table:
            case "claims":
                self._recount([name])
            case "volumes":
                self._recount(self._storage.claims_bound_to(name))
                for attachment in self._storage.attachments_of(name):
                    self._count_attachment(attachment)
            case "classes":
                self._recount(self._claims)
            case "attach_limits":
                self._set_limits(name)
            case "attachments":
                self._count_attachment(name)

    def target_changed(self, name: str, slot: int) -> None:
        """Called after a target is added to, or removed from, a slot without workloads."""
        for limits in self._limits.values():
            limits[slot] = UNLIMITED
        if name in self._slots.by_name:
            self._set_limits(name)
        for attachment in self._storage.attachments_on(name):
            self._count_attachment(attachment)

    def grow(self, capacity: int) -> None:
        for driver, counts in self._counts.items():
            self._counts[driver] = grown(counts, capacity)
        for driver, limits in self._limits.items():
            self._limits[driver] = np.full(capacity, UNLIMITED)
            self._limits[driver][: len(limits)] = limits

    def _recount(self, claims: Iterable[str]) -> None:
        """Count the users of the claims for the volumes that these have now."""
        for claim in list(claims):
            if claim not in self._claims:
                continue
            before, users = self._claims[claim]
            after = self._storage.handle_of(claim)
            if before != after:
                for slot, times in users.items():
                    self._use(before, slot, -times)
                    self._use(after, slot, times)
                self._claims[claim] = after, users

    def _count_attachment(self, name: str) -> None:
        """Count a VolumeAttachment for the volume and the node that it names now."""
        before = self._counted_attachments.pop(name, None)
        if before is not None:
            self._add_uses(*before, -1, self._attached, self._used)
        attachment = self._storage.attachments.get(name)
        slot = self._slots.by_name.get(attachment.node) if attachment is not None else None
        handle = self._storage.attached_handle(name)
        if handle is not None and slot is not None:
            self._add_uses(handle, slot, 1, self._attached, self._used)
            self._counted_attachments[name] = handle, slot

    def _set_limits(self, node: str) -> None:
        slot = self._slots.by_name.get(node)
        if slot is None:
            return
        found = self._storage.attach_limits.get(node) or {}
        limits = {driver: most for driver, most in found.items() if most is not None}
        for driver in limits.keys() - self._limits.keys():
            self._limits[driver] = np.full(self._slots.capacity, UNLIMITED)
        for driver, most in self._limits.items():
            most[slot] = limits.get(driver, UNLIMITED)

    def _use(self, handle: VolumeHandle | None, slot: int, times: int) -> None:
        if handle is not None:
            self._add_uses(handle, slot, times, self._used, self._attached)

    def _add_uses(self, handle: VolumeHandle, slot: int, times: int, here: Uses, there: Uses) -> None:
        """Add to the uses of a volume on a slot; a volume with uses `here` or `there` is attached once."""
        uses = here[handle]
        before = uses[slot]
        uses[slot] += times
        if not before and slot not in there.get(handle, ()):
            self._count(handle, slot, 1)
        if not uses[slot]:
            del uses[slot]
            if not uses:
                del here[handle]
            if slot not in there.get(handle, ()):
                self._count(handle, slot, -1)

    def _count(self, handle: VolumeHandle, slot: int, sign: int) -> None:
        counts = self._counts.get(handle.driver)
        if counts is None:
            counts = self._counts[handle.driver] = np.zeros(self._slots.capacity, np.int64)
        counts[slot] += sign
