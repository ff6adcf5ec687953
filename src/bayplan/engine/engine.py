"""
An engine: the rules of one scheduler profile over one index, with the caches that the two have together.

Whoever decides for workloads of that profile keeps one engine. It changes nothing in the index.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from bayplan.caching import METER, BoundedCache
from bayplan.engine import equivalence
from bayplan.engine.equivalence import EquivalenceClass, Signature
from bayplan.engine.evaluations import EvaluationCache, RuleResult
from bayplan.engine.node_order import NodeOrder, PartitionsByKeys
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.reasons import Slots
from bayplan.model.workloads import Workload
from bayplan.rules.rule import AnyRule

MAX_EQUIVALENCE_CLASSES = 512  # the least recently used are dropped first
MAX_ORDERS_BYTES = 32 * 2**20  # of the orders of targets by template, of which there are at least some
BYTES_PER_TARGET = 64  # that one order takes
MIN_NODE_ORDERS = 64  # in a cluster of any size: building one reads every target

EngineOf = Callable[[Workload], "Engine"]  # the engine of the scheduler that a workload names


class Engine:
    """Evaluates the rules, in their order. One thread owns it, as it does the index."""

    def __init__(self, index: PlacementIndex, rules: Sequence[AnyRule]) -> None:
        self.index = index
        self.rules = tuple(rules)
        self.evaluations = EvaluationCache(index)
        self._reading_template = [rule for rule in self.rules if rule.reads_template_only]
        self._reading_more = [rule for rule in self.rules if not rule.reads_template_only]
        self._orders: BoundedCache[tuple[Hashable, ...], NodeOrder] = BoundedCache()
        self._classes: BoundedCache[Signature, EquivalenceClass] = BoundedCache()
        self._partitions: PartitionsByKeys = {}
        self._partitions_generation = index.targets_generation
        self._generation = METER.generation

    def evaluate(
        self, workload: Workload, rules: Sequence[AnyRule] | None = None, *, scored: bool = True
    ) -> list[RuleResult]:
        """
        The result of each rule that applies to this workload, in their order; of all rules unless some are given.

        If nothing will be `scored`, there are raw scores only where they are known already.
        """
        results, evaluations = [], self.evaluations
        for rule in self.rules if rules is None else rules:
            part = rule.part(workload, self.index)
            if part is not None:
                exempt = _assigned_slots(workload, self.index) if rule.exempts_assigned else None
                found = evaluations.get(rule, part, lazily=not scored)
                if not found.evaluated:
                    evaluations.complete_codes(found)
                results.append(RuleResult(rule, found, exempt))
        return results

    def class_of(self, workload: Workload) -> EquivalenceClass:
        """The equivalence class of a workload, with the results of its rules up to date."""
        signature = equivalence.signature(workload, self.index)
        found = self._classes.get(signature)
        if found is None or not found.refresh(self.evaluations):
            if self._generation != METER.generation:
                self._generation = METER.generation
                self.release()
            order = self._order_of(workload)
            by_peers = []
            for rule in self._reading_more:
                part = rule.part(workload, self.index)
                if part is not None:
                    by_peers.append(RuleResult(rule, self.evaluations.get(rule, part, lazily=True)))
            found = EquivalenceClass(self.rules, order, by_peers, self.index)
            self._classes.put(signature, found, MAX_EQUIVALENCE_CLASSES)
        return found

    def _order_of(self, workload: Workload) -> NodeOrder:
        """The order of the targets by the rules that read only the template."""
        # By what the rules read: templates differ in images, for example, where no node reports any.
        key = tuple([rule.part(workload, self.index) for rule in self._reading_template])
        found = self._orders.get(key)
        if found is None or not found.refresh(self.evaluations):
            results = [
                RuleResult(rule, self.evaluations.get(rule, part))
                for rule, part in zip(self._reading_template, key, strict=True)
                if part is not None
            ]
            if self._partitions_generation != self.index.targets_generation:
                self._partitions_generation = self.index.targets_generation
                self._partitions = {}
            found = NodeOrder(results, self.index, self._partitions)
            most = max(MIN_NODE_ORDERS, MAX_ORDERS_BYTES // (BYTES_PER_TARGET * self.index.slots.capacity))
            self._orders.put(key, found, most)
        return found

    def release(self) -> None:
        """Drop all results and release the terms that they hold in the index."""
        self._classes.clear()
        self._orders.clear()
        self.evaluations.clear()


def _assigned_slots(workload: Workload, index: PlacementIndex) -> Slots | None:
    """The clusters that hold the workload already: some rules apply only while scheduling, not while it runs."""
    if workload.binding is None or not workload.binding.previous:
        return None
    known = index.slots.by_name
    slots = [known[name] for name, _ in workload.binding.previous if name in known]
    return np.array(slots, np.intp) if slots else None
