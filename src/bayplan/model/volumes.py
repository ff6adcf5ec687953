"""Volumes, claims and storage classes, reduced to what ties a pod to nodes."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from bayplan.model.labels import Selector
from bayplan.model.node_selectors import NodeTerm


class VolumeHandle(NamedTuple):
    """What a driver knows a volume by, whoever claims it."""

    driver: str
    name: str


class Volume(msgspec.Struct, frozen=True, kw_only=True):
    """A PersistentVolume; `claim` is who it is reserved for, `handle` what its `driver` knows it by."""

    name: str
    labels: dict[str, str] = {}
    storage_class: str = ""
    capacity: int = 0
    access_modes: tuple[str, ...] = ()
    volume_mode: str = "Filesystem"
    required: tuple[NodeTerm, ...] | None = None
    claim: str = ""
    claim_uid: str = ""
    phase: str = ""
    terminating: bool = False
    driver: str = ""
    handle: str = ""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A PersistentVolumeClaim; `bound` once the binder has finished with it."""

    key: str
    uid: str = ""
    volume: str = ""
    bound: bool = False
    lost: bool = False
    terminating: bool = False
    storage_class: str = ""
    selected_node: str = ""
    requested: int = 0
    access_modes: tuple[str, ...] = ()
    volume_mode: str = "Filesystem"
    selector: Selector | None = None

    @property
    def name(self) -> str:
        return self.key.partition("/")[2]


class StorageClass(msgspec.Struct, frozen=True, kw_only=True):
    """`binding_mode` is None where the object does not say; `allowed` are topology terms, any of which will do."""

    name: str
    provisioner: str = ""
    binding_mode: str | None = None
    allowed: tuple[tuple[tuple[str, tuple[str, ...]], ...], ...] = ()


class AvailableSpace(msgspec.Struct, frozen=True, kw_only=True):
    """A CSIStorageCapacity: what a class can still make where `topology` selects nodes; None selects none."""

    storage_class: str
    topology: Selector | None = None
    largest: int | None = None


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """A VolumeAttachment: the driver attaches a volume to a node, or is about to, or is to detach it."""

    node: str
    driver: str = ""
    volume: str = ""
