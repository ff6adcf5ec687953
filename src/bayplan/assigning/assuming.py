"""
A cluster as it will report itself once replicas that were just placed on it are there.

What a plan has decided is not yet in any `resourceSummary`, and the next workload must not be promised the same room.
Mirrors what Karmada does behind its gate SchedulingOvercommitProtection (pkg/estimator/client/general.go).
"""

from __future__ import annotations

from fractions import Fraction

import msgspec

from bayplan.assigning import estimating
from bayplan.indexing.cluster_room import grade_of
from bayplan.model.bindings import Binding
from bayplan.model.clusters import Amounts, ClusterFacts, NodeGrade, ResourceSummary

Load = list[tuple[Amounts, int]]  # what one replica asks for, and how many of them


def load_of(binding: Binding, replicas: int, before: int | None) -> Load:
    """What comes to a cluster that gets so many replicas and has `before`, None if the binding was not there yet."""
    if binding.is_divisible:
        requests = binding.demand.requests if binding.demand else None
        return [(requests or (), max(0, replicas - (before or 0)))]
    if before is not None:
        return []
    return [(component.requests or (), component.replicas) for component in binding.components]


def loaded(facts: ClusterFacts, load: Load) -> ClusterFacts:
    """The cluster with the load on it; one that reports nothing stays as it is."""
    for requests, count in load:
        if count and facts.summary is not None:
            grades = None if facts.grades is None else _fill(facts.grades, requests, count)
            facts = msgspec.structs.replace(facts, summary=_promise(facts.summary, requests, count), grades=grades)
    return facts


def _promise(summary: ResourceSummary, requests: Amounts, count: int) -> ResourceSummary:
    allocating = dict(summary.allocating)
    for resource, amount in (*requests, ("pods", Fraction(1))):
        allocating[resource] = allocating.get(resource, Fraction()) + amount * count
    return msgspec.structs.replace(summary, allocating=tuple(allocating.items()))


def _fill(grades: tuple[NodeGrade, ...], requests: Amounts, count: int) -> tuple[NodeGrade, ...]:
    """The first node that has room takes what it can, then the next; what finds no room is let go."""
    wanted = estimating.wanted(requests)
    result: list[NodeGrade] = []
    for place, grade in enumerate(grades):
        if not count:
            return (*result, *grades[place:])
        fits = estimating.fits_on(grade_of(grade), wanted)
        full, rest = divmod(min(count, grade.count * fits), fits) if fits else (0, 0)
        count -= full * fits + rest
        untouched = grade.count - full - bool(rest)
        for number, taken in ((full, fits), (int(bool(rest)), rest), (untouched, 0)):
            if number:
                _append(result, _with(grade, number, taken, dict(wanted.of_node)))
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
