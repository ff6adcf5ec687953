"""
What a simulation adds up: pods pending, rules violated, replicas missing, each over time.

Everything is counted as it changes, so that a long simulation takes no more memory than a short one. Judges nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

import msgspec

from bayplan.controllers.desired_state import ObjectKey
from bayplan.enforcing.tracking import ViolationTracker
from bayplan.enforcing.violations import Violation, ViolationId
from bayplan.mapping.pods import FINISHED
from bayplan.simulating.disruptions import is_ready
from bayplan.simulating.event_log import EventLog
from bayplan.simulating.store import POD, Store, owner_of
from bayplan.wire.pods import Pod
from bayplan.writing import violation_report

WORKLOADS = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "DaemonSet")


class Durations:
    """
    What lasts for some time, by a name: the sum of all times, and how many lasted longer than each of `thresholds`.

    Every entry is added to the sum of its group.
    """

    def __init__(self, clock: Callable[[], float], thresholds: Iterable[float] = ()) -> None:
        self._clock = clock
        self._thresholds = sorted(set(thresholds))
        self._open: dict[Any, tuple[float, Any]] = {}
        self._sums: dict[Any, float] = {}
        self._longer: Counter[tuple[float, Any]] = Counter()

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, name: object) -> bool:
        return name in self._open

    def names(self) -> list[Any]:
        """What lasts still."""
        return list(self._open)

    def begin(self, name: Any, group: Any) -> None:
        self._open.setdefault(name, (self._clock(), group))

    def end(self, name: Any) -> float:
        """Note that it is over; how long it lasted."""
        found = self._open.pop(name, None)
        if found is None:
            return 0.0
        since, group = found
        lasted = self._clock() - since
        self._sums[group] = self._sums.get(group, 0.0) + lasted
        for threshold in self._thresholds:
            self._longer[threshold, group] += lasted > threshold
        return lasted

    def sums(self) -> dict[Any, float]:
        """The seconds of each group, with what lasts still."""
        found = dict(self._sums)
        for since, group in self._open.values():
            found[group] = found.get(group, 0.0) + self._clock() - since
        return found

    def n_now(self, group: Any = None) -> int:
        """How many last now, of a group if it is given."""
        return sum(group in (None, one) for _, one in self._open.values())

    def n_longer(self, threshold: float, group: Any = None) -> int:
        """How many have lasted longer, whether they are over or not."""
        now = self._clock()
        ended = sum(n for (limit, one), n in self._longer.items() if limit == threshold and group in (None, one))
        return ended + sum(now - since > threshold for since, one in self._open.values() if group in (None, one))


class WorkloadUse(msgspec.Struct):
    """The replicas that a workload asks for and has, and for how long it had too few, or none."""

    desired: int = 0
    ready: int = 0
    since: float = 0.0
    missing_seconds: float = 0.0
    without_any_seconds: float = 0.0

    def count(self, now: float) -> None:
        """Add up the time until now."""
        passed, self.since = now - self.since, now
        self.missing_seconds += passed * max(0, self.desired - self.ready)
        self.without_any_seconds += passed * (self.desired > 0 and not self.ready)


class Measures:
    """The sums. `lost` are nodes whose machine is lost, `thresholds` the times that expectations ask about."""

    def __init__(
        self,
        store: Store,
        tracker: ViolationTracker,
        events: EventLog,
        clock: Callable[[], float],
        *,
        lost: Container[str],
        thresholds: Iterable[float],
    ) -> None:
        self._store, self._tracker, self._events, self._clock = store, tracker, events, clock
        limits = list(thresholds)
        self.pending = Durations(clock, limits)
        self.violations = Durations(clock, limits)
        self.violation_count: Counter[str] = Counter()
        self.workloads: dict[ObjectKey, WorkloadUse] = {}
        self.serving: set[ObjectKey] = set()
        self._lost = lost
        self._known: tuple[Violation, ...] | None = None
        self._broken: dict[ViolationId, str] = {}
        store.listen(self._changed)

    def root_of(self, pod: Pod) -> ObjectKey:
        """The workload that a pod belongs to: a pod without a controller is one of its own."""
        owner = owner_of(pod)
        if owner is None:
            return ObjectKey(POD, pod.metadata.namespace, pod.metadata.name)
        found = self._store.find(owner)
        above = None if found is None else owner_of(found)
        return owner if above is None else above

    def _changed(self, key: ObjectKey, before: Any, after: Any) -> None:
        if key.kind == POD:
            self._pod_changed(key, before, after)
        elif key.kind in WORKLOADS and owner_of(after or before) is None:
            use = self.workloads.setdefault(key, WorkloadUse(since=self._clock()))
            use.count(self._clock())
            if after is None:
                use.desired = 0
            elif key.kind != "DaemonSet":
                use.desired = desired_of(after)

    def set_desired(self, key: ObjectKey, desired: int) -> None:
        """How many pods a DaemonSet asks for, which depends on the nodes."""
        use = self.workloads.get(key)
        if use is not None and use.desired != desired:
            use.count(self._clock())
            use.desired = desired

    def _pod_changed(self, key: ObjectKey, before: Pod | None, after: Pod | None) -> None:
        is_pending = after is not None and waits(after)
        if is_pending and after is not None:
            self.pending.begin(key, self.root_of(after))
        elif key in self.pending:
            self.pending.end(key)
        self._update_serving(key, after or before, is_gone=after is None)  # type: ignore[arg-type]

    def _update_serving(self, key: ObjectKey, pod: Pod, *, is_gone: bool = False) -> None:
        """A pod that is reported as ready serves nothing while its machine is lost, whoever knows of it."""
        is_serving = not is_gone and is_reported_ready(pod) and pod.spec.node_name not in self._lost
        if is_serving == (key in self.serving):
            return
        (self.serving.add if is_serving else self.serving.remove)(key)
        use = self.workloads.get(self.root_of(pod))
        if use is not None:
            use.count(self._clock())
            use.ready += 1 if is_serving else -1

    def machine_changed(self, node: str) -> None:
        """A machine is lost, or is back."""
        for pod in self._store.pods_on(node):
            self._update_serving(ObjectKey(POD, pod.metadata.namespace, pod.metadata.name), pod)

    def settled(self) -> None:
        """Take note of the violations at this moment."""
        found = self._tracker.violations()
        if found is self._known:
            return
        self._known = found
        now = {one.id: one for one in found}
        for broken in [one for one in self._broken if one not in now]:
            rule = self._broken.pop(broken)
            lasted = self.violations.end(broken)
            self._events.record(f"Pod {broken.owner}", "RuleMet", f"{rule}, after {lasted:.0f} s")
        for broken, one in now.items():
            if broken not in self._broken:
                rule = violation_report.rule(one)
                self._broken[broken] = rule
                self.violation_count[rule] += 1
                self.violations.begin(broken, rule)
                self._events.record(
                    f"Pod {broken.owner}", "RuleViolated", f"{rule} in {one.domain or one.topology_key}"
                )

    def totals_of_workloads(self) -> Iterator[tuple[ObjectKey, WorkloadUse]]:
        """Every workload with its sums until now."""
        for key, use in sorted(self.workloads.items()):
            use.count(self._clock())
            yield key, use


def desired_of(found: Any) -> int:
    """The replicas that a workload asks for."""
    replicas = getattr(found.spec, "replicas", None)
    return 1 if replicas is None else int(replicas)


def waits(pod: Pod) -> bool:
    """Whether the pod has no node yet."""
    return not pod.spec.node_name and pod.status.phase not in FINISHED and pod.metadata.deletion_timestamp is None


def is_reported_ready(pod: Pod) -> bool:
    """Whether the pod is ready and stays, as its status says."""
    return is_ready(pod) and pod.metadata.deletion_timestamp is None and pod.status.phase not in FINISHED


def runs(pod: Pod) -> bool:
    """Whether the pod has a node and stays."""
    return bool(pod.spec.node_name) and pod.metadata.deletion_timestamp is None and pod.status.phase not in FINISHED
