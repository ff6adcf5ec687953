"""Volumes, claims and storage classes by name, and what of them belongs together. Knows nothing of who uses them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.slots import TargetSlots, grown
from bayplan.model.volumes import Attachment, AvailableSpace, Claim, StorageClass, Volume, VolumeHandle
from bayplan.model.workloads import Workload

Groups = defaultdict[str, set[str]]


class Storage:
    """Claims by `namespace/name`, volumes and classes by name. `put` is the one way to change any of it."""

    def __init__(self) -> None:
        self.claims: dict[str, Claim] = {}
        self.volumes: dict[str, Volume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.attach_limits: dict[str, dict[str, int]] = {}  # node → driver → volumes at most
        self.attachments: dict[str, Attachment] = {}
        self.metering_drivers: dict[str, bool] = {}  # those that tell what space they have left
        self.space: dict[str, AvailableSpace] = {}
        self._claims_by_volume: Groups = defaultdict(set)
        self._reserved: Groups = defaultdict(set)  # claim → volumes that name it
        self._unclaimed: Groups = defaultdict(set)  # class → volumes that name no claim
        self._space_by_class: Groups = defaultdict(set)
        self._attachments_by_node: Groups = defaultdict(set)
        self._attachments_by_volume: Groups = defaultdict(set)

    @property
    def tables(self) -> dict[str, dict[str, Any]]:
        return {
            "claims": self.claims,
            "volumes": self.volumes,
            "classes": self.classes,
            "attach_limits": self.attach_limits,
            "attachments": self.attachments,
            "metering_drivers": self.metering_drivers,
            "space": self.space,
        }

    def put(self, table: str, name: str, value: object) -> object:
        """Put something into a table, or take it out with None; returns what was there."""
        stored = self.tables[table]
        before = stored.pop(name, None)
        for groups, key in self._groups(table, before):
            groups[key].discard(name)
            if not groups[key]:
                del groups[key]
        if value is not None:
            stored[name] = value
        for groups, key in self._groups(table, value):
            groups[key].add(name)
        return before

    def _groups(self, table: str, value: Any) -> tuple[tuple[Groups, str], ...]:
        """The groups that something belongs to."""
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

    # What belongs together

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
        """What would be attached for a claim; a volume that is yet to be made goes by the claim's name."""
        claim = self.claims.get(key)
        if claim is None:
            return None
        volume = self.volumes.get(claim.volume)
        if volume is not None:
            return VolumeHandle(volume.driver, volume.handle) if volume.driver else None
        storage_class = self.classes.get(claim.storage_class)
        if storage_class is None or not storage_class.provisioner:
            return None
        return VolumeHandle(storage_class.provisioner, key)

    def attached_handle(self, name: str) -> VolumeHandle | None:
        """What a VolumeAttachment says is attached; None if that is not known or no volume of a driver."""
        attachment = self.attachments.get(name)
        volume = self.volumes.get(attachment.volume) if attachment is not None else None
        if attachment is None or volume is None or not volume.driver or not attachment.driver:
            return None
        return VolumeHandle(attachment.driver, volume.handle)


# RF merged from indexing.attachments: Which volumes are attached to which target, counted by driver, and how many a
# driver can attach there. A volume is attached where placed workloads claim it and where a VolumeAttachment says so.
# Kept up to date change by change, so that asking costs the same however many volumes there are. Knows nothing of who
# wants more of them.


Amounts = NDArray[np.int64]
Uses = defaultdict[VolumeHandle, Counter[int]]  # how often a volume is there, by slot
UNLIMITED = 1 << 40


class Attachments:
    """Claims are by `namespace/name`; what is not in use by a placed workload is nowhere here."""

    def __init__(self, storage: Storage, slots: TargetSlots) -> None:
        self._storage, self._slots = storage, slots
        self._claims: dict[str, tuple[VolumeHandle | None, Counter[int]]] = {}  # what it stands for, its users by slot
        self._used: Uses = defaultdict(Counter)  # by workloads
        self._told: Uses = defaultdict(Counter)  # by VolumeAttachments
        self._telling: dict[str, tuple[VolumeHandle, int]] = {}  # what each VolumeAttachment counts as
        self._counts: dict[str, Amounts] = {}
        self._limits: dict[str, Amounts] = {}
        for node in storage.attach_limits:
            self._limit(node)
        for name in storage.attachments:
            self._tell(name)

    # Reading

    def counts(self, driver: str) -> Amounts:
        """How many volumes of the driver are attached to each target, shape (capacity,)."""
        found = self._counts.get(driver)
        return np.zeros(self._slots.capacity, np.int64) if found is None else found

    def limits(self, driver: str) -> Amounts | None:
        """How many it can attach to each target, shape (capacity,); None if no target says."""
        return self._limits.get(driver)

    def users(self, handle: VolumeHandle) -> Mapping[int, int]:
        """The slots where workloads use the volume."""
        return self._used.get(handle, {})

    # Changing

    def add(self, workload: Workload, slots: tuple[int, ...], times: int) -> None:
        """Count the claims of a workload that came to the slots, or (`times` is -1) went."""
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

    def stored(self, table: str, name: str) -> None:
        """Something in storage has changed."""
        match table:
            case "claims":
                self._recount([name])
            case "volumes":
                self._recount(self._storage.claims_bound_to(name))
                for attachment in self._storage.attachments_of(name):
                    self._tell(attachment)
            case "classes":
                self._recount(self._claims)
            case "attach_limits":
                self._limit(name)
            case "attachments":
                self._tell(name)

    def target_came_or_went(self, name: str, slot: int) -> None:
        """Asked once the slot has its name, or no longer has it; nobody is there."""
        for limits in self._limits.values():
            limits[slot] = UNLIMITED
        if name in self._slots.by_name:
            self._limit(name)
        for attachment in self._storage.attachments_on(name):
            self._tell(attachment)

    def grow(self, capacity: int) -> None:
        for driver, counts in self._counts.items():
            self._counts[driver] = grown(counts, capacity)
        for driver, limits in self._limits.items():
            self._limits[driver] = np.full(capacity, UNLIMITED)
            self._limits[driver][: len(limits)] = limits

    def _recount(self, claims: Iterable[str]) -> None:
        """Let the users of the claims count for what these stand for now."""
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

    def _tell(self, name: str) -> None:
        """Let a VolumeAttachment count for what it says now."""
        before = self._telling.pop(name, None)
        if before is not None:
            self._mark(*before, -1, self._told, self._used)
        attachment = self._storage.attachments.get(name)
        slot = self._slots.by_name.get(attachment.node) if attachment is not None else None
        handle = self._storage.attached_handle(name)
        if handle is not None and slot is not None:
            self._mark(handle, slot, 1, self._told, self._used)
            self._telling[name] = handle, slot

    def _limit(self, node: str) -> None:
        slot = self._slots.by_name.get(node)
        if slot is None:
            return
        limits = self._storage.attach_limits.get(node) or {}
        for driver in limits.keys() - self._limits.keys():
            self._limits[driver] = np.full(self._slots.capacity, UNLIMITED)
        for driver, most in self._limits.items():
            most[slot] = limits.get(driver, UNLIMITED)

    def _use(self, handle: VolumeHandle | None, slot: int, times: int) -> None:
        if handle is not None:
            self._mark(handle, slot, times, self._used, self._told)

    def _mark(self, handle: VolumeHandle, slot: int, times: int, here: Uses, there: Uses) -> None:
        """Note in one book that the volume is on the slot so many times more; it counts once, in whichever book."""
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
