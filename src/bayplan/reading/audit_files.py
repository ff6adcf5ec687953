"""
The input of an audit: the objects of a cluster and, on request, of the cluster that hosts its control plane.

The same objects can also be loaded into an index in which displaced pods are placed again. Does not know the checks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

from bayplan.auditing import component_survey
from bayplan.auditing.audit_input import AuditInput, Hosting, ObservedPod, Unlisted
from bayplan.errors import Fault, InputError
from bayplan.reading import audit_objects, cluster, collecting, files
from bayplan.reading.cluster import LoadedCluster, PodSink
from bayplan.reading.documents import Document, Source
from bayplan.reading.files import OBJECTS_PER_PROGRESS_REPORT, ReadOptions, ReadProgress

# The kinds that decide on which nodes a pod fits.
_KINDS_FOR_PLACING = frozenset({
    "Node", "Pod", "Namespace", "Service", "ReplicaSet", "StatefulSet", "ReplicationController", "PersistentVolume",
    "PersistentVolumeClaim", "StorageClass", "PriorityClass",
})  # fmt: skip
OWN_CONTROL_PLANE = ("kube-system", "openshift-")


class PlaceableObjects:
    """Collects the objects that decide on which nodes pods fit, and loads them into an index."""

    def __init__(self) -> None:
        self._sink = PodSink()
        self._collector = collecting.Collector(namespace="default", strict=False, sinks={"Pod": self._sink})

    def add(self, document: Document) -> None:
        if document.kind in _KINDS_FOR_PLACING:
            self._collector.add(document)

    def cluster(self) -> LoadedCluster:
        """The loaded cluster; raises InputError with everything that cannot be read."""
        if self._collector.faults:
            raise InputError(self._collector.faults)
        return cluster.cluster_of(self._collector.inputs, sink=self._sink)


def load(
    options: ReadOptions,
    *,
    scenario: str = "",
    placeable: PlaceableObjects | None = None,
    unlisted: Sequence[Unlisted] = (),
) -> AuditInput:
    """
    All objects of the input that an audit can use; raises InputError with everything that is wrong.

    `unlisted`, which may grow while the live cluster is read, names the resources that it did not allow to list.
    """
    gathered = audit_objects.AuditObjects()
    names, faults = files.find(options.paths, recursive=options.recursive)
    found = (files.open_source(name, options.stdin or sys.stdin.buffer) for name in names)

    def take(items: Iterable[Document | Fault]) -> None:
        for item in items:
            if gathered.add(item) and placeable is not None and isinstance(item, Document):
                placeable.add(item)

    take(faults)
    take(_documents(found, options.progress))
    gathered.begin_live()
    take(_documents(options.live, options.progress))
    return gathered.finish(scenario, unlisted, ", ".join(names))


def load_hosting(paths: Sequence[str], namespaces: Sequence[str], *, recursive: bool = False) -> Hosting:
    """
    The nodes of the hosting cluster, and the pods of one control plane on it.

    `namespaces` choose the control plane. They may be empty if, besides the hosting cluster's own, only one namespace
    has parts of a control plane.
    """
    given = load(ReadOptions(paths, recursive=recursive))
    by_namespace: dict[str, list[ObservedPod]] = {}
    for pod in given.pods or ():
        if component_survey.components_of(pod):
            by_namespace.setdefault(pod.metadata.namespace, []).append(pod)
    others = [name for name in by_namespace if not name.startswith(OWN_CONTROL_PLANE)]
    if not namespaces and len(others) > 1:
        message = f"parts of control planes in {len(others)} namespaces: choose with --hosting-namespace among"
        raise InputError(Fault(f"{message} {', '.join(sorted(others))}", file=", ".join(paths)))
    missing = [name for name in namespaces if name not in by_namespace]
    if missing:
        message = f"no part of a control plane in namespace {', '.join(missing)}; there is in"
        raise InputError(Fault(f"{message} {', '.join(sorted(by_namespace)) or 'none'}", file=", ".join(paths)))
    chosen = namespaces or others
    return Hosting(nodes=given.nodes, pods=[pod for name in chosen for pod in by_namespace[name]])


def _documents(
    found: Iterable[Source | Fault], progress: Callable[[ReadProgress], None] | None
) -> Iterator[Document | Fault]:
    n_objects = 0
    for source in found:
        if isinstance(source, Fault):
            yield source
            continue
        for item in files.documents_of(source):
            yield item
            n_objects += 1
            if progress is not None and n_objects % OBJECTS_PER_PROGRESS_REPORT == 0:
                progress(ReadProgress(source.name, source.position, source.size, n_objects))
