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
from collections.abc import Iterable, Mapping, Sequence

import msgspec

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
        return _compare(one, other, n_on_node[one.node], n_on_node[other.node], now)

    return heapq.nsmallest(n_deleted, pods, functools.cmp_to_key(compare))


class DeletionOrder:
    """
    The pods of a ReplicaSet in the order of `first_deleted`, kept while pods come and go.

    All pods of a node are doubled up alike, so those of one node stay in order however many there are, and a heap of
    the first pod of each node knows the first of all. `n_on_node` has the related pods, and belongs to the caller, who
    says with `touch` that it has changed. Where upstream's order contradicts itself (pods that are ready since the same
    second are compared by restarts, others of about the same age by uid), the two may choose differently.
    """

    def __init__(self, pods: Iterable[PodEntry], n_on_node: Mapping[str, int], now: int | None) -> None:
        self.now = now
        self._n_on_node = n_on_node
        self._by_node: dict[str, dict[str, PodEntry]] = {}
        self._sorted: dict[str, list[PodEntry]] = {}  # not of nodes to which a pod was added since
        self._heap: list[_FirstOfNode] = []
        self._first: dict[str, _FirstOfNode] = {}  # others in the heap are outdated
        self._changed: set[str] = set()
        for pod in pods:
            self.add(pod)

    def add(self, pod: PodEntry) -> None:
        self._by_node.setdefault(pod.node, {})[pod.name] = pod
        self._sorted.pop(pod.node, None)
        self._changed.add(pod.node)

    def remove(self, pod: PodEntry) -> None:
        del self._by_node[pod.node][pod.name]
        if pod.node in self._sorted:
            self._sorted[pod.node].remove(pod)
        self._changed.add(pod.node)

    def touch(self, node: str) -> None:
        """Another number of related pods is on the node."""
        if node in self._by_node:
            self._changed.add(node)

    def first(self, n_deleted: int) -> list[PodEntry]:
        """The pods that are deleted first; there are as many."""
        for node in self._changed:
            self._push(node, 0)
        self._changed.clear()
        found: list[PodEntry] = []
        while len(found) < n_deleted:
            first = heapq.heappop(self._heap)
            if self._first.get(first.pod.node) is first:
                found.append(first.pod)
                self._push(first.pod.node, first.place + 1)
        self._changed.update(pod.node for pod in found)  # they are not deleted yet
        return found

    def _compare_on_node(self, one: PodEntry, other: PodEntry) -> int:
        return _compare(one, other, 0, 0, self.now)

    def _push(self, node: str, place: int) -> None:
        pods = self._sorted.get(node)
        if pods is None:
            key = functools.cmp_to_key(self._compare_on_node)
            pods = self._sorted[node] = sorted(self._by_node[node].values(), key=key)
        self._first.pop(node, None)
        if place < len(pods):
            first = _FirstOfNode(pods[place], place, self._n_on_node.get(node, 0), self.now)
            self._first[node] = first
            heapq.heappush(self._heap, first)


class _FirstOfNode(msgspec.Struct, frozen=True, eq=False):
    """The pod that is deleted first of those of one node from a place on."""

    pod: PodEntry
    place: int
    n_on_node: int
    now: int | None

    def __lt__(self, other: _FirstOfNode) -> bool:
        return _compare(self.pod, other.pod, self.n_on_node, other.n_on_node, self.now) < 0


def first_deleted_of_job(pods: Sequence[PodEntry], n_deleted: int) -> list[PodEntry]:
    """The pods of a Job that are deleted: neither their cost nor their nodes matter (ActivePods)."""

    def compare(one: PodEntry, other: PodEntry) -> int:
        return _compare_state(one, other) or _compare_age(one, other, None, scaled=False) or _compare_names(one, other)

    return heapq.nsmallest(n_deleted, pods, functools.cmp_to_key(compare))


def newest_time(pods: Iterable[PodEntry]) -> int | None:
    """The last time that the pods mention, which stands for the present in a dump; None if they mention none."""
    times = [_time_of(written) for pod in pods for written in (pod.ready_since, pod.created)]
    return max((time for time in times if time is not None), default=None)


def _compare(one: PodEntry, other: PodEntry, n_on_node: int, n_on_others: int, now: int | None) -> int:
    return (
        _compare_state(one, other)
        or one.deletion_cost - other.deletion_cost
        or n_on_others - n_on_node
        or _compare_age(one, other, now, scaled=True)
        or _compare_names(one, other)
    )


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
