"""
The questions of `decide`, one JSON object each, loaded into an index, a workload and a scheduler profile.

Does not answer them, except those of `decide admission`, which need no index.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.enforcing import pod_guard
from bayplan.errors import InputError
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import bindings, disruption_budgets, pods, storage, targets
from bayplan.mapping.bindings import LabelKeys
from bayplan.model import timestamps
from bayplan.model.semantics import PRESETS, Semantics, for_fleets
from bayplan.model.workloads import Workload
from bayplan.placing import place_bindings
from bayplan.preempting.disruption_budgets import DisruptionBudgets
from bayplan.reading import scheduler_config
from bayplan.rules.profiles import SchedulerProfile
from bayplan.validating import admission
from bayplan.validating.fields import Cause
from bayplan.validating.guard import GuardSettings
from bayplan.wire.controllers import Controller, PodDisruptionBudget, PriorityClass, ReplicationController, Service
from bayplan.wire.fleets import Cluster, ResourceBinding
from bayplan.wire.nodes import Namespace, Node
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

GUARD = "guard"
_EXPECTED = f'options.rules: expected "{GUARD}", or {{"{GUARD}": SETTINGS}}'


class QuestionOptions(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """How to decide: a preset, switches that override it, a scheduler configuration."""

    semantics: str = "upstream"
    switches: dict[str, Any] = {}
    config: dict[str, Any] | None = None
    daemon_namespaces: list[str] | None = None
    affinity_label_keys: list[str] | None = None
    anti_affinity_label_keys: list[str] | None = None
    rules: list[Any] | None = None


class PodQuestion(msgspec.Struct, rename="camel"):
    nodes: list[Node]
    pod: Pod
    name: str = ""
    namespaces: list[Namespace] = []
    pods: list[Pod] = []
    objects: list[dict[str, Any]] = []
    options: QuestionOptions = msgspec.field(default_factory=QuestionOptions)


def semantics_of(options: QuestionOptions) -> Semantics:
    """The preset with its switches overridden."""
    if options.semantics not in PRESETS:
        known = " or ".join(PRESETS)
        raise InputError(f"options.semantics: expected {known}, got {options.semantics!r}")
    preset = msgspec.to_builtins(PRESETS[options.semantics])
    if options.daemon_namespaces is not None:
        preset["daemonNamespaces"] = options.daemon_namespaces
    try:
        return msgspec.convert({**preset, **options.switches}, Semantics)
    except msgspec.ValidationError as error:
        raise InputError(f"options.switches: {error}") from None


class PodSituation(msgspec.Struct):
    """A question of `decide pods`, ready to be decided."""

    index: PlacementIndex
    workload: Workload
    profile: SchedulerProfile
    spread_context: pods.SpreadContext


def pod_situation_of(question: PodQuestion) -> PodSituation:
    """The cluster of the question in an index, and its pod as a workload."""
    index = PlacementIndex(semantics_of(question.options))
    for namespace in question.namespaces:
        index.set_namespace(namespace.metadata.name, namespace.metadata.labels or {})
    spread_context = _objects(question.objects, index)
    for node in question.nodes:
        index.add_target(targets.target_of_node(node))
    for pod in question.pods:
        if pod.spec.node_name and pod.status.phase not in pods.FINISHED:
            index.add(pods.workload_of(pod, spread_context), pod.spec.node_name)
    workload = pods.workload_of(question.pod, spread_context)
    workload = msgspec.structs.replace(workload, requested_target=question.pod.spec.node_name)
    profile = scheduler_config.profile_of(question.options.config, workload.scheduler_name)
    return PodSituation(index, workload, profile, spread_context)


def _objects(objects: list[dict[str, Any]], index: PlacementIndex) -> pods.SpreadContext:
    """Add the storage objects to the index; returns the context in which pods are mapped."""
    spread_context = pods.SpreadContext(services={}, controllers={}, priorities={})
    for written in objects:
        match written.get("kind"):
            case "Service":
                spread_context.add_service(msgspec.convert(written, Service))
            case "ReplicaSet" | "StatefulSet":
                spread_context.add_controller(msgspec.convert(written, Controller))
            case "ReplicationController":
                spread_context.add_controller(msgspec.convert(written, ReplicationController))
            case "PriorityClass":
                spread_context.add_priority_class(msgspec.convert(written, PriorityClass))
            case "PersistentVolume":
                volume = storage.volume_of(msgspec.convert(written, PersistentVolume))
                index.set_volume(volume.name, volume)
            case "PersistentVolumeClaim":
                claim = storage.claim_of(msgspec.convert(written, PersistentVolumeClaim))
                index.set_claim(claim.key, claim)
            case "StorageClass":
                storage_class = storage.storage_class_of(msgspec.convert(written, WireStorageClass))
                index.set_storage_class(storage_class.name, storage_class)
            case "CSINode":
                csi_node = msgspec.convert(written, CsiNode)
                index.set_stored("attach_limits", csi_node.metadata.name, storage.attach_limits_of(csi_node))
            case "VolumeAttachment":
                attachment = msgspec.convert(written, VolumeAttachment)
                index.set_stored("attachments", attachment.metadata.name, storage.attachment_of(attachment))
            case "CSIDriver":
                driver = msgspec.convert(written, CsiDriver)
                index.set_stored("metering_drivers", driver.metadata.name, driver.spec.storage_capacity or None)
            case "CSIStorageCapacity":
                space = msgspec.convert(written, CsiStorageCapacity)
                index.set_stored("space", f"{space.metadata.namespace}/{space.metadata.name}", storage.space_of(space))
    return spread_context


class FleetQuestion(msgspec.Struct, rename="camel"):
    clusters: list[Cluster]
    binding: ResourceBinding
    name: str = ""
    bindings: list[ResourceBinding] = []
    resources: list[dict[str, Any]] = []
    options: QuestionOptions = msgspec.field(default_factory=QuestionOptions)


class FleetSituation(msgspec.Struct):
    """A question of `decide fleet`, ready to be decided."""

    index: PlacementIndex
    workload: Workload


def fleet_situation_of(question: FleetQuestion) -> FleetSituation:
    """The fleet of the question in an index, and its binding as a workload."""
    options, semantics = question.options, semantics_of(question.options)
    keys = LabelKeys(_frozen(options.affinity_label_keys), _frozen(options.anti_affinity_label_keys))
    context = bindings.BindingContext(semantics, keys)
    templates = {_reference(resource): resource for resource in reversed(question.resources)}
    index = PlacementIndex(for_fleets(semantics), lost_targets_count=True)
    for resource in question.resources:
        if resource.get("kind") == "Namespace":
            metadata = resource.get("metadata") or {}
            index.set_namespace(metadata.get("name") or "", metadata.get("labels") or {})
    for cluster in question.clusters:
        index.add_target(targets.target_of_cluster(cluster))
    binding = question.binding
    own = {
        (
            binding.spec.resource.namespace,
            bindings.binding_name(binding.spec.resource.name, binding.spec.resource.kind),
        ),
        (binding.metadata.namespace, binding.metadata.name),
    }
    for other in question.bindings:
        if (other.metadata.namespace, other.metadata.name) not in own:
            workload = bindings.workload_of(other, templates.get(_template_of(other)), context)
            place_bindings.put_on(index, workload, bindings.shares_of(other), bindings.draining_from(other))
    return FleetSituation(index, bindings.workload_of(binding, templates.get(_template_of(binding)), context))


Reference = tuple[str, str, str, str]


def _template_of(binding: ResourceBinding) -> Reference:
    resource = binding.spec.resource
    return resource.api_version, resource.kind, resource.namespace, resource.name


def _reference(resource: dict[str, Any]) -> Reference:
    metadata = resource.get("metadata") or {}
    named = (resource.get("apiVersion"), resource.get("kind"), metadata.get("namespace"), metadata.get("name"))
    return tuple(text or "" for text in named)  # type: ignore[return-value]


def _frozen(keys: list[str] | None) -> tuple[str, ...] | None:
    return None if keys is None else tuple(keys)


class PreemptionSituation(msgspec.Struct):
    """A question of `decide preemption`; `nominated` are pending pods with their nominated nodes."""

    index: PlacementIndex
    workload: Workload
    profile: SchedulerProfile
    disruption_budgets: DisruptionBudgets
    nominated: list[tuple[Workload, str]]


def preemption_situation_of(question: PodQuestion) -> PreemptionSituation:
    """As for `decide pods`, with PodDisruptionBudgets; pending pods count if they are nominated."""
    _check_times(question)
    situation = pod_situation_of(question)
    written = [one for one in question.objects if one.get("kind") == "PodDisruptionBudget"]
    pending = [pod for pod in question.pods if not pod.spec.node_name and pod.status.phase not in pods.FINISHED]
    workloads = [pods.workload_of(pod, situation.spread_context) for pod in pending]
    return PreemptionSituation(
        situation.index,
        situation.workload,
        situation.profile,
        DisruptionBudgets(disruption_budgets.budget_of(msgspec.convert(one, PodDisruptionBudget)) for one in written),
        [(workload, workload.nominated_target) for workload in workloads],
    )


def _check_times(question: PodQuestion) -> None:
    for i, pod in enumerate(question.pods):
        try:
            timestamps.nanoseconds(pod.status.start_time or "1970-01-01T00:00:00Z")
        except ValueError as error:
            raise InputError(f"pods[{i}].status.startTime: {error}") from None


class AdmissionQuestion(msgspec.Struct):
    object: dict[str, Any]
    name: str = ""
    options: QuestionOptions = msgspec.field(default_factory=QuestionOptions)


def admission_causes(question: AdmissionQuestion) -> list[Cause]:
    """The causes of an API server's Status, then those of the rules in the options; no rules by default."""
    found = admission.validate_all(question.object)
    semantics = semantics_of(question.options)
    for rule in question.options.rules or ():
        settings = _guard_settings(rule)
        pod = pod_guard.read_pod_like(question.object, pods.DEFAULT_NAMESPACE)
        if pod is not None:
            found = found + pod_guard.guard_verdict(pod, semantics, settings).causes
    return found


def _guard_settings(rule: Any) -> GuardSettings:
    if rule == GUARD:
        return GuardSettings()
    if not isinstance(rule, dict) or set(rule) != {GUARD}:
        raise InputError(f"{_EXPECTED}, got {msgspec.json.encode(rule).decode()}")
    try:
        return msgspec.convert(rule[GUARD], GuardSettings)
    except msgspec.ValidationError as error:
        raise InputError(f"options.rules: {error}") from None
