"""
How many more replicas each cluster can take: Karmada's general estimator, from what clusters report.

All clusters are estimated at once, from arrays of what they have left; those whose reports fit into none, one by one.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.assigning.go_numbers import MAX_INT32, int32
from bayplan.indexing.cluster_room import LARGEST, ClusterRoom, Grade, Report
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model import quantities
from bayplan.model.bindings import Demand
from bayplan.model.clusters import Amounts

NATIVE = ("cpu", "memory", "ephemeral-storage")


class Wanted(msgspec.Struct, frozen=True):
    """What one replica asks of a cluster as a whole and of a node, above 0 and in whole units."""

    of_cluster: tuple[tuple[str, int], ...]
    of_node: tuple[tuple[str, int], ...]


def wanted(requests: Amounts) -> Wanted:
    whole = tuple((name, quantities.rounded(name, amount)) for name, amount in requests if amount > 0)
    return Wanted(whole, tuple((name, amount) for name, amount in whole if _counts(name)))


def _counts(name: str) -> bool:
    """Whether Karmada's node arithmetic knows the resource; others are asked for in vain and given for nothing."""
    if name in NATIVE or name.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in name:
        return True
    return "/" in name and not name.startswith("requests.")


def allocatable(demand: Demand | None, index: PlacementIndex) -> NDArray[np.int64]:
    """How many replicas that ask for so much fit beside everything present, shape (capacity,)."""
    plan = None if demand is None or demand.requests is None else wanted(demand.requests)
    room = index.cluster_room
    found = _by_arrays(plan, room)
    for slot in room.apart:
        found[slot] = most_replicas(plan, room.reports[slot])
    return found


def _by_arrays(plan: Wanted | None, room: ClusterRoom) -> NDArray[np.int64]:
    """`most_replicas` of all clusters at once."""
    found = room.pods
    for resource, amount in plan.of_cluster if plan else ():
        found = np.minimum(found, room.free(resource) // _bounded(amount))
    if plan is not None and room.graded.any():
        found = np.where(room.graded, np.minimum(room.pods, _on_grades(plan, room)), found)
    return found.astype(np.int32).astype(np.int64)  # which wraps as `int32` does


def _on_grades(plan: Wanted, room: ClusterRoom) -> NDArray[np.int64]:
    """Equal replicas fill one imagined node after another, so only how many fit on each grade matters."""
    fits = room.grade_pods
    for resource, amount in plan.of_node:
        fits = np.minimum(fits, room.least(resource) // _bounded(amount))
    total: NDArray[np.int64] = (room.grade_counts * fits).sum(axis=0)
    return np.minimum(total, MAX_INT32)


def _bounded(amount: int) -> int:
    """The amount, or one that arrays can hold: no cluster in them has as much of either."""
    return min(amount, LARGEST)


def most_replicas(plan: Wanted | None, report: Report) -> int:
    """How many replicas one cluster takes; where a request is unknown, pods alone limit it."""
    if plan is None or not report.pods:
        return int32(report.pods)
    if report.grades is not None:
        total = sum(grade.count * fits_on(grade, plan) for grade in report.grades)
        return int32(min(report.pods, total, MAX_INT32))
    return int32(min([report.pods, *(report.free.get(name, 0) // amount for name, amount in plan.of_cluster)]))


def fits_on(grade: Grade, plan: Wanted) -> int:
    """How many replicas one such node takes."""
    return min([grade.pods, *(grade.least.get(name, 0) // amount for name, amount in plan.of_node)])
