"""
Remedies: changes that would remove one failure of a target.

Every remedy is an edit that can be applied to a workload or an index, so that its effect is checked, not assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np

from bayplan.indexing.capacity import PODS
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model import quantities
from bayplan.model.labels import HARD_EFFECTS, Taint, Toleration, tolerated
from bayplan.model.node_selectors import NodeAffinity
from bayplan.model.targets import Target, TargetName
from bayplan.model.terms import HOSTNAME
from bayplan.model.workloads import Needs, Workload, WorkloadKey
from bayplan.rules import resources_fit

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


# One function per rule


def for_cordon(state: str, workload: Workload, slot: int, index: PlacementIndex) -> list[Alternatives]:
    del state, workload
    return [[Remedy(f"uncordon {index.slots.at(slot).name}", change_target(slot, unschedulable=False), NODE)]]


def for_name(state: str, workload: Workload, slot: int, index: PlacementIndex) -> list[Alternatives]:
    del workload, slot, index

    def edit(workload: Workload, index: PlacementIndex) -> Workload:
        del index
        return msgspec.structs.replace(workload, requested_target="")

    return [[Remedy(f"drop spec.nodeName {state}", edit)]]


def for_taints(
    state: tuple[Toleration, ...], workload: Workload, slot: int, index: PlacementIndex
) -> list[Alternatives]:
    target = index.slots.at(slot)
    hard = [t for t in target.taints if t.effect in HARD_EFFECTS and not tolerated(t, state)]
    del workload
    return [_for_taint(taint, slot, target) for taint in hard]


def _for_taint(taint: Taint, slot: int, target: Target) -> Alternatives:
    toleration = Toleration(taint.key, "Equal", taint.value, taint.effect)

    def tolerate(workload: Workload, index: PlacementIndex) -> Workload:
        return change_needs(tolerations=(*workload.needs.tolerations, toleration))(workload, index)

    def remove(workload: Workload, index: PlacementIndex) -> Workload:
        here = index.slots.at(slot)
        index.update_target(msgspec.structs.replace(here, taints=tuple(t for t in here.taints if t != taint)))
        return workload

    return [
        Remedy(f"tolerate {taint}", tolerate),
        Remedy(f"remove taint {taint} from {target.name}", remove, NODE),
    ]


def for_node_affinity(state: Any, workload: Workload, slot: int, index: PlacementIndex) -> list[Alternatives]:
    affinity: NodeAffinity = state.affinity
    target = index.slots.at(slot)
    found = [
        [
            Remedy(f"drop nodeSelector {key}={value}", _without_selector(key)),
            label_target(slot, key, value, index),
        ]
        for key, value in affinity.selector
        if target.labels.get(key) != value
    ]
    if affinity.required is not None and not any(t.matches(target.name, target.labels) for t in affinity.required):
        found.append([Remedy("drop the required node affinity", _without_required_affinity)])
    del workload
    return found


def _without_selector(key: str) -> Edit:
    def edit(workload: Workload, index: PlacementIndex) -> Workload:
        affinity = workload.needs.node_affinity
        left = tuple(pair for pair in affinity.selector if pair[0] != key)
        return change_needs(node_affinity=msgspec.structs.replace(affinity, selector=left))(workload, index)

    return edit


def _without_required_affinity(workload: Workload, index: PlacementIndex) -> Workload:
    affinity = workload.needs.node_affinity
    return change_needs(node_affinity=msgspec.structs.replace(affinity, required=None))(workload, index)


def for_ports(state: Any, workload: Workload, slot: int, index: PlacementIndex) -> list[Alternatives]:
    del workload
    holders = tuple(
        key
        for key in index.workloads_on(slot)
        if {(p.protocol, p.port) for p in index.records[key].workload.needs.host_ports}
        & {(p.protocol, p.port) for p in state}
    )
    ports = ", ".join(str(port.port) for port in state)
    return [[Remedy(f"drop host port {ports}", change_needs(host_ports=())), *move_pods(holders)]]


def for_resources(
    state: resources_fit.ResourcesFitState, workload: Workload, slot: int, index: PlacementIndex
) -> list[Alternatives]:
    del workload
    requested = {PODS: 1, **dict(state.amounts)}
    code = int(resources_fit.ResourcesFit().reject(state, index, np.array([slot]))[0])
    short = ([PODS] if code & 1 else []) + [r for i, (r, _) in enumerate(state.amounts) if code & (2 << i)]
    return [_for_shortage(resource, requested[resource], slot, index) for resource in short]


def _for_shortage(resource: str, requested: int, slot: int, index: PlacementIndex) -> Alternatives:
    row, name = index.capacity.row(resource), index.slots.at(slot).name
    left = int(index.capacity.allocatable[row, slot] - index.capacity.requested[row, slot])
    free, missing = max(left, 0), requested - left
    amount = quantities.show(resource, missing)
    what = "a place for one more pod" if resource == PODS and missing == 1 else f"{amount} {resource}"

    def grow(workload: Workload, index: PlacementIndex) -> Workload:
        here = index.slots.at(slot)
        offered = dict(here.allocatable)
        offered[resource] = offered.get(resource, 0) + missing
        index.update_target(msgspec.structs.replace(here, allocatable=tuple(offered.items())))
        return workload

    def request_less(workload: Workload, index: PlacementIndex) -> Workload:
        requests = workload.needs.requests
        amounts = tuple((r, free if r == resource else a) for r, a in requests.amounts)
        return change_needs(requests=msgspec.structs.replace(requests, amounts=amounts))(workload, index)

    remedies = [Remedy(f"free {what} on {name}", grow, NODE)]
    if resource != PODS and free > 0:
        before, after = quantities.show(resource, requested), quantities.show(resource, free)
        remedies.insert(0, Remedy(f"request {after} {resource} instead of {before}", request_less))
    return remedies


# A new node, like an existing one


def node_like(slot: int, workload: Workload, index: PlacementIndex) -> Iterator[Remedy]:
    """Adding a node like this one; then the same in a new domain of each topology key that the workload uses."""
    model = index.slots.at(slot)
    name = f"{model.name}-more"
    while name in index.slots.by_name:
        name += "-more"
    labels = {**model.labels, HOSTNAME: name} if HOSTNAME in model.labels else model.labels
    # Empty and schedulable, with no image pulled yet.
    new = msgspec.structs.replace(model, name=TargetName(name), labels=labels, unschedulable=False, images=())
    yield Remedy(f"add a node like {model.name}", _add_target(new), NEW_NODE)
    terms = (*workload.needs.affinity.anti_required, *workload.needs.affinity.required)
    keys = [term.topology_key for term in terms] + [c.topology_key for c in workload.needs.spread.constraints]
    for key in sorted({key for key in keys if key}):
        if key in model.labels and key != HOSTNAME:
            elsewhere = msgspec.structs.replace(new, labels={**new.labels, key: f"new-{model.labels[key]}"})
            yield Remedy(f"add a node like {model.name} with a new {key}", _add_target(elsewhere), NEW_NODE)


def _add_target(target: Target) -> Edit:
    def edit(workload: Workload, index: PlacementIndex) -> Workload:
        index.add_target(target)
        return workload

    return edit
