"""
The vocabulary of remedies: changes that would remove an obstacle, made of edits to a workload, a target or other pods.

Every remedy is an edit that can be applied, so that its effect is checked, not assumed. Beside the edit of the index it
has revisions: the same change in the manifests of objects. Which remedies an obstacle has, its rule knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Needs, Workload, WorkloadKey, belongs_to_node

Edit = Callable[[Workload, PlacementIndex], Workload]
Manifest = dict[str, Any]
Revise = Callable[[Manifest, Manifest], None]

MAX_MOVED_PODS = 3  # in one remedy; moving more pods is no simple fix
MAX_CHANGES_PER_FIX = 4  # more would be a redesign of the workload

ITSELF, NODE, OTHERS, NEW_NODE = range(4)  # what a remedy changes, in order of effort


class Revision(msgspec.Struct, frozen=True):
    """
    What a remedy changes in the manifest of one object.

    `pod` is the key of a pod; else it is about a node. If both are empty, it is about the workload itself. `revise`
    changes the first manifest in place; the second is the original, in which paths are still right; that of a pod also
    has the resources that the API server adds. None: the object is deleted. A node that is to be created is `like`
    another one. For a binding, the workload itself is its policy, or its resource template if it is `of_template`.
    """

    revise: Revise | None
    pod: WorkloadKey | None = None
    node: str = ""
    like: str = ""
    of_template: bool = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Revision) and self._subject == other._subject

    def __hash__(self) -> int:
        return hash(self._subject)

    @property
    def is_of_workload(self) -> bool:
        """Whether it is about the workload itself."""
        return not self.pod and not self.node

    @property
    def _subject(self) -> tuple[WorkloadKey | None, str, str, bool, bool]:
        """What it is about; how it is revised is said by the text of its remedy."""
        return self.pod, self.node, self.like, self.of_template, self.revise is None


class Remedy(msgspec.Struct, frozen=True):
    """
    One change, described by `text` and applied by `edit`; equal texts are equal changes.

    `effort` ranks changes of equal number: to the workload itself, to a node, to other pods, a new node. Of the
    remedies of one `family`, which loosen the same thing, the one of the smallest `size` is the least. `moves` are pods
    that are evicted and must find another place.
    """

    text: str
    edit: Edit
    effort: int = ITSELF
    revisions: tuple[Revision, ...] = ()
    family: str = ""
    size: int = 0
    moves: tuple[WorkloadKey, ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Remedy) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def is_at_most(self, other: Remedy) -> bool:
        """Whether this is the same change, or loosens the same thing no more."""
        return self == other or bool(self.family and self.family == other.family and self.size <= other.size)


Alternatives = list[Remedy]


def change_needs(**fields: Any) -> Edit:
    """An edit that replaces fields of the workload's needs."""

    def edit(workload: Workload, index: PlacementIndex) -> Workload:
        del index
        needs: Needs = msgspec.structs.replace(workload.needs, **fields)
        return msgspec.structs.replace(workload, needs=needs)

    return edit


def change_target(slot: int, **fields: Any) -> Edit:
    """An edit that replaces fields of one target."""

    def edit(workload: Workload, index: PlacementIndex) -> Workload:
        index.update_target(msgspec.structs.replace(index.slots.at(slot), **fields))
        return workload

    return edit


def may_be_moved(other: Workload, workload: Workload) -> bool:
    """Whether a placed pod may have to go for this one: no daemon, and not of higher priority."""
    return not belongs_to_node(other) and other.priority <= workload.priority


def move_pods(keys: Iterable[WorkloadKey], workload: Workload, index: PlacementIndex) -> Alternatives:
    """The remedy to move these pods away, if they are few and all of them may be moved; those that leave anyway go."""
    keys = tuple(dict.fromkeys(keys))
    staying = tuple(key for key in keys if not index.records[key].workload.terminating)
    if not 0 < len(keys) <= MAX_MOVED_PODS:
        return []
    if not all(may_be_moved(index.records[key].workload, workload) for key in staying):
        return []

    def edit(workload: Workload, index: PlacementIndex) -> Workload:
        for key in keys:
            if key in index.records:
                index.remove(key)
        return workload

    leaving = [key for key in keys if key not in staying]
    waits = [f"wait until {' and '.join(leaving)} {'has' if len(leaving) == 1 else 'have'} terminated"]
    moves = [f"move {' and '.join(staying)} away"]
    text = " and ".join([*(moves if staying else ()), *(waits if leaving else ())])
    gone = tuple(Revision(None, pod=key) for key in keys)
    return [Remedy(text, edit, OTHERS, gone, moves=staying)]


def label_target(slot: int, key: str, value: str, index: PlacementIndex) -> Remedy:
    target = index.slots.at(slot)
    edit = change_target(slot, labels={**target.labels, key: value})

    def revise(node: Manifest, _: Manifest) -> None:
        child(child(node, "metadata"), "labels")[key] = value

    return Remedy(f"label {target.name} with {key}={value}", edit, NODE, (Revision(revise, node=target.name),))


def on_workload(revise: Revise) -> tuple[Revision, ...]:
    """The revisions of a remedy that changes the workload only."""
    return (Revision(revise),)


def child(parent: Manifest, name: str) -> Manifest:
    """The object in this field, which is created if there is none."""
    found = parent.get(name)
    if not isinstance(found, dict):
        found = parent[name] = {}
    return found


def items(parent: Manifest, name: str) -> list[Any]:
    """The list in this field, which is created if there is none."""
    found = parent.get(name)
    if not isinstance(found, list):
        found = parent[name] = []
    return found
