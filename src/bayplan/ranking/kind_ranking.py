"""The ranking that all workloads of one kind share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.filtering import Judged, Kind
from bayplan.indexing.districts import Districts
from bayplan.indexing.evaluations import Evaluation
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.decisions import Codes, Mask, Scores, Slots
from bayplan.ranking.grades import Grade
from bayplan.ranking.keys import NOWHERE, TIE_BITS, Keys
from bayplan.rules.rule import Scaling

MANY = 64  # touched targets or districts from which on a fresh look is cheaper


class _Followed:
    """An evaluation and the version of it that was seen. `places` are the districts' places in it; None for slots."""

    __slots__ = ("_known", "evaluation", "places", "seen")

    def __init__(self, evaluation: Evaluation, places: Slots | None) -> None:
        self.evaluation = evaluation
        self.places = places
        self.seen = evaluation.version
        self._known: dict[int, list[int]] = {}

    def districts_of(self, place: int) -> list[int]:
        known = self._known.get(place)
        if known is None:
            known = self._known[place] = np.flatnonzero(self.places == place).tolist()
        return known


class KindRanking:
    """`_standing` is the best key of each district with its grades added; `NOWHERE` if it is shut or has no key."""

    def __init__(self, kind: Kind, index: PlacementIndex) -> None:
        self._judged = kind.judged
        self._begin(index)

    def catch_up(self, index: PlacementIndex) -> None:
        """Correct what changed since the last look."""
        slots, districts = set[int](), set[int]()
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
                        districts.update(followed.districts_of(place))
        if len(slots) > MANY:
            self._keys.look()
            self._stand()
            return
        for slot in slots:
            districts.add(self._keys.move(slot))
        if len(districts) > MANY:
            self._stand()
        elif districts:
            self._move(districts)

    def best(self) -> tuple[int, int]:
        """The slot of the best target and its total; (-1, 0) if none is feasible."""
        district = int(self._standing.argmax())
        standing = self._standing_at[district]
        if standing == NOWHERE:
            return -1, 0
        slot = self._keys.best_slot(district)
        return slot, self._keys.total(standing, slot) + self._constant

    def _begin(self, index: PlacementIndex) -> None:
        """Everything from the evaluations as they are."""
        alone = [one for one in self._judged if not _judges_alike(one)]
        alike = [one for one in self._judged if _judges_alike(one)]
        self._districts = _districts(alike, index.slots.capacity)
        self._keys = Keys(alone, self._districts, index)
        self._followed = [_Followed(one.evaluation, None) for one in alone if one.rule.follows_workloads]
        self._gates: list[tuple[Codes, Slots]] = []
        self._grades: list[Grade] = []
        self._constant = 0  # what every target gets
        for one in alike:
            self._take(one)
        self._gates_at = [(codes.data, places.data) for codes, places in self._gates]
        self._stand()

    def _take(self, one: Judged) -> None:
        """Let a rule that judges many targets alike shut and grade the districts."""
        evaluation, rule = one.evaluation, one.rule
        codes, raw, column = evaluation.codes_by_place, evaluation.raw_by_place, evaluation.column
        places = self._districts.representatives()
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
                self._grades.append(Grade(rule, raw, places))

    def _stand(self) -> None:
        """All standings anew."""
        running: Mask = self._keys.best != NOWHERE
        for codes, places in self._gates:
            running &= codes.take(places) == 0
        grades: Scores = np.zeros(self._districts.n, np.int64)
        for grade in self._grades:
            grades += grade.look(running)
        self._standing: Scores = self._keys.best + (grades << TIE_BITS)
        np.copyto(self._standing, NOWHERE, where=~running)
        self._standing_at = self._standing.data

    def _move(self, districts: set[int]) -> None:
        """Few districts changed: unless that moves a scale, the others stand where they stood."""
        standing, best = self._standing_at, self._keys.best_at
        running = {district: self._is_running(district) for district in districts}
        for grade in self._grades:
            for district, now in running.items():
                grade.move(district, was=standing[district] != NOWHERE, now=now)
            shifts = grade.rescale()
            if shifts is None:
                self._stand()
                return
            for raw, shift in shifts:
                moved = grade.having(raw) & (self._standing != NOWHERE)
                np.add(self._standing, shift << TIE_BITS, out=self._standing, where=moved)
        for district, now in running.items():
            if now:
                grades = sum([grade.weighted(district) for grade in self._grades])
                standing[district] = best[district] + (grades << TIE_BITS)
            else:
                standing[district] = NOWHERE

    def _is_running(self, district: int) -> bool:
        running = self._keys.best_at[district] != NOWHERE
        for codes, places in self._gates_at:
            running = running and not codes[places[district]]
        return running


def of_kind(kind: Kind, index: PlacementIndex) -> KindRanking | None:
    """The ranking of a kind, up to date; None where only a fresh look will do."""
    ranking: KindRanking | None = kind.ranking
    if ranking is not None:
        ranking.catch_up(index)
    elif not any(one.rule.scaling is Scaling.BY_ALL and one.evaluation.raw_by_place is not None for one in kind.judged):
        ranking = kind.ranking = KindRanking(kind, index)
    return ranking


def _judges_alike(one: Judged) -> bool:
    """Whether a rule's codes and scores belong to districts: it judges domains, or its scores have a scale."""
    scores = one.evaluation.raw_by_place is not None and one.rule.weight
    return one.evaluation.column is not None or bool(scores and one.rule.scaling is Scaling.BY_EXTREMES)


def _districts(alike: Sequence[Judged], capacity: int) -> Districts:
    """The largest districts that no rule tells apart; each target by itself where scores may differ and change."""
    respects: list[NDArray[np.int64]] = []
    for one in alike:
        evaluation = one.evaluation
        if evaluation.column is not None:
            respects.append(evaluation.column.of_slot)
        elif one.rule.follows_workloads:
            return Districts((), capacity, each=True)
        else:
            respects += [array for array in (evaluation.codes_by_place, evaluation.raw_by_place) if array is not None]
    return Districts(respects, capacity)


def _is_constant(raw: Scores) -> bool:
    return bool((raw == raw[0]).all())
