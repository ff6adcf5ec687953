"""
The questions of `decide`, one JSON object each, loaded into an index, a workload and a scheduler profile.

Does not answer them, except those of `decide admission`, which need no index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from bayplan.controllers import pod_defaults
from bayplan.controllers.desired_state import DesiredState
from bayplan.enforcing import pod_guard
from bayplan.errors import Fault, InputError
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import bindings, disruption_budgets, pods, targets
from bayplan.mapping.bindings import LabelKeys
from bayplan.model.kubernetes_versions import DEFAULT_VERSION, KubernetesVersion, known_version
from bayplan.model.semantics import PRESETS, Semantics, for_fleets, preset_of
from bayplan.model.workloads import Workload
from bayplan.placing import place_bindings
from bayplan.preempting.disruption_budgets import DisruptionBudgets
from bayplan.reading import cluster, cluster_storage, scheduler_config
from bayplan.rules.profiles import SchedulerProfile
from bayplan.validating import admission, structure_faults
from bayplan.validating.fields import Cause
from bayplan.validating.guard import GuardSettings
from bayplan.validating.structure import Nulls
from bayplan.wire import conversion, kinds
from bayplan.wire.fleets import Cluster, ResourceBinding
from bayplan.wire.kinds import ApiKind, Trait
from bayplan.wire.meta import ApiObject
from bayplan.wire.nodes import Namespace, Node
from bayplan.wire.placements import WirePlacement
from bayplan.wire.pods import Pod

GUARD = "guard"
_EXPECTED = f'options.rules: expected "{GUARD}", or {{"{GUARD}": SETTINGS}}'


class QuestionOptions(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """How to decide: a preset, switches that override it, a scheduler configuration."""

    semantics: str = "upstream"
    kubernetes_version: str = DEFAULT_VERSION
    switches: dict[str, Any] = {}
    config: dict[str, Any] | None = None
    daemon_namespaces: list[str] | None = None
    affinity_label_keys: list[str] | None = None
    anti_affinity_label_keys: list[str] | None = None
    rules: list[Any] | None = None


def decoded(line: bytes, question: Any) -> Any:
    """The question of a line; a field that is null is absent, as for Kubernetes' decoders. Raises InputError."""
    try:
        return structure_faults.decode(line, question)
    except InputError as error:
        try:
            root = msgspec.json.decode(line)
        except structure_faults.UNDECODABLE:
            raise error from None
        return structure_faults.convert(conversion.without_nulls(root), question)


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
    version = known_version(options.kubernetes_version)
    if version is None:
        known = " or ".join(KubernetesVersion)
        raise InputError(f"options.kubernetesVersion: expected {known}, got {options.kubernetes_version!r}")
    # As plain values of JSON, which are all that a fault can be about.
    preset = msgspec.json.decode(msgspec.json.encode(preset_of(options.semantics, version)))
    if options.daemon_namespaces is not None:
        preset["daemonNamespaces"] = options.daemon_namespaces
    if "kubernetesVersion" in options.switches:
        raise InputError("options.switches.kubernetesVersion: is no switch; expected options.kubernetesVersion")
    semantics: Semantics = structure_faults.convert({**preset, **options.switches}, Semantics, "options.switches")
    return semantics


class PodSituation(msgspec.Struct):
    """
    A question of `decide pods`, ready to be decided; `nominated` are pending pods with their nominated nodes.

    `spread_context` spreads pods that are created again.
    """

    index: PlacementIndex
    workload: Workload
    profile: SchedulerProfile
    spread_context: pods.SpreadContext
    nominated: list[tuple[Workload, str]] = []
    pre_score_fault: str = ""  # with which kube-scheduler fails where some node is feasible


def pod_situation_of(question: PodQuestion) -> PodSituation:
    """The cluster of the question in an index, and its pod as a workload."""
    index = PlacementIndex(semantics_of(question.options))
    for namespace in question.namespaces:
        index.set_namespace(namespace.metadata.name, namespace.metadata.labels or {})
    spread_context = _objects(question.objects, index)
    for position, node in enumerate(question.nodes):
        with _faults_at(f"nodes[{position}]"):
            index.add_target(targets.target_of_node(node))
    nominated: list[tuple[Workload, str]] = []
    for position, pod in enumerate(question.pods):
        if pod.status.phase in pods.FINISHED or not (pod.spec.node_name or pod.status.nominated_node_name):
            continue
        with _faults_at(f"pods[{position}]"):
            other = _workload_of(pod, spread_context)
            if pod.spec.node_name:
                index.add(other, pod.spec.node_name)
            else:  # spread constraints count it although it may be deleted, as in kube-scheduler
                nominated.append((msgspec.structs.replace(other, terminating=False), other.nominated_target))
    with _faults_at("pod"):
        workload = _workload_of(question.pod, spread_context)
    fault = workload.needs.node_affinity.fault
    workload = msgspec.structs.replace(
        workload,
        requested_target=question.pod.spec.node_name,
        unplaceable="" if workload.unplaceable == fault else workload.unplaceable,
    )
    profile = scheduler_config.profile_of(
        question.options.config, workload.scheduler_name, index.semantics.kubernetes_version
    )
    pre_score_fault = fault if "NodeAffinity" in profile.pre_score else ""
    return PodSituation(index, workload, profile, spread_context, nominated, pre_score_fault)


def _workload_of(pod: Pod, spread_context: pods.SpreadContext) -> Workload:
    """The pod as an API server would have stored it."""
    stored = msgspec.structs.replace(pod, spec=pod_defaults.with_defaults(pod.spec))
    return pods.workload_of(stored, spread_context)


@contextmanager
def _faults_at(path: str) -> Iterator[None]:
    """Faults in the block are of the object at this path of the question."""
    try:
        yield
    except InputError as error:
        found = [Fault(f.message, path=f"{path}.{f.path}" if f.path else path) for f in error.faults]
        raise InputError(found) from None


def _objects(objects: list[dict[str, Any]], index: PlacementIndex) -> pods.SpreadContext:
    """Add the storage objects to the index; returns the context in which pods are mapped."""
    # The question has lists of its own for nodes, pods and namespaces.
    rows = [row for row in kinds.having(Trait.DECIDES) if row.held_in not in PodQuestion.__struct_fields__]
    state = _decoded_objects(objects, rows)
    cluster_storage.add_storage(state, index)
    return cluster.spread_context_of(state)


def _decoded_objects(objects: list[dict[str, Any]], rows: Iterable[ApiKind]) -> DesiredState:
    """The objects of these kinds; raises InputError with the faults of all of them."""
    state, by_name = DesiredState(), {row.kind: row for row in rows}
    faults: list[Fault] = []
    for position, written in enumerate(objects):
        kind = written.get("kind")
        row = by_name.get(kind) if isinstance(kind, str) else None
        if row is None or row.wire_type is None:
            continue
        try:
            found: ApiObject = structure_faults.convert(written, row.wire_type, f"objects[{position}]")
        except InputError as error:
            faults += error.faults
        else:
            state.list_of(row).append(found)
    if faults:
        raise InputError(faults)
    return state


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
    _check_placements_and_resources(question)
    options, semantics = question.options, semantics_of(question.options)
    keys = LabelKeys(_frozen(options.affinity_label_keys), _frozen(options.anti_affinity_label_keys))
    context = bindings.BindingContext(semantics, keys)
    templates = {_reference(resource): resource for resource in reversed(question.resources)}
    index = PlacementIndex(for_fleets(semantics), lost_targets_count=True)
    for resource in question.resources:
        if resource.get("kind") == "Namespace":
            metadata = resource.get("metadata") or {}
            index.set_namespace(metadata.get("name") or "", metadata.get("labels") or {})
    for position, member in enumerate(question.clusters):
        with _faults_at(f"clusters[{position}]"):
            index.add_target(targets.target_of_cluster(member))
    binding = question.binding
    own = {
        (
            binding.spec.resource.namespace,
            bindings.binding_name(binding.spec.resource.name, binding.spec.resource.kind),
        ),
        (binding.metadata.namespace, binding.metadata.name),
    }
    for position, other in enumerate(question.bindings):
        if (other.metadata.namespace, other.metadata.name) not in own:
            with _faults_at(f"bindings[{position}]"):
                workload = bindings.workload_of(other, templates.get(_template_of(other)), context)
                place_bindings.put_on(index, workload, bindings.shares_of(other), bindings.draining_from(other))
    with _faults_at("binding"):
        return FleetSituation(index, bindings.workload_of(binding, templates.get(_template_of(binding)), context))


def _check_placements_and_resources(question: FleetQuestion) -> None:
    """Raise InputError for values of wrong types where a question holds objects as they are written."""
    listed = {f"bindings[{position}]": binding for position, binding in enumerate(question.bindings)}
    faults = [
        fault
        for path, binding in {"binding": question.binding, **listed}.items()
        for fault in structure_faults.faults(
            binding.spec.placement, WirePlacement, f"{path}.spec.placement", nulls=Nulls.FIELDS
        )
    ]
    for position, resource in enumerate(question.resources):
        faults += structure_faults.faults(resource, ApiObject, f"resources[{position}]", nulls=Nulls.FIELDS)
    if faults:
        raise InputError(faults)


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
    situation = pod_situation_of(question)
    budgets = _decoded_objects(question.objects, kinds.held_in("disruption_budgets")).disruption_budgets
    return PreemptionSituation(
        situation.index,
        situation.workload,
        situation.profile,
        DisruptionBudgets(map(disruption_budgets.budget_of, budgets)),
        situation.nominated,
    )


class AdmissionQuestion(msgspec.Struct):
    object: dict[str, Any]
    name: str = ""
    options: QuestionOptions = msgspec.field(default_factory=QuestionOptions)


def admission_causes(question: AdmissionQuestion) -> list[Cause]:
    """The causes of an API server's Status, then those of the rules in the options; no rules by default."""
    semantics = semantics_of(question.options)
    found = admission.validate_all(question.object, semantics.kubernetes_version)
    if semantics.empty_topology_key_means_any:
        found = admission.without_empty_keys(found)
    for position, rule in enumerate(question.options.rules or ()):
        settings = _guard_settings(rule, f"options.rules[{position}]")
        pod = pod_guard.read_pod_like(question.object, pods.DEFAULT_NAMESPACE)
        if pod is not None:
            found = found + pod_guard.guard_verdict(pod, semantics, settings).causes
    return found


def _guard_settings(rule: Any, path: str) -> GuardSettings:
    if rule == GUARD:
        return GuardSettings()
    if not isinstance(rule, dict) or set(rule) != {GUARD}:
        raise InputError(f"{_EXPECTED}, got {msgspec.json.encode(rule).decode()}")
    settings: GuardSettings = structure_faults.convert(rule[GUARD], GuardSettings, f"{path}.{GUARD}")
    return settings
