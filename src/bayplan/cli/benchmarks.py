"""
Benchmark inputs and how they are run. Imported only to measure: the engine comes with it.

Parsing is not timed; interning, evaluating and placing each pending workload is, strictly one after another.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bayplan import schedule
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload
from bayplan.reading import nodes, pods
from bayplan.rules.rule import Rule
from bayplan.wire.nodes import Node
from bayplan.wire.pods import Pod


class PodsInput(msgspec.Struct):
    """Init pods have a node each; `pods` are to be placed."""

    nodes: list[Node]
    pods: list[Pod]
    init: list[Pod] = []


class Run(msgspec.Struct, frozen=True):
    """One pass over everything that waits: workload and target of each, and the seconds it took."""

    placements: list[tuple[str, str]]
    seconds: float

    def result(self) -> dict[str, Any]:
        """The last line of the output."""
        n_placed = sum(bool(target) for _, target in self.placements)
        per_second = len(self.placements) / self.seconds if self.seconds else 0.0
        return {
            "ok": n_placed,
            "fail": len(self.placements) - n_placed,
            "seconds": round(self.seconds, 6),
            "pods_per_s": round(per_second, 1),
        }


def of_pods(content: bytes, rules: Sequence[Rule]) -> Callable[[], Run]:
    """Reads the input once; each call fills a fresh index and places everything anew."""
    given = msgspec.json.decode(content, type=PodsInput)
    targets = [nodes.target_of(node) for node in given.nodes]
    running = [(pods.workload_of(pod), pod.spec.node_name) for pod in given.init]
    waiting = [pods.workload_of(pod) for pod in given.pods]

    def run() -> Run:
        index = PlacementIndex()
        for target in targets:
            index.add_target(target)
        for workload, name in running:
            index.add(workload, name)
        return _timed(waiting, index, rules)

    return run


def _timed(waiting: Sequence[Workload], index: PlacementIndex, rules: Sequence[Rule]) -> Run:
    placements: list[tuple[str, str]] = []
    # The collector would walk the whole index again and again for garbage that is not there.
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        start = time.perf_counter()
        for workload in waiting:
            decision = schedule.schedule(workload, index, rules)
            target = index.slots.at(decision.slot).name if decision.placed else ""
            if target:
                index.add(workload, target)
            placements.append((workload.key, target))
        seconds = time.perf_counter() - start
    finally:
        gc.enable()
        gc.unfreeze()
    return Run(placements, seconds)


BENCHMARKS: dict[str, Callable[[bytes, Sequence[Rule]], Callable[[], Run]]] = {"pods": of_pods}
