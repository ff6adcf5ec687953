"""
The vocabulary of remedies: changes that would remove an obstacle, made of edits to a workload, a target or other pods.

Every remedy is an edit that can be applied, so that its effect is checked, not assumed. Which remedies an obstacle has,
its rule knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Needs, Workload, WorkloadKey

Edit = Callable[[Workload, PlacementIndex], Workload]

MAX_MOVED_PODS = 3  # in one remedy; moving more pods is no simple fix

ITSELF, NODE, OTHERS, NEW_NODE = range(4)  # what a remedy changes, in order of effort


class Remedy(msgspec.Struct, frozen=True):
    """
    One change, described by `text` and applied by `edit`; equal texts are equal changes.

    `effort` ranks changes of equal number: to the workload itself, to a node, to other pods, a new node.
    """

    text: str
    edit: Edit
    effort: int = ITSELF

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Remedy) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


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


def move_pods(keys: tuple[WorkloadKey, ...]) -> Alternatives:
    """The remedy to move these pods away, if they are few enough."""
    if not 0 < len(keys) <= MAX_MOVED_PODS:
        return []

    def edit(workload: Workload, index: PlacementIndex) -> Workload:
        for key in keys:
            if key in index.records:
                index.remove(key)
        return workload

    return [Remedy(f"move {' and '.join(keys)} away", edit, OTHERS)]


def label_target(slot: int, key: str, value: str, index: PlacementIndex) -> Remedy:
    target = index.slots.at(slot)
    edit = change_target(slot, labels={**target.labels, key: value})
    return Remedy(f"label {target.name} with {key}={value}", edit, NODE)
