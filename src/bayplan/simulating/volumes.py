"""
The persistent volume controller: claims are bound to volumes that exist, or that a driver provisions for them.

Where a driver provisions a volume is not known: it is taken to be usable in the zone of the node that was selected, and
anywhere if none was; a remark says so. Claims of pods that are gone stay, but for those of ephemeral volumes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.controllers.desired_state import ObjectKey
from bayplan.mapping.storage import BIND_COMPLETED, SELECTED_NODE
from bayplan.placing.volume_provisioning import NO_PROVISIONER
from bayplan.rules.volume_binding import WAIT_FOR_FIRST_CONSUMER
from bayplan.simulating.cluster_api import CLAIM, VOLUME
from bayplan.simulating.event_log import EventLog
from bayplan.simulating.store import POD, Store, key_of
from bayplan.wire.meta import ObjectReference
from bayplan.wire.pods import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.wire.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    PhaseStatus,
    VolumeNodeAffinity,
)

STORAGE_CLASS = "StorageClass"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
ZONE = "topology.kubernetes.io/zone"
_ASSUMED = "volumes that {} provisions are taken to be usable in the whole zone of the node that was selected"
_ANYWHERE = "volumes that {} provisions before their pods are scheduled are taken to be usable on every node"


class VolumeController:
    """Follows claims and volumes."""

    def __init__(self, store: Store, events: EventLog) -> None:
        self._store, self._events = store, events
        store.listen(self._changed)

    def _changed(self, key: ObjectKey, before: Any, after: Any) -> None:
        if key.kind == CLAIM and after is not None:
            self._sync(after)
        elif key.kind == VOLUME and after is not None and after.spec.claim_ref is not None:
            reference = after.spec.claim_ref
            claim = self._store.find(ObjectKey(CLAIM, reference.namespace, reference.name))
            if claim is not None and not claim.spec.volume_name:
                self._bind(claim, key.name)
        elif key.kind == POD and after is None:
            self._collect(key, before.metadata.uid)

    def _collect(self, pod: ObjectKey, uid: str) -> None:
        """Delete the claims of the pod's ephemeral volumes."""
        for claim in self._store.of_kind(CLAIM):
            owner = next((one for one in claim.metadata.owner_references or () if one.controller), None)
            if owner is not None and owner.kind == POD and owner.name == pod.name and owner.uid in ("", uid):
                self._store.remove(key_of(claim))

    def _sync(self, claim: PersistentVolumeClaim) -> None:
        if claim.spec.volume_name:
            if BIND_COMPLETED not in (claim.metadata.annotations or {}):
                self._bind(claim, claim.spec.volume_name)
            return
        storage_class = self._class_of(claim)
        if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
            return
        selected = (claim.metadata.annotations or {}).get(SELECTED_NODE, "")
        if storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
            self._events.remark(_ANYWHERE.format(storage_class.provisioner))
            self._provision(claim, storage_class.metadata.name, None)
        elif selected:
            self._events.remark(_ASSUMED.format(storage_class.provisioner))
            self._provision(claim, storage_class.metadata.name, self._reach_of(selected))

    def _class_of(self, claim: PersistentVolumeClaim) -> Any:
        named = claim.spec.storage_class_name
        if named is not None:
            return self._store.find(ObjectKey(STORAGE_CLASS, "", named)) if named else None
        for one in self._store.of_kind(STORAGE_CLASS):
            if (one.metadata.annotations or {}).get(DEFAULT_CLASS) == "true":
                return one
        return None

    def _reach_of(self, node: str) -> VolumeNodeAffinity | None:
        found = self._store.node(node)
        zone = None if found is None else (found.metadata.labels or {}).get(ZONE)
        if zone is None:
            return None
        needed = NodeSelectorRequirement(key=ZONE, operator="In", values=[zone])
        return VolumeNodeAffinity(
            required=NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=[needed])])
        )

    def _provision(self, claim: PersistentVolumeClaim, class_name: str, reach: VolumeNodeAffinity | None) -> None:
        name, meta = f"pvc-{claim.metadata.uid}", claim.metadata
        if self._store.find(ObjectKey(VOLUME, "", name)) is not None:
            return
        requests = (claim.spec.resources.requests if claim.spec.resources else None) or {}
        spec = PersistentVolumeSpec(
            capacity={"storage": requests.get("storage", 0)},
            access_modes=claim.spec.access_modes,
            storage_class_name=class_name,
            volume_mode=claim.spec.volume_mode,
            claim_ref=ObjectReference(kind=CLAIM, namespace=meta.namespace, name=meta.name, uid=meta.uid),
            node_affinity=reach,
        )
        volume = PersistentVolume(api_version="v1", kind=VOLUME, spec=spec, status=PhaseStatus(phase="Bound"))
        volume.metadata.name = name
        self._store.put(volume)

    def _bind(self, claim: PersistentVolumeClaim, volume: str) -> None:
        if self._store.find(ObjectKey(VOLUME, "", volume)) is None:
            return
        annotations = {**(claim.metadata.annotations or {}), BIND_COMPLETED: "yes"}
        meta = msgspec.structs.replace(claim.metadata, annotations=annotations)
        spec = msgspec.structs.replace(claim.spec, volume_name=volume)
        status = PhaseStatus(phase="Bound")
        self._store.put(msgspec.structs.replace(claim, metadata=meta, spec=spec, status=status))
