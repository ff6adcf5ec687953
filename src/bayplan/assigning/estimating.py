"""
How many more replicas each cluster can take: Karmada's general estimator, from what clusters report.

The estimate depends on what one replica asks for and on the cluster alone, so all bindings that ask for the same share
one array, corrected where a cluster changed.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bayplan.assigning.go_numbers import MAX_INT32, int32
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import At
from bayplan.model.bindings import Binding, Demand
from bayplan.model.clusters import Amounts, ClusterFacts, NodeGrade, ResourceSummary
from bayplan.model.decisions import Scores
from bayplan.model.workloads import Workload
from bayplan.rules.rule import Rule

NATIVE = ("cpu", "memory", "ephemeral-storage")


class Estimate(Rule):
    """Shaped as a rule that only scores, because the evaluation cache keeps those true."""

    name = "Estimate"
    id = "estimate"
    follows_workloads = False

    def part(self, workload: Workload, index: PlacementIndex) -> tuple[Demand | None] | None:
        del index
        return None if workload.binding is None else (workload.binding.demand,)

    def score(self, plan: tuple[Demand | None], index: PlacementIndex, at: At) -> Scores:
        targets = index.slots.targets
        slots = range(index.slots.capacity) if isinstance(at, slice) else at.tolist()
        found = (targets[slot] for slot in slots)
        rooms = (most_replicas(plan[0], t.cluster) if t is not None and t.cluster else 0 for t in found)
        return np.fromiter(rooms, np.int64, len(slots))


ESTIMATE = Estimate()


def allocatable(workload: Workload, index: PlacementIndex) -> NDArray[np.int64]:
    """Replicas that fit beside everything present, shape (capacity,); things without replicas fit without end."""
    binding = workload.binding
    assert binding is not None
    if binding.replicas == 0 and not binding.components:
        return np.full(index.slots.capacity, MAX_INT32, np.int64)
    part = ESTIMATE.part(workload, index)
    estimate = index.evaluations.get(ESTIMATE, part, index).raw
    assert estimate is not None
    # "No limit known" and "cannot tell" mean that what is wanted fits.
    return _bounded(estimate, binding)


def _bounded(estimate: NDArray[np.int64], binding: Binding) -> NDArray[np.int64]:
    unknown = (estimate == MAX_INT32) | (estimate == -1)
    return np.where(unknown, binding.replicas, estimate)


def most_replicas(demand: Demand | None, facts: ClusterFacts) -> int:
    if facts.summary is None:
        return 0
    pods = _free_pods(facts.summary)
    if pods <= 0:
        return 0
    if demand is None or demand.requests is None:
        return int32(pods)
    if facts.grades is not None:
        return int32(min(pods, _on_grades(demand.requests, facts.grades)))
    return int32(min(pods, _by_summary(demand.requests, facts.summary, pods)))


def _free_pods(summary: ResourceSummary) -> int:
    """Each of the three is rounded up by itself."""
    offered, used, promised = (
        rounded("pods", dict(part).get("pods", Fraction()))
        for part in (summary.allocatable, summary.allocated, summary.allocating)
    )
    return max(0, offered - used - promised)


def _by_summary(requests: Amounts, summary: ResourceSummary, most: int) -> int:
    """The scarcest resource decides; a resource that the cluster does not report is not there."""
    offered, used, promised = dict(summary.allocatable), dict(summary.allocated), dict(summary.allocating)
    for resource, amount in requests:
        if amount <= 0:
            continue
        free = offered.get(resource, Fraction()) - used.get(resource, 0) - promised.get(resource, 0)
        if resource not in offered or free <= 0:
            return 0
        most = min(most, rounded(resource, free) // rounded(resource, amount))
    return most


def _on_grades(requests: Amounts, grades: tuple[NodeGrade, ...]) -> int:
    """Equal replicas fill one imagined node after another, so only how many fit on each grade matters."""
    wanted = counted(requests)
    total = 0
    for grade in grades:
        total += grade.count * fits_on(grade, wanted)
    return min(total, MAX_INT32)


def counted(requests: Amounts) -> dict[str, int]:
    """What a node must have for one replica, in whole units."""
    whole = {name: rounded(name, amount) for name, amount in requests if _counts(name)}
    return {name: amount for name, amount in whole.items() if amount > 0}


def fits_on(grade: NodeGrade, wanted: dict[str, int]) -> int:
    """How many replicas one such node takes."""
    least = {name: rounded(name, amount) for name, amount in grade.least if _counts(name)}
    return min([grade.pods, *(least.get(name, 0) // amount for name, amount in wanted.items())])


def _counts(name: str) -> bool:
    """Whether Karmada's node arithmetic knows the resource; others are asked for in vain and given for nothing."""
    if name in NATIVE or name.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in name:
        return True
    return "/" in name and not name.startswith("requests.")


def rounded(resource: str, amount: Fraction) -> int:
    """Whole units, cpu in thousandths."""
    scaled = amount * 1000 if resource == "cpu" else amount
    return -(-scaled.numerator // scaled.denominator)
