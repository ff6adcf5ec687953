"""
Moves of pods within one state of a cluster: what a plan would gain, and what it gained once the new nodes are known.

Only pods with a controller are recreated when they are evicted. A moved pod is placed as its replacement would be: as a
new pod, so that the selectors of its Services and of its controller count, as for every pending pod. Needs no network:
the state may come from files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from bayplan.enforcing import rebalancing
from bayplan.enforcing.rebalancing import DisruptionLimits, Rebalancing
from bayplan.enforcing.soft_rules import PodPreferences, Shares
from bayplan.engine.engine import Engine
from bayplan.mapping import pods
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.workloads import SpreadRequirements, Workload, WorkloadKey
from bayplan.placing import place_pods
from bayplan.reading.cluster import LoadedCluster, PodSink
from bayplan.rules.rule import AnyRule
from bayplan.wire.meta import OwnerReference
from bayplan.wire.pods import Pod

NODE = "Node"  # the owner of mirror pods, which the kubelet runs regardless of the API server


class OwnedPods(PodSink):
    """Collects the pods of a cluster; `controllers` has the controlling owner of each pod that would be recreated."""

    def __init__(self) -> None:
        super().__init__()
        self.controllers: dict[WorkloadKey, OwnerReference] = {}

    def __call__(self, pod: Pod) -> None:
        super().__call__(pod)
        meta = pod.metadata
        owner = next((one for one in meta.owner_references or () if one.controller), None)
        if owner is not None and owner.kind != NODE:
            self.controllers[WorkloadKey(f"{meta.namespace or pods.DEFAULT_NAMESPACE}/{meta.name}")] = owner


class PodMoves:
    """One state of a cluster; `controllers` has the controlling owner of every pod that would be recreated."""

    def __init__(
        self, cluster: LoadedCluster, controllers: Mapping[WorkloadKey, OwnerReference], rules: Sequence[AnyRule]
    ) -> None:
        self.cluster = cluster
        self.controllers = controllers
        self._engine = Engine(cluster.index, rules)

    @property
    def budgets(self) -> Sequence[DisruptionBudget]:
        return self.cluster.disruption_budgets

    def workload(self, key: WorkloadKey) -> Workload | None:
        """Return a bound pod, or None if there is none of that name."""
        record = self.cluster.index.records.get(key)
        return None if record is None else record.workload

    def is_recreated(self, key: WorkloadKey) -> bool:
        """Whether a controller would recreate the pod."""
        return key in self.controllers

    def plan(self, limits: DisruptionLimits) -> Rebalancing:
        """Return the fewest moves with the highest gain within the limits."""
        with self._preferences() as preferences:
            return rebalancing.plan_moves(self.cluster.index, self._place_recreated, preferences, limits)

    def gains_of(self, landings: Sequence[tuple[WorkloadKey, str]]) -> tuple[int, ...]:
        """Return what each move gained, given the nodes on which the pods landed."""
        targets = dict(landings)

        def place_as_landed(workload: Workload) -> Shares:
            index, target = self.cluster.index, targets[workload.key]
            slot = index.slots.by_name.get(target)
            labels = {} if slot is None else index.slots.at(slot).labels
            index.remove(workload.key)
            index.add(place_pods.bound(workload, labels), target)
            return ((target, 1),)

        with self._preferences() as preferences:
            return rebalancing.gains_of_moves(self.cluster.index, place_as_landed, preferences, list(targets))

    def orphans(self, movable: Callable[[Workload], bool]) -> list[WorkloadKey]:
        """Return the movable pods that another node might suit better but that no controller would recreate."""
        with self._preferences() as preferences:
            improvable = sorted(preferences.improvable() - self.controllers.keys())
        return [key for key in improvable if movable(self.cluster.index.records[key].workload)]

    @contextmanager
    def _preferences(self) -> Iterator[PodPreferences]:
        preferences = PodPreferences(self._engine)
        yield preferences
        preferences.release()

    def _place_recreated(self, workload: Workload) -> Shares:
        index = self.cluster.index
        index.remove(workload.key)
        target = place_pods.place(self._as_recreated(workload), self._engine).target
        return ((target, 1),) if target else ()

    def _as_recreated(self, workload: Workload) -> Workload:
        needs = workload.needs
        if needs.spread.constraints:
            return workload
        owner = self.controllers.get(workload.key)
        owners = None if owner is None else [owner]
        context = self.cluster.spread_context
        selector = pods.default_selector(workload.labels, workload.namespace, owners, context)
        if selector is None:
            return workload
        spread = SpreadRequirements(default_selector=selector)
        return msgspec.structs.replace(workload, needs=msgspec.structs.replace(needs, spread=spread))
