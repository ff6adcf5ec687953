"""
Room that preemption has made: which pod was promised which node, until it is there or the promise is taken back.

Other pods of lower or equal priority must fit beside the promised ones; nobody else sees them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.placing import place_pods


class Nominations:
    """Pending pods by key, with the node that each is nominated to. `generation` moves with every change."""

    def __init__(self) -> None:
        self.generation = 0
        self._nominated: dict[WorkloadKey, tuple[Workload, str]] = {}
        self._asked: dict[WorkloadKey, frozenset[str]] = {}  # the uids of those who were asked to go for it

    def __len__(self) -> int:
        return len(self._nominated)

    def target_of(self, key: WorkloadKey) -> str:
        """The node promised to a pod, empty if none is."""
        found = self._nominated.get(key)
        return found[1] if found else ""

    def nominate(self, workload: Workload, target: str) -> None:
        if self._nominated.get(workload.key) != (workload, target):
            self._nominated[workload.key] = (workload, target)
            self.generation += 1

    def note_victims(self, key: WorkloadKey, uids: frozenset[str]) -> None:
        """Keep in mind who was asked to go so that the promise can be kept."""
        self._asked[key] = uids

    def victims_of(self, key: WorkloadKey) -> frozenset[str]:
        """The uids of those who were asked to go, as far as we asked them ourselves."""
        return self._asked.get(key, frozenset())

    def forget(self, key: WorkloadKey) -> None:
        self.generation += self._nominated.pop(key, None) is not None
        self._asked.pop(key, None)

    def all(self) -> list[tuple[Workload, str]]:
        """Every promise, as pod and node."""
        return list(self._nominated.values())

    def displaced_by(self, workload: Workload, target: str) -> tuple[Workload, ...]:
        """The less important pods that were promised the same node."""
        nominated = (other for other, where in self._nominated.values() if where == target)
        return tuple(other for other in nominated if other.priority < workload.priority)

    def beside(self, workload: Workload) -> list[tuple[Workload, str]]:
        """The promises that this pod must leave room for: those to others that are at least as important."""
        return [
            (other, target)
            for key, (other, target) in self._nominated.items()
            if key != workload.key and other.priority >= workload.priority
        ]


@contextmanager
def kept(nominations: Sequence[tuple[Workload, str]], index: PlacementIndex) -> Iterator[None]:
    """The index as if the promised pods were on their nodes already."""
    with index.tentatively():
        for workload, target in nominations:
            slot = index.slots.by_name.get(target)
            if slot is not None and workload.key not in index.records:
                index.add(place_pods.bound(workload, index.slots.at(slot).labels), target)
        yield
