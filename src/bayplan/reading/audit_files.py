"""
What an audit reads from files: the cluster's own dump and, on request, that of the cluster which hosts its control
plane.

The same objects also become an index where displaced pods are to be placed again. Knows nothing of checks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO

from bayplan.auditing import component_survey
from bayplan.auditing.audit_input import AuditInput, Hosting, ObservedPod, Unlisted
from bayplan.errors import Fault, InputError
from bayplan.reading import audit_objects, cluster, collecting, files, sources
from bayplan.reading.cluster import LoadedCluster, PodSink
from bayplan.reading.documents import Document
from bayplan.reading.files import ReadProgress
from bayplan.reading.sources import Source

# What decides where a pod may go.
_PLACING = frozenset({
    "Node", "Pod", "Namespace", "Service", "ReplicaSet", "StatefulSet", "ReplicationController", "PersistentVolume",
    "PersistentVolumeClaim", "StorageClass", "PriorityClass",
})  # fmt: skip
_REPORT_EVERY = 500
OWN_CONTROL_PLANE = ("kube-system", "openshift-")


class PlaceableObjects:
    """Takes the objects that decide where pods may go, and makes an index of them."""

    def __init__(self) -> None:
        self._sink = PodSink()
        self._collector = collecting.Collector(namespace="default", strict=False, sinks={"Pod": self._sink})

    def add(self, document: Document) -> None:
        if document.kind in _PLACING:
            self._collector.add(document)

    def cluster(self) -> LoadedCluster:
        """The cluster as a scheduler sees it; raises InputError with all that it cannot read."""
        if self._collector.faults:
            raise InputError(self._collector.faults)
        return cluster.cluster_of(self._collector.inputs, sink=self._sink)


def load(
    paths: Sequence[str],
    *,
    recursive: bool = False,
    scenario: str = "",
    stdin: BinaryIO | None = None,
    placeable: PlaceableObjects | None = None,
    progress: Callable[[ReadProgress], None] | None = None,
    live: Iterable[Source] = (),
    unlisted: Sequence[Unlisted] = (),
) -> AuditInput:
    """
    All objects of all paths that an audit can use; raises InputError with everything that is wrong.

    `live` is what a cluster has, and `unlisted`, which may fill while that is read, what it would not tell. An object
    of a file takes the place of the cluster's.
    """
    gathered = audit_objects.Gathered()
    names, faults = sources.find(paths, recursive=recursive)
    found = (sources.open_source(name, stdin or sys.stdin.buffer) for name in names)

    def take(items: Iterable[Document | Fault]) -> None:
        for item in items:
            if gathered.add(item) and placeable is not None and isinstance(item, Document):
                placeable.add(item)

    take(faults)
    take(_documents(found, progress))
    gathered.begin_live()
    take(_documents(live, progress))
    return gathered.finish(scenario, unlisted, ", ".join(names))


def load_hosting(paths: Sequence[str], namespaces: Sequence[str], *, recursive: bool = False) -> Hosting:
    """
    The nodes of the hosting cluster, and the pods of one control plane on it.

    Which one is told by namespaces; where only one has parts of a control plane, besides the hosting cluster's own, it
    is that.
    """
    given = load(paths, recursive=recursive)
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
        for item in files.read(source):
            yield item
            n_objects += 1
            if progress is not None and n_objects % _REPORT_EVERY == 0:
                progress(ReadProgress(source.name, source.position, source.size, n_objects))
