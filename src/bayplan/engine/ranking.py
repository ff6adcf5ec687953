"""
The ranking of all targets for one equivalence class, corrected where changes touched it.

Rules rank the targets in two ways. Some evaluate each target by itself, such as whether a pod's requests fit; together
they give every target a key. Others give the same code and score to many targets, or scale their scores between the
lowest and the highest one; they reject and score whole partitions of the targets. The best target is the one with the
best key in the partition with the best sum of key and scores, so a placement changes one key and a few partitions.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.engine.equivalence import EquivalenceClass
from bayplan.engine.evaluations import AnyEvaluation, RuleResult
from bayplan.engine.node_partitions import INFEASIBLE, TIE_BITS, NodeKeys, NodePartitions
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.reasons import Codes, Mask, Scores, Slots
from bayplan.rules.rule import AnyRule, Scaling

MAX_CORRECTIONS = 64  # changed targets or partitions; with more of them a rebuild is cheaper
MAX_RESCALED_VALUES = 16  # distinct raw scores that are rescaled one by one when the scale changes


def ranking_of(equivalence_class: EquivalenceClass, index: PlacementIndex) -> ClassRanking:
    """The ranking of an equivalence class, up to date."""
    ranking = equivalence_class.ranking
    if ranking is None:
        ranking = equivalence_class.ranking = ClassRanking(equivalence_class, index)
    else:
        ranking.catch_up(index)
    return ranking


class _Followed:
    """
    An evaluation and the version of it that the ranking contains.

    `places` has the place in the evaluation for each partition; None if the places are slots.
    """

    __slots__ = ("_partitions_by_place", "evaluation", "places", "version")

    def __init__(self, evaluation: AnyEvaluation, places: Slots | None) -> None:
        self.evaluation = evaluation
        self.places = places
        self.version = evaluation.version
        self._partitions_by_place: dict[int, list[int]] = {}

    def partitions_of(self, place: int) -> list[int]:
        found = self._partitions_by_place.get(place)
        if found is None:
            found = self._partitions_by_place[place] = np.flatnonzero(self.places == place).tolist()
        return found


class ClassRanking:
    """
    The ranking that all workloads of one equivalence class share.

    `_partition_keys` has the best key of each partition plus the partition's scores, `INFEASIBLE` if the partition is
    rejected or none of its targets is feasible.
    """

    def __init__(self, equivalence_class: EquivalenceClass, index: PlacementIndex) -> None:
        self._order = equivalence_class.order
        self._by_peers = equivalence_class.by_peers
        self._position = 0  # in the journal, up to which everything is correct
        self._build(index)

    def catch_up(self, index: PlacementIndex) -> None:
        """Correct what changed since the last call."""
        slots: set[int] = set()
        partitions: set[int] = set()
        for followed in self._followed:
            evaluation = followed.evaluation
            if evaluation.version != followed.version:
                changed = evaluation.since(followed.version)
                if changed is None:
                    self._build(index)
                    return
                followed.version = evaluation.version
                if followed.places is None:
                    slots |= changed
                else:
                    for place in changed:
                        partitions.update(followed.partitions_of(place))
        in_order = index.journal.slots_since(self._position, MAX_CORRECTIONS)
        self._position = index.journal.end
        if in_order is None or len(slots) > MAX_CORRECTIONS:
            self._node_keys.rebuild()
            self._rebuild_partition_keys()
            return
        for slot in slots.union(in_order) if slots else in_order:
            partitions.add(self._node_keys.correct(slot))
        if len(partitions) > MAX_CORRECTIONS:
            self._rebuild_partition_keys()
        elif partitions:
            self._correct(partitions)

    def best(self) -> tuple[int, int]:
        """The slot of the best target and its total; (-1, 0) if none is feasible."""
        key_at, node_keys = self._partition_key_at, self._node_keys
        while True:
            partition = int(self._partition_keys.argmax()) if len(key_at) > 1 else 0
            key = key_at[partition]
            if key == INFEASIBLE:
                return -1, 0
            if partition not in node_keys.too_high:
                break
            key_at[partition] = key - node_keys.settle(partition)
        slot = node_keys.best_slot(partition)
        return slot, self._order.keys.total(key, slot) + self._constant

    def _build(self, index: PlacementIndex) -> None:
        """Build everything from the current evaluations."""
        # The keys of the order have what the rules of the template reject, and their scores that are not scaled.
        scaled = [one for one in self._order.results.values() if _scales_scores(one)]
        by_partition = [one for one in self._by_peers if _is_by_partition(one)]
        by_target = [one for one in self._by_peers if not _is_by_partition(one)]
        self._position = index.journal.end
        self._partitions = _partitions_of(scaled, by_partition, index.slots.capacity)
        self._node_keys: NodeKeys = NodeKeys(self._order.keys.by_slot, by_target, self._partitions)
        self._followed: list[_Followed] = [
            _Followed(one.evaluation, None) for one in by_target if one.rule.follows_workloads
        ]
        self._partition_codes: list[tuple[Codes, Slots]] = []
        self._partition_scores: list[PartitionScores] = []
        self._constant = 0  # the score that every target gets
        for one in scaled:
            self._add_scores(one, self._partitions.representatives())
        for one in by_partition:
            self._add_partition_rule(one)
        self._partition_code_at = [(codes.data, places.data) for codes, places in self._partition_codes]
        self._rebuild_partition_keys()

    def _add_partition_rule(self, one: RuleResult) -> None:
        evaluation, rule = one.evaluation, one.rule
        places = self._partitions.representatives()
        if evaluation.column is not None:
            places = evaluation.column.of_slot[places]
        if rule.follows_workloads:
            self._followed.append(_Followed(evaluation, None if evaluation.column is None else places))
        if evaluation.codes_by_place is not None and rule.filters:
            self._partition_codes.append((evaluation.codes_by_place, places))
        self._add_scores(one, places)

    def _add_scores(self, one: RuleResult, places: Slots) -> None:
        raw, rule = one.evaluation.raw_by_place, one.rule
        if raw is not None and rule.weight:
            if not rule.follows_workloads and (raw == raw[0]).all():
                self._constant += int(rule.scaled(int(raw[0]), int(raw[0]), int(raw[0]))) * rule.weight
            else:
                self._partition_scores.append(PartitionScores(rule, raw, places))

    def _rebuild_partition_keys(self) -> None:
        feasible: Mask = self._node_keys.best != INFEASIBLE
        for codes, places in self._partition_codes:
            feasible &= codes.take(places) == 0
        scores: Scores = np.zeros(self._partitions.n, np.int64)
        for one in self._partition_scores:
            scores += one.rebuild(feasible)
        self._partition_keys: Scores = self._node_keys.best + (scores << TIE_BITS)
        np.copyto(self._partition_keys, INFEASIBLE, where=~feasible)
        self._partition_key_at = self._partition_keys.data

    def _correct(self, partitions: set[int]) -> None:
        """Correct the keys of a few partitions; all of them only if a scale changes for many values."""
        key_at, best_at = self._partition_key_at, self._node_keys.best_at
        if not self._partition_code_at and not self._partition_scores:
            for partition in partitions:
                key_at[partition] = best_at[partition]
            return
        feasible: dict[int, bool] = {}
        for partition in partitions:
            now = best_at[partition] != INFEASIBLE
            for codes, places in self._partition_code_at:
                now = now and not codes[places[partition]]
            feasible[partition] = now
        for scores in self._partition_scores:
            for partition, now in feasible.items():
                scores.correct(partition, key_at[partition] != INFEASIBLE, now)
            shifts = scores.rescale()
            if shifts is None:
                self._rebuild_partition_keys()
                return
            for raw, shift in shifts:
                shifted = scores.having(raw) & (self._partition_keys != INFEASIBLE)
                self._partition_keys += shifted * (shift << TIE_BITS)  # in far less time than with a mask
        for partition, now in feasible.items():
            if now:
                key = best_at[partition]
                for scores in self._partition_scores:
                    key += scores.weighted(partition) << TIE_BITS
                key_at[partition] = key
            else:
                key_at[partition] = INFEASIBLE


def _scales_scores(one: RuleResult) -> bool:
    scores = one.evaluation.raw_by_place is not None and one.rule.weight
    return bool(scores and one.rule.scaling is Scaling.BY_EXTREMES)


def _is_by_partition(one: RuleResult) -> bool:
    """Whether a rule gives codes and scores to partitions: it evaluates domains, or scales its scores by extremes."""
    return one.evaluation.column is not None or _scales_scores(one)


def _partitions_of(scaled: Sequence[RuleResult], by_partition: Sequence[RuleResult], capacity: int) -> NodePartitions:
    """
    The largest partitions in which every rule gives all targets the same code and score.

    `scaled` are results of the template: their codes are in the keys of single targets. Each target is a partition of
    its own where scores may differ between targets and change with every placement.
    """
    attributes: list[NDArray[np.int64]] = []
    for one in scaled:
        assert one.evaluation.raw_by_place is not None
        attributes.append(one.evaluation.raw_by_place)
    for one in by_partition:
        evaluation = one.evaluation
        if evaluation.column is not None:
            attributes.append(evaluation.column.of_slot)
        elif one.rule.follows_workloads:
            return NodePartitions((), capacity, each=True)
        else:
            attributes += [array for array in (evaluation.codes_by_place, evaluation.raw_by_place) if array is not None]
    return NodePartitions(attributes, capacity)


class PartitionScores:
    """
    The scores that one rule gives to the partitions, on the scale of the rule. Knows nothing of other rules.

    The scale depends on the lowest and the highest raw score of the feasible partitions. How many partitions have each
    raw score is counted from the first correction on: while the extremes stay, only the changed partition is corrected.
    """

    def __init__(self, rule: AnyRule, raw: Scores, places: Slots) -> None:
        """`places` are the positions in `raw` of the scores of the partitions."""
        self._rule = rule
        self._raw = raw
        self._raw_at = raw.data
        self._places = places
        self._places_at = places.data
        self._lowest = self._highest = 0
        self._extremes_changed = False
        self._weighted: dict[int, int] = {}  # by raw score, as far as they were asked for on the current scale

    def rebuild(self, feasible: Mask) -> Scores:
        """Read all raw scores; returns the weighted scores of the partitions."""
        self._before = self._raw.take(self._places)
        self._before_at = self._before.data
        self._uncounted_feasible: Mask | None = feasible
        self._n_by_value: dict[int, int] = {}
        values = self._before[feasible]
        self._extremes_changed = not len(values)  # without a feasible partition the next one sets the scale
        if len(values):
            self._lowest, self._highest = int(values.min()), int(values.max())
        self._weighted.clear()
        lowest, highest, rule = self._lowest, self._highest, self._rule
        # Scores outside the scale belong to partitions that are not feasible and are not read.
        weighted: Scores
        if highest - lowest > len(self._before):
            weighted = rule.scaled(self._before, lowest, highest) * rule.weight
            return weighted
        # The scale has few values: a table lookup is cheaper than the arithmetic.
        weighted = rule.scaled(np.arange(lowest, highest + 1), lowest, highest) * rule.weight
        return weighted.take(self._before - lowest, mode="clip")

    def correct(self, partition: int, was_feasible: bool, is_feasible: bool) -> None:
        """Read the raw score of one partition again."""
        before, raw = self._before_at[partition], self._raw_at[self._places_at[partition]]
        if raw == before and was_feasible == is_feasible:
            return
        n_by_value = self._n_by_value
        if self._uncounted_feasible is not None:
            n_by_value.update(Tally(self._before[self._uncounted_feasible].tolist()))
            self._uncounted_feasible = None
        if was_feasible:
            n_by_value[before] -= 1
            if not n_by_value[before]:
                del n_by_value[before]
                self._extremes_changed |= before in (self._lowest, self._highest)
        if is_feasible:
            n_by_value[raw] = n_by_value.get(raw, 0) + 1
            self._extremes_changed |= not self._lowest <= raw <= self._highest
        self._before_at[partition] = raw

    def rescale(self) -> list[tuple[int, int]] | None:
        """
        Find the extremes again if they may have changed.

        Returns the raw scores whose weighted score changes with the scale, and the difference; None if there are many.
        """
        if not self._extremes_changed or not self._n_by_value:
            return []
        self._extremes_changed = False
        lowest, highest = self._lowest, self._highest
        self._lowest, self._highest = min(self._n_by_value), max(self._n_by_value)
        self._weighted.clear()
        if len(self._n_by_value) > MAX_RESCALED_VALUES:
            return None if (lowest, highest) != (self._lowest, self._highest) else []
        scaled, weight, shifts = self._rule.scaled, self._rule.weight, []
        for value in self._n_by_value:
            # A value outside the old scale is new: no partition has a score for it yet.
            if lowest <= value <= highest:
                shift = scaled(value, self._lowest, self._highest) - scaled(value, lowest, highest)
                if shift:
                    shifts.append((value, shift * weight))
        return shifts

    def having(self, raw: int) -> Mask:
        """Which partitions have this raw score."""
        having: Mask = self._before == raw
        return having

    def weighted(self, partition: int) -> int:
        """The weighted score of one partition."""
        raw = self._before_at[partition]
        weighted = self._weighted.get(raw)
        if weighted is None:
            weighted = self._weighted[raw] = self._rule.scaled(raw, self._lowest, self._highest) * self._rule.weight
        return weighted
