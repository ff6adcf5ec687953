"""Which of the pods that wait are part of a change, or are made for an object of it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from bayplan.controllers import autoscalers
from bayplan.controllers.created_objects import CreatedObjects
from bayplan.controllers.desired_state import ObjectKey
from bayplan.controllers.pod_admission import RefusedPod
from bayplan.mapping import pods
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.reading.collecting import Inputs
from bayplan.wire.controllers import Controller


def of_change(
    inputs: Inputs, pending: Iterable[Workload], created: CreatedObjects, refused: Iterable[RefusedPod]
) -> frozenset[WorkloadKey] | None:
    """The pending and refused pods that are part of the change or made for an object of it; None without a change."""
    if inputs.change is None:
        return None
    owners = _owners_of(inputs, created.replica_sets)
    workloads = [*pending, *(pods.workload_of(one.pod) for one in refused)]
    change = inputs.change | autoscalers.targets_of(one for one in inputs.autoscalers if inputs.is_changed(one))
    return frozenset(
        one.key for one in workloads if created.made_for.get(one.key) in change or _is_made_for(change, one, owners)
    )


def _owners_of(inputs: Inputs, created: Iterable[Controller] = ()) -> dict[ObjectKey, ObjectKey]:
    """The controller of each controller, as of a Deployment's ReplicaSets."""
    found = {}
    for one in (*(one for listed in inputs.controllers.values() for one in listed), *created):
        meta, owner = one.metadata, pods.controller_of(one.metadata)
        if owner is not None:
            found[ObjectKey(one.kind, meta.namespace, meta.name)] = ObjectKey(owner.kind, meta.namespace, owner.name)
    return found


def _is_made_for(change: Container[ObjectKey], workload: Workload, owners: Mapping[ObjectKey, ObjectKey]) -> bool:
    """Whether the pod is part of the change, or one of its owners is; owners may own each other."""
    key: ObjectKey | None = ObjectKey("Pod", workload.namespace, workload.name)
    controller = workload.controller
    seen: set[ObjectKey] = set()
    while key is not None and key not in seen:
        if key in change:
            return True
        seen.add(key)
        if len(seen) == 1 and controller is not None:
            key = ObjectKey(controller.kind, workload.namespace, controller.name)
        else:
            key = owners.get(key)
    return False
