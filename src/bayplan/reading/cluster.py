"""
The input loaded as a cluster: an index of what runs, and the pods that wait for a node.

Controllers' missing pods are created first. Does not schedule anything.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

import msgspec

from bayplan.controllers import autoscalers, pod_admission, pod_creation, resource_quotas
from bayplan.controllers.autoscalers import CURRENT, AssumedLoad
from bayplan.controllers.created_objects import CreatedObjects, key_of
from bayplan.controllers.desired_state import DesiredState, ObjectKey
from bayplan.controllers.pod_admission import PodAdmission
from bayplan.controllers.resource_quotas import QuotaLedger
from bayplan.errors import Fault, InputError
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import disruption_budgets, pods, targets
from bayplan.model.semantics import UPSTREAM, Semantics
from bayplan.model.terms import NAME_LABEL
from bayplan.model.workloads import Workload, WorkloadKey, queue_order
from bayplan.placing.place_cluster import ClusterToPlace
from bayplan.reading import change_scope, cluster_notes, cluster_storage, files
from bayplan.reading.collecting import Inputs
from bayplan.reading.converting import converted
from bayplan.reading.files import ReadOptions
from bayplan.reading.pod_sink import PodSink
from bayplan.validating import admission, controllers
from bayplan.wire import kinds
from bayplan.wire.controllers import Controller, HorizontalPodAutoscaler
from bayplan.wire.kinds import Trait
from bayplan.wire.meta import ApiObject
from bayplan.wire.pods import Pod

if TYPE_CHECKING:
    from bayplan.controllers.rollouts import Rollout
    from bayplan.placing.remaking import PodRemaker


class LoadedCluster(ClusterToPlace, kw_only=True):
    """
    The cluster with `notes`, which say what was skipped or created.

    `n_set_aside` objects of the state could not be read. `n_unread` counts what may matter and is not read: policies
    and pod security standards, which may change or refuse pods, objects of the change of unknown kinds, and fields that
    a merge keeps and other tools may remove. `not_judged_objects` make pods in a way that cannot be read. `made_for`
    leads from each created pod to the object of the input that it is made for; `written` are pending pods as they are
    written, to which admission may add something that no manifest has.
    """

    notes: list[str] = msgspec.field(default_factory=list)
    n_set_aside: int = 0
    n_unread: int = 0
    not_judged_objects: list[tuple[ObjectKey, str]] = msgspec.field(default_factory=list)
    made_for: dict[WorkloadKey, ObjectKey] = msgspec.field(default_factory=dict)
    written: dict[WorkloadKey, Pod] = msgspec.field(default_factory=dict)

    def remaker(self) -> PodRemaker | None:
        """Makes pods of revised manifests."""
        from bayplan.placing.remaking import PodRemaker  # only an explanation needs it

        if self.admission is None:
            return None
        return PodRemaker(self.admission, self.spread_context, self.makers(), self.written)

    def makers(self) -> dict[WorkloadKey, ObjectKey]:
        """The object of the input that each created pod is made for, those of rollouts so far included."""
        of_rollouts = {
            WorkloadKey(f"{one.key.namespace}/{name}"): one.key for one in self.rollouts for name in one.pods
        }
        return {**self.made_for, **of_rollouts}


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
    waiting, created = _waiting(inputs, sink.pending, admission, load, progress)
    rollouts = _rollouts(inputs, created)
    spread_context = spread_context_of(inputs, created.replica_sets)
    index = PlacementIndex(semantics, seed)
    for namespace, labels in namespace_labels(inputs, sink).items():
        index.set_namespace(namespace, labels)
    storage = cluster_storage.add(inputs, (one for one, _ in sink.running), waiting.claims, index)
    for node in converted(inputs, inputs.nodes, targets.target_of_node):
        index.add_target(node)
    _add_running(sink, spread_context, index, progress)
    pending = _pending(inputs, waiting.pods, spread_context, sink, progress)
    budgets = list(converted(inputs, inputs.disruption_budgets, disruption_budgets.budget_of))
    not_scaled, further = _not_scaled(inputs, scaling)
    created.not_judged_objects += [*unknown, *not_scaled]
    return LoadedCluster(
        index=index,
        pending=pending,
        spread_context=spread_context,
        notes=cluster_notes.notes_of(inputs, sink, index, created, [*further, *waiting.notes]),
        disruption_budgets=budgets,
        change=change_scope.of_change(inputs, pending, created, waiting.refused),
        n_set_aside=len(inputs.set_aside),
        n_unread=_count_unread(inputs, created),
        refused=waiting.refused,
        not_judged=storage.doubts(pending, index) | waiting.not_judged,
        not_judged_objects=created.not_judged_objects,
        made_for=created.made_for,
        written=_written(inputs, sink.pending) if inputs.limit_ranges or inputs.runtime_classes else {},
        admission=admission,
        rollouts=rollouts,
        default_class=storage.default_class,
        has_namespaces=bool(inputs.namespaces),
        classes_known=storage.classes_known,
        csi_drivers=storage.attaches,
        csi_drivers_known=storage.drivers_known,
        topology_keys=storage.topology_keys,
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


def _written(inputs: Inputs, pending: Iterable[Pod]) -> dict[WorkloadKey, Pod]:
    """The pods without a controller that classes and limit ranges may complete."""
    limited = {one.metadata.namespace for one in inputs.limit_ranges}
    return {
        WorkloadKey(f"{pod.metadata.namespace}/{pod.metadata.name}"): pod
        for pod in pending
        if (pod.spec.runtime_class_name or pod.metadata.namespace in limited) and not _is_stored(pod, inputs)
    }


def _waiting(
    inputs: Inputs,
    pending: Iterable[Pod],
    admission: PodAdmission,
    load: AssumedLoad,
    progress: Callable[[str], None],
) -> tuple[CreatedObjects, CreatedObjects]:
    """What needs a node, pending pods of the input before those that controllers create; and the latter alone."""
    found = CreatedObjects()
    for pod in pending:  # those of a dump have admission behind them
        found.add(admission.admit_stored(pod) if _is_stored(pod, inputs) else admission.admit(pod))
    created = pod_creation.create_missing_pods(
        inputs,
        admission=admission,
        load=load,
        except_for=_rolled_out(inputs),
        progress=lambda n_pods: progress(f"making pods from controllers: {n_pods}"),
    )
    found.pods += created.pods
    found.claims += created.claims
    found.refused += created.refused
    found.not_judged |= created.not_judged
    found.notes += created.notes
    return found, created


def _add_running(
    sink: PodSink, context: pods.SpreadContext, index: PlacementIndex, progress: Callable[[str], None]
) -> None:
    for n_added, (workload, target) in enumerate(sink.prioritised(context)):
        index.add(workload, target)
        if n_added % pod_creation.PODS_PER_PROGRESS_REPORT == 0:
            progress(f"adding running pods to the index: {n_added} of {len(sink.running)}")


def _pending(
    inputs: Inputs,
    waiting: Sequence[Pod],
    context: pods.SpreadContext,
    sink: PodSink,
    progress: Callable[[str], None],
) -> list[Workload]:
    """The pods that wait, as the queue orders them; the sink is told of those that can never be placed."""
    found: list[Workload] = []
    for workload in converted(inputs, waiting, lambda pod: pods.waiting(pod, context)):
        found.append(workload)
        if workload.unplaceable:
            sink.unplaceable[workload.key] = workload.unplaceable
        if len(found) % pod_creation.PODS_PER_PROGRESS_REPORT == 0:
            progress(f"reading what pods need: {len(found)} of {len(waiting)}")
    return sorted(found, key=queue_order)


def _not_scaled(
    inputs: Inputs, lacking: Iterable[tuple[HorizontalPodAutoscaler, str]]
) -> tuple[list[tuple[ObjectKey, str]], list[str]]:
    """Autoscalers that lack something: those of the change, which are not judged, and notes about the others."""
    unknown, notes = [], []
    for autoscaler, what in lacking:
        meta = autoscaler.metadata
        if inputs.change is not None and inputs.is_changed(autoscaler):
            unknown.append((key_of(autoscaler), f"it {what}"))
        else:
            notes.append(f"{autoscaler.kind} {meta.namespace}/{meta.name} {what}")
    return unknown, notes


def _count_unread(inputs: Inputs, created: CreatedObjects) -> int:
    admitting = sum(inputs.skipped[row.kind] for row in kinds.having(Trait.ADMITS))
    standards = len(cluster_notes.enforced_standards(inputs, created))
    return admitting + inputs.n_unknown_in_change + len(inputs.kept) + standards


def spread_context_of(state: DesiredState, replica_sets: Iterable[Controller] = ()) -> pods.SpreadContext:
    """The context in which pods are mapped; `replica_sets` are further ones."""
    context = pods.SpreadContext(services={}, controllers={}, priorities={}, pod_groups={})
    for service in state.services:
        context.add_service(service)
    for row in kinds.having(Trait.SPREADS):
        for controller in state.controllers.get(row.kind, ()):
            context.add_controller(controller)
    for controller in replica_sets:
        context.add_controller(controller)
    for priority_class in state.priority_classes:
        context.add_priority_class(priority_class)
    for pod_group in state.pod_groups:
        context.add_pod_group(pod_group)
    return context
