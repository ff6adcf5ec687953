"""
The order of the targets by the rules that read nothing but the pod template, shared by all equivalence classes whose
pods have it.

Most templates differ in labels and terms, and share requests, tolerations and node affinity with many others. Knows
nothing of peers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from bayplan.engine.evaluations import AnyEvaluation, EvaluationCache, RuleResult
from bayplan.engine.node_partitions import INFEASIBLE, TIE_BITS, NodeKeys, NodePartitions
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ValueColumn
from bayplan.model.reasons import Codes, Mask, Scores
from bayplan.rules.rule import AnyRule, Scaling

MAX_CORRECTIONS = 64  # changed targets; with more of them a rebuild is cheaper
MAX_DOMAIN_ORDERS = 4  # combinations of topology keys by which the targets are divided
MAX_SHARED_PARTITIONS = 16  # such combinations, for all orders together

PartitionsByKeys: TypeAlias = dict[tuple[str, ...], NodePartitions]  # by topology keys, while no target changes


class NodeOrder:
    """
    The results of these rules, and the key that they give to each target.

    `constant` is the score that every target gets from rules that scale their scores; None if it differs. `used` is the
    position in the journal up to which results and keys are correct. How topology keys divide the targets depends on no
    template, so all orders share `partitions`. `n_classes` are the equivalence classes that were ever given this order.
    """

    def __init__(self, results: Sequence[RuleResult], index: PlacementIndex, partitions: PartitionsByKeys) -> None:
        self._index = index
        self._partitions = partitions
        self._targets_generation = index.targets_generation
        self._n_dropped = -1  # to evaluate the last rules, the cache may have dropped results of the first ones
        self.results: dict[AnyRule, RuleResult] = {one.rule: one for one in results}
        self.prefiltering = [one for one in results if one.prefilters]
        self._following: list[AnyEvaluation] = [one.evaluation for one in results if one.rule.follows_workloads]
        self.needs_all_scores = any(one.needs_all_scores for one in results)
        self.constant = _constant_score(results)
        self.n_classes = 0
        self.used = index.journal.end
        self.keys = TemplateKeys(results, index)
        self._by_columns: dict[tuple[str, ...], DividedKeys] = {}

    def refresh(self, evaluations: EvaluationCache) -> bool:
        """Bring results and keys up to date; False if other rules may apply by now, or a result is no longer cached."""
        index = self._index
        if self._targets_generation != index.targets_generation:
            return False
        if self._n_dropped != evaluations.n_dropped:
            if any(one.evaluation.dropped for one in self.results.values()):
                return False
            self._n_dropped = evaluations.n_dropped
        journal = index.journal
        if self.used == journal.end:
            return True
        # These rules read of the placed workloads only those on the target itself.
        slots = journal.slots_since(self.used, MAX_CORRECTIONS)
        if slots is None:
            for evaluation in self._following:
                evaluations.refresh(evaluation)
            self.keys.rebuild()
        else:
            evaluations.refresh_at(self._following, slots)
            for slot in slots:
                self.keys.correct(slot)
        self.used = journal.end
        return True

    def divided_by(self, columns: Sequence[ValueColumn]) -> DividedKeys:
        """The targets divided by the domains of these columns, in an up-to-date order."""
        names = tuple([column.key for column in columns])
        found = self._by_columns.get(names)
        if found is None:
            if len(self._by_columns) >= MAX_DOMAIN_ORDERS:
                self._by_columns.clear()
            shared = self._partitions
            partitions = shared.get(names)
            if partitions is None:
                if len(shared) >= MAX_SHARED_PARTITIONS:
                    shared.clear()
                numbers = [column.of_slot for column in columns]
                partitions = shared[names] = NodePartitions(numbers, self._index.slots.capacity)
            found = self._by_columns[names] = DividedKeys(self.keys, columns, partitions, self._index)
        else:
            found.catch_up(self._index)
        return found


class TemplateKeys:
    """
    The key of each target by the rules of an order whose scores are not scaled, `INFEASIBLE` where any rule rejects it.

    `by_slot` and `at` are the same memory, which stays the same as long as the order does.
    """

    def __init__(self, results: Sequence[RuleResult], index: PlacementIndex) -> None:
        self._ranks: Scores = index.slots.order
        self._rank_at = self._ranks.data
        self._fixed: Mask = index.slots.alive.copy()  # feasible by everything that placements do not change
        self._codes: list[Codes] = []
        self._scores: list[tuple[Scores, int]] = []
        for one in results:
            evaluation, rule = one.evaluation, one.rule
            if evaluation.codes_by_place is not None and rule.filters:
                if rule.follows_workloads:
                    self._codes.append(evaluation.codes_by_place)
                else:
                    self._fixed &= evaluation.codes_by_place == 0
            if evaluation.raw_by_place is not None and rule.weight and rule.scaling is Scaling.NONE:
                self._scores.append((evaluation.raw_by_place, rule.weight))
        self._fixed_at = self._fixed.data
        self._codes_at = [codes.data for codes in self._codes]
        self._scores_at = [(raw.data, weight) for raw, weight in self._scores]
        self.by_slot: Scores = np.empty(len(self._fixed), np.int64)
        self.at = self.by_slot.data
        self.rebuild()

    def rebuild(self) -> None:
        """Compute all keys from the current evaluations."""
        keys = self.by_slot
        keys[:] = 0
        for raw, weight in self._scores:
            keys += raw if weight == 1 else raw * weight
        keys <<= TIE_BITS
        keys -= self._ranks
        feasible = self._fixed
        for codes in self._codes:
            feasible = feasible & (codes == 0)
        np.copyto(keys, INFEASIBLE, where=~feasible)

    def correct(self, slot: int) -> None:
        """Compute the key of one target again."""
        feasible = self._fixed_at[slot]
        for codes in self._codes_at:
            feasible = feasible and not codes[slot]
        if not feasible:
            self.at[slot] = INFEASIBLE
            return
        total = 0
        for raw, weight in self._scores_at:
            total += raw[slot] * weight
        self.at[slot] = (total << TIE_BITS) - self._rank_at[slot]

    def total(self, key: int, slot: int) -> int:
        """The total in the key of a target, whether or not other scores were added to it."""
        return (key + self._rank_at[slot]) >> TIE_BITS


class DividedKeys:
    """
    The keys of all targets, which are divided into partitions by the domains of some columns.

    `domains[p]` has the domain of each column for the targets of partition p.
    """

    def __init__(
        self, keys: TemplateKeys, columns: Sequence[ValueColumn], partitions: NodePartitions, index: PlacementIndex
    ) -> None:
        self.keys = NodeKeys(keys.by_slot, (), partitions)
        slots = partitions.representatives().tolist()
        self.domains = [tuple([column.at[slot] for column in columns]) for slot in slots]
        self._position = index.journal.end

    def catch_up(self, index: PlacementIndex) -> None:
        """Correct the keys of the targets that changed since the last call."""
        slots = index.journal.slots_since(self._position, MAX_CORRECTIONS)
        if slots is None:
            self.keys.rebuild()
        else:
            for slot in slots:
                self.keys.correct(slot)
        self._position = index.journal.end


def _constant_score(results: Sequence[RuleResult]) -> int | None:
    constant = 0
    for one in results:
        raw, rule = one.evaluation.raw_by_place, one.rule
        if raw is not None and rule.weight and rule.scaling is not Scaling.NONE:
            if rule.follows_workloads or not (raw == raw[0]).all():
                return None
            constant += int(rule.scaled(int(raw[0]), int(raw[0]), int(raw[0]))) * rule.weight
    return constant
