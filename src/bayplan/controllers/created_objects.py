"""
What controllers would create, what an API server makes of it, and for which object of the input it is made.

Does not create anything.
"""

from __future__ import annotations

import msgspec

from bayplan.controllers.desired_state import DesiredState, ObjectKey
from bayplan.controllers.pod_admission import AdmittedPod, RefusedPod
from bayplan.mapping.pods import controller_of
from bayplan.model.workloads import WorkloadKey
from bayplan.wire import kinds
from bayplan.wire.controllers import Controller
from bayplan.wire.meta import ApiObject
from bayplan.wire.pods import Pod
from bayplan.wire.storage import PersistentVolumeClaim


class CreatedObjects(msgspec.Struct):
    """
    What controllers would create: pods, the ReplicaSets of Deployments, the claims of StatefulSets.

    `refused` are pods that an API server would not create. `not_judged` has, by `namespace/name`, those of `pods` of
    which it is not known whether they can be placed, with the reason; `not_judged_objects` the objects whose pods
    cannot be read at all. `made_for` leads from every pod, created or refused, to the object of the input that it is
    made for: the Deployment, not its ReplicaSet. `notes` are for the user.
    """

    pods: list[Pod] = msgspec.field(default_factory=list)
    replica_sets: list[Controller] = msgspec.field(default_factory=list)
    claims: list[PersistentVolumeClaim] = msgspec.field(default_factory=list)
    refused: list[RefusedPod] = msgspec.field(default_factory=list)
    not_judged: dict[WorkloadKey, str] = msgspec.field(default_factory=dict)
    not_judged_objects: list[tuple[ObjectKey, str]] = msgspec.field(default_factory=list)
    made_for: dict[WorkloadKey, ObjectKey] = msgspec.field(default_factory=dict)
    notes: list[str] = msgspec.field(default_factory=list)

    def add(self, admitted: AdmittedPod) -> None:
        """Take in what an API server makes of one pod."""
        if admitted.refused:
            self.refused.append(RefusedPod(admitted.pod, admitted.refused))
            return
        if admitted.not_judged:
            meta = admitted.pod.metadata
            self.not_judged[WorkloadKey(f"{meta.namespace}/{meta.name}")] = admitted.not_judged
        self.pods.append(admitted.pod)
        self.claims.extend(admitted.claims)
        self.notes.extend(admitted.notes)


class Roots:
    """Which object of the input the pods of a controller are made for: the owner of its owner, and so on."""

    def __init__(self, inputs: DesiredState) -> None:
        owners: list[ApiObject] = [*inputs.cron_jobs]
        for row in kinds.held_in(kinds.CONTROLLERS):
            owners += inputs.controllers[row.kind]
        self._owner_of = {key_of(one): controller_of(one.metadata) for one in owners}

    def has_made(self, key: ObjectKey, inputs: DesiredState) -> bool:
        """Whether pods or controllers of the input belong to the object."""
        if (key.namespace, key.kind, key.name) in inputs.inventory.owned:
            return True
        owned = ((one, owner) for one, owner in self._owner_of.items() if owner is not None)
        return any(ObjectKey(owner.kind, one.namespace, owner.name) == key for one, owner in owned)

    def of(self, controller: ApiObject) -> ObjectKey:
        key, seen = key_of(controller), set[ObjectKey]()
        while key not in seen:  # owners may form a circle
            seen.add(key)
            owner = self._owner_of.get(key)
            above = key if owner is None else ObjectKey(owner.kind, key.namespace, owner.name)
            key = above if above in self._owner_of else key
        return key


def key_of(found: ApiObject) -> ObjectKey:
    """The identity of an object."""
    return ObjectKey(found.kind, found.metadata.namespace, found.metadata.name)
