"""
What controllers would create, what an API server makes of it, and for which object of the input it is made.

Does not create anything.
"""

from __future__ import annotations

from collections.abc import Iterator

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
        self._owner_of: dict[ObjectKey, ObjectKey] = {}
        for key, one in self._known.items():
            owner = controller_of(one.metadata)
            if owner is not None:
                self._owner_of[key] = ObjectKey(owner.kind, key.namespace, owner.name)

    def has_made(self, key: ObjectKey, inputs: DesiredState) -> bool:
        """Whether pods or controllers of the input belong to the object."""
        return (key.namespace, key.kind, key.name) in inputs.inventory.owned or key in self._owner_of.values()

    def of(self, controller: ApiObject) -> ObjectKey:
        return self._path(key_of(controller))[-1]

    def check(self, inputs: DesiredState) -> list[str]:
        """A note for each circle of objects that own each other; raises InputError for those of the change."""
        faults, notes = [], []
        for owner, circle in self._circles():
            if inputs.is_changed(owner):
                message = f"expected owners that do not own each other, got {circle}"
                faults.append(inputs.fault(owner, message, "metadata.ownerReferences"))
            else:
                notes.append(f"these objects of namespace {owner.metadata.namespace} own each other: {circle}")
        if faults:
            raise InputError(faults)
        return notes

    def _circles(self) -> Iterator[tuple[ApiObject, str]]:
        """Each set of objects that own each other: one of them, and all of them in a text."""
        done: set[ObjectKey] = set()
        for key in self._known:
            path = [] if key in done else self._path(key)
            first = self._owner_of.get(path[-1]) if path else None
            if first in path:
                circle = path[path.index(first) :]
                yield self._known[circle[0]], " → ".join(f"{one.kind} {one.name}" for one in (*circle, circle[0]))
            done.update(path)

    def _path(self, key: ObjectKey) -> list[ObjectKey]:
        """The object and its owners in the input, up to the last one or to one that occurs again."""
        path = [key]
        while (above := self._owner_of.get(path[-1])) in self._known and above not in path:
            path.append(above)
        return path


def key_of(found: ApiObject) -> ObjectKey:
    """The identity of an object."""
    return ObjectKey(found.kind, found.metadata.namespace, found.metadata.name)
