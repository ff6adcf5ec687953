"""
How many more replicas each cluster can take: Karmada's general estimator, from what clusters report.

All clusters are estimated at once, from arrays of what they have left; those whose reports fit into none, one by one.
"""

from __future__ import annotations

from fractions import Fraction

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.assigning.go_numbers import MAX_INT32, int32
from bayplan.indexing.capacity import MAX_ARRAY_AMOUNT, CapacityReport, ClusterCapacity, ResourceModelGrade, grade_of
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model import quantities
from bayplan.model.bindings import Binding, ReplicaDemand
from bayplan.model.clusters import Amounts, ClusterFacts, NodeGrade, ResourceSummary

NATIVE = ("cpu", "memory", "ephemeral-storage")


class ReplicaRequests(msgspec.Struct, frozen=True):
    """What one replica asks of a cluster as a whole and of a node, above 0 and in whole units."""

    of_cluster: tuple[tuple[str, int], ...]
    of_node: tuple[tuple[str, int], ...]


def replica_requests(requests: Amounts) -> ReplicaRequests:
    whole = tuple((name, quantities.rounded(name, amount)) for name, amount in requests if amount > 0)
    return ReplicaRequests(whole, tuple((name, amount) for name, amount in whole if _counts(name)))


def _counts(name: str) -> bool:
    """Whether Karmada's node arithmetic knows the resource; others are asked for in vain and given for nothing."""
    if name in NATIVE or name.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in name:
        return True
    return "/" in name and not name.startswith("requests.")


def estimate_replicas(demand: ReplicaDemand | None, index: PlacementIndex) -> NDArray[np.int64]:
    """How many replicas that ask for so much fit beside everything present, shape (capacity,)."""
    plan = None if demand is None or demand.requests is None else replica_requests(demand.requests)
    room = index.cluster_capacity
    found = _by_arrays(plan, room)
    for slot in room.apart:
        found[slot] = max_replicas(plan, room.reports[slot])
    return found


def _by_arrays(plan: ReplicaRequests | None, room: ClusterCapacity) -> NDArray[np.int64]:
    """`most_replicas` of all clusters at once."""
    found = room.pods
    for resource, amount in plan.of_cluster if plan else ():
        found = np.minimum(found, room.free(resource) // _bounded(amount))
    if plan is not None and room.graded.any():
        found = np.where(room.graded, np.minimum(room.pods, _on_grades(plan, room)), found)
    return found.astype(np.int32).astype(np.int64)  # which wraps as `int32` does


def _on_grades(plan: ReplicaRequests, room: ClusterCapacity) -> NDArray[np.int64]:
    """Equal replicas fill one imagined node after another, so only how many fit on each grade matters."""
    fits = room.grade_pods
    for resource, amount in plan.of_node:
        fits = np.minimum(fits, room.least(resource) // _bounded(amount))
    total: NDArray[np.int64] = (room.grade_counts * fits).sum(axis=0)
    return np.minimum(total, MAX_INT32)


def _bounded(amount: int) -> int:
    """The amount, or one that arrays can hold: no cluster in them has as much of either."""
    return min(amount, MAX_ARRAY_AMOUNT)


def max_replicas(plan: ReplicaRequests | None, report: CapacityReport) -> int:
    """How many replicas one cluster takes; where a request is unknown, pods alone limit it."""
    if plan is None or not report.pods:
        return int32(report.pods)
    if report.grades is not None:
        total = sum(grade.count * max_replicas_on_node(grade, plan) for grade in report.grades)
        return int32(min(report.pods, total, MAX_INT32))
    return int32(min([report.pods, *(report.free.get(name, 0) // amount for name, amount in plan.of_cluster)]))


def max_replicas_on_node(grade: ResourceModelGrade, plan: ReplicaRequests) -> int:
    """How many replicas one such node takes."""
    return min([grade.pods, *(grade.least.get(name, 0) // amount for name, amount in plan.of_node)])


# RF merged from assigning.assuming: A cluster as it will report itself once replicas that were just placed on it are
# there. What a plan has decided is not yet in any `resourceSummary`, and the next workload must not be promised the
# same room. Mirrors what Karmada does behind its gate SchedulingOvercommitProtection
# (pkg/estimator/client/general.go).


Load = list[tuple[Amounts, int]]  # what one replica asks for, and how many of them


def load_of(binding: Binding, replicas: int, before: int | None) -> Load:
    """What comes to a cluster that gets so many replicas and has `before`, None if the binding was not there yet."""
    if binding.is_divisible:
        requests = binding.demand.requests if binding.demand else None
        return [(requests or (), max(0, replicas - (before or 0)))]
    if before is not None:
        return []
    return [(component.requests or (), component.replicas) for component in binding.components]


def with_load(facts: ClusterFacts, load: Load) -> ClusterFacts:
    """The cluster with the load on it; one that reports nothing stays as it is."""
    for requests, count in load:
        if count and facts.summary is not None:
            grades = None if facts.grades is None else _fill(facts.grades, requests, count)
            facts = msgspec.structs.replace(facts, summary=_assume(facts.summary, requests, count), grades=grades)
    return facts


def _assume(summary: ResourceSummary, requests: Amounts, count: int) -> ResourceSummary:
    allocating = dict(summary.allocating)
    for resource, amount in (*requests, ("pods", Fraction(1))):
        allocating[resource] = allocating.get(resource, Fraction()) + amount * count
    return msgspec.structs.replace(summary, allocating=tuple(allocating.items()))


def _fill(grades: tuple[NodeGrade, ...], requests: Amounts, count: int) -> tuple[NodeGrade, ...]:
    """The first node that has room takes what it can, then the next; what finds no room is let go."""
    asked = replica_requests(requests)
    result: list[NodeGrade] = []
    for place, grade in enumerate(grades):
        if not count:
            return (*result, *grades[place:])
        fits = max_replicas_on_node(grade_of(grade), asked)
        full, rest = divmod(min(count, grade.count * fits), fits) if fits else (0, 0)
        count -= full * fits + rest
        untouched = grade.count - full - bool(rest)
        for number, taken in ((full, fits), (int(bool(rest)), rest), (untouched, 0)):
            if number:
                _append(result, _with(grade, number, taken, dict(asked.of_node)))
    return tuple(result)


def _append(grades: list[NodeGrade], grade: NodeGrade) -> None:
    """Add nodes at the end; to those there if they are alike, so that grades do not multiply with every workload."""
    if grades and (grades[-1].least, grades[-1].pods) == (grade.least, grade.pods):
        grade = msgspec.structs.replace(grade, count=grades.pop().count + grade.count)
    grades.append(grade)


def _with(grade: NodeGrade, count: int, taken: int, wanted: dict[str, int]) -> NodeGrade:
    """So many nodes of the grade with so many replicas on each."""
    if not taken:
        return msgspec.structs.replace(grade, count=count)
    units = {"cpu": 1000}
    least = [(name, amount - Fraction(taken * wanted.get(name, 0), units.get(name, 1))) for name, amount in grade.least]
    return NodeGrade(count, tuple(least), grade.pods - taken)
