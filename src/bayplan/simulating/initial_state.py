"""
The objects of an input as the simulated cluster holds them at the beginning: what a server would have filled in.

Pods that run count as ready, unless their status says otherwise. Does not read files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from bayplan.controllers import autoscalers, pod_templates, resource_quotas
from bayplan.controllers.desired_state import DesiredState, ObjectKey, PodOwnership
from bayplan.controllers.pod_admission import PodAdmission
from bayplan.controllers.resource_quotas import QuotaLedger
from bayplan.mapping.pods import FINISHED, controller_of
from bayplan.model.terms import NAME_LABEL
from bayplan.simulating.timeline_checks import SCALED, WORKLOADS
from bayplan.wire import kinds
from bayplan.wire.controllers import Controller
from bayplan.wire.meta import ObjectMeta
from bayplan.wire.nodes import Namespace
from bayplan.wire.pods import Pod, PodCondition

# Nodes and namespaces first, pods last: each pod is counted on its node when it is added.
_FIRST = (
    "Namespace", "PriorityClass", "Node", "StorageClass", "CSINode", "CSIDriver", "CSIStorageCapacity",
    "VolumeAttachment", "PersistentVolume", "PersistentVolumeClaim", "Service", "PodGroup", "LimitRange",
    "ResourceQuota", "PodDisruptionBudget", "HorizontalPodAutoscaler",
)  # fmt: skip
LONG_AGO = "2025-12-31T00:00:00Z"  # since when hand-written pods that run are ready


class InitialState(msgspec.Struct, frozen=True):
    """The objects in order, the admission of further pods, and what is left out."""

    objects: list[Any]
    admission: PodAdmission
    remarks: list[str]


def of(inputs: DesiredState, pods: Iterable[Pod], schedulers: Iterable[str]) -> InitialState:
    """The cluster that the input describes; `pods` are all pods as they are written."""
    pods = _adopted(list(pods), inputs)
    ledger = QuotaLedger(inputs.resource_quotas)
    admission = PodAdmission(inputs, ledger, frozenset(schedulers))
    stored = [_stored(pod, admission, ledger) for pod in pods]
    for claim in inputs.claims:
        ledger.count_existing_claim(claim)
    listed = {row.kind: inputs.list_of(row) for row in kinds.decoded() if not row.is_karmada}
    listed["Namespace"] = list(_namespaces(inputs, stored))
    objects = [one for kind in _FIRST for one in listed[kind]]
    uids = _uids(stored, inputs.controllers["ReplicaSet"])
    for kind in WORKLOADS:
        objects += [_with_uid(one, uids) for one in inputs.controllers[kind]]
    objects += _mentioned_sets(inputs, stored, uids)
    objects += stored
    return InitialState(objects, admission, [*_left_out(inputs), *_unmanaged(objects)])


def _adopted(pods: list[Pod], inputs: DesiredState) -> list[Pod]:
    """The pods; those without an owner that a controller selects get it as their owner, as controllers adopt them."""
    ownership = PodOwnership(inputs.inventory, inputs.controllers["ReplicaSet"])
    owners: dict[tuple[str, str], Any] = {}
    for kind in WORKLOADS:
        for controller in inputs.controllers[kind] if kind != "Deployment" else ():
            for entry in ownership.members(controller):
                owners.setdefault((controller.metadata.namespace, entry.name), controller)
    return [_owned(pod, owners.get((pod.metadata.namespace, pod.metadata.name))) for pod in pods]


def _owned(pod: Pod, controller: Any) -> Pod:
    """The pod with its owner, unless it has one."""
    meta = pod.metadata
    if controller is None or controller_of(meta) is not None:
        return pod
    references = [*(meta.owner_references or ()), pod_templates.owner_reference(controller)]
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(meta, owner_references=references))


def _unmanaged(objects: Iterable[Any]) -> Iterator[str]:
    """A note if the controllers of some pods are missing."""
    listed = list(objects)
    known = {ObjectKey(one.kind, one.metadata.namespace, one.metadata.name) for one in listed}
    owners = [(one, controller_of(one.metadata)) for one in listed if one.kind == "Pod"]
    n_pods = sum(
        owner is not None and owner.kind in WORKLOADS and (owner.kind, pod.metadata.namespace, owner.name) not in known
        for pod, owner in owners
    )
    if n_pods:
        counted = "1 pod has a controller that is" if n_pods == 1 else f"{n_pods} pods have controllers that are"
        yield f"{counted} not in the input: nothing creates them again"


def _stored(pod: Pod, admission: PodAdmission, ledger: QuotaLedger) -> Pod:
    """The pod as a server has stored it; a hand-written one passes admission, and is ready if it has a node."""
    if pod.metadata.uid or pod.metadata.resource_version:
        ledger.count_existing(pod.metadata.namespace, pod.metadata.name, resource_quotas.charge_of(pod.spec))
        if not pod.spec.node_name:
            pod = msgspec.structs.replace(pod, spec=admission.admit_stored(pod).pod.spec)
    else:
        pod = admission.admit(pod).pod
    status = pod.status
    if (
        pod.spec.node_name
        and status.phase not in FINISHED
        and not any(c.type == "Ready" for c in status.conditions or ())
    ):
        is_ready = status.phase in ("", "Running")
        ready = PodCondition(type="Ready", status=str(is_ready), last_transition_time=LONG_AGO)
        status = msgspec.structs.replace(
            status, phase="Running" if is_ready else status.phase, conditions=[*(status.conditions or ()), ready]
        )
    elif not status.phase:
        status = msgspec.structs.replace(status, phase="Pending")
    return pod if status is pod.status else msgspec.structs.replace(pod, status=status)


def _namespaces(inputs: DesiredState, pods: Iterable[Pod]) -> Iterator[Namespace]:
    """Every namespace, with its name as a label, as every server gives it."""
    known = {one.metadata.name: one for one in inputs.namespaces}
    used = {pod.metadata.namespace for pod in pods} | inputs.namespace_names()
    for name in sorted(used | known.keys()):
        found = known.get(name) or Namespace(api_version="v1", kind="Namespace", metadata=ObjectMeta(name=name))
        labels = {**(found.metadata.labels or {}), NAME_LABEL: name}
        yield msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, labels=labels))


def _uids(pods: Iterable[Pod], replica_sets: Iterable[Any]) -> dict[ObjectKey, str]:
    """The uids of controllers as those that they own name them."""
    found: dict[ObjectKey, str] = {}
    for one in (*pods, *replica_sets):
        owner = controller_of(one.metadata)
        if owner is not None and owner.uid:
            found.setdefault(ObjectKey(owner.kind, one.metadata.namespace, owner.name), owner.uid)
    return found


def _with_uid(controller: Any, uids: dict[ObjectKey, str]) -> Any:
    meta = controller.metadata
    if meta.uid:
        return controller
    uid = (
        uids.get(ObjectKey(controller.kind, meta.namespace, meta.name)) or pod_templates.owner_reference(controller).uid
    )
    return msgspec.structs.replace(controller, metadata=msgspec.structs.replace(meta, uid=uid))


def _mentioned_sets(inputs: DesiredState, pods: Iterable[Pod], uids: dict[ObjectKey, str]) -> Iterator[Controller]:
    """ReplicaSets that only their pods mention, with the template of the Deployment from whose name theirs is made."""
    known = {(one.metadata.namespace, one.metadata.name) for one in inputs.controllers["ReplicaSet"]}
    deployments = {(one.metadata.namespace, one.metadata.name): one for one in inputs.controllers["Deployment"]}
    sizes: dict[tuple[str, str], int] = {}
    for pod in pods:
        owner = controller_of(pod.metadata)
        if owner is not None and owner.kind == "ReplicaSet" and pod.status.phase not in FINISHED:
            place = pod.metadata.namespace, owner.name
            sizes[place] = sizes.get(place, 0) + 1
    for (namespace, name), size in sizes.items():
        deployment = deployments.get((namespace, name.rpartition("-")[0]))
        if (namespace, name) in known or not isinstance(deployment, Controller):
            continue
        made = pod_templates.replica_set_of(_with_uid(deployment, uids), name)
        meta = msgspec.structs.replace(made.metadata, uid=uids[ObjectKey("ReplicaSet", namespace, name)])
        yield msgspec.structs.replace(made, metadata=meta, spec=msgspec.structs.replace(made.spec, replicas=size))


def _left_out(inputs: DesiredState) -> Iterator[str]:
    """What makes pods and is not simulated."""
    for job in inputs.cron_jobs:
        yield f"CronJob {job.metadata.namespace}/{job.metadata.name} is not run: apply its Jobs in the timeline"
    for custom in (*inputs.custom_objects, *inputs.unread_objects):
        name = f"{custom.kind} {custom.metadata.namespace}/{custom.metadata.name}"
        yield f"{name} is not simulated: its controller is not known"
    known = {ObjectKey(one.kind, one.metadata.namespace, one.metadata.name) for one in _scaled(inputs)}
    for key in sorted(autoscalers.targets_of(inputs.autoscalers) - known):
        yield f"a HorizontalPodAutoscaler scales {key.kind} {key.namespace}/{key.name}, which is not simulated"
    if inputs.mutating_webhooks or inputs.validating_webhooks:
        yield "admission webhooks are not called"


def _scaled(inputs: DesiredState) -> Iterator[Any]:
    """The workloads that an autoscaler can scale."""
    for kind in SCALED:
        yield from inputs.controllers[kind]
