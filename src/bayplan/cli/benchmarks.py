"""
Benchmark inputs, and the runs over them. `bench` imports this module lazily, because it imports the engine.

Parsing is not timed. Interning, evaluating and placing each pending workload is, strictly one after another, and so is
the message of an unschedulable pod.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from bayplan import schedule_binding, schedule_pod
from bayplan.assigning.cluster_ranking import FleetEngine
from bayplan.engine.engine import Engine
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import bindings, pods
from bayplan.mapping.targets import target_of_cluster, target_of_node
from bayplan.model.semantics import UPSTREAM, for_fleets
from bayplan.model.workloads import Workload
from bayplan.placing import place_pods
from bayplan.reading.files import gc_paused
from bayplan.rules import fleet_profile
from bayplan.rules.rule import AnyRule
from bayplan.validating import structure_faults
from bayplan.wire.fleets import Cluster, ResourceBinding
from bayplan.wire.nodes import Namespace, Node
from bayplan.wire.pods import Pod


class PodsInput(msgspec.Struct):
    """`init` pods have a node; `pods` are to be placed."""

    nodes: list[Node]
    pods: list[Pod]
    init: list[Pod] = []
    namespaces: list[Namespace] = []


class FleetInput(msgspec.Struct):
    """`bindings` have their clusters; `pending` ones are to be placed."""

    clusters: list[Cluster]
    pending: list[ResourceBinding]
    bindings: list[ResourceBinding] = []


class BenchmarkRun(msgspec.Struct, frozen=True):
    """
    One pass over all pending workloads: each with its target or targets, and the seconds that the pass took.

    `noun` is what was placed.
    """

    placements: list[tuple[str, Any]]
    n_placed: int
    seconds: float
    noun: str = "pod"

    def lines(self) -> Iterator[dict[str, Any]]:
        """Every placement as JSON."""
        if self.noun == "pod":
            yield from ({"pod": key, "node": target} for key, target in self.placements)
            return
        for key, shares in self.placements:
            yield {"binding": key, "clusters": [{"name": name, "replicas": count} for name, count in shares]}

    def result(self) -> dict[str, Any]:
        """The last line of the output."""
        per_second = len(self.placements) / self.seconds if self.seconds else 0.0
        return {
            "ok": self.n_placed,
            "fail": len(self.placements) - self.n_placed,
            "seconds": round(self.seconds, 6),
            f"{self.noun}s_per_s": round(per_second, 1),
        }


def of_pods(content: bytes, rules: Sequence[AnyRule]) -> Callable[[], BenchmarkRun]:
    """Parse the input once; each call of the result fills a new index and places all pods."""
    with gc_paused():
        given: PodsInput = structure_faults.decode(content, PodsInput)
        targets = [target_of_node(node) for node in given.nodes]
        running = [(pods.workload_of(pod), pod.spec.node_name) for pod in given.init]
        waiting = [pods.workload_of(pod) for pod in given.pods]

    def run() -> BenchmarkRun:
        index = PlacementIndex()
        with gc_paused():
            for namespace in given.namespaces:
                index.set_namespace(namespace.metadata.name, namespace.metadata.labels or {})
            for target in targets:
                index.add_target(target)
            for workload, name in running:
                index.add(workload, name)
        return _timed(waiting, Engine(index, rules))

    return run


def of_fleet(content: bytes, rules: Sequence[AnyRule]) -> Callable[[], BenchmarkRun]:
    """The same for bindings. Placements do not reduce what clusters report, as with karmada-scheduler."""
    del rules  # a KubeSchedulerConfiguration does not apply to fleets
    with gc_paused():
        given: FleetInput = structure_faults.decode(content, FleetInput)
        targets = [target_of_cluster(cluster) for cluster in given.clusters]
        placed = [(bindings.workload_of(binding), bindings.shares_of(binding)) for binding in given.bindings]
        waiting = [bindings.workload_of(binding) for binding in given.pending]

    def run() -> BenchmarkRun:
        index = PlacementIndex(for_fleets(UPSTREAM), lost_targets_count=True)
        with gc_paused():
            for target in targets:
                index.add_target(target)
            for workload, shares in placed:
                index.add_shares(workload, shares)
        return _timed_fleet(waiting, FleetEngine(index, fleet_profile.fleet_rules()))

    return run


def _timed(waiting: Sequence[Workload], engine: Engine) -> BenchmarkRun:
    """Time the decisions alone, and the messages of pods that fit nowhere."""
    index = engine.index
    placements: list[tuple[str, Any]] = []
    n_placed = 0
    with _without_collector():
        start = time.perf_counter()
        for workload in waiting:
            slot, _ = schedule_pod.choose(workload, engine)
            target = index.slots.at(slot).name if slot >= 0 else ""
            if target:
                index.add(workload, target)
                n_placed += 1
            else:
                place_pods.fit_failure_of(workload, engine)
            placements.append((workload.key, target))
        seconds = time.perf_counter() - start
    return BenchmarkRun(placements, n_placed, seconds)


def _timed_fleet(waiting: Sequence[Workload], engine: FleetEngine) -> BenchmarkRun:
    """Time the decisions alone, as for karmada-scheduler, which leaves it to others to write the result."""
    placements: list[tuple[str, Any]] = []
    n_placed = 0
    with _without_collector():
        start = time.perf_counter()
        for workload in waiting:
            decision = schedule_binding.schedule(workload, engine)
            if decision.shares:
                engine.index.add_shares(workload, decision.shares)
            placements.append((workload.key, decision.shares))
            n_placed += decision.placed
        seconds = time.perf_counter() - start
    return BenchmarkRun(placements, n_placed, seconds, "binding")


@contextmanager
def _without_collector() -> Iterator[None]:
    # The garbage collector would repeatedly traverse the whole index and find no garbage.
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


BENCHMARKS: dict[str, Callable[[bytes, Sequence[AnyRule]], Callable[[], BenchmarkRun]]] = {
    "pods": of_pods,
    "fleet": of_fleet,
}
