"""
The input loaded as a cluster: an index of what runs, and the pods that wait for a node.

Controllers' missing pods are created first. Does not schedule anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, TypeVar

import msgspec

from bayplan.controllers import autoscalers, pod_admission, pod_creation, pod_defaults, resource_quotas
from bayplan.controllers.autoscalers import CURRENT, AssumedLoad
from bayplan.controllers.created_objects import CreatedObjects, key_of
from bayplan.controllers.desired_state import DesiredState, ObjectKey
from bayplan.controllers.pod_admission import PodAdmission, RefusedPod
from bayplan.controllers.resource_quotas import ChargedShape, QuotaLedger
from bayplan.errors import Fault, InputError
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import disruption_budgets, pod_shapes, pods, storage, targets
from bayplan.model.semantics import UPSTREAM, Semantics
from bayplan.model.terms import NAME_LABEL
from bayplan.model.workloads import Workload, WorkloadKey, queue_order
from bayplan.placing.place_cluster import ClusterToPlace
from bayplan.reading import files
from bayplan.reading.collecting import Inputs
from bayplan.reading.files import ReadOptions
from bayplan.validating import admission, controllers
from bayplan.wire import kinds
from bayplan.wire.controllers import Controller
from bayplan.wire.kinds import Trait
from bayplan.wire.meta import ApiObject
from bayplan.wire.pods import Pod
from bayplan.wire.storage import CsiDriver, PersistentVolumeClaim

if TYPE_CHECKING:
    from bayplan.controllers.rollouts import Rollout

ENFORCED, PRIVILEGED = "pod-security.kubernetes.io/enforce", "privileged"
IS_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_MAX_NAMES_SHOWN = 3
Found = TypeVar("Found", bound=ApiObject)
Mapped = TypeVar("Mapped")


class PodSink(msgspec.Struct, eq=False):
    """
    Receives pods as they are read. Running pods are reduced at once, pending pods are kept as written.

    `charged` has what each of the running pods is charged by if there are quotas, in their order. `priority_class_of`
    has the priority classes of running pods that were written by hand, without a priority, by their positions;
    `unplaceable` says of running pods that no API server checked what is wrong with them. `unscheduled` are pods on a
    node that no server has stored.
    """

    running: list[tuple[Workload, str]] = []
    pending: list[Pod] = []
    charged: list[ChargedShape] = []
    priority_class_of: dict[int, str] = {}
    unplaceable: dict[WorkloadKey, str] = {}
    unscheduled: dict[WorkloadKey, Pod] = {}

    def __call__(self, pod: Pod) -> None:
        if pod.status.phase in pods.FINISHED:
            return
        if not pod.spec.node_name:
            self.pending.append(pod)
            return
        shape, spec = pod_shapes.shape_of(pod_defaults.defaulted(pod)), pod.spec
        workload = pods.workload_of(pod, shape=shape)
        if spec.priority is None:
            self.priority_class_of[len(self.running)] = spec.priority_class_name
        self.charged.append(
            resource_quotas.charged_shape(shape, spec.active_deadline_seconds, spec.priority_class_name)
        )
        self.running.append((workload, spec.node_name))
        if workload.unplaceable:
            self.unplaceable[workload.key] = workload.unplaceable
        if not pod.metadata.uid:
            self.unscheduled[workload.key] = pod

    def hold_back(self, is_created: Callable[[ObjectKey], bool]) -> None:
        """Let pods wait that the change creates, although they name their node: it may be gone, or full."""
        created = {
            key: pod
            for key, pod in self.unscheduled.items()
            if is_created(ObjectKey("Pod", pod.metadata.namespace, pod.metadata.name))
        }
        if created:
            kept = [n for n, (workload, _) in enumerate(self.running) if workload.key not in created]
            self.running, self.charged = [self.running[n] for n in kept], [self.charged[n] for n in kept]
            classes = self.priority_class_of
            self.priority_class_of = {after: classes[n] for after, n in enumerate(kept) if n in classes}
            self.pending.extend(created.values())


class LoadedCluster(ClusterToPlace, kw_only=True):
    """
    The cluster with `notes`, which say what was skipped or created.

    `n_set_aside` objects of the state could not be read. `n_unread` counts what may matter and is not read: policies
    and pod security standards, which may change or refuse pods, objects of the change of unknown kinds, and fields that
    a merge keeps and other tools may remove. `not_judged_objects` make pods in a way that cannot be read. `made_for`
    leads from each created pod to the object of the input that it is made for.
    """

    notes: list[str] = msgspec.field(default_factory=list)
    n_set_aside: int = 0
    n_unread: int = 0
    not_judged_objects: list[tuple[ObjectKey, str]] = msgspec.field(default_factory=list)
    made_for: dict[WorkloadKey, ObjectKey] = msgspec.field(default_factory=dict)


def load(options: ReadOptions, seed: str = "") -> LoadedCluster:
    """The cluster that the input describes."""
    inputs, sink = read(options)
    return cluster_of(inputs, semantics=options.semantics, seed=seed, sink=sink)


@files.gc_paused()
def read(options: ReadOptions) -> tuple[Inputs, PodSink]:
    """
    The whole input. Pods are reduced as they are read, unless the options have a sink for them.

    Raises InputError for all that an API server would reject in hand-written objects; objects of a dump were admitted.
    """
    sink = PodSink()
    inputs = files.load(msgspec.structs.replace(options, sinks={kinds.POD: sink, **options.sinks}))
    rejected = admission_faults(inputs, options.semantics) if options.strict else []
    if rejected:
        raise InputError(rejected)
    return inputs, sink


def admission_faults(inputs: Inputs, semantics: Semantics) -> list[Fault]:
    """What an API server would reject in hand-written objects, except what only the semantics allow."""
    found = []
    for key, document in inputs.documents.items():
        # Decoding JSON without lines is enough here: locating fields is slow and rarely needed.
        content = msgspec.json.decode(document.text) if document.root is None else dict(document.root)
        causes = [*admission.validate(content), *admission.validate_schema(content)]
        if semantics.empty_topology_key_means_any:
            causes = admission.without_empty_keys(causes)
        for cause in causes:
            # A Job that exists has the selector that was generated for it, with its uid.
            is_generated = key in inputs.replaced and cause.message.endswith(controllers.NOT_GENERATED)
            if not is_generated:
                found.append(document.fault(cause.message, cause.field))
    return found


@files.gc_paused()
def cluster_of(
    inputs: Inputs,
    *,
    semantics: Semantics = UPSTREAM,
    seed: str = "",
    sink: PodSink | None = None,
    load: AssumedLoad = CURRENT,
    schedulers: Container[str] = pod_admission.SCHEDULERS,
    progress: Callable[[str], None] = lambda _: None,
) -> LoadedCluster:
    """
    An index of the nodes and running pods, and everything pending, including the missing pods of controllers.

    `load` says how many replicas autoscalers ask for, `schedulers` whose pods are placed. `progress` receives a line of
    text now and then.
    """
    sink = sink or PodSink()
    for pod in inputs.pods:
        sink(pod)
    sink.hold_back(inputs.is_created)
    unknown = _not_known(inputs, sink)
    scaling = autoscalers.scale(inputs, load)
    admission = PodAdmission(inputs, _ledger(inputs, sink), schedulers)
    admitted = _admitted(inputs, sink.pending, admission)
    created = pod_creation.create_missing_pods(
        inputs,
        admission=admission,
        load=load,
        except_for=_rolled_out(inputs),
        progress=lambda n_pods: progress(f"making pods from controllers: {n_pods}"),
    )
    rollouts = _rollouts(inputs, created)
    spread_context = spread_context_of(inputs, created.replica_sets)
    index = PlacementIndex(semantics, seed)
    for namespace, labels in namespace_labels(inputs, sink).items():
        index.set_namespace(namespace, labels)
    defaults = (c for c in inputs.storage_classes if (c.metadata.annotations or {}).get(IS_DEFAULT_CLASS) == "true")
    default_class = next((c.metadata.name for c in defaults), "")
    classes_known = bool(inputs.storage_classes) or not inputs.has_state or inputs.knows_all("StorageClass")
    add_storage(inputs, index, default_class)
    new_claims = [*admitted.claims, *created.claims]
    if inputs.claims:
        new_claims += [one for one in inputs.claims if _is_new(one, inputs)]
    has_doubts = False
    if new_claims or inputs.has_state:
        has_doubts = _add_unknown_storage(inputs, sink, index, new_claims, default_class, classes_known=classes_known)
    for node in _mapped(inputs, inputs.nodes, targets.target_of_node):
        index.add_target(node)
    for n_added, (workload, target) in enumerate(_prioritised(sink, spread_context)):
        index.add(workload, target)
        if n_added % pod_creation.PODS_PER_PROGRESS_REPORT == 0:
            progress(f"adding running pods to the index: {n_added} of {len(sink.running)}")
    pending: list[Workload] = []
    for workload in _mapped(inputs, (*admitted.pods, *created.pods), lambda pod: pods.waiting(pod, spread_context)):
        pending.append(workload)
        if workload.unplaceable:
            sink.unplaceable[workload.key] = workload.unplaceable
        if len(pending) % pod_creation.PODS_PER_PROGRESS_REPORT == 0:
            progress(f"reading what pods need: {len(pending)} of {len(admitted.pods) + len(created.pods)}")
    pending.sort(key=queue_order)
    budgets = list(_mapped(inputs, inputs.disruption_budgets, disruption_budgets.budget_of))
    notes = _notes(inputs, created, sink, index)
    refused = [*admitted.refused, *created.refused]
    not_judged = {**(_doubts(pending, index) if has_doubts else {}), **admitted.not_judged, **created.not_judged}
    for autoscaler, lacking in scaling:
        meta = autoscaler.metadata
        if inputs.change is not None and inputs.is_changed(autoscaler):
            unknown.append((ObjectKey(autoscaler.kind, meta.namespace, meta.name), f"it {lacking}"))
        else:
            notes.append(f"{autoscaler.kind} {meta.namespace}/{meta.name} {lacking}")
    notes += [*admitted.notes, *created.notes]
    created.not_judged_objects.extend(unknown)
    for key in inputs.assumed_changed:
        notes.append(
            f"{key.kind} {key.namespace}/{key.name} is not in the state, but its pods are: "
            "they are replaced as if its template had changed"
        )
    enforced = _enforced_standards(inputs, created) if inputs.namespaces else []
    notes += [
        f"not judged: what the pod security standard {level} refuses in namespace {name}" for name, level in enforced
    ]
    for made_by, reason in created.not_judged_objects:
        named = f"{made_by.namespace}/{made_by.name}".lstrip("/")
        notes.append(f"not judged: the pods of {made_by.kind} {named}: {reason}")
    return LoadedCluster(
        index=index,
        pending=pending,
        spread_context=spread_context,
        notes=notes,
        disruption_budgets=budgets,
        change=_of_change(inputs, pending, created, refused),
        n_set_aside=len(inputs.set_aside),
        n_unread=sum(inputs.skipped[row.kind] for row in kinds.having(Trait.ADMITS))
        + inputs.n_unknown_in_change
        + len(inputs.kept)
        + len(enforced),
        refused=refused,
        not_judged=not_judged,
        not_judged_objects=created.not_judged_objects,
        made_for=created.made_for,
        admission=admission,
        rollouts=rollouts,
        default_class=default_class,
        has_namespaces=bool(inputs.namespaces),
        classes_known=classes_known,
        csi_drivers=_attaching(inputs.csi_drivers) if inputs.csi_drivers else {},
        csi_drivers_known=bool(inputs.csi_drivers) or inputs.knows_all("CSIDriver"),
    )


def namespace_labels(inputs: Inputs, sink: PodSink) -> dict[str, dict[str, str]]:
    """The labels of each namespace; every one has its name as a label, those that the input leaves out too."""
    used = {pod.metadata.namespace for pod in sink.pending} | {workload.namespace for workload, _ in sink.running}
    used |= {one.metadata.namespace for listed in inputs.controllers.values() for one in listed}
    found = {name: {NAME_LABEL: name} for name in used if name}
    for one in inputs.namespaces:
        found[one.metadata.name] = {**(one.metadata.labels or {}), NAME_LABEL: one.metadata.name}
    return found


def parallel_sets(stateful_sets: Iterable[ApiObject]) -> frozenset[tuple[str, str]]:
    """The StatefulSets, by namespace and name, that create all their pods at once."""
    return frozenset(
        (one.metadata.namespace, one.metadata.name)
        for one in stateful_sets
        if isinstance(one, Controller) and one.spec.pod_management_policy == "Parallel"
    )


def _not_known(inputs: Inputs, sink: PodSink) -> list[tuple[ObjectKey, str]]:
    """What the change does to running pods in a way that is not judged."""
    if inputs.change is None:
        return []
    from bayplan.controllers import changed_nodes, finding_rollouts  # only a change needs them

    return [
        *finding_rollouts.assume_changed(inputs),
        *finding_rollouts.being_deleted(inputs),
        *changed_nodes.evicting(inputs, sink.running),
    ]


def _enforced_standards(inputs: Inputs, created: CreatedObjects) -> list[tuple[str, str]]:
    """The namespaces in which pods are created and a pod security standard is enforced, with its level."""
    used = {pod.metadata.namespace for pod in created.pods} if inputs.change is None else set()
    making = {row.kind for row in kinds.KINDS.values() if row.pod_path is not None}
    custom = {key_of(one) for one in inputs.custom_objects}
    used |= {key.namespace for key in inputs.change or () if key.kind in making or key in custom}
    levels = ((one.metadata.name, (one.metadata.labels or {}).get(ENFORCED, "")) for one in inputs.namespaces)
    return [(name, level) for name, level in levels if name in used and level not in ("", PRIVILEGED)]


def _rolled_out(inputs: Inputs) -> AbstractSet[ObjectKey]:
    """The controllers whose pods the rollouts create."""
    if not inputs.replaced:
        return frozenset()
    from bayplan.controllers import finding_rollouts  # only an update needs it

    return finding_rollouts.changed_controllers(inputs)


def _rollouts(inputs: Inputs, created: CreatedObjects) -> list[Rollout]:
    """The controllers that the change updates."""
    if not inputs.replaced:
        return []
    from bayplan.controllers import finding_rollouts

    taken = inputs.inventory.names | {f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in created.pods}
    return finding_rollouts.rollouts_of(inputs, taken)


def _of_change(
    inputs: Inputs, pending: Iterable[Workload], created: CreatedObjects, refused: Iterable[RefusedPod]
) -> frozenset[WorkloadKey] | None:
    """The pending and refused pods that are part of the change or made for an object of it; None without a change."""
    if inputs.change is None:
        return None
    owners = owners_of(inputs, created.replica_sets)
    workloads = [*pending, *(pods.workload_of(one.pod) for one in refused)]
    change = inputs.change | autoscalers.targets_of(one for one in inputs.autoscalers if inputs.is_changed(one))
    return frozenset(
        one.key for one in workloads if created.made_for.get(one.key) in change or is_made_for(change, one, owners)
    )


def owners_of(inputs: Inputs, created: Iterable[Controller] = ()) -> dict[ObjectKey, ObjectKey]:
    """The controller of each controller, as of a Deployment's ReplicaSets."""
    found = {}
    for one in (*(one for listed in inputs.controllers.values() for one in listed), *created):
        meta, owner = one.metadata, pods.controller_of(one.metadata)
        if owner is not None:
            found[ObjectKey(one.kind, meta.namespace, meta.name)] = ObjectKey(owner.kind, meta.namespace, owner.name)
    return found


def is_made_for(change: Container[ObjectKey], workload: Workload, owners: Mapping[ObjectKey, ObjectKey]) -> bool:
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


def _mapped(inputs: DesiredState, objects: Iterable[Found], convert: Callable[[Found], Mapped]) -> Iterator[Mapped]:
    """Each object converted; one of the state that cannot be is set aside."""
    for one in objects:
        try:
            yield convert(one)
        except InputError as error:
            if not inputs.is_of_state(one):
                raise
            fault = error.faults[0]
            inputs.set_aside.append(inputs.fault(one, fault.message, fault.path))


def _ledger(inputs: Inputs, sink: PodSink) -> QuotaLedger:
    """The quotas of the input, charged with the pods and claims that exist."""
    ledger = QuotaLedger(inputs.resource_quotas)
    if inputs.resource_quotas:
        for (workload, _), charged in zip(sink.running, sink.charged, strict=True):
            if ledger.applies_to(workload.namespace):
                charge = resource_quotas.charge_of_shape(charged)
                ledger.count_existing(workload.namespace, workload.name, charge)
        for pod in sink.pending:
            meta = pod.metadata
            if _is_stored(pod, inputs) and ledger.applies_to(meta.namespace):
                ledger.count_existing(meta.namespace, meta.name, resource_quotas.charge_of(pod.spec))
        for claim in inputs.claims:
            ledger.count_existing_claim(claim)
    return ledger


def _is_stored(pod: Pod, inputs: Inputs) -> bool:
    """Whether the pod comes from a server, which has admitted it."""
    return bool(pod.metadata.uid or pod.metadata.resource_version) or inputs.is_of_state(pod)


def _add_unknown_storage(
    inputs: Inputs,
    sink: PodSink,
    index: PlacementIndex,
    new_claims: Iterable[PersistentVolumeClaim],
    default_class: str,
    *,
    classes_known: bool,
) -> bool:
    """Add the claims that are created, and what the state lacks; whether it is not known where some volumes are."""
    from bayplan.placing import volume_provisioning  # few inputs create claims

    found = inputs.has_state and volume_provisioning.assume_missing(
        (workload for workload, _ in sink.running),
        index,
        claims_known=inputs.knows_all("PersistentVolumeClaim"),
        volumes_known=inputs.knows_all("PersistentVolume"),
    )
    provisioning = volume_provisioning.Provisioning(default_class, classes_known=classes_known)
    return found | any([*_mapped(inputs, new_claims, lambda one: provisioning.create(one, index))])


def _doubts(pending: Iterable[Workload], index: PlacementIndex) -> dict[WorkloadKey, str]:
    """Pods of whose volumes it is not known which nodes can use them, with the reason."""
    from bayplan.placing import volume_provisioning

    found = {workload.key: volume_provisioning.doubt_about(workload, index) for workload in pending}
    return {key: doubt for key, doubt in found.items() if doubt}


def _attaching(drivers: Iterable[CsiDriver]) -> dict[str, bool]:
    """Whether each driver attaches its volumes to nodes; one does unless it says otherwise."""
    return {driver.metadata.name: driver.spec.attach_required is not False for driver in drivers}


def _is_new(claim: PersistentVolumeClaim, inputs: Inputs) -> bool:
    """Whether the claim is about to be created."""
    meta = claim.metadata
    return inputs.is_changed(claim) and ObjectKey(claim.kind, meta.namespace, meta.name) not in inputs.replaced


def _admitted(inputs: Inputs, pending: Iterable[Pod], admission: PodAdmission) -> CreatedObjects:
    """The pending pods of the input after admission, which those of a dump have behind them."""
    found = CreatedObjects()
    for pod in pending:
        found.add(admission.admit_stored(pod) if _is_stored(pod, inputs) else admission.admit(pod))
    return found


def spread_context_of(state: DesiredState, replica_sets: Iterable[Controller] = ()) -> pods.SpreadContext:
    """The context in which pods are mapped; `replica_sets` are further ones."""
    context = pods.SpreadContext(services={}, controllers={}, priorities={})
    for service in state.services:
        context.add_service(service)
    for row in kinds.having(Trait.SPREADS):
        for controller in state.controllers.get(row.kind, ()):
            context.add_controller(controller)
    for controller in replica_sets:
        context.add_controller(controller)
    for priority_class in state.priority_classes:
        context.add_priority_class(priority_class)
    return context


def _prioritised(sink: PodSink, context: pods.SpreadContext) -> Iterator[tuple[Workload, str]]:
    """The running pods with their nodes, each with the priority that admission gives it."""
    classes = sink.priority_class_of if context.priorities else {}
    for position, (workload, target) in enumerate(sink.running):
        if position in classes:
            priority = context.priority_of(classes[position])
            yield msgspec.structs.replace(workload, priority=priority), target
        else:
            yield workload, target


def add_storage(state: DesiredState, index: PlacementIndex, default_class: str = "") -> None:
    """Add all storage objects to the index; `default_class` is the class of claims that name none."""
    for volume, name in _mapped(state, state.volumes, lambda one: (storage.volume_of(one), one.metadata.name)):
        index.set_volume(name, volume)
    for claim in _mapped(state, state.claims, lambda one: storage.claim_of(one, default_class)):
        index.set_claim(claim.key, claim)
    for storage_class in state.storage_classes:
        index.set_storage_class(storage_class.metadata.name, storage.storage_class_of(storage_class))
    for csi_node in state.csi_nodes:
        index.set_stored("attach_limits", csi_node.metadata.name, storage.attach_limits_of(csi_node))
    for attachment in state.volume_attachments:
        index.set_stored("attachments", attachment.metadata.name, storage.attachment_of(attachment))
    for driver in state.csi_drivers:
        index.set_stored("metering_drivers", driver.metadata.name, driver.spec.storage_capacity or None)
        required = driver.spec.prevent_pod_scheduling_if_missing or None
        index.set_stored("required_drivers", driver.metadata.name, required)
    for space, meta in _mapped(state, state.storage_capacities, lambda one: (storage.space_of(one), one.metadata)):
        index.set_stored("space", f"{meta.namespace}/{meta.name}", space)


def _notes(inputs: Inputs, created: CreatedObjects, sink: PodSink, index: PlacementIndex) -> list[str]:
    notes = [*inputs.hints, *inputs.state_notes(), *_unplaceable_notes(sink)]
    if created.pods:
        counted = "1 pod was" if len(created.pods) == 1 else f"{len(created.pods)} pods were"
        notes.append(f"{counted} created for controllers whose pods are not in the input")
    unknown = sorted({target for _, target in sink.running if target not in index.slots.by_name})
    if unknown:
        shown = ", ".join(unknown[:_MAX_NAMES_SHOWN]) + (" …" if len(unknown) > _MAX_NAMES_SHOWN else "")
        noun = "an unknown node" if len(unknown) == 1 else f"{len(unknown)} unknown nodes"
        notes.append(f"pods on {noun} ({shown}) are not counted")
    if inputs.clusters:
        notes.append("clusters, policies and bindings are ignored: this answer is about nodes")
    elif inputs.policies or inputs.bindings:
        notes.append(
            "policies and bindings are ignored without clusters: add the output of kubectl get clusters -o yaml"
        )
    admitting = {row.kind for row in kinds.having(Trait.ADMITS)}
    for text, counts in (
        ("ignored, because placements do not depend on them", _counts(inputs.skipped, without=admitting)),
        ("not judged: what these may change in pods, or refuse", _counts(inputs.skipped, only=admitting)),
        ("not read, because their kinds are not known; if they make pods, these are missing", _counts(inputs.unknown)),
    ):
        if counts:
            notes.append(f"{text}: {counts}")
    return notes


def _unplaceable_notes(sink: PodSink) -> Iterator[str]:
    """Pods of which something cannot be read; they would never be placed, and their terms are not known."""
    for key, reason in list(sink.unplaceable.items())[:_MAX_NAMES_SHOWN]:
        yield f"Pod {key} would not be placed again: {reason}"
    n_more = len(sink.unplaceable) - _MAX_NAMES_SHOWN
    if n_more > 0:
        yield f"{n_more} more {'pod' if n_more == 1 else 'pods'} would not be placed again for such a reason"


def _counts(
    counted: Counter[str], *, only: AbstractSet[str] | None = None, without: AbstractSet[str] = frozenset()
) -> str:
    found = sorted((kind, n) for kind, n in counted.items() if kind not in without and (only is None or kind in only))
    return ", ".join(f"{n} {kind}" for kind, n in found)
