"""
How many more replicas each cluster can take: Karmada's general estimator, from the resource summaries of clusters.

All clusters are estimated at once, from arrays of their free resources; those whose reports do not fit into arrays, one
by one. The second half computes the summary that a cluster will report once replicas that were just placed on it run:
what was decided is not yet in any `resourceSummary`, and the next workload must not count on the same capacity. It
mirrors Karmada's feature gate SchedulingOvercommitProtection (pkg/estimator/client/general.go).
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
from bayplan.model.bindings import Binding
from bayplan.model.targets import Amounts, ClusterFacts, NodeGrade, ReplicaDemand

_ZERO, _ONE = Fraction(), Fraction(1)

NATIVE = ("cpu", "memory", "ephemeral-storage")


class ReplicaRequests(msgspec.Struct, frozen=True):
    """What one replica requests of a cluster as a whole and of a node, above 0 and in whole units."""

    of_cluster: tuple[tuple[str, int], ...]
    of_node: tuple[tuple[str, int], ...]


def replica_requests(requests: Amounts) -> ReplicaRequests:
    whole = tuple((name, quantities.rounded(name, amount)) for name, amount in requests if amount > 0)
    return ReplicaRequests(whole, tuple((name, amount) for name, amount in whole if _counts_on_nodes(name)))


def _counts_on_nodes(name: str) -> bool:
    """Whether Karmada's arithmetic for nodes knows the resource; it ignores requests for others."""
    if name in NATIVE or name.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in name:
        return True
    return "/" in name and not name.startswith("requests.")


def estimate_replicas(demand: ReplicaDemand | None, index: PlacementIndex) -> NDArray[np.int64]:
    """How many more replicas with this demand fit on each cluster, shape (capacity,)."""
    requests = None if demand is None or demand.requests is None else replica_requests(demand.requests)
    capacity = index.cluster_capacity
    found = capacity.pods
    for resource, amount in requests.of_cluster if requests else ():
        # No cluster in the arrays has more than the limit.
        found = np.minimum(found, capacity.free(resource) // min(amount, MAX_ARRAY_AMOUNT))
    if requests is not None and capacity.graded.any():
        found = np.where(capacity.graded, np.minimum(capacity.pods, _on_grades(requests, capacity)), found)
    found = found.astype(np.int32).astype(np.int64)  # which wraps as `int32` does
    for slot in capacity.apart:
        found[slot] = max_replicas(requests, capacity.reports[slot])
    if demand is not None and demand.claim:
        for slot, report in capacity.reports.items():
            accurate = report.estimates.get(demand)
            if accurate is not None:  # the least of all estimators counts, where -1 says nothing
                found[slot] = accurate if found[slot] == -1 else min(found[slot], accurate)
    return found


def _on_grades(requests: ReplicaRequests, capacity: ClusterCapacity) -> NDArray[np.int64]:
    """Equal replicas fill one modelled node after another, so only how many fit on a node of each grade matters."""
    fits = capacity.grade_pods
    for resource, amount in requests.of_node:
        fits = np.minimum(fits, capacity.least(resource) // min(amount, MAX_ARRAY_AMOUNT))
    total: NDArray[np.int64] = (capacity.grade_counts * fits).sum(axis=0)
    return np.minimum(total, MAX_INT32)


def max_replicas(requests: ReplicaRequests | None, report: CapacityReport) -> int:
    """How many replicas one cluster takes; if the requests are unknown, only its pods limit it."""
    if requests is None or not report.pods:
        return int32(report.pods)
    if report.grades is not None:
        total = sum(grade.count * max_replicas_on_node(grade, requests) for grade in report.grades)
        return int32(min(report.pods, total, MAX_INT32))
    return int32(min([report.pods, *(report.free.get(name, 0) // amount for name, amount in requests.of_cluster)]))


def max_replicas_on_node(grade: ResourceModelGrade, requests: ReplicaRequests) -> int:
    """How many replicas one node of the grade takes."""
    return min([grade.pods, *(grade.least.get(name, 0) // amount for name, amount in requests.of_node)])


# Assumed load


Load = list[tuple[Amounts, int]]  # the requests of one replica, and the number of replicas


def load_of(binding: Binding, replicas: int, before: int | None) -> Load:
    """The load added to a cluster that gets `replicas` and had `before`, None if the binding was not placed there."""
    if binding.is_divisible:
        requests = binding.demand.requests if binding.demand else None
        return [(requests or (), max(0, replicas - (before or 0)))]
    if before is not None:
        return []
    return [(component.requests or (), component.replicas) for component in binding.components]


def with_load(facts: ClusterFacts, load: Load) -> ClusterFacts:
    """The cluster with the load added; one without a resource summary stays as it is."""
    for requests, count in load:
        if count and facts.summary is not None:
            grades = None if facts.grades is None else _fill(facts.grades, requests, count)
            allocating = dict(facts.summary.allocating)
            for resource, amount in (*requests, ("pods", _ONE)):
                allocating[resource] = _plus(allocating.get(resource, _ZERO), amount, count)
            summary = msgspec.structs.replace(facts.summary, allocating=tuple(allocating.items()))
            facts = msgspec.structs.replace(facts, summary=summary, grades=grades)
    return facts


def _plus(before: Fraction, amount: Fraction, count: int) -> Fraction:
    if before.denominator == amount.denominator == 1:  # the usual case, without gcd
        return Fraction(before.numerator + amount.numerator * count)
    return before + amount * count


def _fill(grades: tuple[NodeGrade, ...], requests: Amounts, count: int) -> tuple[NodeGrade, ...]:
    """Each node in turn takes as many replicas as fit; replicas that fit on none are dropped."""
    requested = replica_requests(requests)
    result: list[NodeGrade] = []
    for place, grade in enumerate(grades):
        if not count:
            return (*result, *grades[place:])
        fits = max_replicas_on_node(grade_of(grade), requested)
        full, rest = divmod(min(count, grade.count * fits), fits) if fits else (0, 0)
        count -= full * fits + rest
        untouched = grade.count - full - bool(rest)
        for number, taken in ((full, fits), (int(bool(rest)), rest), (untouched, 0)):
            if number:
                _append(result, _with(grade, number, taken, dict(requested.of_node)))
    return tuple(result)


def _append(grades: list[NodeGrade], grade: NodeGrade) -> None:
    """Add nodes at the end, merged with equal ones there, so that grades do not multiply with every workload."""
    if grades and (grades[-1].least, grades[-1].pods) == (grade.least, grade.pods):
        grade = msgspec.structs.replace(grade, count=grades.pop().count + grade.count)
    grades.append(grade)


def _with(grade: NodeGrade, count: int, taken: int, requests: dict[str, int]) -> NodeGrade:
    """`count` nodes of the grade with `taken` replicas on each."""
    if not taken:
        return msgspec.structs.replace(grade, count=count)
    units = {"cpu": 1000}
    least = [
        (name, amount - Fraction(taken * requests.get(name, 0), units.get(name, 1))) for name, amount in grade.least
    ]
    return NodeGrade(count, tuple(least), grade.pods - taken)
