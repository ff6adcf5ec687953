"""Everything that was read, sorted by kind. Knows nothing of files, and changes nothing in the objects."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import msgspec

from bayplan.errors import Fault
from bayplan.reading import kinds
from bayplan.reading.census import Census
from bayplan.reading.documents import Document
from bayplan.wire.controllers import Controller, PriorityClass, ReplicationController, Service
from bayplan.wire.disruption import PodDisruptionBudget
from bayplan.wire.fleets import Cluster, ResourceBinding, WorkloadRebalancer
from bayplan.wire.meta import ApiObject
from bayplan.wire.nodes import Namespace, Node
from bayplan.wire.placements import PropagationPolicy
from bayplan.wire.pods import Pod
from bayplan.wire.storage import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

AnyController = Controller | ReplicationController


class ObjectKey(NamedTuple):
    """What makes an object one: no two of the input have the same."""

    kind: str
    namespace: str
    name: str


def _no_controllers() -> dict[str, list[AnyController]]:
    return {kind: [] for kind in kinds.CONTROLLERS}


class Inputs(msgspec.Struct, kw_only=True):
    """
    The objects of all files, each list in the order read.

    `controllers` has a list for every kind of them. `documents` has the objects that people wrote, for the lines of
    their fields. `census` says which pods there were, even if a sink took them. `skipped` counts the kinds that
    nobody needs, `hints` is what the person at the terminal may want to know.

    `policies` and `bindings` hold both the namespaced and the cluster-wide kind. `templates` has what only a fleet
    looks at: objects of any other kind, by their metadata; `misread` is what is wrong with such objects.
    """

    nodes: list[Node] = msgspec.field(default_factory=list)
    pods: list[Pod] = msgspec.field(default_factory=list)
    namespaces: list[Namespace] = msgspec.field(default_factory=list)
    services: list[Service] = msgspec.field(default_factory=list)
    controllers: dict[str, list[AnyController]] = msgspec.field(default_factory=_no_controllers)
    volumes: list[PersistentVolume] = msgspec.field(default_factory=list)
    claims: list[PersistentVolumeClaim] = msgspec.field(default_factory=list)
    storage_classes: list[StorageClass] = msgspec.field(default_factory=list)
    csi_nodes: list[CsiNode] = msgspec.field(default_factory=list)
    volume_attachments: list[VolumeAttachment] = msgspec.field(default_factory=list)
    csi_drivers: list[CsiDriver] = msgspec.field(default_factory=list)
    storage_capacities: list[CsiStorageCapacity] = msgspec.field(default_factory=list)
    priority_classes: list[PriorityClass] = msgspec.field(default_factory=list)
    disruption_budgets: list[PodDisruptionBudget] = msgspec.field(default_factory=list)
    clusters: list[Cluster] = msgspec.field(default_factory=list)
    policies: list[PropagationPolicy] = msgspec.field(default_factory=list)
    bindings: list[ResourceBinding] = msgspec.field(default_factory=list)
    rebalancers: list[WorkloadRebalancer] = msgspec.field(default_factory=list)
    templates: list[ApiObject] = msgspec.field(default_factory=list)
    misread: list[Fault] = msgspec.field(default_factory=list)
    documents: dict[ObjectKey, Document] = msgspec.field(default_factory=dict)
    census: Census = msgspec.field(default_factory=Census)
    skipped: Counter[str] = msgspec.field(default_factory=Counter)
    hints: list[str] = msgspec.field(default_factory=list)

    def list_of(self, kind: str) -> list[Any]:
        """Where objects of this kind are kept."""
        if kind in self.controllers:
            return self.controllers[kind]
        found: list[Any] = getattr(self, _FIELDS[kind])
        return found

    def namespace_names(self) -> set[str]:
        """Every namespace that the input has, or that something in it is in."""
        lists: tuple[list[Any], ...] = (
            self.services, self.claims, self.storage_capacities, self.disruption_budgets, self.policies, self.bindings,
            self.templates, *self.controllers.values(),
        )  # fmt: skip
        found = {one.metadata.namespace for objects in lists for one in objects}
        found |= {name.partition("/")[0] for name in self.census.names}
        return (found | {namespace.metadata.name for namespace in self.namespaces}) - {""}


_FIELDS = {
    "Node": "nodes",
    "Pod": "pods",
    "Namespace": "namespaces",
    "Service": "services",
    "PersistentVolume": "volumes",
    "PersistentVolumeClaim": "claims",
    "StorageClass": "storage_classes",
    "CSINode": "csi_nodes",
    "VolumeAttachment": "volume_attachments",
    "CSIDriver": "csi_drivers",
    "CSIStorageCapacity": "storage_capacities",
    "PriorityClass": "priority_classes",
    "PodDisruptionBudget": "disruption_budgets",
    "Cluster": "clusters",
    "PropagationPolicy": "policies",
    "ClusterPropagationPolicy": "policies",
    "ResourceBinding": "bindings",
    "ClusterResourceBinding": "bindings",
    "WorkloadRebalancer": "rebalancers",
}
