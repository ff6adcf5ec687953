"""
Which pods a controller deletes first when it has too many (pkg/controller/controller_utils.go, ActivePodsWithRanks).

Unassigned pods first, then pending, not ready, cheap to delete, doubled up on a node, ready for a shorter time, with
more restarts, and younger ones. Ages are compared by their power of two, and pods of about the same age by uid. Knows
no clock: the caller says what time it is.
"""

from __future__ import annotations

import functools
import heapq
from collections import Counter
from collections.abc import Iterable, Sequence

from bayplan.controllers.desired_state import PodEntry
from bayplan.model import timestamps


def first_deleted(
    pods: Sequence[PodEntry], n_deleted: int, related: Iterable[PodEntry], now: int | None
) -> list[PodEntry]:
    """
    The pods of a ReplicaSet that are deleted.

    `related` are the pods of all ReplicaSets of the Deployment, these included. `now` is in nanoseconds; None if it is
    not known, then ages are compared exactly.
    """
    if n_deleted >= len(pods):
        return list(pods)
    n_on_node = Counter(pod.node for pod in related if pod.active and pod.assigned)

    def compare(one: PodEntry, other: PodEntry) -> int:
        ranks = n_on_node[one.node], n_on_node[other.node]
        return (
            _compare_state(one, other)
            or one.deletion_cost - other.deletion_cost
            or ranks[1] - ranks[0]
            or _compare_age(one, other, now, scaled=True)
            or _compare_names(one, other)
        )

    return heapq.nsmallest(n_deleted, pods, functools.cmp_to_key(compare))


def first_deleted_of_job(pods: Sequence[PodEntry], n_deleted: int) -> list[PodEntry]:
    """The pods of a Job that are deleted: neither their cost nor their nodes matter (ActivePods)."""

    def compare(one: PodEntry, other: PodEntry) -> int:
        return _compare_state(one, other) or _compare_age(one, other, None, scaled=False) or _compare_names(one, other)

    return heapq.nsmallest(n_deleted, pods, functools.cmp_to_key(compare))


def newest_time(pods: Iterable[PodEntry]) -> int | None:
    """The last time that the pods mention, which stands for the present in a dump; None if they mention none."""
    times = [_time_of(written) for pod in pods for written in (pod.ready_since, pod.created)]
    return max((time for time in times if time is not None), default=None)


def _compare_state(one: PodEntry, other: PodEntry) -> int:
    return (one.assigned - other.assigned) or (one.phase - other.phase) or (one.ready - other.ready)


def _compare_age(one: PodEntry, other: PodEntry, now: int | None, *, scaled: bool) -> int:
    """By the time since they are ready, if both are, then by restarts, then by the time since they were created."""
    if one.ready and other.ready and one.ready_since != other.ready_since:
        return _compare_times(one, other, (one.ready_since, other.ready_since), now if scaled else None)
    if one.restarts != other.restarts:
        return -1 if one.restarts > other.restarts else 1
    if one.created != other.created:
        return _compare_times(one, other, (one.created, other.created), now if scaled else None)
    return 0


def _compare_times(one: PodEntry, other: PodEntry, written: tuple[str, str], now: int | None) -> int:
    """Younger first; an unknown time counts as the youngest."""
    mine, others = _time_of(written[0]), _time_of(written[1])
    if mine is None or others is None:
        return (mine is not None) - (others is not None)
    if now is None:
        return (mine < others) - (mine > others)
    # Both ages are positive in upstream's logarithm, or the rank is -1.
    ranks = [(now - time).bit_length() - 1 if now > time else -1 for time in (mine, others)]
    return ranks[0] - ranks[1] or (one.uid > other.uid) - (one.uid < other.uid)


def _compare_names(one: PodEntry, other: PodEntry) -> int:
    return (one.name > other.name) - (one.name < other.name)


def _time_of(written: str) -> int | None:
    try:
        return timestamps.nanoseconds(written) if written else None
    except timestamps.TimestampError:
        return None
