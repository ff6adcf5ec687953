"""The ranking that all workloads of one kind share."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.engine.filtering import EquivalenceClass, RuleResult
from bayplan.indexing.evaluations import Evaluation
from bayplan.indexing.node_partitions import NodePartitions
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.reasons import Codes, Mask, Scores, Slots
from bayplan.rules.rule import Rule, Scaling

MANY = 64  # touched targets or districts from which on a fresh look is cheaper


class _Followed:
    """An evaluation and the version of it that was seen. `places` are the districts' places in it; None for slots."""

    __slots__ = ("_known", "evaluation", "places", "seen")

    def __init__(self, evaluation: Evaluation, places: Slots | None) -> None:
        self.evaluation = evaluation
        self.places = places
        self.seen = evaluation.version
        self._known: dict[int, list[int]] = {}

    def partitions_of(self, place: int) -> list[int]:
        known = self._known.get(place)
        if known is None:
            known = self._known[place] = np.flatnonzero(self.places == place).tolist()
        return known


class ClassRanking:
    """`_standing` is the best key of each district with its grades added; `NOWHERE` if it is shut or has no key."""

    def __init__(self, equivalence_class: EquivalenceClass, index: PlacementIndex) -> None:
        self._judged = equivalence_class.judged
        self._begin(index)

    def catch_up(self, index: PlacementIndex) -> None:
        """Correct what changed since the last look."""
        slots, partitions = set[int](), set[int]()
        for followed in self._followed:
            evaluation = followed.evaluation
            if evaluation.version != followed.seen:
                news = evaluation.since(followed.seen)
                if news is None:
                    self._begin(index)
                    return
                followed.seen = evaluation.version
                if followed.places is None:
                    slots |= news
                else:
                    for place in news:
                        partitions.update(followed.partitions_of(place))
        if len(slots) > MANY:
            self._keys.look()
            self._stand()
            return
        for slot in slots:
            partitions.add(self._keys.move(slot))
        if len(partitions) > MANY:
            self._stand()
        elif partitions:
            self._move(partitions)

    def best(self) -> tuple[int, int]:
        """The slot of the best target and its total; (-1, 0) if none is feasible."""
        partition = int(self._standing.argmax())
        standing = self._standing_at[partition]
        if standing == NOWHERE:
            return -1, 0
        slot = self._keys.best_slot(partition)
        return slot, self._keys.total(standing, slot) + self._constant

    def _begin(self, index: PlacementIndex) -> None:
        """Everything from the evaluations as they are."""
        alone = [one for one in self._judged if not _judges_alike(one)]
        alike = [one for one in self._judged if _judges_alike(one)]
        self._partitions = _partitions(alike, index.slots.capacity)
        self._keys = NodeKeys(alone, self._partitions, index)
        self._followed = [_Followed(one.evaluation, None) for one in alone if one.rule.follows_workloads]
        self._gates: list[tuple[Codes, Slots]] = []
        self._grades: list[PartitionScores] = []
        self._constant = 0  # what every target gets
        for one in alike:
            self._take(one)
        self._gates_at = [(codes.data, places.data) for codes, places in self._gates]
        self._stand()

    def _take(self, one: RuleResult) -> None:
        """Let a rule that judges many targets alike shut and grade the districts."""
        evaluation, rule = one.evaluation, one.rule
        codes, raw, column = evaluation.codes_by_place, evaluation.raw_by_place, evaluation.column
        places = self._partitions.representatives()
        if column is not None:
            places = column.of_slot[places]
        if rule.follows_workloads:
            self._followed.append(_Followed(evaluation, places))
        if codes is not None and rule.filters:
            self._gates.append((codes, places))
        if raw is not None and rule.weight:
            if not rule.follows_workloads and _is_constant(raw):
                self._constant += int(rule.scaled(int(raw[0]), int(raw[0]), int(raw[0]))) * rule.weight
            else:
                self._grades.append(PartitionScores(rule, raw, places))

    def _stand(self) -> None:
        """All standings anew."""
        running: Mask = self._keys.best != NOWHERE
        for codes, places in self._gates:
            running &= codes.take(places) == 0
        grades: Scores = np.zeros(self._partitions.n, np.int64)
        for grade in self._grades:
            grades += grade.look(running)
        self._standing: Scores = self._keys.best + (grades << TIE_BITS)
        np.copyto(self._standing, NOWHERE, where=~running)
        self._standing_at = self._standing.data

    def _move(self, partitions: set[int]) -> None:
        """Few districts changed: unless that moves a scale, the others stand where they stood."""
        standing, best = self._standing_at, self._keys.best_at
        running = {partition: self._is_running(partition) for partition in partitions}
        for grade in self._grades:
            for partition, now in running.items():
                grade.move(partition, was=standing[partition] != NOWHERE, now=now)
            shifts = grade.rescale()
            if shifts is None:
                self._stand()
                return
            for raw, shift in shifts:
                moved = grade.having(raw) & (self._standing != NOWHERE)
                np.add(self._standing, shift << TIE_BITS, out=self._standing, where=moved)
        for partition, now in running.items():
            if now:
                grades = sum([grade.weighted(partition) for grade in self._grades])
                standing[partition] = best[partition] + (grades << TIE_BITS)
            else:
                standing[partition] = NOWHERE

    def _is_running(self, partition: int) -> bool:
        running = self._keys.best_at[partition] != NOWHERE
        for codes, places in self._gates_at:
            running = running and not codes[places[partition]]
        return running


def ranking_of(equivalence_class: EquivalenceClass, index: PlacementIndex) -> ClassRanking | None:
    """The ranking of a kind, up to date; None where only a fresh look will do."""
    ranking: ClassRanking | None = equivalence_class.ranking
    if ranking is not None:
        ranking.catch_up(index)
    elif not any(
        one.rule.scaling is Scaling.BY_ALL and one.evaluation.raw_by_place is not None
        for one in equivalence_class.judged
    ):
        ranking = equivalence_class.ranking = ClassRanking(equivalence_class, index)
    return ranking


def _judges_alike(one: RuleResult) -> bool:
    """Whether a rule's codes and scores belong to districts: it judges domains, or its scores have a scale."""
    scores = one.evaluation.raw_by_place is not None and one.rule.weight
    return one.evaluation.column is not None or bool(scores and one.rule.scaling is Scaling.BY_EXTREMES)


def _partitions(alike: Sequence[RuleResult], capacity: int) -> NodePartitions:
    """The largest districts that no rule tells apart; each target by itself where scores may differ and change."""
    respects: list[NDArray[np.int64]] = []
    for one in alike:
        evaluation = one.evaluation
        if evaluation.column is not None:
            respects.append(evaluation.column.of_slot)
        elif one.rule.follows_workloads:
            return NodePartitions((), capacity, each=True)
        else:
            respects += [array for array in (evaluation.codes_by_place, evaluation.raw_by_place) if array is not None]
    return NodePartitions(respects, capacity)


def _is_constant(raw: Scores) -> bool:
    return bool((raw == raw[0]).all())


# RF merged from ranking.grades: One rule's score of districts, brought to its scale. Knows nothing of other rules.

FEW = 16  # different raw scores up to which each is looked at when the scale moves


class PartitionScores:
    """
    The scale hangs on the lowest and the highest raw score of the districts in the running.

    How many of them have which is counted from the first correction on: as long as the extremes stay, a district that
    changes is the only one to do so.
    """

    def __init__(self, rule: Rule, raw: Scores, places: Slots) -> None:
        """`places` are where `raw` has the scores of the districts."""
        self._rule = rule
        self._raw = raw
        self._raw_at = raw.data
        self._places = places
        self._places_at = places.data
        self._lowest = self._highest = 0
        self._moved = False

    def look(self, running: Mask) -> Scores:
        """Take over all raw scores as they are; returns what the districts get, weighted."""
        self._before = self._raw.take(self._places)
        self._before_at = self._before.data
        self._first_running: Mask | None = running
        self._n_by_value: dict[int, int] = {}
        values = self._before[running]
        self._moved = not len(values)  # with nobody in the running there is no scale: it comes with the next one
        if len(values):
            self._lowest, self._highest = int(values.min()), int(values.max())
        return self._weighted(self._before)

    def _weighted(self, raw: Scores) -> Scores:
        """What raw scores are worth; those beyond the scale belong to nobody in the running, and mean nothing."""
        lowest, highest = self._lowest, self._highest
        weighted: Scores
        if highest - lowest > len(raw):
            weighted = self._rule.scaled(raw, lowest, highest) * self._rule.weight
            return weighted
        # There are not so many: looked up in a table, as arithmetic is dearer.
        weighted = self._rule.scaled(np.arange(lowest, highest + 1), lowest, highest) * self._rule.weight
        return weighted.take(raw - lowest, mode="clip")

    def move(self, partition: int, *, was: bool, now: bool) -> None:
        """Take over one district's raw score; it `was` or was not in the running, and is or is not `now`."""
        tally = self._n_by_value
        if self._first_running is not None:
            tally.update(Tally(self._before[self._first_running].tolist()))
            self._first_running = None
        before, raw = self._before_at[partition], self._raw_at[self._places_at[partition]]
        if was:
            tally[before] -= 1
            if not tally[before]:
                del tally[before]
                self._moved |= before in (self._lowest, self._highest)
        if now:
            tally[raw] = tally.get(raw, 0) + 1
            self._moved |= not self._lowest <= raw <= self._highest
        self._before_at[partition] = raw

    def rescale(self) -> list[tuple[int, int]] | None:
        """
        Look for the extremes, if they may have moved.

        Returns the raw scores that are worth more or less on the new scale, and how much; None if these are many.
        """
        if not self._moved or not self._n_by_value:
            return []
        self._moved = False
        lowest, highest = self._lowest, self._highest
        self._lowest, self._highest = min(self._n_by_value), max(self._n_by_value)
        if len(self._n_by_value) > FEW:
            return None if (lowest, highest) != (self._lowest, self._highest) else []
        scaled, weight, shifts = self._rule.scaled, self._rule.weight, []
        for value in self._n_by_value:
            # What lies beyond the old scale has only just come there.
            if lowest <= value <= highest:
                shift = scaled(value, self._lowest, self._highest) - scaled(value, lowest, highest)
                if shift:
                    shifts.append((value, shift * weight))
        return shifts

    def having(self, raw: int) -> Mask:
        """The districts of this raw score."""
        having: Mask = self._before == raw
        return having

    def weighted(self, partition: int) -> int:
        """What one district gets."""
        scaled: int = self._rule.scaled(self._before_at[partition], self._lowest, self._highest)
        return scaled * self._rule.weight


# RF merged from ranking.keys: Targets ordered by what rules say that judge each of them by itself. Knows nothing of
# rules that judge many alike. A key is the target's total over these rules, and below it, in the last bits, its place
# in the order of ranks.

NOWHERE = int(np.iinfo(np.int64).min)  # the key of a target that is not feasible
TIE_BITS = 24  # room for the order of equals below the total


class NodeKeys:
    """`best` is the best key of each district, and so is `best_at`, by which single ones are read faster."""

    def __init__(self, judged: Sequence[RuleResult], partitions: NodePartitions, index: PlacementIndex) -> None:
        self._partitions = partitions
        self._order: Scores = index.slots.order
        self._order_at = self._order.data
        self._fixed = index.slots.alive.copy()
        codes: list[Codes] = []
        self._scores: list[tuple[Scores, int]] = []
        for one in judged:
            evaluation, rule = one.evaluation, one.rule
            if evaluation.codes_by_place is not None and rule.filters:
                if rule.follows_workloads:
                    codes.append(evaluation.codes_by_place)
                else:
                    self._fixed &= evaluation.codes_by_place == 0
            if evaluation.raw_by_place is not None and rule.weight:
                self._scores.append((evaluation.raw_by_place, rule.weight))
        self._codes = codes
        self._fixed_at = self._fixed.data
        self._codes_at = [one.data for one in codes]
        self._scores_at = [(raw.data, weight) for raw, weight in self._scores]
        self.look()

    def look(self) -> None:
        """All keys anew."""
        keyed: Scores = np.zeros(len(self._fixed), np.int64)
        for raw, weight in self._scores:
            keyed += raw if weight == 1 else raw * weight
        keyed <<= TIE_BITS
        keyed -= self._order
        feasible = self._fixed
        for codes in self._codes:
            feasible = feasible & (codes == 0)
        np.copyto(keyed, NOWHERE, where=~feasible)
        self._keyed = self._partitions.seated(keyed)
        self._keyed_at = self._keyed.data
        self.best: Scores = self._partitions.highest_of_each(self._keyed)
        self.best_at = self.best.data

    def move(self, slot: int) -> int:
        """One key anew; returns the district of the target."""
        partition, seat = self._partitions.at(slot)
        before, now, best = self._keyed_at[seat], self._key_of(slot), self.best_at[partition]
        self._keyed_at[seat] = now
        if now >= best:
            self.best_at[partition] = now
        elif before == best:
            self.best_at[partition] = self._partitions.highest(self._keyed, partition)
        return partition

    def best_slot(self, partition: int) -> int:
        """The target with the best key."""
        return self._partitions.slot_of_highest(self._keyed, partition)

    def total(self, key: int, slot: int) -> int:
        """The total that a key of a target stands for, grades added to it or not."""
        return (key + self._order_at[slot]) >> TIE_BITS

    def _key_of(self, slot: int) -> int:
        if not self._fixed_at[slot]:
            return NOWHERE
        for codes in self._codes_at:
            if codes[slot]:
                return NOWHERE
        total = 0
        for raw, weight in self._scores_at:
            total += raw[slot] * weight
        return (total << TIE_BITS) - self._order_at[slot]
