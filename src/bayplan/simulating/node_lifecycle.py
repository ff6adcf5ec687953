"""
What the node lifecycle controller does about nodes of which nothing is heard: conditions, taints, and their rate.

Mirrors pkg/controller/nodelifecycle with the defaults of kube-controller-manager 1.36. A node counts as heard of until
the moment when its machine is lost.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable

import msgspec

from bayplan.simulating.event_log import EventLog
from bayplan.simulating.kubelets import Kubelets
from bayplan.simulating.store import Store
from bayplan.wire.nodes import Node, WireTaint

MONITOR_PERIOD_SECONDS = 5.0  # --node-monitor-period
GRACE_SECONDS = 50.0  # --node-monitor-grace-period
EVICTION_RATE = 0.1  # --node-eviction-rate: nodes per second and zone that get a taint of the effect NoExecute
SECONDARY_EVICTION_RATE = 0.01  # --secondary-node-eviction-rate
UNHEALTHY_ZONE_THRESHOLD = 0.55  # --unhealthy-zone-threshold
LARGE_CLUSTER_THRESHOLD = 50  # --large-cluster-size-threshold
UNREACHABLE = "node.kubernetes.io/unreachable"
NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"
_ZONE_KEYS = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")

Zone = tuple[str, ...]


class NodeLifecycle:
    """Follows the machines that are lost and come back."""

    def __init__(self, store: Store, kubelets: Kubelets, events: EventLog, loop: asyncio.AbstractEventLoop) -> None:
        self._store, self._kubelets, self._events, self._loop = store, kubelets, events, loop
        self.not_ready: dict[str, None] = {}
        self.on_machine_changed: Callable[[str], None] = lambda _: None
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._to_evict: dict[str, None] = {}  # nodes that wait for their taint of the effect NoExecute
        self._last_taint: dict[Zone, float] = {}
        self._wake: asyncio.TimerHandle | None = None

    def take_over(self, node: Node) -> None:
        """A node of the state, which may be unreachable already."""
        if has_taint(node, UNREACHABLE):
            self.not_ready[node.metadata.name] = None
            self._kubelets.lost.add(node.metadata.name)

    def lose(self, name: str) -> None:
        """The machine of a node is lost."""
        if name in self._kubelets.lost:
            return
        self._kubelets.lose(name)
        self.on_machine_changed(name)
        self._events.record(f"Node {name}", "MachineLost")
        self._at_monitoring(name, GRACE_SECONDS, self._mark_not_ready)

    def recover(self, name: str) -> bool:
        """The machine is back; whether it was lost."""
        if name not in self._kubelets.lost:
            return False
        self._events.record(f"Node {name}", "MachineRecovered")
        self._kubelets.recover(name)
        self.on_machine_changed(name)
        self._at_monitoring(name, 0.0, self._mark_ready)
        return True

    def forget(self, name: str) -> None:
        """The node is deleted."""
        self._cancel(name)
        self._kubelets.lose(name)
        self._kubelets.lost.discard(name)
        self.not_ready.pop(name, None)
        self._to_evict.pop(name, None)
        self._look_again()

    def _at_monitoring(self, name: str, after: float, call: object) -> None:
        """Act in the first round of the monitor so many seconds from now."""
        self._cancel(name)
        at = math.ceil((self._loop.time() + after) / MONITOR_PERIOD_SECONDS) * MONITOR_PERIOD_SECONDS
        self._timers[name] = self._loop.call_at(at, call, name)  # type: ignore[arg-type]

    def _cancel(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    def _mark_not_ready(self, name: str) -> None:
        node = self._store.node(name)
        if node is None or name in self.not_ready:
            return
        self.not_ready[name] = None
        self._events.record(f"Node {name}", "NodeNotReady", f"Node {name} status is now: NodeNotReady")
        self._store.put(with_taint(node, WireTaint(key=UNREACHABLE, effect=NO_SCHEDULE)))
        for pod in self._store.pods_on(name):
            self._kubelets.set_ready(pod, is_now_ready=False)
        self._to_evict[name] = None
        self._look_again()

    def _mark_ready(self, name: str) -> None:
        self._to_evict.pop(name, None)
        if name in self.not_ready:
            del self.not_ready[name]
            self._events.record(f"Node {name}", "NodeReady", f"Node {name} status is now: NodeReady")
            node = self._store.node(name)
            if node is not None:
                self._store.put(without_taint(node, UNREACHABLE))
        self._look_again()

    # Taints that evict, at the rate of their zones

    def _look_again(self) -> None:
        """Taint nodes once this round of the monitor is over: the rates depend on all that it finds."""
        if self._wake is not None:
            self._wake.cancel()
        self._wake = self._loop.call_at(self._loop.time(), self._taint_in_turn)

    def _taint_in_turn(self) -> None:
        self._wake = None
        if not self._to_evict and not self.not_ready:
            return
        rates = self._rates()
        if not any(rates.values()) and self._all_disrupted():
            self._spare_all()
            return
        next_at = math.inf
        for name in [one for one in self.not_ready if one in self._to_evict or self._was_spared(one)]:
            next_at = min(next_at, self._taint(name, rates))
        if next_at < math.inf:
            self._wake = self._loop.call_at(next_at, self._taint_in_turn)

    def _taint(self, name: str, rates: dict[Zone, float]) -> float:
        """Give a node its taint if it is its turn; else when to look again."""
        node, now = self._store.node(name), self._loop.time()
        if node is None:
            return math.inf
        zone = zone_of(node)
        rate = rates[zone]
        if not rate:
            return math.inf
        due = self._last_taint.get(zone, -math.inf) + 1 / rate
        if due > now + 1e-6:
            return due
        self._last_taint[zone] = now
        self._to_evict.pop(name, None)
        self._store.put(with_taint(node, WireTaint(key=UNREACHABLE, effect=NO_EXECUTE)))
        return math.inf

    def _was_spared(self, name: str) -> bool:
        node = self._store.node(name)
        return node is not None and not has_taint(node, UNREACHABLE, NO_EXECUTE)

    def _counts(self) -> tuple[Counter[Zone], Counter[Zone]]:
        """The nodes of each zone, and those that are not ready."""
        every, missing = Counter[Zone](), Counter[Zone]()
        for node in self._store.nodes():
            every[zone_of(node)] += 1
            missing[zone_of(node)] += node.metadata.name in self.not_ready
        return every, missing

    def _all_disrupted(self) -> bool:
        every, missing = self._counts()
        return every == missing

    def _rates(self) -> dict[Zone, float]:
        """The rate of each zone; none evicts if nothing is heard of any node: then it is not the nodes' fault."""
        every, missing = self._counts()
        if every == missing:
            return dict.fromkeys(every, 0.0)
        rates = {}
        for zone, n_nodes in every.items():
            n_missing = missing[zone]
            is_partial = n_missing < n_nodes and n_missing > 2 and n_missing / n_nodes >= UNHEALTHY_ZONE_THRESHOLD
            reduced = SECONDARY_EVICTION_RATE if n_nodes > LARGE_CLUSTER_THRESHOLD else 0.0
            rates[zone] = reduced if is_partial else EVICTION_RATE
        return rates

    def _spare_all(self) -> None:
        """Take back the taints that evict."""
        for name in self.not_ready:
            node = self._store.node(name)
            if node is not None and has_taint(node, UNREACHABLE, NO_EXECUTE):
                self._store.put(without_taint(node, UNREACHABLE, NO_EXECUTE))


def zone_of(node: Node) -> Zone:
    """The region and the zone of a node."""
    labels = node.metadata.labels or {}
    return tuple(labels.get(key, "") for key in _ZONE_KEYS)


def has_taint(node: Node, key: str, effect: str = "") -> bool:
    """Whether the node has a taint, of this effect if one is named."""
    return any(one.key == key and effect in ("", one.effect) for one in node.spec.taints or ())


def with_taint(node: Node, taint: WireTaint) -> Node:
    """The node with a taint, which replaces another of the same key and effect."""
    others = without_taint(node, taint.key, taint.effect).spec.taints or ()
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=[*others, taint]))


def without_taint(node: Node, key: str, effect: str = "") -> Node:
    """The node without the taints of a key, of this effect if one is named."""
    left = [one for one in node.spec.taints or () if one.key != key or effect not in ("", one.effect)]
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=left or None))
