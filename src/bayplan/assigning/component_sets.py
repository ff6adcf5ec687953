"""
How many whole sets of a workload's components each cluster can take (feature gate MultiplePodTemplatesScheduling).

Mirrors `MaxAvailableComponentSets` in pkg/estimator/client/general.go, and pkg/estimator/scheduling_simulator*.go.
Karmada compares amounts that are written in decimal form in thousandths and those in binary form in whole units, also
with each other; so does this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bayplan.assigning.estimating import ReplicaRequests, max_replicas_on_node, replica_requests
from bayplan.assigning.go_numbers import int32
from bayplan.indexing.capacity import ResourceModelGrade, capacity_report_of
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model import quantities
from bayplan.model.bindings import Binding, Component
from bayplan.model.semantics import Semantics
from bayplan.model.targets import CLUSTER, ClusterFacts, ResourceSummary

_THOUSANDTHS = "cpu"  # amounts of cpu are rounded up to thousandths, all others to whole units


def counts_sets(binding: Binding, semantics: Semantics) -> bool:
    """Whether sets are counted: with the gate, and if the placement requires exactly one cluster."""
    return (
        semantics.multiple_pod_templates_scheduling
        and bool(binding.components)
        and any((one.field, one.min_groups, one.max_groups) == (CLUSTER, 1, 1) for one in binding.placement.spread)
    )


def estimate_sets(components: Sequence[Component], index: PlacementIndex) -> NDArray[np.int64]:
    """How many sets fit on each cluster, shape (capacity,)."""
    found = np.zeros(index.slots.capacity, np.int64)
    for slot in index.slots.by_name.values():
        target = index.slots.at(slot)
        if target is not None and target.cluster is not None:
            found[slot] = most_sets(components, target.cluster)
    return found


def most_sets(components: Sequence[Component], facts: ClusterFacts) -> int:
    """How many sets one cluster takes."""
    report = capacity_report_of(facts)
    if facts.summary is None or report.pods <= 0:
        return 0
    per_set = sum(one.replicas for one in components)
    if per_set <= 0:
        return int32(report.pods)
    sets = int32(report.pods // per_set)
    for resource, wanted in _requested(components).items():
        free = _free(resource, facts.summary)
        if wanted > 0 and free <= 0:
            return 0
        if wanted > 0:
            sets = min(sets, int32(free // wanted))
    return sets if report.grades is None else min(sets, _on_grades(components, report.grades, sets))


def _requested(components: Sequence[Component]) -> dict[str, int]:
    total: dict[str, int] = {}
    for component in components:
        for resource, amount in component.requests or ():
            counted = _counted(amount, binary=resource in component.binary) * component.replicas
            total[resource] = total.get(resource, 0) + counted
    return total


def _free(resource: str, summary: ResourceSummary) -> int:
    allocatable, allocated, allocating = map(dict, (summary.allocatable, summary.allocated, summary.allocating))
    if resource not in allocatable:
        return 0
    free = allocatable[resource] - allocated.get(resource, 0) - allocating.get(resource, 0)
    return _counted(free, binary=resource in summary.binary)


def _counted(amount: Fraction, *, binary: bool) -> int:
    return quantities.rounded("" if binary else _THOUSANDTHS, amount)


def _on_grades(components: Sequence[Component], grades: Sequence[ResourceModelGrade], limit: int) -> int:
    """
    First fit, set by set and component by component; the first set that does not fit as a whole ends the count.

    Nodes only get fuller, so one that has no room for a replica of a component never has again: each component
    continues at the first node that may have room.
    """
    nodes = [
        ResourceModelGrade(1, grade.pods, dict(grade.least)) for grade in grades for _ in range(max(0, grade.count))
    ]
    requests = [replica_requests(one.requests or ()) for one in components]
    first = [0] * len(requests)
    for n_sets in range(limit):
        for place, (component, requested) in enumerate(zip(components, requests, strict=True)):
            first[place] = _first_with_room(nodes, requested, first[place])
            if not _placed(component.replicas, requested, nodes, first[place]):
                return n_sets
    return limit


def _first_with_room(nodes: Sequence[ResourceModelGrade], requested: ReplicaRequests, begin: int) -> int:
    return next((i for i in range(begin, len(nodes)) if max_replicas_on_node(nodes[i], requested)), len(nodes))


def _placed(replicas: int, requested: ReplicaRequests, nodes: list[ResourceModelGrade], begin: int) -> bool:
    """Put the replicas on the nodes in order; whether all fit. As in Karmada, none at all need a node with room."""
    for i in range(begin, len(nodes)):
        node = nodes[i]
        room = max_replicas_on_node(node, requested)
        if room <= 0:
            continue
        taken = min(replicas, room)
        least = {**node.least, **{name: node.least.get(name, 0) - taken * amount for name, amount in requested.of_node}}
        nodes[i] = ResourceModelGrade(1, node.pods - taken, least)
        replicas -= taken
        if not replicas:
            return True
    return not replicas
