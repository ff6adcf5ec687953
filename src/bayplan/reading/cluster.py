"""
The input loaded as a cluster: an index of what runs, and the pods that wait for a node.

Controllers' missing pods are created first. Does not schedule anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet

import msgspec

from bayplan.controllers import autoscalers, pod_creation, pod_defaults, resource_quotas
from bayplan.controllers.autoscalers import CURRENT, AssumedLoad
from bayplan.controllers.created_objects import CreatedObjects
from bayplan.controllers.desired_state import DesiredState, ObjectKey
from bayplan.controllers.pod_admission import PodAdmission, RefusedPod
from bayplan.controllers.resource_quotas import QuotaCharge, QuotaLedger
from bayplan.errors import Fault, InputError
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import disruption_budgets, pods, storage, targets
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.semantics import UPSTREAM, Semantics
from bayplan.model.workloads import Workload, WorkloadKey, queue_order
from bayplan.reading import files
from bayplan.reading.collecting import Inputs
from bayplan.reading.files import ReadOptions
from bayplan.validating import admission
from bayplan.wire import kinds
from bayplan.wire.controllers import Controller
from bayplan.wire.kinds import Trait
from bayplan.wire.pods import Pod
from bayplan.wire.storage import PersistentVolumeClaim

IS_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_EMPTY_TOPOLOGY_KEY = ('Invalid value: "":', "Required value: can not be empty")
_MAX_NAMES_SHOWN = 3


class PodSink(msgspec.Struct, eq=False):
    """
    Receives pods as they are read. Running pods are reduced at once, pending pods are kept as written.

    `priority_class_of` has the priority classes of running pods that were written by hand, without a priority.
    `charges` has what quotas count of each of the running pods, in their order.
    """

    running: list[tuple[Workload, str]] = []
    pending: list[Pod] = []
    priority_class_of: dict[WorkloadKey, str] = {}
    charges: list[QuotaCharge] = []

    def __call__(self, pod: Pod) -> None:
        if pod.status.phase in pods.FINISHED:
            return
        if not pod.spec.node_name:
            self.pending.append(pod)
            return
        shape = pods.shape_of(pod_defaults.defaulted(pod))
        workload = pods.workload_of(pod, shape=shape)
        self.charges.append(resource_quotas.charge_of_shape(shape))
        self.running.append((workload, pod.spec.node_name))
        if pod.spec.priority is None:
            self.priority_class_of[workload.key] = pod.spec.priority_class_name


class LoadedCluster(msgspec.Struct):
    """
    `pending` is in the order of the scheduling queue; `notes` say what was skipped or created.

    `refused`, `not_judged`, `not_judged_objects` and `made_for` are those of `CreatedObjects`, with the
    pending pods of the input that were written by hand. The pods in `not_judged` are among the pending ones.
    """

    index: PlacementIndex
    pending: list[Workload]
    spread_context: pods.SpreadContext
    notes: list[str]
    disruption_budgets: list[DisruptionBudget] = []
    refused: list[RefusedPod] = []
    not_judged: dict[WorkloadKey, str] = {}
    not_judged_objects: list[tuple[ObjectKey, str]] = []
    made_for: dict[WorkloadKey, ObjectKey] = {}


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
    for document in inputs.documents.values():
        # Decoding JSON without lines is enough here: locating fields is slow and rarely needed.
        content = msgspec.json.decode(document.text) if document.root is None else dict(document.root)
        for cause in (*admission.validate(content), *admission.validate_schema(content)):
            is_empty_key = cause.field.endswith(".topologyKey") and cause.message.startswith(_EMPTY_TOPOLOGY_KEY)
            if not (is_empty_key and semantics.empty_topology_key_means_any):
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
    progress: Callable[[str], None] = lambda _: None,
) -> LoadedCluster:
    """
    An index of the nodes and running pods, and everything pending, including the missing pods of controllers.

    `load` says how many replicas autoscalers ask for. `progress` receives a line of text now and then.
    """
    sink = sink or PodSink()
    for pod in inputs.pods:
        sink(pod)
    scaling = autoscalers.scale(inputs, load)
    admission = PodAdmission(inputs, _ledger(inputs, sink))
    admitted = _admitted(sink.pending, admission)
    created = pod_creation.create_missing_pods(
        inputs,
        admission=admission,
        load=load,
        progress=lambda n_pods: progress(f"making pods from controllers: {n_pods}"),
    )
    spread_context = spread_context_of(inputs, created.replica_sets)
    index = PlacementIndex(semantics, seed)
    for namespace in inputs.namespaces:
        index.set_namespace(namespace.metadata.name, namespace.metadata.labels or {})
    defaults = (c for c in inputs.storage_classes if (c.metadata.annotations or {}).get(IS_DEFAULT_CLASS) == "true")
    claims = [*admitted.claims, *created.claims]
    add_storage(inputs, index, claims, default_class=next((c.metadata.name for c in defaults), ""))
    for node in inputs.nodes:
        index.add_target(targets.target_of_node(node))
    for n_added, (workload, target) in enumerate(_prioritised(sink, spread_context)):
        index.add(workload, target)
        if n_added % pod_creation.PODS_PER_PROGRESS_REPORT == 0:
            progress(f"adding running pods to the index: {n_added} of {len(sink.running)}")
    pending: list[Workload] = []
    for pod in (*admitted.pods, *created.pods):
        pending.append(pods.workload_of(pod, spread_context))
        if len(pending) % pod_creation.PODS_PER_PROGRESS_REPORT == 0:
            progress(f"reading what pods need: {len(pending)} of {len(admitted.pods) + len(created.pods)}")
    pending.sort(key=queue_order)
    notes = _notes(inputs, created, sink, index)
    refused = [*admitted.refused, *created.refused]
    not_judged = {**admitted.not_judged, **created.not_judged}
    notes += [*scaling, *admitted.notes, *created.notes, *_admission_notes(refused, not_judged, created)]
    budgets = [disruption_budgets.budget_of(budget) for budget in inputs.disruption_budgets]
    return LoadedCluster(
        index,
        pending,
        spread_context,
        notes,
        budgets,
        refused=refused,
        not_judged=not_judged,
        not_judged_objects=created.not_judged_objects,
        made_for=created.made_for,
    )


def _ledger(inputs: Inputs, sink: PodSink) -> QuotaLedger:
    """The quotas of the input, charged with the pods and claims that exist."""
    ledger = QuotaLedger(inputs.resource_quotas)
    if inputs.resource_quotas:
        for (workload, _), charge in zip(sink.running, sink.charges, strict=True):
            if ledger.applies_to(workload.namespace):
                ledger.count_existing(workload.namespace, workload.name, charge)
        for pod in sink.pending:
            meta = pod.metadata
            if _is_stored(pod) and ledger.applies_to(meta.namespace):
                ledger.count_existing(meta.namespace, meta.name, resource_quotas.charge_of(pod.spec))
        for claim in inputs.claims:
            ledger.count_existing_claim(claim)
    return ledger


def _is_stored(pod: Pod) -> bool:
    """Whether the pod comes from a server, which has admitted it."""
    return bool(pod.metadata.uid or pod.metadata.resource_version)


def _admitted(pending: Iterable[Pod], admission: PodAdmission) -> CreatedObjects:
    """The pending pods of the input after admission, which those of a dump have behind them."""
    found = CreatedObjects()
    for pod in pending:
        found.add(admission.admit_stored(pod) if _is_stored(pod) else admission.admit(pod))
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
    for workload, target in sink.running:
        if classes and workload.key in classes:
            priority = context.priority_of(classes[workload.key])
            yield msgspec.structs.replace(workload, priority=priority), target
        else:
            yield workload, target


def add_storage(
    state: DesiredState,
    index: PlacementIndex,
    claims: Iterable[PersistentVolumeClaim] = (),
    default_class: str = "",
) -> None:
    """Add all storage objects to the index; `claims` are further ones, `default_class` is that of claims without."""
    for volume in state.volumes:
        index.set_volume(volume.metadata.name, storage.volume_of(volume))
    for written in (*state.claims, *claims):
        claim = storage.claim_of(written, default_class)
        index.set_claim(claim.key, claim)
    for storage_class in state.storage_classes:
        index.set_storage_class(storage_class.metadata.name, storage.storage_class_of(storage_class))
    for csi_node in state.csi_nodes:
        index.set_stored("attach_limits", csi_node.metadata.name, storage.attach_limits_of(csi_node))
    for attachment in state.volume_attachments:
        index.set_stored("attachments", attachment.metadata.name, storage.attachment_of(attachment))
    for driver in state.csi_drivers:
        index.set_stored("metering_drivers", driver.metadata.name, driver.spec.storage_capacity or None)
    for space in state.storage_capacities:
        index.set_stored("space", f"{space.metadata.namespace}/{space.metadata.name}", storage.space_of(space))


def _admission_notes(
    refused: list[RefusedPod], not_judged: dict[WorkloadKey, str], created: CreatedObjects
) -> list[str]:
    """One line for each reason: the pods of a template share it."""
    texts = [f"the API server would refuse {one.message}" for one in refused[:_MAX_NAMES_SHOWN]]
    if len(refused) > _MAX_NAMES_SHOWN:
        texts.append(f"the API server would refuse {len(refused) - _MAX_NAMES_SHOWN} more pods")
    by_reason: dict[str, list[str]] = {}
    for key, reason in not_judged.items():
        by_reason.setdefault(reason, []).append(key)
    for reason, keys in by_reason.items():
        shown = ", ".join(keys[:_MAX_NAMES_SHOWN]) + (" …" if len(keys) > _MAX_NAMES_SHOWN else "")
        texts.append(f"not judged: {shown}: {reason}")
    for made_by, reason in created.not_judged_objects:
        texts.append(f"not judged: the pods of {made_by.kind} {made_by.namespace}/{made_by.name}: {reason}")
    return texts


def _notes(inputs: Inputs, created: CreatedObjects, sink: PodSink, index: PlacementIndex) -> list[str]:
    notes = list(inputs.hints)
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


def _counts(
    counted: Counter[str], *, only: AbstractSet[str] | None = None, without: AbstractSet[str] = frozenset()
) -> str:
    found = sorted((kind, n) for kind, n in counted.items() if kind not in without and (only is None or kind in only))
    return ", ".join(f"{n} {kind}" for kind, n in found)
