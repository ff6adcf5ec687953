"""
What if nodes are lost, drained, cordoned or added: the cluster as it is then, before anything is placed.

A loss asks no PodDisruptionBudget. Its nodes are gone for good, with their daemons, mirror pods and pods that no
controller creates again; all other pods come back as their controllers recreate them. The pods of a StatefulSet come
back one after another, unless it manages its pods in parallel. A drain is that of `kubectl drain --ignore-daemonsets
--delete-emptydir-data`: it evicts what budgets allow, and again when evicted pods run elsewhere. Knows nothing of files
or options.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from bayplan.controllers.scaled_values import scaled
from bayplan.explaining import new_nodes
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping.pods import SpreadContext
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.node_selectors import NAME_FIELD
from bayplan.model.targets import Target
from bayplan.model.workloads import Workload, WorkloadKey, belongs_to_node, queue_order
from bayplan.placing import recreating
from bayplan.placing.place_pods import PodPlacement

if TYPE_CHECKING:
    from bayplan.engine.engine import EngineOf
    from bayplan.placing.place_cluster import ClusterToPlace
    from bayplan.placing.pod_scheduler import PodScheduler

NOT_RECREATED = "gone with node {}: no controller creates it again"
NEEDS_FORCE = "no controller creates it again: kubectl drain evicts nothing without --force"
WAITS_FOR = "waits for {}: its StatefulSet creates its pods one after another"
_ORDINAL = re.compile(r"-(\d+)$")


class NewNode(msgspec.Struct, frozen=True):
    """A node that is added; it gets the daemons that run on its `model`, if it has one."""

    target: Target
    model: str = ""


class NodeEvents(msgspec.Struct, frozen=True, kw_only=True):
    """Names of nodes of the cluster, and nodes that are added to it."""

    lost: tuple[str, ...] = ()
    drained: tuple[str, ...] = ()
    cordoned: tuple[str, ...] = ()
    added: tuple[NewNode, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.lost or self.drained or self.cordoned or self.added)


class BlockedEviction(msgspec.Struct, frozen=True):
    """A pod that keeps a node from being drained."""

    pod: WorkloadKey
    node: str
    why: str


class RemovedPods(msgspec.Struct, frozen=True):
    """The pods of nodes that were removed: those to place again, as recreated, and those that are gone."""

    displaced: list[tuple[Workload, str]]
    gone: list[tuple[Workload, str]]


def apply(events: NodeEvents, cluster: ClusterToPlace, engine_of: EngineOf) -> None:
    """Change the cluster; the pods that must be placed again are pending then. Drains begin when it is placed."""
    index = cluster.index
    if cluster.change is not None and not {one.key for one in cluster.pending} <= cluster.change:
        cluster.placed_otherwise = _placed(cluster, engine_of)
    for new in events.added:
        index.add_target(new.target)
        if new.model:
            new_nodes.add_daemons(new.model, new.target.name, index)
    removed = remove_nodes(
        events.lost, index, cluster.spread_context, is_gone=lambda one: not has_controller_elsewhere(one)
    )
    for name in (*events.cordoned, *events.drained):
        target = index.slots.at(index.slots.by_name[name])
        index.update_target(msgspec.structs.replace(target, unschedulable=True))
    for workload, node in removed.gone:
        if is_bare(workload) and not workload.terminating:
            cluster.gone.append(
                PodPlacement(workload, message=NOT_RECREATED.format(node), lost=True, displaced_from=node)
            )
    cluster.displaced.update({workload.key: node for workload, node in removed.displaced})
    cluster.pending = sorted([*cluster.pending, *(one for one, _ in removed.displaced)], key=queue_order)
    cluster.draining = events.drained
    if events.drained:
        cluster.disruption_budgets = [with_status(one, index) for one in cluster.disruption_budgets]


def _placed(cluster: ClusterToPlace, engine_of: EngineOf) -> frozenset[WorkloadKey]:
    """The pending pods that have a node in the cluster as it is; rollouts are not stepped through for that."""
    from bayplan.placing import place_cluster

    as_it_is = msgspec.structs.replace(cluster, rollouts=[])
    with cluster.index.tentatively():
        found = place_cluster.place(as_it_is, engine_of, place_cluster.PlacingOptions()).placements
    return frozenset(one.workload.key for one in found if one.target)


def remove_nodes(
    names: Iterable[str], index: PlacementIndex, context: SpreadContext, *, is_gone: Callable[[Workload], bool]
) -> RemovedPods:
    """Remove nodes and their pods from the index; `is_gone` of a pod that is not created again."""
    found = RemovedPods([], [])
    for name in names:
        for key in index.workloads_on(index.slots.by_name[name]):
            placed = index.records[key]
            if placed.workload.terminating or is_pinned_to_node(placed.workload) or is_gone(placed.workload):
                found.gone.append((placed.workload, name))
            else:
                found.displaced.append((recreating.as_recreated(placed, index, context), name))
            index.remove(key)
        index.remove_target(name)
    return found


def is_pinned_to_node(workload: Workload) -> bool:
    """Whether every term of its node affinity names one node, as in pods of a DaemonSet."""
    terms = workload.needs.node_affinity.required
    return bool(terms) and all(
        any(f.key == NAME_FIELD and f.operator == "In" for f in term.fields) for term in terms or ()
    )


def is_bare(workload: Workload) -> bool:
    """Whether no controller manages the pod."""
    return workload.controller is None


def has_controller_elsewhere(workload: Workload) -> bool:
    """Whether a controller creates the pod again on another node."""
    return not is_bare(workload) and not belongs_to_node(workload)


def waiting_for(
    pending: Sequence[Workload], displaced: Mapping[WorkloadKey, str], parallel_sets: frozenset[tuple[str, str]]
) -> dict[WorkloadKey, WorkloadKey]:
    """The displaced pods that a StatefulSet creates only once another pod runs → that pod."""
    sets: dict[tuple[str, str], list[tuple[int, WorkloadKey]]] = {}
    for one in pending:
        controller, ordinal = one.controller, _ORDINAL.search(one.name)
        if controller is not None and controller.kind == "StatefulSet" and ordinal:
            sets.setdefault((one.namespace, controller.name), []).append((int(ordinal[1]), one.key))
    found = {}
    for name, pods in sets.items():
        if name not in parallel_sets:
            ordered = [key for _, key in sorted(pods)]
            found.update({key: before for before, key in itertools.pairwise(ordered) if key in displaced})
    return found


def drain(cluster: ClusterToPlace, scheduler: PodScheduler) -> list[BlockedEviction]:
    """Evict the pods of the nodes to drain, as budgets allow, and place them; returns what cannot be evicted."""
    index, blocked = cluster.index, list[BlockedEviction]()
    to_evict: dict[WorkloadKey, str] = {}
    for node in cluster.draining:
        pods = [index.records[key].workload for key in index.workloads_on(index.slots.by_name[node])]
        pods = [one for one in pods if not one.terminating and not _stays_with_node(one)]
        bare = [BlockedEviction(one.key, node, NEEDS_FORCE) for one in pods if is_bare(one)]
        blocked += bare
        if not bare:
            to_evict.update({one.key: node for one in pods})
    reasons: dict[WorkloadKey, str] = {}
    while to_evict:
        reasons = {key: scheduler.evict(key) for key in to_evict}
        evicted = [key for key, why in reasons.items() if not why]
        if not evicted:
            break
        cluster.displaced.update({key: to_evict.pop(key) for key in evicted})
        scheduler.schedule()
    return blocked + [BlockedEviction(key, node, reasons[key]) for key, node in to_evict.items()]


def _stays_with_node(workload: Workload) -> bool:
    """Whether a drain leaves the pod alone: a daemon or a mirror pod."""
    return is_pinned_to_node(workload) or belongs_to_node(workload)


def with_status(budget: DisruptionBudget, index: PlacementIndex) -> DisruptionBudget:
    """A budget that no controller has counted, counted as one would with every placed pod healthy."""
    if budget.expected or budget.allowed:
        return budget
    selected = (one.workload for one in index.records.values() if one.workload.namespace == budget.namespace)
    n_pods = sum(budget.selects(one.labels) and not one.terminating for one in selected)
    if budget.max_unavailable is not None:
        desired = n_pods - scaled(budget.max_unavailable, n_pods, up=True)
    else:
        desired = scaled(1 if budget.min_available is None else budget.min_available, n_pods, up=True)
    return msgspec.structs.replace(budget, expected=n_pods, allowed=max(0, n_pods - max(desired, 0)))
