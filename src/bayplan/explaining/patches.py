"""
The changes of manifests that apply a fix: one JSON Patch for each object, and the object as it is then.

A pod that a controller creates is changed in the template of the controller. Knows nothing of files: where manifests
come from is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import partial
from typing import Any

import msgspec

from bayplan.explaining import json_patch
from bayplan.explaining.json_patch import Operation
from bayplan.model.workloads import WorkloadKey
from bayplan.rules.remedies import Manifest, Revision


class ManifestToRevise(msgspec.Struct, frozen=True):
    """An object as it is written; `pod_path` leads to the pod or the pod template in it, and is empty for a pod."""

    content: Manifest
    pod_path: tuple[str, ...] = ()


# Fields of metadata that only a server sets.
OF_THE_SERVER = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
FindPod = Callable[[WorkloadKey, bool], ManifestToRevise | None]  # a pod; True: the controller that creates it instead
FindNode = Callable[[str], Manifest | None]


class ObjectPatch(msgspec.Struct, frozen=True):
    """A JSON Patch on one object; `after` is the object then, None if it is deleted. `of_state`: it runs already."""

    object: dict[str, str]
    patch: list[Operation]
    after: Manifest | None
    of_state: bool = False

    def manifest(self) -> Manifest | None:
        """
        The object then as it can be applied: without what a server has set. None if it is deleted.

        What the patch removes from an object of a server, or of the state, is null: `kubectl apply` keeps what a
        manifest lacks, unless it has applied it before.
        """
        if self.after is None:
            return None
        if not self.of_state and not any(name in self.after.get("metadata", {}) for name in OF_THE_SERVER):
            return self.after
        written = deepcopy(self.after)
        for operation in self.patch:
            if operation["op"] == "remove":
                json_patch.put_null(operation["path"], written)
        for name in OF_THE_SERVER:
            written["metadata"].pop(name, None)
        if written.get("kind") != "Node":  # that of a node says what it offers
            written.pop("status", None)
        return written


FindTemplate = Callable[[WorkloadKey], Manifest | None]


class ManifestSource(msgspec.Struct, frozen=True):
    """
    Finds the manifests of pods, of the controllers that create them, and of nodes; None for what is not known.

    In a fleet, `pod` finds the policy of a binding, and `template` its resource template.

    `completed` is a pod or a pod template in a namespace with the resources that the API server adds. `is_of_state`:
    whether a manifest that was found is of what runs already.
    """

    pod: FindPod
    node: FindNode
    template: FindTemplate = lambda _: None
    completed: Callable[[str, Manifest], Manifest] = lambda _, pod: pod
    is_of_state: Callable[[Manifest], bool] = lambda _: False


def of_fix(
    revisions: Iterable[Revision] | None, workload: WorkloadKey, source: ManifestSource
) -> list[ObjectPatch] | None:
    """The patches that apply a fix, one for each object; None if a manifest is not known."""
    if revisions is None:
        return None
    found: dict[tuple[str, ...], _Revised] = {}
    for revision in revisions:
        one = _subject_of(revision, workload, source)
        if one is None:
            return None
        one = found.setdefault(tuple(_reference(one.after or one.before).values()), one)
        try:
            one.apply(revision)
        except LookupError:  # what it changes is in another object
            return None
    return [one.patch() for one in found.values()]


class _Revised(msgspec.Struct):
    """One object before, and as it is after the revisions so far; `created`: it does not exist before."""

    before: Manifest
    after: Manifest | None
    pod_path: tuple[str, ...] = ()
    created: bool = False
    completed: Callable[[Manifest], Manifest] = lambda pod: pod
    of_state: bool = False
    done: set[tuple[int, str | None]] = set()

    def apply(self, revision: Revision) -> None:
        """Apply one revision; the pods of one controller share its template, which is revised once."""
        if revision.revise is None:
            self.after = None
        elif self.after is not None and (id(revision.revise), None) not in self.done:
            self.done.add((id(revision.revise), None))
            revision.revise(_at(self.after, self.pod_path), self.completed(_at(self.before, self.pod_path)))

    def patch(self) -> ObjectPatch:
        before = None if self.created else self.before
        patch = json_patch.difference(before, self.after)
        return ObjectPatch(_reference(self.after or self.before), patch, self.after, self.of_state)


def _subject_of(revision: Revision, workload: WorkloadKey, source: ManifestSource) -> _Revised | None:
    if revision.node:
        node = source.node(revision.like or revision.node)
        if node is None:
            return None
        after = deepcopy(node)
        if revision.like:
            after["metadata"]["name"] = revision.node
        is_new = bool(revision.like)
        return _Revised(node, after, created=is_new, of_state=not is_new and source.is_of_state(node))
    if revision.of_template:
        template = source.template(workload)
        if template is None:
            return None
        return _Revised(template, deepcopy(template), of_state=source.is_of_state(template))
    # A pod that is moved is deleted itself: its controller creates it again.
    key = revision.pod or workload
    found = source.pod(key, revision.revise is not None)
    if found is None:
        return None
    completed = partial(source.completed, key.partition("/")[0])
    of_state = source.is_of_state(found.content)
    return _Revised(found.content, deepcopy(found.content), found.pod_path, completed=completed, of_state=of_state)


def _at(manifest: Manifest, path: Iterable[str]) -> Any:
    for step in path:
        manifest = manifest.setdefault(step, {})
    return manifest


def _reference(manifest: Manifest) -> dict[str, str]:
    metadata = manifest.get("metadata") or {}
    found = {name: manifest.get(name) for name in ("apiVersion", "kind")}
    found |= {name: metadata.get(name) for name in ("namespace", "name")}
    return {name: str(text) for name, text in found.items() if text}
