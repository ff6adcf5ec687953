"""Storage objects of the input in the index: those that are there, those that are created, those that are missing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from bayplan.controllers.desired_state import DesiredState, ObjectKey
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import storage
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.reading.collecting import Inputs
from bayplan.reading.converting import converted
from bayplan.wire.storage import CsiDriver, CsiNode, PersistentVolumeClaim

if TYPE_CHECKING:
    from bayplan.placing.assumed_volumes import TopologyKeys  # only pods with claims need it

IS_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


class KnownStorage(msgspec.Struct, frozen=True):
    """
    What is known of storage beyond the index.

    `default_class` is the class of claims that name none. `attaches` says whether each driver attaches its volumes to
    nodes, `topology_keys` by which labels each driver on each node finds its volumes. If classes and drivers are known,
    there are no others. `has_doubts`: of some volumes it is not known which nodes can use them.
    """

    default_class: str
    classes_known: bool
    attaches: dict[str, bool]
    topology_keys: TopologyKeys
    drivers_known: bool
    has_doubts: bool

    def doubts(self, pending: Iterable[Workload], index: PlacementIndex) -> dict[WorkloadKey, str]:
        """Pods of whose volumes it is not known which nodes can use them, with the reason."""
        if not self.has_doubts:
            return {}
        from bayplan.placing import volume_provisioning

        found = {workload.key: volume_provisioning.doubt_about(workload, index) for workload in pending}
        return {key: doubt for key, doubt in found.items() if doubt}


def add(
    inputs: Inputs, running: Iterable[Workload], created: Iterable[PersistentVolumeClaim], index: PlacementIndex
) -> KnownStorage:
    """Add the storage objects, the claims that are `created` for pods, and what the `running` pods use and lack."""
    defaults = (c for c in inputs.storage_classes if (c.metadata.annotations or {}).get(IS_DEFAULT_CLASS) == "true")
    default_class = next((c.metadata.name for c in defaults), "")
    classes_known = bool(inputs.storage_classes) or not inputs.has_state or inputs.knows_all("StorageClass")
    add_storage(inputs, index, default_class)
    claims = [*created, *(one for one in inputs.claims if _is_new(one, inputs))]
    has_doubts = False
    if claims or inputs.has_state:
        from bayplan.placing import volume_provisioning  # few inputs create claims

        has_doubts = inputs.has_state and volume_provisioning.assume_missing(
            running,
            index,
            claims_known=inputs.knows_all("PersistentVolumeClaim"),
            volumes_known=inputs.knows_all("PersistentVolume"),
        )
        provisioning = volume_provisioning.Provisioning(default_class, classes_known=classes_known)
        has_doubts |= any([*converted(inputs, claims, lambda one: provisioning.create(one, index))])
    return KnownStorage(
        default_class=default_class,
        classes_known=classes_known,
        topology_keys=_topology_keys(inputs.csi_nodes) if inputs.csi_nodes else {},
        attaches=_attaching(inputs.csi_drivers) if inputs.csi_drivers else {},
        drivers_known=bool(inputs.csi_drivers) or inputs.knows_all("CSIDriver"),
        has_doubts=has_doubts,
    )


def add_storage(state: DesiredState, index: PlacementIndex, default_class: str = "") -> None:
    """Add all storage objects to the index; `default_class` is the class of claims that name none."""
    for volume, name in converted(state, state.volumes, lambda one: (storage.volume_of(one), one.metadata.name)):
        index.set_volume(name, volume)
    for claim in converted(state, state.claims, lambda one: storage.claim_of(one, default_class)):
        index.set_claim(claim.key, claim)
    for storage_class in state.storage_classes:
        index.set_storage_class(storage_class.metadata.name, storage.storage_class_of(storage_class))
    for csi_node in state.csi_nodes:
        index.set_stored("attach_limits", csi_node.metadata.name, storage.attach_limits_of(csi_node))
    for attachment in state.volume_attachments:
        index.set_stored("attachments", attachment.metadata.name, storage.attachment_of(attachment))
    for driver in state.csi_drivers:
        index.set_stored("metering_drivers", driver.metadata.name, driver.spec.storage_capacity or None)
        required = driver.spec.prevent_pod_scheduling_if_missing or None
        index.set_stored("required_drivers", driver.metadata.name, required)
    for space, meta in converted(state, state.storage_capacities, lambda one: (storage.space_of(one), one.metadata)):
        index.set_stored("space", f"{meta.namespace}/{meta.name}", space)


def _is_new(claim: PersistentVolumeClaim, inputs: Inputs) -> bool:
    """Whether the claim is about to be created."""
    meta = claim.metadata
    return inputs.is_changed(claim) and ObjectKey(claim.kind, meta.namespace, meta.name) not in inputs.replaced


def _topology_keys(csi_nodes: Iterable[CsiNode]) -> TopologyKeys:
    """The topology keys of each driver that has registered on each node."""
    return {
        one.metadata.name: {driver.name: tuple(driver.topology_keys or ()) for driver in one.spec.drivers or ()}
        for one in csi_nodes
    }


def _attaching(drivers: Iterable[CsiDriver]) -> dict[str, bool]:
    """Whether each driver attaches its volumes to nodes; one does unless it says otherwise."""
    return {driver.metadata.name: driver.spec.attach_required is not False for driver in drivers}
