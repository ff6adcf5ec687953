"""Volumes, claims and storage classes, reduced to what restricts a pod to certain nodes."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from bayplan.model.labels import Selector
from bayplan.model.node_selectors import NodeTerm


class VolumeHandle(NamedTuple):
    """The identity of a volume for its driver, independent of the claim."""

    driver: str
    name: str


class Volume(msgspec.Struct, frozen=True, kw_only=True):
    """
    A PersistentVolume; `claim` is the claim it is reserved for, `handle` its identity for the `driver`.

    One that is `assumed` does not exist yet.
    """

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
    assumed: bool = False


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A PersistentVolumeClaim; `bound` once the volume controller has completed the binding."""

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
    """`binding_mode` is None if it is not set; `allowed` are topology terms, one of which must match."""

    name: str
    provisioner: str = ""
    binding_mode: str | None = None
    allowed: tuple[tuple[tuple[str, tuple[str, ...]], ...], ...] = ()


class AvailableSpace(msgspec.Struct, frozen=True, kw_only=True):
    """A CSIStorageCapacity: the largest volume of a class on the nodes that `topology` selects; None selects none."""

    storage_class: str
    topology: Selector | None = None
    largest: int | None = None


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """A VolumeAttachment: the driver attaches the volume to the node, will do so, or is about to detach it."""

    node: str
    driver: str = ""
    volume: str = ""
