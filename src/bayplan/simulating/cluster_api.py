"""
What an API server does with the requests of controllers: admission, bindings, evictions and deletions of pods.

`SimulatedWriter` is the writer of the live scheduler and of the enforcement on this API. Does not know why anybody
asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from bayplan.controllers.desired_state import ObjectKey
from bayplan.controllers.pod_admission import AdmittedPod, PodAdmission
from bayplan.live.cluster_writer import ClaimRef, PodGoneError, PodRef, RejectedError
from bayplan.mapping.pods import FINISHED
from bayplan.mapping.storage import SELECTED_NODE
from bayplan.simulating.disruptions import DisruptionController
from bayplan.simulating.event_log import EventLog
from bayplan.simulating.store import POD, Store, key_of
from bayplan.wire.meta import ObjectReference
from bayplan.wire.pods import Pod, PodCondition
from bayplan.wire.storage import PersistentVolumeClaim

EVICTED, PREEMPTED, DRAINED, MOVED, TAINTED = "enforcement", "preemption", "drain", "rebalancing", "taint"
CLAIM, VOLUME = "PersistentVolumeClaim", "PersistentVolume"


class ClusterApi:
    """The requests. `evictions` counts the pods that had to leave, by what made them leave and by owner."""

    def __init__(
        self, store: Store, admission: PodAdmission, disruptions: DisruptionController, events: EventLog
    ) -> None:
        self.store, self.admission = store, admission
        self._disruptions, self._events = disruptions, events
        self.evictions: Counter[tuple[str, ObjectKey | None]] = Counter()

    # Pods

    def create_pod(self, pod: Pod) -> str:
        """Create a pod; returns the server's message if it is refused, else nothing."""
        key = key_of(pod)
        if self.store.find(key) is not None:
            return f'pods "{pod.metadata.name}" already exists'
        admitted = self.admission.admit(pod)
        if admitted.refused:
            return admitted.refused
        self._add(admitted)
        self._events.record(named(key), "Created")
        return ""

    def _add(self, admitted: AdmittedPod) -> None:
        pod = admitted.pod
        for text in filter(None, (admitted.not_judged, *admitted.notes)):
            owner = next((one.name for one in pod.metadata.owner_references or () if one.controller), "")
            subject = f"pods of {owner}" if owner else f"pod {pod.metadata.name}"
            self._events.remark(f"{subject} in {pod.metadata.namespace}: {text}")
        for claim in admitted.claims:
            self.store.put(claim)
        status = msgspec.structs.replace(pod.status, phase="Pending")
        meta = msgspec.structs.replace(pod.metadata, uid="", creation_timestamp=None, resource_version="")
        self.store.put(msgspec.structs.replace(pod, metadata=meta, status=status))

    def create_claims(self, claims: Iterable[PersistentVolumeClaim]) -> str:
        """Create the claims that do not exist, up to one that is refused; why it is."""
        for claim in claims:
            if self.store.find(key_of(claim)) is None:
                refused = self.admission.admit_claim(claim)
                if refused:
                    return refused
                self.store.put(claim)
        return ""

    def delete_pod(self, key: ObjectKey, *, force: bool = False) -> None:
        """Delete a pod: at once if it runs nowhere or by force, else its kubelet ends it first."""
        pod = self.store.find(key)
        if pod is None:
            return
        if force or not pod.spec.node_name or pod.status.phase in FINISHED:
            self.remove_pod(key)
        elif pod.metadata.deletion_timestamp is None:
            meta = msgspec.structs.replace(pod.metadata, deletion_timestamp=self.store.wall.text())
            self.store.put(msgspec.structs.replace(pod, metadata=meta))
            self._events.record(named(key), "Deleted")

    def remove_pod(self, key: ObjectKey) -> None:
        """The pod is gone."""
        pod = self.store.find(key)
        if pod is not None:
            self.admission.remove(pod)
            self.store.remove(key)
            self._events.record(named(key), "Removed")

    def bind(self, key: ObjectKey, node: str) -> None:
        """Bind a pod to a node, as the binding subresource does."""
        pod = self.store.find(key)
        bound = PodCondition(type="PodScheduled", status="True", last_transition_time=self.store.wall.text())
        others = [one for one in pod.status.conditions or () if one.type != bound.type]
        status = msgspec.structs.replace(pod.status, conditions=[*others, bound], nominated_node_name="")
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        self.store.put(msgspec.structs.replace(pod, spec=spec, status=status))

    def evict(self, key: ObjectKey, cause: str) -> str:
        """Evict a pod as the eviction subresource does; why not, empty if it is evicted."""
        pod = self.store.find(key)
        if pod.metadata.deletion_timestamp is None:
            refused = self._disruptions.refusal(pod)
            if refused:
                return refused
            self.count_eviction(pod, cause)
        self.delete_pod(key)
        return ""

    def count_eviction(self, pod: Pod, cause: str) -> None:
        """Count a pod that has to leave."""
        owner = next((one for one in pod.metadata.owner_references or () if one.controller), None)
        of = None if owner is None else self._root(ObjectKey(owner.kind, pod.metadata.namespace, owner.name))
        self.evictions[cause, of] += 1

    def _root(self, owner: ObjectKey) -> ObjectKey:
        """The controller of the controller, if there is one."""
        found = self.store.find(owner)
        for above in () if found is None else found.metadata.owner_references or ():
            if above.controller:
                return ObjectKey(above.kind, owner.namespace, above.name)
        return owner


class SimulatedWriter:
    """The writes of the live scheduler, which take effect at once; `cause` says on whose behalf it evicts."""

    def __init__(self, api: ClusterApi, events: EventLog, cause: str = EVICTED) -> None:
        self._api, self._events, self._store, self._cause = api, events, api.store, cause

    def _pod(self, pod: PodRef) -> Pod:
        found = self._store.pod(pod.namespace, pod.name)
        if found is None or found.metadata.uid != pod.uid:
            raise PodGoneError(f"{pod} is gone")
        return found

    async def bind(self, pod: PodRef, node: str) -> None:
        found = self._pod(pod)
        if found.spec.node_name:
            raise RejectedError(f"pod {pod.name} is already assigned to node {found.spec.node_name}")
        if found.metadata.deletion_timestamp is not None:
            raise RejectedError(f"pod {pod.name} is being deleted, cannot be assigned to a host")
        self._api.bind(key_of(found), node)

    async def node_of(self, pod: PodRef) -> str:
        return self._pod(pod).spec.node_name

    async def patch_status(self, pod: PodRef, status: dict[str, Any]) -> None:
        found = self._pod(pod)
        changed: dict[str, Any] = {}
        if "conditions" in status:
            new = msgspec.convert(status["conditions"], list[PodCondition])
            types = {one.type for one in new}
            changed["conditions"] = [*(c for c in found.status.conditions or () if c.type not in types), *new]
        if "nominatedNodeName" in status:
            changed["nominated_node_name"] = status["nominatedNodeName"] or ""
        self._store.put(msgspec.structs.replace(found, status=msgspec.structs.replace(found.status, **changed)))

    async def delete(self, pod: PodRef) -> None:
        found = self._pod(pod)
        if found.metadata.deletion_timestamp is None:
            self._api.count_eviction(found, PREEMPTED)
        self._api.delete_pod(key_of(found))

    async def evict(self, pod: PodRef) -> None:
        refused = self._api.evict(key_of(self._pod(pod)), self._cause)
        if refused:
            raise RejectedError(refused)

    async def select_node(self, claim: ClaimRef, node: str) -> None:
        found = self._store.find(ObjectKey(CLAIM, claim.namespace, claim.name))
        if found is None:
            raise PodGoneError(f"persistentvolumeclaim {claim.name} is gone")
        annotations = {**(found.metadata.annotations or {}), SELECTED_NODE: node}
        meta = msgspec.structs.replace(found.metadata, annotations=annotations)
        self._store.put(msgspec.structs.replace(found, metadata=meta))

    async def reserve_volume(self, volume: str, version: str, claim: ClaimRef) -> None:
        found = self._store.find(ObjectKey(VOLUME, "", volume))
        if found is None:
            raise PodGoneError(f"persistentvolume {volume} is gone")
        if found.metadata.resource_version != version:
            raise RejectedError(f"persistentvolume {volume} has changed")
        taken = ObjectReference(kind=CLAIM, namespace=claim.namespace, name=claim.name, uid=claim.uid)
        self._store.put(msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, claim_ref=taken)))

    async def post_event(self, event: dict[str, Any]) -> None:
        about = event["regarding"]
        subject = ObjectKey(about["kind"], about.get("namespace", ""), about["name"])
        self._events.record(named(subject), event["reason"], event["note"])

    async def patch_event(self, namespace: str, name: str, patch: dict[str, Any]) -> None:
        """Repetitions of an event are not recorded again."""


def named(key: ObjectKey) -> str:
    """An object in events and messages: `Pod shop/web-1`, `Node n1`."""
    return f"{key.kind} {key.namespace}/{key.name}" if key.namespace else f"{key.kind} {key.name}"


def pod_key(namespace: str, name: str) -> ObjectKey:
    return ObjectKey(POD, namespace, name)
