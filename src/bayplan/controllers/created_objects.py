"""
What controllers would create, what an API server makes of it, and for which object of the input it is made.

Does not create anything.
"""

from __future__ import annotations

import msgspec

from bayplan.controllers.desired_state import DesiredState, ObjectKey
from bayplan.controllers.pod_admission import AdmittedPod, RefusedPod
from bayplan.errors import InputError
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
        self._known = {key_of(one): one for one in owners}
        self._owner_of = {key: owner for key, one in self._known.items() if (owner := _owner_of(one)) is not None}
        self._owners = set(self._owner_of.values())
        self._roots: dict[ObjectKey, ObjectKey] = {}
        self._circles = [circle for key in self._known if (circle := self._follow(key))]

    def has_made(self, key: ObjectKey, inputs: DesiredState) -> bool:
        """Whether pods or controllers of the input belong to the object."""
        return (key.namespace, key.kind, key.name) in inputs.inventory.owned or key in self._owners

    def of(self, controller: ApiObject) -> ObjectKey:
        key = key_of(controller)
        return self._roots.get(key, key)

    def check(self, inputs: DesiredState) -> list[str]:
        """A note for each circle of objects that own each other; raises InputError for those that a change makes."""
        faults, notes = [], []
        for circle in self._circles:
            shown = " → ".join(f"{one.kind} {one.name}" for one in (*circle, circle[0]))
            made_by = next((self._known[key] for key in circle if self._brings_owner(key, inputs)), None)
            if made_by is not None:
                message = f"expected owners that do not own each other, got {shown}"
                faults.append(inputs.fault(made_by, message, "metadata.ownerReferences"))
            else:
                notes.append(f"these objects of namespace {circle[0].namespace} own each other: {shown}")
        if faults:
            raise InputError(faults)
        return notes

    def _brings_owner(self, key: ObjectKey, inputs: DesiredState) -> bool:
        """Whether the owner of an object is part of the change; what a merge takes over from the state is not."""
        former = inputs.replaced.get(key)
        is_kept = former is not None and _owner_of(former) == self._owner_of[key]
        return inputs.is_changed(self._known[key]) and not is_kept

    def _follow(self, key: ObjectKey) -> list[ObjectKey]:
        """Find the root of an object and of its owners; the objects that own each other, if it comes to such."""
        path: dict[ObjectKey, None] = {}
        at: ObjectKey | None = key
        while at in self._known and at not in self._roots and at not in path:
            path[at] = None
            at = self._owner_of.get(at)
        found = list(path)
        root = self._roots[at] if at in self._roots else found[-1]
        self._roots.update(dict.fromkeys(found, root))
        return found[found.index(at) :] if at in path else []


def _owner_of(found: ApiObject) -> ObjectKey | None:
    owner = controller_of(found.metadata)
    return None if owner is None else ObjectKey(owner.kind, found.metadata.namespace, owner.name)


def key_of(found: ApiObject) -> ObjectKey:
    """The identity of an object."""
    return ObjectKey(found.kind, found.metadata.namespace, found.metadata.name)
