"""
Objects of the input as they are written, found by name once an answer is about them.

Files are read again for it, because most objects are reduced as they are read. Does not know what is changed in them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import BinaryIO

from bayplan.controllers.desired_state import ObjectKey
from bayplan.errors import Fault
from bayplan.explaining.patches import ManifestSource, ManifestToRevise
from bayplan.model.workloads import WorkloadKey
from bayplan.reading import files
from bayplan.reading.documents import Document, JsonObject, Source
from bayplan.reading.files import Disk, Recursion
from bayplan.validating import structure_faults
from bayplan.wire import kinds
from bayplan.wire.kinds import ApiKind

Lookup = Callable[[ApiKind, str, str], JsonObject | None]  # by kind, namespace and name
_PODS, _NODES = kinds.named("Pod"), kinds.named("Node")
_OF_FLEETS = tuple(map(kinds.named, (
    "PropagationPolicy", "ClusterPropagationPolicy", "ResourceBinding", "ClusterResourceBinding"
)))  # fmt: skip


def in_files(
    paths: Iterable[str],
    wanted: Collection[tuple[str, str]],
    *,
    recursive: Recursion = False,
    namespace: str = "default",
    stdin: BinaryIO,
    written: Iterable[Source] = (),
    disk: Disk = files.DISK,
) -> Lookup:
    """
    Finds the `wanted` pods, nodes, policies and bindings, by namespace and name, and all controllers, in files.

    The first one counts.

    `written` are further sources, from memory.
    """
    found: dict[ObjectKey, JsonObject] = {}
    opened = (disk.open(path, stdin) for path in disk.find(paths, recursive=recursive).files)
    for source in (*opened, *written):
        for item in () if isinstance(source, Fault) else files.documents_of(source):
            if isinstance(item, Document) and (row := _wanted(item, wanted, namespace)) is not None:
                place = "" if row.cluster_wide else item.namespace or namespace
                with contextlib.suppress(*structure_faults.UNDECODABLE):  # one that was set aside
                    # The items of a list that a server returned do not say what they are.
                    manifest = {"apiVersion": row.api_version, "kind": row.kind, **item.plain()}
                    found.setdefault(ObjectKey(row.kind, place, item.name), manifest)
    return lambda row, place, name: found.get(ObjectKey(row.kind, place, name))


def _wanted(item: Document, wanted: Collection[tuple[str, str]], namespace: str) -> ApiKind | None:
    row = kinds.handling_of(item.api_version, item.kind).row
    if row is None or (row not in (_PODS, _NODES, *_OF_FLEETS) and not row.pod_path):
        return None
    place = "" if row.cluster_wide else item.namespace or namespace
    return row if row.pod_path or (place, item.name) in wanted else None


def source_from(
    lookup: Lookup,
    made_for: Mapping[WorkloadKey, ObjectKey],
    completed: Callable[[str, JsonObject], JsonObject] = lambda _, pod: pod,
    is_of_state: Callable[[JsonObject], bool] = lambda _: False,
) -> ManifestSource:
    """
    The manifests that a fix changes: of a pod that a controller creates, that of the outermost controller known.

    `made_for` leads from pods that do not exist yet to the objects that they are created for; `completed` adds to a pod
    what the API server does. `is_of_state` tells of an object that the lookup has found whether it runs already.
    """

    def pod(key: WorkloadKey, of_controller: bool) -> ManifestToRevise | None:
        namespace, _, name = key.partition("/")
        maker = made_for.get(key)
        if maker is not None:
            return _with_path(kinds.named(maker.kind), lookup(kinds.named(maker.kind), maker.namespace, maker.name))
        written = lookup(_PODS, namespace, name)
        if written is None or not of_controller:
            return None if written is None else ManifestToRevise(written)
        return _controller(written, namespace, lookup) or ManifestToRevise(written)

    return ManifestSource(pod, lambda name: lookup(_NODES, "", name), completed=completed, is_of_state=is_of_state)


def source_of_binding(
    lookup: Lookup,
    placed_by: ObjectKey,
    template: ObjectKey,
    is_of_state: Callable[[JsonObject], bool] = lambda _: False,
) -> ManifestSource:
    """The manifests that a fix for a binding changes: its policy, or itself without one, and its resource template."""

    def named(key: ObjectKey) -> JsonObject | None:
        row = next((one for one in kinds.KINDS.values() if one.kind == key.kind), None)
        return None if row is None else lookup(row, key.namespace, key.name)

    def policy(_: WorkloadKey, of_controller: bool) -> ManifestToRevise | None:
        del of_controller
        written = named(placed_by)
        return None if written is None else ManifestToRevise(written)

    return ManifestSource(policy, lambda _: None, lambda _: named(template), is_of_state=is_of_state)


def _with_path(row: ApiKind, written: JsonObject | None) -> ManifestToRevise | None:
    return None if written is None else ManifestToRevise(written, row.pod_path or ())


def _controller(written: JsonObject, namespace: str, lookup: Lookup) -> ManifestToRevise | None:
    """The controller of a controller … of a pod, as far as they are known; None without one."""
    found, seen = None, set[tuple[str, str]]()
    while (reference := _owner(written)) is not None and reference not in seen:
        seen.add(reference)
        row = next((one for one in kinds.KINDS.values() if one.kind == reference[0] and one.pod_path), None)
        owner = None if row is None else lookup(row, namespace, reference[1])
        if row is None or owner is None:
            break
        found, written = ManifestToRevise(owner, row.pod_path or ()), owner
    return found


def _owner(written: JsonObject) -> tuple[str, str] | None:
    metadata = written.get("metadata")
    owners = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    for one in owners if isinstance(owners, list) else ():
        if isinstance(one, dict) and one.get("controller"):
            return str(one.get("kind")), str(one.get("name"))
    return None
