"""
Benchmark inputs and how they are run. Imported only to measure: the engine comes with it.

Parsing is not timed; interning, evaluating and placing each pending workload is, strictly one after another, and for a
pod that fits nowhere the sentence that says so.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from bayplan import schedule_binding, schedule_pod
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import bindings, pods
from bayplan.mapping.targets import target_of_cluster, target_of_node
from bayplan.model.semantics import UPSTREAM, for_fleets
from bayplan.model.workloads import Workload
from bayplan.placing import place_pods
from bayplan.rules import profiles
from bayplan.rules.rule import Rule
from bayplan.wire.fleets import Cluster, ResourceBinding
from bayplan.wire.nodes import Node
from bayplan.wire.pods import Pod


class PodsInput(msgspec.Struct):
    """Init pods have a node each; `pods` are to be placed."""

    nodes: list[Node]
    pods: list[Pod]
    init: list[Pod] = []


class FleetInput(msgspec.Struct):
    """`bindings` have their clusters; `pending` ones are to be placed."""

    clusters: list[Cluster]
    pending: list[ResourceBinding]
    bindings: list[ResourceBinding] = []


class BenchmarkRun(msgspec.Struct, frozen=True):
    """
    One pass over everything that waits: each workload with its target or targets, and the seconds it took.

    `noun` is what was placed; `refusals` are the sentences of the pods that were not.
    """

    placements: list[tuple[str, Any]]
    n_placed: int
    seconds: float
    noun: str = "pod"
    refusals: list[str] = []

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


def of_pods(content: bytes, rules: Sequence[Rule]) -> Callable[[], BenchmarkRun]:
    """Reads the input once; each call fills a fresh index and places everything anew."""
    given = msgspec.json.decode(content, type=PodsInput)
    targets = [target_of_node(node) for node in given.nodes]
    running = [(pods.workload_of(pod), pod.spec.node_name) for pod in given.init]
    waiting = [pods.workload_of(pod) for pod in given.pods]

    def run() -> BenchmarkRun:
        index = PlacementIndex()
        for target in targets:
            index.add_target(target)
        for workload, name in running:
            index.add(workload, name)
        return _timed(waiting, index, rules)

    return run


def of_fleet(content: bytes, rules: Sequence[Rule]) -> Callable[[], BenchmarkRun]:
    """As for pods; what is placed is not subtracted from what clusters report, as karmada-scheduler would not."""
    del rules  # a KubeSchedulerConfiguration says nothing about fleets
    given = msgspec.json.decode(content, type=FleetInput)
    targets = [target_of_cluster(cluster) for cluster in given.clusters]
    placed = [(bindings.workload_of(binding), bindings.shares_of(binding)) for binding in given.bindings]
    waiting = [bindings.workload_of(binding) for binding in given.pending]

    def run() -> BenchmarkRun:
        index = PlacementIndex(for_fleets(UPSTREAM), lost_targets_count=True)
        for target in targets:
            index.add_target(target)
        for workload, shares in placed:
            index.add_shares(workload, shares)
        return _timed_fleet(waiting, index, profiles.fleet_rules())

    return run


def _timed(waiting: Sequence[Workload], index: PlacementIndex, rules: Sequence[Rule]) -> BenchmarkRun:
    placements: list[tuple[str, Any]] = []
    refusals: list[str] = []
    with _without_collector():
        start = time.perf_counter()
        for workload in waiting:
            slot, _ = schedule_pod.choose(workload, index, rules)
            target = index.slots.at(slot).name if slot >= 0 else ""
            if target:
                index.add(workload, target)
            else:
                refusals.append(place_pods.fit_failure_of(workload, index, rules).message)
            placements.append((workload.key, target))
        seconds = time.perf_counter() - start
    return BenchmarkRun(placements, len(placements) - len(refusals), seconds, refusals=refusals)


def _timed_fleet(waiting: Sequence[Workload], index: PlacementIndex, rules: Sequence[Rule]) -> BenchmarkRun:
    placements: list[tuple[str, Any]] = []
    n_placed = 0
    with _without_collector():
        start = time.perf_counter()
        for workload in waiting:
            decision = schedule_binding.schedule(workload, index, rules)
            if decision.shares:
                index.add_shares(workload, decision.shares)
            placements.append((workload.key, decision.shares))
            n_placed += decision.placed
        seconds = time.perf_counter() - start
    return BenchmarkRun(placements, n_placed, seconds, "binding")


@contextmanager
def _without_collector() -> Iterator[None]:
    # The collector would walk the whole index again and again for garbage that is not there.
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


BENCHMARKS: dict[str, Callable[[bytes, Sequence[Rule]], Callable[[], BenchmarkRun]]] = {
    "pods": of_pods,
    "fleet": of_fleet,
}
