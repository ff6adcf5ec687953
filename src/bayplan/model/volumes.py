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

    `doubt` says why it is not known which nodes can use it; it is empty for a volume of the input.
    `migrated`: it names no CSI driver itself, but a disk that its driver has taken over from Kubernetes. On nodes where
    the driver has taken over the plugin `taken_over`, it requires `required_by_driver` instead of `required`.
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
    doubt: str = ""
    migrated: bool = False
    taken_over: str = ""
    required_by_driver: tuple[NodeTerm, ...] | None = None
    attributes_class: str = ""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """
    A PersistentVolumeClaim; `bound` once the volume controller has completed the binding.

    `owner` is the name of the pod that it was created for, if any.
    """

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
    attributes_class: str = ""
    owner: str = ""
    owner_uid: str = ""

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
    capacity: int = 0


class InlineDisk(msgspec.Struct, frozen=True):
    """
    A disk that a pod names itself, without a claim. `handle` is its identity for the CSI driver that took it over.

    `exclusive`: not even two pods that only read it share a node.
    """

    source: str
    name: str
    read_only: bool = False
    exclusive: bool = False
    monitors: tuple[str, ...] = ()
    handle: VolumeHandle | None = None

    def conflicts_with(self, other: InlineDisk) -> bool:
        """Whether two pods that use the disks cannot share a node."""
        if not self.source or (self.source, self.name) != (other.source, other.name):
            return False
        if self.monitors and set(self.monitors).isdisjoint(other.monitors):
            return False
        return self.exclusive or not (self.read_only and other.read_only)


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """A VolumeAttachment: the driver attaches the volume to the node, will do so, or is about to detach it."""

    node: str
    driver: str = ""
    volume: str = ""
