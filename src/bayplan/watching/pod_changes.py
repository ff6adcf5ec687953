"""Two readings of the same pod: whether what matters of it has changed."""

from __future__ import annotations

from bayplan.model.workloads import Workload


def counts_the_same(one: Workload, other: Workload) -> bool:
    """Whether two readings of a running pod are equal in everything that is counted of it."""
    return (
        one.uid == other.uid
        and one.labels == other.labels
        and (one.needs is other.needs or _weighs(one) == _weighs(other))
        and one.terminating == other.terminating
        and one.priority == other.priority
    )


def _weighs(workload: Workload) -> tuple[object, ...]:
    needs = workload.needs
    return needs.requests, needs.affinity, needs.host_ports, needs.claims


def reads_the_same(one: Workload, other: Workload) -> bool:
    """Whether two readings of a pending pod are equal in everything that a decision reads."""
    return (
        one.labels == other.labels
        and one.needs == other.needs
        and one.priority == other.priority
        and one.gates == other.gates
        and one.unplaceable == other.unplaceable
    )
