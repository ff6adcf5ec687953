"""
Moves of pods within one state of a cluster: what a plan would gain, and what it gained once the new nodes are known.

Only pods with a controller are recreated when they are evicted. A moved pod is placed as its replacement would be: as a
new pod. Needs no network: the state may come from files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager

from bayplan import schedule_pod
from bayplan.enforcing import rebalancing
from bayplan.enforcing.rebalancing import DisruptionLimits, Rebalancing
from bayplan.enforcing.soft_rules import PodPreferences, Shares
from bayplan.engine.engine import Engine
from bayplan.indexing.classes import PlacedWorkload
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.placing import recreating
from bayplan.reading.cluster import LoadedCluster
from bayplan.rules.rule import AnyRule

NODE = "Node"  # the owner of mirror pods, which the kubelet runs regardless of the API server


class PodMoves:
    """One state of a cluster. Terms of pods of the `granted` namespaces may move pods of every namespace."""

    def __init__(
        self, cluster: LoadedCluster, rules: Sequence[AnyRule], granted: AbstractSet[str] = frozenset()
    ) -> None:
        self.cluster = cluster
        self._granted = granted
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
        workload = self.workload(key)
        controller = None if workload is None else workload.controller
        return controller is not None and controller.kind != NODE

    def plan(self, limits: DisruptionLimits) -> Rebalancing:
        """Return the fewest moves with the highest gain within the limits."""
        with self._preferences() as preferences:
            return rebalancing.plan_moves(
                self.cluster.index, self._place_recreated, preferences, limits, recreated=self._recreated
            )

    def gains_of(self, landings: Sequence[tuple[WorkloadKey, str]]) -> tuple[int, ...]:
        """Return what each move gained, given the nodes on which the pods landed."""
        targets = dict(landings)

        def place_as_landed(workload: Workload) -> Shares:
            index, target = self.cluster.index, targets[workload.key]
            slot = index.slots.by_name.get(target)
            recreated = self._recreated(index.records[workload.key])
            index.remove(workload.key)
            if slot is None:
                index.add(recreated, target)
            else:
                schedule_pod.assume(index, recreated, slot)
            return ((target, 1),)

        with self._preferences() as preferences:
            return rebalancing.gains_of_moves(self.cluster.index, place_as_landed, preferences, list(targets))

    def orphans(self, movable: Callable[[Workload], bool]) -> list[WorkloadKey]:
        """Return the movable pods that another node might suit better but that no controller would recreate."""
        with self._preferences() as preferences:
            orphans = [key for key in sorted(preferences.improvable()) if not self.is_recreated(key)]
        return [key for key in orphans if movable(self.cluster.index.records[key].workload)]

    @contextmanager
    def _preferences(self) -> Iterator[PodPreferences]:
        preferences = PodPreferences(self._engine, self._granted)
        yield preferences
        preferences.release()

    def _recreated(self, placed: PlacedWorkload) -> Workload:
        return recreating.as_recreated(placed, self.cluster.index, self.cluster.spread_context)

    def _place_recreated(self, workload: Workload) -> Shares:
        target = recreating.place_again(workload.key, self._engine, self.cluster.spread_context).target
        return ((target, 1),) if target else ()
