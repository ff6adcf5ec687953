"""Questions of `decide`: one JSON object each → an index, a workload and the rules to ask."""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.errors import InputError
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import bindings, disruption_budgets, pods, storage, targets
from bayplan.mapping.workload_terms import LabelKeys
from bayplan.model import timestamps
from bayplan.model.semantics import PRESETS, Semantics, for_fleets
from bayplan.model.workloads import Workload
from bayplan.placing import place_bindings
from bayplan.preempting.disruption_budgets import DisruptionBudgets
from bayplan.reading import scheduler_config
from bayplan.rules.profiles import SchedulerProfile
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


class Options(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """How to decide: a preset, single switches on top of it, a scheduler configuration."""

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
    options: Options = msgspec.field(default_factory=Options)


def semantics_of(options: Options) -> Semantics:
    """The preset with the switches set on it."""
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


class Situation(msgspec.Struct):
    """A question made ready to be decided."""

    index: PlacementIndex
    workload: Workload
    profile: SchedulerProfile
    spread_context: pods.SpreadContext


def situation_of(question: PodQuestion) -> Situation:
    """The cluster of the question in an index, its pod as a workload."""
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
    return Situation(index, workload, profile, spread_context)


def _objects(objects: list[dict[str, Any]], index: PlacementIndex) -> pods.SpreadContext:
    """Put storage into the index; return what pods are read against."""
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
    options: Options = msgspec.field(default_factory=Options)


class FleetSituation(msgspec.Struct):
    """A question about a fleet made ready to be decided."""

    index: PlacementIndex
    workload: Workload


def fleet_situation_of(question: FleetQuestion) -> FleetSituation:
    """The fleet of the question in an index, its binding as a workload."""
    options, semantics = question.options, semantics_of(question.options)
    keys = LabelKeys(_frozen(options.affinity_label_keys), _frozen(options.anti_affinity_label_keys))
    how = bindings.BindingContext(semantics, keys)
    templates = {_reference(resource): resource for resource in reversed(question.resources)}
    index = PlacementIndex(for_fleets(semantics), lost_targets_count=True)
    for resource in question.resources:
        if resource.get("kind") == "Namespace":
            metadata = resource.get("metadata") or {}
            index.set_namespace(metadata.get("name") or "", metadata.get("labels") or {})
    for cluster in question.clusters:
        index.add_target(targets.target_of_cluster(cluster))
    asked = question.binding
    own = {
        (asked.spec.resource.namespace, bindings.binding_name(asked.spec.resource.name, asked.spec.resource.kind)),
        (asked.metadata.namespace, asked.metadata.name),
    }
    for other in question.bindings:
        if (other.metadata.namespace, other.metadata.name) not in own:
            workload = bindings.workload_of(other, templates.get(_template_of(other)), how)
            place_bindings.put_on(index, workload, bindings.shares_of(other), bindings.draining_from(other))
    return FleetSituation(index, bindings.workload_of(asked, templates.get(_template_of(asked)), how))


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


# RF merged from reading.preemption_questions: Questions of `decide preemption`: those of `decide pods`, with budgets
# and with pods that were promised a node.


class PreemptionSituation(msgspec.Struct):
    """A question made ready to be decided; `nominated` are waiting pods with the nodes they were promised."""

    index: PlacementIndex
    workload: Workload
    profile: SchedulerProfile
    disruption_budgets: DisruptionBudgets
    nominated: list[tuple[Workload, str]]


def preemption_situation_of(question: PodQuestion) -> PreemptionSituation:
    """As for `decide pods`; pods without a node count if one was promised to them."""
    _check_times(question)
    situation = situation_of(question)
    written = [msgspec.convert(one, PodDisruptionBudget) for one in question.objects if _is_budget(one)]
    waiting = [pod for pod in question.pods if not pod.spec.node_name and pod.status.phase not in pods.FINISHED]
    workloads = [pods.workload_of(pod, situation.spread_context) for pod in waiting]
    return PreemptionSituation(
        situation.index,
        situation.workload,
        situation.profile,
        DisruptionBudgets(disruption_budgets.budget_of(each) for each in written),
        [(workload, workload.nominated_target) for workload in workloads],
    )


def _is_budget(written: dict[str, object]) -> bool:
    return written.get("kind") == "PodDisruptionBudget"


def _check_times(question: PodQuestion) -> None:
    for i, pod in enumerate(question.pods):
        try:
            timestamps.nanoseconds(pod.status.start_time or "1970-01-01T00:00:00Z")
        except ValueError as error:
            raise InputError(f"pods[{i}].status.startTime: {error}") from None
