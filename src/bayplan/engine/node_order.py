"""
The order of the targets by the rules that read nothing but the pod template, shared by all equivalence classes whose
pods have it.

Most templates differ in labels and terms, and share requests, tolerations and node affinity with many others. Knows
nothing of peers.
"""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.engine.evaluations import AnyEvaluation, EvaluationCache, RuleResult
from bayplan.engine.node_partitions import NodeKeys, NodePartitions
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ValueColumn
from bayplan.rules.rule import AnyRule, Scaling

MAX_CORRECTIONS = 64  # changed targets; with more of them a rebuild is cheaper
MAX_DOMAIN_ORDERS = 4  # combinations of topology keys by which the targets are divided


class NodeOrder:
    """
    The results of these rules, and the targets in the order of their scores, divided into domains.

    `constant` is the score that every target gets from rules that scale their scores; None if it differs.
    """

    def __init__(self, results: Sequence[RuleResult], index: PlacementIndex) -> None:
        self._index = index
        self._targets_generation = index.targets_generation
        self.results: dict[AnyRule, RuleResult] = {one.rule: one for one in results}
        self.prefiltering = [one for one in results if one.prefilters]
        self.following: list[AnyEvaluation] = [one.evaluation for one in results if one.rule.follows_workloads]
        self.needs_all_scores = any(one.needs_all_scores for one in results)
        self.constant = _constant_score(results)
        self.used = index.journal.end
        self._by_columns: dict[tuple[str, ...], DividedKeys] = {}

    def refresh(self, evaluations: EvaluationCache) -> bool:
        """Bring the results up to date; False if other rules may apply by now, or a result is no longer cached."""
        if self._targets_generation != self._index.targets_generation:
            return False
        for one in self.results.values():
            if one.evaluation.dropped:
                return False
            evaluations.refresh(one.evaluation)
        self.used = self._index.journal.end
        return True

    def divided_by(self, columns: Sequence[ValueColumn]) -> DividedKeys:
        """The targets divided by the domains of these columns, in an up-to-date order."""
        names = tuple([column.key for column in columns])
        found = self._by_columns.get(names)
        if found is None or not found.catch_up():
            if len(self._by_columns) >= MAX_DOMAIN_ORDERS:
                self._by_columns.clear()
            found = self._by_columns[names] = DividedKeys(list(self.results.values()), columns, self._index)
        return found


class DividedKeys:
    """
    The keys of all targets, which are divided into partitions by the domains of some columns.

    `domains[p]` has the domain of each column for the targets of partition p.
    """

    def __init__(self, results: Sequence[RuleResult], columns: Sequence[ValueColumn], index: PlacementIndex) -> None:
        partitions = NodePartitions([column.of_slot for column in columns], index.slots.capacity)
        self.keys = NodeKeys(results, partitions, index)
        slots = partitions.representatives().tolist()
        self.domains = [tuple([column.at[slot] for column in columns]) for slot in slots]
        self._followed: list[AnyEvaluation] = [one.evaluation for one in results if one.rule.follows_workloads]
        self._versions = [evaluation.version for evaluation in self._followed]

    def catch_up(self) -> bool:
        """Correct the keys of the targets that changed since the last call; False if the arrays are others by now."""
        slots = set[int]()
        for position, evaluation in enumerate(self._followed):
            version = self._versions[position]
            if evaluation.version != version:
                changed = evaluation.since(version)
                if changed is None:
                    return False
                self._versions[position] = evaluation.version
                slots |= changed
        if len(slots) > MAX_CORRECTIONS:
            self.keys.rebuild()
        else:
            for slot in slots:
                self.keys.correct(slot)
        return True


def _constant_score(results: Sequence[RuleResult]) -> int | None:
    constant = 0
    for one in results:
        raw, rule = one.evaluation.raw_by_place, one.rule
        if raw is not None and rule.weight and rule.scaling is not Scaling.NONE:
            if rule.follows_workloads or not (raw == raw[0]).all():
                return None
            constant += int(rule.scaled(int(raw[0]), int(raw[0]), int(raw[0]))) * rule.weight
    return constant
