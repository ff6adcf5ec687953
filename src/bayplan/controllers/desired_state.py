"""
The objects of a cluster or a fleet by kind, and which pods belong to which controller.

Controllers compare the two to find which pods are missing. Does not know where the objects came from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from bayplan.controllers import custom_kinds
from bayplan.controllers.custom_kinds import CustomKind, GroupKind
from bayplan.errors import Fault
from bayplan.mapping import selectors
from bayplan.mapping.pods import FINISHED, controller_of
from bayplan.model import labels as label_model
from bayplan.model.node_selectors import NAME_FIELD
from bayplan.wire import kinds
from bayplan.wire.admission import LimitRange, ResourceQuota, RuntimeClass, WebhookConfiguration
from bayplan.wire.controllers import (
    AnyController,
    Controller,
    CronJob,
    HorizontalPodAutoscaler,
    PodDisruptionBudget,
    PriorityClass,
    ReplicationController,
    Service,
)
from bayplan.wire.custom import CustomObject
from bayplan.wire.fleets import (
    Cluster,
    ClusterTaintPolicy,
    ResourceBinding,
    ResourceInterpreterCustomization,
    ResourceInterpreterWebhookConfiguration,
    WorkloadRebalancer,
)
from bayplan.wire.kinds import ApiKind
from bayplan.wire.meta import ApiObject, OwnerReference
from bayplan.wire.nodes import Namespace, Node
from bayplan.wire.placements import PropagationPolicy
from bayplan.wire.pods import CoschedulingPodGroup, Pod, PodGroup
from bayplan.wire.storage import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    VolumeAttachment,
    WireStorageClass,
)

SUCCEEDED = "Succeeded"
INDEX_KEY = "batch.kubernetes.io/job-completion-index"
TEMPLATE_HASH = "pod-template-hash"
REVISION_HASH = "controller-revision-hash"
TEMPLATE_GENERATION = "pod-template-generation"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_DELETION_COST = re.compile(r"0|-?[1-9][0-9]{0,10}", re.ASCII)
_PHASES = {"Pending": 0, "Unknown": 1}
_READY_BY_DEFAULT = ("", "Running")
_NO_RESTARTS = (0, 0)
_NOTHING: dict[str, str] = {}


class ObjectKey(NamedTuple):
    """The identity of an object: no two objects of the input share it."""

    kind: str
    namespace: str
    name: str


TemplateKey = tuple[str, str, str, str]  # version, kind, namespace and name of a resource template


class PodEntry(msgspec.Struct, frozen=True, gc=False):
    """
    The little that controllers need to know of one pod, so that dumps of any size can be counted.

    `node` is where the pod runs, or where the pod of a DaemonSet must run once it is `assigned`. `index` is the
    completion index of a Job's pod, `revision` the hash of the template that the pod was made from and `generation` a
    DaemonSet's. `phase` is 0 for pending, 1 for unknown, 2 for running. Times are as written, empty if unknown.
    """

    name: str
    owner_uid: str = ""
    active: bool = True
    succeeded: bool = False
    node: str = ""
    index: str = ""
    uid: str = ""
    assigned: bool = False
    terminating: bool = False
    phase: int = 2
    ready: bool = False
    ready_since: str = ""
    restarts: tuple[int, int] = (0, 0)
    created: str = ""
    deletion_cost: int = 0
    revision: str = ""
    generation: str = ""


_Orphan = tuple[dict[str, str], PodEntry]  # the labels of a pod without an owner, and its entry


class PodInventory(msgspec.Struct):
    """Pods by their controller (namespace, kind, name); pods without one by namespace, with their labels."""

    owned: dict[tuple[str, str, str], list[PodEntry]] = msgspec.field(default_factory=dict)
    orphans: dict[str, list[_Orphan]] = msgspec.field(default_factory=dict)
    names: set[str] = msgspec.field(default_factory=set)

    def add(self, pod: Pod) -> None:
        """Record one pod, which has its namespace already."""
        self.names.add(f"{pod.metadata.namespace}/{pod.metadata.name}")
        self.add_named(pod)

    def add_named(self, pod: Pod) -> None:
        """Record one pod whose name is among the `names` already."""
        meta = pod.metadata
        owner = controller_of(meta)
        entry = entry_of(pod, owner)
        if owner is None:
            self.orphans.setdefault(meta.namespace, []).append((meta.labels or {}, entry))
        else:
            self.owned.setdefault((meta.namespace, owner.kind, owner.name), []).append(entry)


def entry_of(pod: Pod, owner: OwnerReference | None) -> PodEntry:
    """The entry of one pod, which its controller `owner` manages. Called for every pod of a dump, so it is fast."""
    meta, status, node = pod.metadata, pod.status, pod.spec.node_name
    phase, labels, annotations = status.phase, meta.labels or _NOTHING, meta.annotations or _NOTHING
    is_terminating = meta.deletion_timestamp is not None
    # A running pod without the condition was written by hand, or its status was left out: it counts as ready.
    ready, ready_since = bool(node) and phase in _READY_BY_DEFAULT, ""
    for condition in status.conditions or ():
        if condition.type == "Ready":
            ready, ready_since = condition.status == "True", condition.last_transition_time or ""
            break
    restarts = _NO_RESTARTS
    for container in status.container_statuses or ():
        if container.restart_count:
            restarts = _restarts(pod)
            break
    if status.init_container_statuses:
        restarts = _restarts(pod)
    return PodEntry(
        meta.name,
        owner.uid if owner else "",
        not is_terminating and phase not in FINISHED,
        phase == SUCCEEDED,
        node or _required_node(pod) if owner is None or owner.kind == "DaemonSet" else node,
        labels.get(INDEX_KEY) or annotations.get(INDEX_KEY, ""),
        meta.uid,
        bool(node),
        is_terminating,
        _PHASES.get(phase, 2) if node else 0,
        ready,
        ready_since,
        restarts,
        meta.creation_timestamp or "",
        _deletion_cost(annotations[DELETION_COST]) if DELETION_COST in annotations else 0,
        labels.get(REVISION_HASH) or labels.get(TEMPLATE_HASH, ""),
        labels.get(TEMPLATE_GENERATION, ""),
    )


def _restarts(pod: Pod) -> tuple[int, int]:
    """The highest number of restarts of a container and of a sidecar (pkg/controller/controller_utils.go)."""
    sidecars = {one.name for one in pod.spec.init_containers or () if one.restart_policy == "Always"}
    statuses = (one for one in pod.status.init_container_statuses or () if one.name in sidecars)
    return (
        max((one.restart_count for one in pod.status.container_statuses or ()), default=0),
        max((one.restart_count for one in statuses), default=0),
    )


def _deletion_cost(written: str) -> int:
    """A pod without a valid cost has cost 0, as upstream (pkg/apis/core/helper/helpers.go)."""
    if not _DELETION_COST.fullmatch(written):
        return 0
    cost = int(written)
    return cost if -(2**31) <= cost < 2**31 else 0


def _required_node(pod: Pod) -> str:
    """The node of a DaemonSet's pod, or the only one that its affinity allows."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    for term in (required.node_selector_terms if required else None) or ():
        for field in term.match_fields or ():
            if field.key == NAME_FIELD and field.values:
                return field.values[0]
    return ""


class DesiredState(msgspec.Struct, kw_only=True):
    """
    Objects by kind, each list in the order given.

    `controllers` has a list for each kind of controller. `policies` and `bindings` hold both the namespaced and the
    cluster-scoped kind. `templates` are objects of any other kind, which only a fleet reads, by their metadata;
    `template_contents` has the whole of those whose kinds have no row in the registry.
    `custom_objects` are of the kinds in the table `custom_kinds`, which make pods; `unread_objects` have a pod template
    too, but how many pods are made from it is not known. `inventory` records which pods exist, including pods that a
    sink has consumed.

    `has_state` if what runs was given as such. If a change is applied on it, the lists hold the objects after it.
    `change` has the identities of its objects, None if there is none, and `altered` those of the objects that are new
    or differ from the state. `replaced` are objects of the state that it replaces, as they were; `rolled_out` names the
    controllers among them whose pod template differs, `assumed_changed` those that the state lacks. `set_aside` has a
    fault for each object of the state that cannot be read. If `context_complete`, an API server listed the state:
    except for the kinds in `unlisted`, what is not in it does not exist.
    """

    nodes: list[Node] = msgspec.field(default_factory=list)
    pods: list[Pod] = msgspec.field(default_factory=list)
    namespaces: list[Namespace] = msgspec.field(default_factory=list)
    services: list[Service] = msgspec.field(default_factory=list)
    controllers: dict[str, list[AnyController]] = msgspec.field(
        default_factory=lambda: {row.kind: [] for row in kinds.held_in(kinds.CONTROLLERS)}
    )
    cron_jobs: list[CronJob] = msgspec.field(default_factory=list)
    autoscalers: list[HorizontalPodAutoscaler] = msgspec.field(default_factory=list)
    limit_ranges: list[LimitRange] = msgspec.field(default_factory=list)
    resource_quotas: list[ResourceQuota] = msgspec.field(default_factory=list)
    runtime_classes: list[RuntimeClass] = msgspec.field(default_factory=list)
    mutating_webhooks: list[WebhookConfiguration] = msgspec.field(default_factory=list)
    validating_webhooks: list[WebhookConfiguration] = msgspec.field(default_factory=list)
    volumes: list[PersistentVolume] = msgspec.field(default_factory=list)
    claims: list[PersistentVolumeClaim] = msgspec.field(default_factory=list)
    storage_classes: list[WireStorageClass] = msgspec.field(default_factory=list)
    csi_nodes: list[CsiNode] = msgspec.field(default_factory=list)
    volume_attachments: list[VolumeAttachment] = msgspec.field(default_factory=list)
    csi_drivers: list[CsiDriver] = msgspec.field(default_factory=list)
    storage_capacities: list[CsiStorageCapacity] = msgspec.field(default_factory=list)
    priority_classes: list[PriorityClass] = msgspec.field(default_factory=list)
    disruption_budgets: list[PodDisruptionBudget] = msgspec.field(default_factory=list)
    pod_groups: list[PodGroup | CoschedulingPodGroup] = msgspec.field(default_factory=list)
    clusters: list[Cluster] = msgspec.field(default_factory=list)
    policies: list[PropagationPolicy] = msgspec.field(default_factory=list)
    bindings: list[ResourceBinding] = msgspec.field(default_factory=list)
    taint_policies: list[ClusterTaintPolicy] = msgspec.field(default_factory=list)
    rebalancers: list[WorkloadRebalancer] = msgspec.field(default_factory=list)
    customizations: list[ResourceInterpreterCustomization] = msgspec.field(default_factory=list)
    interpreter_webhooks: list[ResourceInterpreterWebhookConfiguration] = msgspec.field(default_factory=list)
    templates: list[ApiObject] = msgspec.field(default_factory=list)
    template_contents: dict[TemplateKey, Mapping[str, Any]] = msgspec.field(default_factory=dict)
    inventory: PodInventory = msgspec.field(default_factory=PodInventory)
    custom_objects: list[CustomObject] = msgspec.field(default_factory=list)
    unread_objects: list[CustomObject] = msgspec.field(default_factory=list)
    custom_kinds: dict[GroupKind, CustomKind] = msgspec.field(default_factory=custom_kinds.table)
    has_state: bool = False
    change: set[ObjectKey] | None = None
    replaced: dict[ObjectKey, Any] = msgspec.field(default_factory=dict)
    altered: set[ObjectKey] = msgspec.field(default_factory=set)
    rolled_out: set[ObjectKey] = msgspec.field(default_factory=set)
    assumed_changed: list[ObjectKey] = msgspec.field(default_factory=list)
    set_aside: list[Fault] = msgspec.field(default_factory=list)
    context_complete: bool = False
    unlisted: set[str] = msgspec.field(default_factory=set)

    def is_changed(self, found: ApiObject) -> bool:
        """Whether the object is about to be applied: it is in the change, or written by hand if nothing else runs."""
        meta = found.metadata
        if self.change is None:
            return not self.has_state and not meta.uid and not meta.resource_version
        return ObjectKey(found.kind, meta.namespace, meta.name) in self.change

    def is_created(self, key: ObjectKey) -> bool:
        """Whether the change creates the object: the state does not have it."""
        return self.change is not None and key in self.change and key not in self.replaced

    def knows_all(self, kind: str) -> bool:
        """Whether an object of this kind that is not in the state does not exist."""
        return self.context_complete and kind not in self.unlisted

    def list_of(self, row: ApiKind) -> list[Any]:
        """The list that holds objects of this kind, which is one of those that are decoded."""
        if row.held_in == kinds.CONTROLLERS:
            return self.controllers[row.kind]
        found: list[Any] = getattr(self, row.held_in)
        return found

    def fault(self, owner: ApiObject, message: str, path: str) -> Fault:
        """A fault of one object, naming the object."""
        meta = owner.metadata
        return Fault(message, subject=f"{owner.kind} {meta.namespace}/{meta.name}", path=path)

    def is_of_state(self, owner: ApiObject) -> bool:
        """Whether the object runs already, and is no part of the change: then it is read as far as possible."""
        meta = owner.metadata
        return self.has_state and ObjectKey(owner.kind, meta.namespace, meta.name) not in (self.change or ())

    def namespace_names(self) -> set[str]:
        """Every namespace that the input defines or uses."""
        lists = (self.list_of(row) for row in kinds.decoded())
        found = {one.metadata.namespace for objects in (*lists, self.templates) for one in objects}
        found |= {name.partition("/")[0] for name in self.inventory.names}
        return (found | {namespace.metadata.name for namespace in self.namespaces}) - {""}


class PodOwnership:
    """Finds pods by owner reference, else by selector. A pod without an owner is adopted by one controller only."""

    def __init__(self, inventory: PodInventory, replica_sets: Iterable[AnyController]) -> None:
        self._inventory = inventory
        self._adopted_pods: set[tuple[str, str]] = set()
        self._orphans_by_label: dict[str, dict[tuple[str, str], list[_Orphan]]] = {}
        known: set[tuple[str, str]] = set()
        # By namespace and the name of the Deployment; those without an owner under None.
        self._replica_sets: dict[tuple[str, str | None], list[tuple[int, Controller]]] = {}
        for position, one in enumerate(replica_sets):
            if isinstance(one, Controller):
                meta, owner = one.metadata, controller_of(one.metadata)
                known.add((meta.namespace, meta.name))
                if owner is None or owner.kind == "Deployment":
                    key = meta.namespace, owner.name if owner else None
                    self._replica_sets.setdefault(key, []).append((position, one))
        # ReplicaSets that only their pods mention, by the Deployment from whose name theirs is derived.
        self._missing_sets: dict[tuple[str, str], list[str]] = {}
        for namespace, kind, name in inventory.owned:
            if kind == "ReplicaSet" and (namespace, name) not in known:
                self._missing_sets.setdefault((namespace, name.rpartition("-")[0]), []).append(name)

    def members(self, controller: AnyController) -> list[PodEntry]:
        """The controller's own pods, finished ones included, and the pods without an owner that it would adopt."""
        meta = controller.metadata
        owned = self._inventory.owned.get((meta.namespace, controller.kind, meta.name), ())
        return [m for m in owned if _may_be_same(m.owner_uid, meta.uid)] + list(self._adopted(controller))

    def has_pods(self, controller: AnyController) -> bool:
        """Whether pods that are not finished name the controller as their owner, a Deployment by its ReplicaSets."""
        meta = controller.metadata
        owners = [(meta.namespace, controller.kind, meta.name)]
        if isinstance(controller, Controller) and controller.kind == "Deployment":
            sets = [one.metadata.name for one in self.replica_sets(controller)]
            sets += self._missing_sets.get((meta.namespace, meta.name), ())
            owners = [(meta.namespace, "ReplicaSet", name) for name in sets]
        return any(pod.active for owner in owners for pod in self._inventory.owned.get(owner, ()))

    def members_by_set(self, deployment: Controller) -> dict[str, list[PodEntry]]:
        """The Deployment's pods by the name of a ReplicaSet that is not in the input; pods without one under ""."""
        meta = deployment.metadata
        found = {
            name: self._inventory.owned[meta.namespace, "ReplicaSet", name]
            for name in self._missing_sets.get((meta.namespace, meta.name), ())
        }
        return {**found, "": list(self._adopted(deployment))}

    def replica_sets(self, deployment: Controller) -> list[Controller]:
        """The ReplicaSets of the input that belong to the Deployment, by owner, else by selector."""
        meta = deployment.metadata
        listed = [one for name in (meta.name, None) for one in self._replica_sets.get((meta.namespace, name), ())]
        return [
            candidate for _, candidate in sorted(listed, key=lambda one: one[0]) if _belongs_to(candidate, deployment)
        ]

    def _adopted(self, controller: AnyController) -> Iterator[PodEntry]:
        selector = selector_of(controller)
        namespace = controller.metadata.namespace
        for labels, entry in self._candidates(namespace, selector):
            if (
                (namespace, entry.name) not in self._adopted_pods
                and label_model.matches(selector, labels)
                and _may_adopt(controller, labels, entry.name)
            ):
                self._adopted_pods.add((namespace, entry.name))
                yield entry

    def _candidates(self, namespace: str, selector: label_model.Selector | None) -> list[_Orphan]:
        """Pods without an owner among which are all that the selector matches."""
        orphans = self._inventory.orphans.get(namespace)
        if not orphans or selector is None:
            return []
        label = next((one for one in selector.requirements if one.operator == label_model.IN), None)
        if label is None or len(label.values) != 1:
            return orphans
        by_label = self._orphans_by_label.get(namespace)
        if by_label is None:
            by_label = self._orphans_by_label[namespace] = {}
            for orphan in orphans:
                for pair in orphan[0].items():
                    by_label.setdefault(pair, []).append(orphan)
        return by_label.get((label.key, label.values[0]), [])


def _may_adopt(controller: AnyController, labels: Mapping[str, str], name: str) -> bool:
    """
    Whether the controller takes a pod that its selector matches.

    The selector of a ReplicaSet has the hash of its template, so a Deployment takes no pod without one; a StatefulSet
    takes only pods that have a name of its own.
    """
    if controller.kind == "Deployment":
        return TEMPLATE_HASH in labels
    if controller.kind == "StatefulSet":
        before, _, ordinal = name.rpartition("-")
        return before == controller.metadata.name and ordinal.isascii() and ordinal.isdecimal()
    return True


def _belongs_to(replica_set: Controller, deployment: Controller) -> bool:
    """Whether a ReplicaSet of the namespace, which no other Deployment owns, is one of the Deployment's."""
    owner = controller_of(replica_set.metadata)
    if owner is not None:
        return _may_be_same(owner.uid, deployment.metadata.uid)
    return label_model.matches(selector_of(deployment), replica_set.spec.template.metadata.labels or {})


def selector_of(controller: AnyController) -> label_model.Selector | None:
    """Selects the pods that the controller would adopt; None, which matches nothing, if it has no selector."""
    if isinstance(controller, ReplicationController):
        chosen = controller.spec.selector or controller.spec.template.metadata.labels
        return label_model.equals(chosen) if chosen else None
    return selectors.selector_of(controller.spec.selector)


def _may_be_same(uid: str, other: str) -> bool:
    """Whether two uids may belong to one object: hand-written objects have none."""
    return not uid or not other or uid == other
