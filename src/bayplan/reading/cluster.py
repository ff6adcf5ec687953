"""Files → a cluster: an index of what runs, and what waits for a place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, BinaryIO

import msgspec

from bayplan.controllers import pod_creation
from bayplan.errors import InputError
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import disruption_budgets, nodes, pods, storage
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.semantics import UPSTREAM, Semantics
from bayplan.model.workloads import Workload
from bayplan.reading import files
from bayplan.reading import inputs as admitting
from bayplan.reading.collecting import Sink
from bayplan.reading.files import ReadProgress
from bayplan.reading.inputs import Inputs
from bayplan.reading.sources import Source
from bayplan.wire.pods import Pod

IS_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


class PodSink:
    """Takes pods as they are read: those that run are reduced at once, those that wait are kept as written."""

    def __init__(self) -> None:
        self.running: list[tuple[Workload, str]] = []
        self.waiting: list[Pod] = []

    def __call__(self, pod: Pod) -> None:
        if pods.finished(pod):
            return
        if not pod.spec.node_name:
            self.waiting.append(pod)
            return
        self.running.append((pods.workload_of(pod), pod.spec.node_name))


class LoadedCluster(msgspec.Struct):
    """`pending` is in the order in which a scheduler would take them; `notes` say what was left out or made up."""

    index: PlacementIndex
    pending: list[Workload]
    spread_context: pods.SpreadContext
    notes: list[str]
    disruption_budgets: list[DisruptionBudget] = []


@files.collector_paused()
def read(
    paths: Sequence[str],
    *,
    semantics: Semantics = UPSTREAM,
    recursive: bool = False,
    namespace: str = "default",
    stdin: BinaryIO | None = None,
    progress: Callable[[ReadProgress], None] | None = None,
    strict: bool = True,
    also: Mapping[str, Sink] | None = None,
    live: Iterable[Source] = (),
) -> tuple[Inputs, PodSink]:
    """Everything in the files, however large: pods are reduced as they are read. `also` has sinks for other kinds."""
    sink = PodSink()
    inputs = files.load(
        paths,
        recursive=recursive,
        namespace=namespace,
        stdin=stdin,
        progress=progress,
        strict=strict,
        sinks={"Pod": sink, **(also or {})},
        live=live,
    )
    refused = admitting.faults(inputs, semantics) if strict else []
    if refused:
        raise InputError(refused)
    return inputs, sink


def load(paths: Sequence[str], *, semantics: Semantics = UPSTREAM, seed: str = "", **how: Any) -> LoadedCluster:
    """The cluster that the files describe; `how` is as for `read`."""
    inputs, sink = read(paths, semantics=semantics, **how)
    return cluster_of(inputs, semantics=semantics, seed=seed, sink=sink)


def _nobody(_: str) -> None:
    """Nobody waits at a terminal."""


@files.collector_paused()
def cluster_of(
    inputs: Inputs,
    *,
    semantics: Semantics = UPSTREAM,
    seed: str = "",
    sink: PodSink | None = None,
    tell: Callable[[str], None] = _nobody,
) -> LoadedCluster:
    """
    An index of the inputs' nodes and running pods, and everything that waits, controllers' missing pods included.

    `tell` hears now and then how far it is.
    """
    sink = sink or PodSink()
    for pod in inputs.pods:
        sink(pod)
    made = pod_creation.expand(inputs, tell=lambda n_pods: tell(f"making pods from controllers: {n_pods}"))
    spread_context = _spread_context(inputs, made)
    index = PlacementIndex(semantics, seed)
    for namespace in inputs.namespaces:
        index.set_namespace(namespace.metadata.name, namespace.metadata.labels or {})
    _add_storage(inputs, made, index)
    for node in inputs.nodes:
        index.add_target(nodes.target_of(node))
    for workload, target in sink.running:
        index.add(workload, target)
    waiting: list[Workload] = []
    for pod in (*sink.waiting, *made.pods):
        waiting.append(pods.workload_of(pod, spread_context))
        if len(waiting) % pod_creation.TELL_EVERY == 0:
            tell(f"reading what pods need: {len(waiting)} of {len(sink.waiting) + len(made.pods)}")
    pending, notes = sorted(waiting, key=queue_order), _notes(inputs, made, sink, index)
    return LoadedCluster(
        index, pending, spread_context, notes, [disruption_budgets.budget_of(one) for one in inputs.disruption_budgets]
    )


def queue_order(workload: Workload) -> tuple[int, str, str, str]:
    """Higher priority first, then the older one, then by name, so that equal inputs give equal plans."""
    return -workload.priority, workload.created or "9999", workload.namespace, workload.name


def _spread_context(inputs: Inputs, made: pod_creation.CreatedObjects) -> pods.SpreadContext:
    around = pods.SpreadContext(services={}, controllers={}, priorities={})
    for service in inputs.services:
        around.add_service(service)
    for kind in ("ReplicaSet", "StatefulSet", "ReplicationController"):
        for controller in inputs.controllers.get(kind, ()):
            around.add_controller(controller)
    for controller in made.replica_sets:
        around.add_controller(controller)
    for priority_class in inputs.priority_classes:
        around.add_priority_class(priority_class)
    return around


def _add_storage(inputs: Inputs, made: pod_creation.CreatedObjects, index: PlacementIndex) -> None:
    default = next(
        (
            c.metadata.name
            for c in inputs.storage_classes
            if (c.metadata.annotations or {}).get(IS_DEFAULT_CLASS) == "true"
        ),
        "",
    )
    for volume in inputs.volumes:
        index.set_volume(volume.metadata.name, storage.volume_of(volume))
    for written in (*inputs.claims, *made.claims):
        claim = storage.claim_of(written, default)
        index.set_claim(claim.key, claim)
    for storage_class in inputs.storage_classes:
        index.set_storage_class(storage_class.metadata.name, storage.storage_class_of(storage_class))
    for csi_node in inputs.csi_nodes:
        index.set_stored("attach_limits", csi_node.metadata.name, storage.attach_limits_of(csi_node))
    for attachment in inputs.volume_attachments:
        index.set_stored("attachments", attachment.metadata.name, storage.attachment_of(attachment))
    for driver in inputs.csi_drivers:
        index.set_stored("metering_drivers", driver.metadata.name, driver.spec.storage_capacity or None)
    for space in inputs.storage_capacities:
        index.set_stored("space", f"{space.metadata.namespace}/{space.metadata.name}", storage.space_of(space))


def _notes(inputs: Inputs, made: pod_creation.CreatedObjects, sink: PodSink, index: PlacementIndex) -> list[str]:
    notes = list(inputs.hints)
    if made.pods:
        made_up = "1 pod was" if len(made.pods) == 1 else f"{len(made.pods)} pods were"
        notes.append(f"{made_up} made from controllers whose pods are not in the input")
    adrift = sorted({target for _, target in sink.running if target not in index.slots.by_name})
    if adrift:
        shown = ", ".join(adrift[:3]) + (" …" if len(adrift) > 3 else "")
        noun = "an unknown node" if len(adrift) == 1 else f"{len(adrift)} unknown nodes"
        notes.append(f"pods on {noun} ({shown}) are not counted")
    if inputs.clusters:
        notes.append("clusters, policies and bindings are left aside: this answer is about nodes")
    elif inputs.policies or inputs.bindings:
        notes.append("policies and bindings are of no use without clusters: kubectl get clusters -o yaml has them")
    if inputs.skipped:
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(inputs.skipped.items()))
        notes.append(f"left aside, as nothing here depends on them: {kinds}")
    return notes
