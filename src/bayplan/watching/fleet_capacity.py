"""
What is left on clusters beside what they report: less what was just placed there, and as accurate estimators answer.

The first is Karmada's feature gate SchedulingOvercommitProtection (switch `schedulingOvercommitProtection`). The load
of a result counts on its cluster until the workload is healthy there and the cluster has reported since, or the cluster
leaves the result, or five minutes have passed. Only what a result adds counts, not replicas that the cluster has
reported before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import msgspec

from bayplan.assigning import estimating
from bayplan.assigning.estimating import Load
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.targets import Amounts, ClusterFacts, ReplicaDemand, ResourceSummary, Target
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.watching.estimates import MAX_AGE_SECONDS, Estimates
from bayplan.wire.fleets import ResourceBinding

MAX_LOAD_SECONDS = 300.0  # Karmada: DefaultAssumptionTTL in pkg/scheduler/cache/cache.go
EXPIRY_SECONDS = 1.0  # between two looks at what no longer counts
REPORTED_SECONDS = 15.0  # after the workload is healthy; clusters report every ten seconds, unless nothing changes
HEALTHY = "Healthy"


class AssumedLoad(msgspec.Struct):
    """
    What a result adds to one cluster and until when it counts.

    `base` are the replicas that the binding had there before, None if it was not there, and `replicas` those that it
    has. `healthy`: the workload is.
    """

    base: int | None
    replicas: int
    load: Load
    until: float
    healthy: bool = False


class FleetCapacity:
    """`put` and `drop` are told of clusters, the others of bindings; the targets of the index follow."""

    def __init__(self, index: PlacementIndex, clock: Callable[[], float]) -> None:
        self._index, self._clock = index, clock
        self._reported: dict[str, Target] = {}
        self._loads: dict[str, dict[WorkloadKey, AssumedLoad]] = {}  # by cluster
        self._loaded_by: dict[WorkloadKey, set[str]] = {}  # the clusters on which a binding has load
        self._next_at = math.inf
        self.estimates = Estimates()

    @property
    def n_loads(self) -> int:
        """The number of bindings with load that no cluster has reported yet."""
        return len(self._loaded_by)

    @property
    def next_at(self) -> float:
        """When `expire` has something to do, at the earliest."""
        return self._next_at

    def put(self, target: Target) -> Target:
        """Note what a cluster reports, and return it with the load that it does not show yet."""
        loads = self._loads.get(target.name, {})
        for key in [key for key, assumed in loads.items() if assumed.healthy]:
            self._remove(key, target.name)
        before = self._reported.get(target.name)
        if before is None or before.cluster is None or before.cluster.summary != _summary(target):
            self.estimates.drop_cluster(target.name)  # the next attempt asks again
        self._reported[target.name] = target
        return self._adjusted(target)

    def drop(self, name: str) -> None:
        self._reported.pop(name, None)
        self.estimates.drop_cluster(name)
        for key in list(self._loads.get(name, ())):
            self._remove(key, name)

    def assume(self, workload: Workload, shares: Iterable[tuple[str, int]], before: Mapping[str, int]) -> None:
        """Count what a result adds to its clusters, where the binding had `before`, and release the others."""
        assert workload.binding is not None
        key, found, until = workload.key, dict(shares), self._clock() + MAX_LOAD_SECONDS
        for name in self._loaded_by.get(key, set()).difference(found):
            self._remove(key, name)
            self._renew(name)
        for name, replicas in found.items():
            known = self._loads.get(name, {}).get(key)
            if known is not None and known.replicas == replicas:
                continue
            base = known.base if known is not None and not known.healthy else before.get(name)
            load = [one for one in estimating.load_of(workload.binding, replicas, base) if one[1]]
            if known is not None:
                self._remove(key, name)
            if load:
                self._loads.setdefault(name, {})[key] = AssumedLoad(base, replicas, load, until)
                self._loaded_by.setdefault(key, set()).add(name)
                self._next_at = min(self._next_at, until)
            if load or known is not None:
                self._renew(name)

    def follow(self, workload: Workload, shares: list[tuple[str, int]]) -> None:
        """Let the load of a binding be that of the clusters and replicas that it has by now."""
        if workload.key in self._loaded_by:
            self.assume(workload, shares, dict(shares))

    def note_health(self, key: WorkloadKey, before: ResourceBinding | None, written: ResourceBinding) -> None:
        """Note where a report says that the workload is healthy, and did not say just that before."""
        if key not in self._loaded_by:
            return
        said = _health_of(before)
        for name, item in _health_of(written).items():
            assumed = self._loads.get(name, {}).get(key)
            if assumed is not None and item.get("health") == HEALTHY and item != said.get(name):
                assumed.healthy, assumed.until = True, self._clock() + REPORTED_SECONDS
                self._next_at = min(self._next_at, assumed.until)

    def release(self, key: WorkloadKey) -> None:
        """Release all load of a binding."""
        for name in list(self._loaded_by.get(key, ())):
            self._remove(key, name)
            self._renew(name)

    def put_estimates(self, demand: ReplicaDemand, answers: Mapping[str, int]) -> None:
        """Let answers of estimators about a class of requests count, by cluster."""
        now = self._clock()
        self._next_at = min(self._next_at, now + MAX_AGE_SECONDS)
        known = {name: n for name, n in answers.items() if name in self._reported}
        for name in self.estimates.put(demand, known, now):
            self._renew(name)

    def placed(self, workload: Workload, shares: Iterable[tuple[str, int]], before: Mapping[str, int]) -> None:
        """Subtract what a result adds from the answers about its class, until they are asked for again."""
        binding = workload.binding
        assert binding is not None
        if binding.demand is not None:
            added = {name: replicas - before.get(name, 0) for name, replicas in shares}
            for name in self.estimates.subtract(binding.demand, added):
                self._renew(name)

    def expire(self, now: float) -> None:
        """Release what no longer counts."""
        if now < self._next_at:
            return
        for name in self.estimates.drop_old(now):
            self._renew(name)
        for name, loads in list(self._loads.items()):
            over = [key for key, assumed in loads.items() if assumed.until <= now]
            for key in over:
                self._remove(key, name)
            if over:
                self._renew(name)
        times = [assumed.until for loads in self._loads.values() for assumed in loads.values()]
        oldest = self.estimates.oldest()
        times += [] if oldest is None else [oldest + MAX_AGE_SECONDS]
        self._next_at = max(min(times, default=math.inf), now + EXPIRY_SECONDS)

    def _remove(self, key: WorkloadKey, name: str) -> None:
        loads, clusters = self._loads[name], self._loaded_by[key]
        del loads[key]
        clusters.discard(name)
        if not loads:
            del self._loads[name]
        if not clusters:
            del self._loaded_by[key]

    def _renew(self, name: str) -> None:
        """Let the target of the index have the load that counts now."""
        reported = self._reported.get(name)
        slot = self._index.slots.by_name.get(name)
        if reported is not None and slot is not None:
            shown = self._index.slots.at(slot)
            cluster = self._adjusted(reported).cluster
            self._index.update_target(msgspec.structs.replace(shown, cluster=cluster))

    def _adjusted(self, target: Target) -> Target:
        """The target with the load that it does not report yet, and with what estimators have answered."""
        cluster, estimates = target.cluster, self.estimates.of(target.name)
        if cluster is None or not (estimates or target.name in self._loads):
            return target
        loaded = msgspec.structs.replace(self._loaded(cluster, target.name), estimates=estimates)
        return msgspec.structs.replace(target, cluster=loaded)

    def _loaded(self, cluster: ClusterFacts, name: str) -> ClusterFacts:
        loads = self._loads.get(name)
        if not loads:
            return cluster
        total: dict[Amounts, int] = {}
        for assumed in loads.values():
            for requests, count in assumed.load:
                total[requests] = total.get(requests, 0) + count
        whole = list(total.items())
        return estimating.with_load(cluster, whole)


def _summary(target: Target) -> ResourceSummary | None:
    return None if target.cluster is None else target.cluster.summary


def _health_of(written: ResourceBinding | None) -> dict[str, dict[str, object]]:
    """What the aggregated status says of each cluster."""
    items = (written.status.aggregated_status if written else None) or ()
    return {str(item.get("clusterName")): item for item in items}
