"""
Nominated pods: the node that preemption has nominated each to, until the pod is bound or the nomination is cleared.

A pod must fit beside the nominated pods of equal or higher priority. Pods of higher priority ignore nominations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bayplan import schedule_pod
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload, WorkloadKey


class Nominations:
    """Pending pods by key with the node that each is nominated to. `generation` changes with every nomination."""

    def __init__(self) -> None:
        self.generation = 0
        self._nominated: dict[WorkloadKey, tuple[Workload, str]] = {}
        self._victims: dict[WorkloadKey, frozenset[str]] = {}  # the uids of the pods evicted for it
        self._reserved: set[WorkloadKey] = set()  # nominated to a node that is reserved for them

    def __len__(self) -> int:
        return len(self._nominated)

    def target_of(self, key: WorkloadKey) -> str:
        """The node that a pod is nominated to, empty if none."""
        found = self._nominated.get(key)
        return found[1] if found else ""

    def nominate(self, workload: Workload, target: str) -> None:
        if self._nominated.get(workload.key) != (workload, target):
            self._nominated[workload.key] = (workload, target)
            self.generation += 1

    def note_victims(self, key: WorkloadKey, uids: frozenset[str]) -> None:
        """Remember the pods that are evicted for a nominated pod."""
        self._victims[key] = uids
        self._reserved.discard(key)

    def note_reserved(self, key: WorkloadKey) -> None:
        """Remember that a nominated pod waits for room and not for victims."""
        self._reserved.add(key)

    def waits_for_victims(self, key: WorkloadKey) -> bool:
        """Whether preemption has nominated the pod, so that its nomination ends when preemption no longer helps."""
        return key in self._nominated and key not in self._reserved

    def victims_of(self, key: WorkloadKey) -> frozenset[str]:
        """The uids of the pods that this scheduler has evicted for a nominated pod."""
        return self._victims.get(key, frozenset())

    def remove(self, key: WorkloadKey) -> None:
        self.generation += self._nominated.pop(key, None) is not None
        self._victims.pop(key, None)
        self._reserved.discard(key)

    def all(self) -> list[tuple[Workload, str]]:
        """Every nominated pod with its node."""
        return list(self._nominated.values())

    def displaced_by(self, workload: Workload, target: str) -> tuple[Workload, ...]:
        """The pods of lower priority that are nominated to the same node."""
        nominated = (other for other, where in self._nominated.values() if where == target)
        return tuple(other for other in nominated if other.priority < workload.priority)

    def competing_with(self, workload: Workload) -> list[tuple[Workload, str]]:
        """The other nominated pods, of equal or higher priority, that this pod must leave capacity for."""
        return [
            (other, target)
            for key, (other, target) in self._nominated.items()
            if key != workload.key and other.priority >= workload.priority
        ]


@contextmanager
def with_nominated_pods(nominations: Sequence[tuple[Workload, str]], index: PlacementIndex) -> Iterator[None]:
    """The index with the nominated pods placed on their nodes."""
    with index.tentatively():
        for workload, target in nominations:
            slot = index.slots.by_name.get(target)
            if slot is not None and workload.key not in index.records:
                schedule_pod.assume(index, workload, slot)
        yield
