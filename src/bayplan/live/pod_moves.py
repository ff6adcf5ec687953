"""Pods as they are read from a cluster, with who made each of them: only those will come back when they are evicted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from bayplan.enforcing import rebalancing
from bayplan.enforcing.rebalancing import DisruptionLimits, Rebalancing
from bayplan.enforcing.soft_rules import PodPreferences, Shares
from bayplan.mapping import pods
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.workloads import SpreadRequirements, Workload, WorkloadKey
from bayplan.placing import place_pods
from bayplan.reading.cluster import LoadedCluster, PodSink
from bayplan.rules.rule import Rule
from bayplan.wire.meta import OwnerReference
from bayplan.wire.pods import Pod

NODE = "Node"  # owns the mirrors of static pods, which its kubelet runs whatever the API server says


class OwnedPods(PodSink):
    """`controllers` has the controlling owner of each pod that has one and would be made anew elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.controllers: dict[WorkloadKey, OwnerReference] = {}

    def __call__(self, pod: Pod) -> None:
        super().__call__(pod)
        meta = pod.metadata
        owner = next((one for one in meta.owner_references or () if one.controller), None)
        if owner is not None and owner.kind != NODE:
            self.controllers[WorkloadKey(f"{meta.namespace or pods.DEFAULT_NAMESPACE}/{meta.name}")] = owner


# RF merged from live.pod_moves: Moves of pods in one view of a cluster: what a plan would gain, and what it gained
# once it is known where pods went. A pod that moves is placed as its replacement would be: new, so that what its
# Services and its controller select counts, as for every pending pod. Needs no network: files do as well.


class PodMoves:
    """`controllers` has the controlling owner of every pod that would come back."""

    def __init__(
        self, cluster: LoadedCluster, controllers: Mapping[WorkloadKey, OwnerReference], rules: Sequence[Rule]
    ) -> None:
        self.cluster = cluster
        self.controllers = controllers
        self._rules = rules

    @property
    def budgets(self) -> Sequence[DisruptionBudget]:
        return self.cluster.disruption_budgets

    def workload(self, key: WorkloadKey) -> Workload | None:
        """A pod that runs; None if there is none of that name."""
        record = self.cluster.index.records.get(key)
        return None if record is None else record.workload

    def is_recreated(self, key: WorkloadKey) -> bool:
        """Whether somebody would make the pod again."""
        return key in self.controllers

    def plan(self, limits: DisruptionLimits) -> Rebalancing:
        """The fewest moves that gain most within the limits."""
        with self._preferences() as preferences:
            return rebalancing.plan_moves(self.cluster.index, self._place_recreated, preferences, limits)

    def reached(self, landings: Sequence[tuple[WorkloadKey, str]]) -> tuple[int, ...]:
        """What each move gained, now that it is known where the pods went."""
        targets = dict(landings)

        def where_it_went(workload: Workload) -> Shares:
            index, target = self.cluster.index, targets[workload.key]
            slot = index.slots.by_name.get(target)
            labels = {} if slot is None else index.slots.at(slot).labels
            index.remove(workload.key)
            index.add(place_pods.bound(workload, labels), target)
            return ((target, 1),)

        with self._preferences() as preferences:
            return rebalancing.gains_of_moves(self.cluster.index, where_it_went, preferences, list(targets))

    def orphans(self, movable: Callable[[Workload], bool]) -> list[WorkloadKey]:
        """Of the movable pods those that might have it better elsewhere, but that nobody would make again."""
        with self._preferences() as preferences:
            uneasy = sorted(preferences.improvable() - self.controllers.keys())
        return [key for key in uneasy if movable(self.cluster.index.records[key].workload)]

    @contextmanager
    def _preferences(self) -> Iterator[PodPreferences]:
        preferences = PodPreferences(self.cluster.index, self._rules)
        yield preferences
        preferences.release()

    def _place_recreated(self, workload: Workload) -> Shares:
        index = self.cluster.index
        index.remove(workload.key)
        target = place_pods.place(self._as_recreated(workload), index, self._rules).target
        return ((target, 1),) if target else ()

    def _as_recreated(self, workload: Workload) -> Workload:
        needs = workload.needs
        if needs.spread.constraints:
            return workload
        owner = self.controllers.get(workload.key)
        owners, around = None if owner is None else [owner], self.cluster.spread_context
        selector = pods.default_selector(workload.labels, workload.namespace, owners, around)
        if selector is None:
            return workload
        spread = SpreadRequirements(default_selector=selector)
        return msgspec.structs.replace(workload, needs=msgspec.structs.replace(needs, spread=spread))
