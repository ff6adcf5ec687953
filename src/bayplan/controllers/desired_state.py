"""The objects of a cluster or a fleet by kind, as controllers read them. Does not know where they came from."""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.controllers.pod_ownership import PodInventory
from bayplan.errors import Fault
from bayplan.wire import kinds
from bayplan.wire.controllers import AnyController, PriorityClass, Service
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
    VolumeAttachment,
    WireStorageClass,
)


def _no_controllers() -> dict[str, list[AnyController]]:
    return {kind: [] for kind in kinds.CONTROLLERS}


class DesiredState(msgspec.Struct, kw_only=True):
    """
    Objects by kind, each list in the order given.

    `controllers` has a list for each kind of controller. `policies` and `bindings` hold both the namespaced and the
    cluster-scoped kind. `templates` are objects of any other kind, which only a fleet reads, by their metadata.
    `inventory` records which pods exist, including pods that a sink has consumed.
    """

    nodes: list[Node] = msgspec.field(default_factory=list)
    pods: list[Pod] = msgspec.field(default_factory=list)
    namespaces: list[Namespace] = msgspec.field(default_factory=list)
    services: list[Service] = msgspec.field(default_factory=list)
    controllers: dict[str, list[AnyController]] = msgspec.field(default_factory=_no_controllers)
    volumes: list[PersistentVolume] = msgspec.field(default_factory=list)
    claims: list[PersistentVolumeClaim] = msgspec.field(default_factory=list)
    storage_classes: list[WireStorageClass] = msgspec.field(default_factory=list)
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
    inventory: PodInventory = msgspec.field(default_factory=PodInventory)

    def list_of(self, kind: str) -> list[Any]:
        """Where objects of this kind are kept."""
        if kind in self.controllers:
            return self.controllers[kind]
        found: list[Any] = getattr(self, _FIELDS[kind])
        return found

    def fault(self, owner: ApiObject, message: str, path: str) -> Fault:
        """A fault of one object, naming the object."""
        meta = owner.metadata
        return Fault(message, subject=f"{owner.kind} {meta.namespace}/{meta.name}", path=path)

    def namespace_names(self) -> set[str]:
        """Every namespace that the input has, or that something in it is in."""
        lists: tuple[list[Any], ...] = (
            self.services, self.claims, self.storage_capacities, self.disruption_budgets, self.policies, self.bindings,
            self.templates, *self.controllers.values(),
        )  # fmt: skip
        found = {one.metadata.namespace for objects in lists for one in objects}
        found |= {name.partition("/")[0] for name in self.inventory.names}
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
