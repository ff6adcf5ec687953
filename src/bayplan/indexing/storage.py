"""Volumes, claims and storage classes by name, and what of them belongs together. Knows nothing of who uses them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Any

from bayplan.model.volumes import Attachment, AvailableSpace, Claim, Handle, StorageClass, Volume

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

    def handle_of(self, key: str) -> Handle | None:
        """What would be attached for a claim; a volume that is yet to be made goes by the claim's name."""
        claim = self.claims.get(key)
        if claim is None:
            return None
        volume = self.volumes.get(claim.volume)
        if volume is not None:
            return Handle(volume.driver, volume.handle) if volume.driver else None
        storage_class = self.classes.get(claim.storage_class)
        if storage_class is None or not storage_class.provisioner:
            return None
        return Handle(storage_class.provisioner, key)

    def attached_handle(self, name: str) -> Handle | None:
        """What a VolumeAttachment says is attached; None if that is not known or no volume of a driver."""
        attachment = self.attachments.get(name)
        volume = self.volumes.get(attachment.volume) if attachment is not None else None
        if attachment is None or volume is None or not volume.driver or not attachment.driver:
            return None
        return Handle(attachment.driver, volume.handle)
