"""
What a page draws of a cluster: its nodes, every pod with its node, and what changes once everything is placed.

Thousands of pods have few sets of labels, requests and controllers, so each is written once and pods refer to it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from bayplan.library.inputs import shows_nothing
from bayplan.library.place_run import PlaceRequest, PlaceRun
from bayplan.model.targets import Target

if TYPE_CHECKING:
    from bayplan.indexing.placement_index import PlacementIndex
    from bayplan.library.inputs import Supposed
    from bayplan.library.reading import Reading
    from bayplan.model.workloads import Workload
    from bayplan.placing.place_pods import PodPlacement
    from bayplan.reading.cluster import LoadedCluster

Value = TypeVar("Value")
NO_NODE = -1


class Interned(Generic[Value]):
    """Values, each once, and the position of each."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self._positions: dict[Hashable, int] = {}

    def position(self, key: Hashable, value: Value) -> int:
        found = self._positions.get(key)
        if found is None:
            found = self._positions[key] = len(self.values)
            self.values.append(value)
        return found


class PodColumns(msgspec.Struct):
    """The pods, one entry of every list for each. `node` is a position among the nodes, -1 without one."""

    namespace: list[int] = []
    name: list[str] = []
    node: list[int] = []
    labels: list[int] = []
    owner: list[int] = []
    group: list[int] = []
    requests: list[int] = []
    priority: list[int] = []
    terminating: list[int] = []  # positions of the pods that are


class PodSets(msgspec.Struct):
    """What pods have in common, by position: namespaces, labels, controllers as KIND/NAME, groups and requests."""

    namespaces: Interned[str] = msgspec.field(default_factory=Interned)
    labels: Interned[Mapping[str, str]] = msgspec.field(default_factory=Interned)
    owners: Interned[str] = msgspec.field(default_factory=Interned)
    groups: Interned[str] = msgspec.field(default_factory=Interned)
    requests: Interned[Mapping[str, int]] = msgspec.field(default_factory=Interned)

    def document(self) -> dict[str, Any]:
        return {name: getattr(self, name).values for name in self.__struct_fields__}


def state_of(reading: Reading, cluster: LoadedCluster) -> dict[str, Any]:
    """The cluster as it was read; the caller holds the lock of the reading."""
    index = cluster.index
    names = sorted(index.slots.by_name)
    positions = {name: position for position, name in enumerate(names)}
    placed = [(one.workload, one.shares[0][0]) for one in index.records.values()]
    sets = PodSets()
    pods = _columns([*placed, *((one, "") for one in cluster.pending)], positions, sets, index)
    unknown = sorted({node for _, node in placed if node not in positions})
    notes = list(reading.notes)
    if unknown:
        listed = ", ".join(unknown[:3]) + (" …" if len(unknown) > 3 else "")
        notes.append(f"pods run on nodes that are not in the input: {listed}")
    return {
        "resources": [one for one in index.capacity.rows if not one.startswith("\0")],
        "nodes": [_node(index.slots.at(index.slots.by_name[name])) for name in names],
        "sets": sets.document(),
        "pods": pods,
        "refused": [f"{one.pod.metadata.namespace}/{one.pod.metadata.name}" for one in cluster.refused],
        "notJudged": dict(sorted(cluster.not_judged.items())),
        "rollouts": len(cluster.rollouts),
        "notes": notes,
    }


def n_workloads(state: Mapping[str, Any]) -> int:
    """How many workloads a state has."""
    return len(state["bindings"]) if "bindings" in state else len(state["pods"].name)


def _columns(
    found: Iterable[tuple[Workload, str]], positions: Mapping[str, int], sets: PodSets, index: PlacementIndex
) -> PodColumns:
    columns = PodColumns()
    version = index.semantics.kubernetes_version
    for position, (one, node) in enumerate(sorted(found, key=lambda each: (each[0].namespace, each[0].name))):
        requests = one.needs.requests.on_node(version).amounts
        owner = "" if one.controller is None else f"{one.controller.kind}/{one.controller.name}"
        group = "" if one.group is None else one.group.name
        columns.namespace.append(sets.namespaces.position(one.namespace, one.namespace))
        columns.name.append(one.name)
        columns.node.append(positions.get(node, NO_NODE))
        columns.labels.append(sets.labels.position(tuple(sorted(one.labels.items())), one.labels))
        columns.owner.append(sets.owners.position(owner, owner))
        columns.group.append(sets.groups.position(group, group))
        columns.requests.append(sets.requests.position(requests, dict(requests)))
        columns.priority.append(one.priority)
        if one.terminating:
            columns.terminating.append(position)
    return columns


def _node(target: Target) -> dict[str, Any]:
    taints = [
        f"{one.key}={one.value}:{one.effect}" if one.value else f"{one.key}:{one.effect}" for one in target.taints
    ]
    return {
        "name": target.name,
        "labels": target.labels,
        "taints": taints,
        "unschedulable": target.unschedulable,
        "allocatable": dict(target.allocatable),
    }


class Baseline(msgspec.Struct, frozen=True):
    """What differences are told against: the nodes, and the node of each pod, empty while it waits."""

    nodes: Mapping[str, Target]
    pods: Mapping[str, str]


def baseline_of(cluster: LoadedCluster) -> Baseline:
    """The cluster as it was read."""
    index = cluster.index
    pods: dict[str, str] = {one.key: "" for one in cluster.pending} | {
        str(key): one.shares[0][0] for key, one in index.records.items()
    }
    return Baseline({name: index.slots.at(slot) for name, slot in index.slots.by_name.items()}, pods)


def placed(reading: Reading, supposed: Supposed, baseline: Baseline) -> dict[str, Any]:
    """
    What differs from the baseline once everything is placed that waits or is displaced, in the order of placement.

    It is a question as any other: the index is put back before the next one.
    """
    from bayplan.library import plan

    with reading.asked():
        run = PlaceRun(reading, PlaceRequest(supposed=supposed))
        index = reading.loaded().index
        found = run.place(run.begin(shows_nothing), shows_nothing)
        run.warn(found)
        answer = plan.plan_of(run, found, {})
        changed = {name: index.slots.at(slot) for name, slot in index.slots.by_name.items()}
        now = {key: (one.workload, one.shares[0][0]) for key, one in index.records.items()}
        return {
            "ok": answer.ok,
            "summary": list(answer.summary),
            "notes": list(answer.notes),
            "warnings": [str(one) for one in answer.warnings],
            "nodes": _node_changes(baseline.nodes, changed),
            "pods": _pod_changes(baseline.pods, now, found.placements, index),
            "blocked": [{"pod": one.pod, "node": one.node, "why": one.why} for one in found.blocked],
            "rollouts": [
                {"workload": "/".join(one.workload), "result": one.result, "why": one.why, "stuckAt": one.stuck_at}
                for one in answer.rollouts.values()
            ],
        }


def _node_changes(before: Mapping[str, Target], after: Mapping[str, Target]) -> dict[str, Any]:
    return {
        "added": [_node(one) for name, one in sorted(after.items()) if name not in before],
        "changed": [_node(one) for name, one in sorted(after.items()) if name in before and one != before[name]],
        "removed": sorted(before.keys() - after.keys()),
    }


def _pod_changes(
    before: Mapping[Any, str],
    after: Mapping[Any, tuple[Workload, str]],
    placements: Sequence[PodPlacement],
    index: PlacementIndex,
) -> dict[str, Any]:
    """Pods that move, come, go or wait; those that were placed in the order of placement, the others after them."""
    version = index.semantics.kubernetes_version
    changes: dict[Any, dict[str, Any]] = {}

    def change(workload: Workload, node: str, placement: PodPlacement | None) -> None:
        key = workload.key
        origin = before.get(key, "") or (
            "" if placement is None else placement.displaced_from or placement.preempted_from
        )
        is_same = key in before and before[key] == node and bool(node)
        if is_same or key in changes:
            return
        changes[key] = {
            "pod": key,
            "from": origin,
            "to": node,
            "why": "" if placement is None else _why(placement),
            "new": key not in before,
            **(_new_pod(workload, version) if key not in before else {}),
        }

    for one in placements:
        now = after.get(one.workload.key)
        change(one.workload, one.target if now is None else now[1], one)
    for _, (workload, node) in sorted(after.items()):
        change(workload, node, None)
    lost = {one.workload.key: _why(one) for one in placements if one.lost}
    gone = {key: "" for key in sorted(before) if key not in after and key not in changes} | lost
    return {
        "moved": [one for one in changes.values() if one["to"]],
        "waiting": [one for key, one in changes.items() if not one["to"] and key not in lost],
        "gone": [{"pod": key, "from": before.get(key, ""), "why": why} for key, why in gone.items()],
    }


def _why(placement: PodPlacement) -> str:
    from bayplan.writing import placements

    return placements.message_of(placement)


def _new_pod(one: Workload, version: Any) -> dict[str, Any]:
    return {
        "labels": one.labels,
        "owner": "" if one.controller is None else f"{one.controller.kind}/{one.controller.name}",
        "group": "" if one.group is None else one.group.name,
        "requests": dict(one.needs.requests.on_node(version).amounts),
        "priority": one.priority,
    }
