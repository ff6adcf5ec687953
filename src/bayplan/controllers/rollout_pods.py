"""
The pods of one rollout by name, with the numbers and orders that its controller asks for kept up to date.

So a step of a rollout costs what it changes, however many pods there are. Decides nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import ItemsView, Iterable, Iterator, Mapping, MutableMapping, ValuesView
from typing import Protocol

from bayplan.controllers.deletion_order import DeletionOrder
from bayplan.controllers.desired_state import PodEntry

NO_SETS: Mapping[str, str] = {}


class PodsOfSet:
    """How many pods of one ReplicaSet are active, ready, and active or terminating."""

    def __init__(self) -> None:
        self.active: set[str] = set()
        self.n_ready = 0
        self.n_existing = 0
        self.order: DeletionOrder | None = None  # only of a set that was asked for it

    def count(self, pod: PodEntry, sign: int) -> None:
        """Count a pod, or do not count it any more."""
        self.n_existing += sign * (pod.active or pod.terminating)
        if not pod.active:
            return
        self.n_ready += sign * pod.ready
        (self.active.add if sign > 0 else self.active.remove)(pod.name)
        if self.order is not None:
            (self.order.add if sign > 0 else self.order.remove)(pod)


class PodListener(Protocol):
    """Is told of every pod that comes and goes; of one that changes as of one that goes and one that comes."""

    def put(self, pod: PodEntry) -> None: ...
    def remove(self, pod: PodEntry) -> None: ...


class RolloutPods(MutableMapping[str, PodEntry]):
    """
    Pods by name, in the order in which they came; an entry that is replaced keeps its place.

    `set_of` names the ReplicaSet of each pod of a Deployment, before the pod is put here.
    """

    def __init__(
        self, pods: Iterable[PodEntry] = (), set_of: Mapping[str, str] = NO_SETS, listener: PodListener | None = None
    ) -> None:
        self._pods: dict[str, PodEntry] = {}
        self._set_of, self._listener = set_of, listener
        self._sets: dict[str, PodsOfSet] = {}
        self._places: dict[str, int] = {}
        self._n_places = 0
        self._pending: set[str] = set()
        self._leaving: set[str] = set()
        self._n_on_node: Counter[str] = Counter()  # assigned pods of all ReplicaSets
        for pod in pods:
            self[pod.name] = pod

    def __getitem__(self, name: str) -> PodEntry:
        return self._pods[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._pods)

    def __len__(self) -> int:
        return len(self._pods)

    def values(self) -> ValuesView[PodEntry]:
        return self._pods.values()

    def items(self) -> ItemsView[str, PodEntry]:
        return self._pods.items()

    def __setitem__(self, name: str, pod: PodEntry) -> None:
        former = self._pods.get(name)
        if former is None:
            self._places[name] = self._n_places = self._n_places + 1
        else:
            self._count(former, -1)
        self._pods[name] = pod
        self._count(pod, 1)

    def __delitem__(self, name: str) -> None:
        self._count(self._pods.pop(name), -1)
        del self._places[name]

    def of_set(self, name: str) -> PodsOfSet:
        """The numbers of one ReplicaSet."""
        found = self._sets.get(name)
        if found is None:
            found = self._sets[name] = PodsOfSet()
        return found

    def pending(self) -> list[str]:
        """The names of active pods without a node, in order."""
        return sorted(self._pending, key=self._places.__getitem__)

    def leaving(self) -> list[str]:
        """The names of terminating pods, in order."""
        return sorted(self._leaving, key=self._places.__getitem__)

    def exist_outside(self, name: str) -> bool:
        """Whether pods of other ReplicaSets are active or terminating."""
        return any(one.n_existing for other, one in self._sets.items() if other != name)

    def first_deleted(self, name: str, n_deleted: int, now: int | None) -> list[str]:
        """The names of pods that a ReplicaSet deletes; all pods of the Deployment count as related."""
        one = self.of_set(name)
        if n_deleted >= len(one.active):
            return sorted(one.active, key=self._places.__getitem__)
        if one.order is None or one.order.now != now:
            one.order = DeletionOrder(map(self._pods.__getitem__, one.active), self._n_on_node, now)
        return [pod.name for pod in one.order.first(n_deleted)]

    def _count(self, pod: PodEntry, sign: int) -> None:
        self.of_set(self._set_of.get(pod.name, "")).count(pod, sign)
        if pod.active and pod.assigned:
            self._n_on_node[pod.node] += sign
            for one in self._sets.values():
                if one.order is not None:
                    one.order.touch(pod.node)
        for listed, belongs in ((self._pending, pod.active and not pod.assigned), (self._leaving, pod.terminating)):
            if belongs:
                (listed.add if sign > 0 else listed.remove)(pod.name)
        if self._listener is not None:
            (self._listener.put if sign > 0 else self._listener.remove)(pod)
