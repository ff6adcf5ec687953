"""
The results of rules, shared by all workloads with an equal rule part and corrected where changes touched them.

An evaluation is the code and the raw score of a rule per place, with a cursor into the journal. A place is a target;
for a rule that evaluates domains, a place is a domain, and the rule evaluates one target of it for all. A refresh reads
the index again at the touched places only; the result equals a full evaluation, which the tests compare. Knows nothing
of what a rule does.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.caching import METER, BoundedCache
from bayplan.indexing.journal import Change
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ALL, At, ValueColumn
from bayplan.model.reasons import Codes, Mask, Reason, Scores, Slots
from bayplan.model.workloads import Workload
from bayplan.rules.evictions import EvictionEffect, Preemptor
from bayplan.rules.remedies import Alternatives
from bayplan.rules.rule import AnyRule, Failure, Part, Rule, Scaling, SharedDomains, State

MAX_CACHED_BYTES = 256 * 2**20  # of arrays; the least recently used evaluations are dropped first
MAX_FREE_ROWS = 8  # of raw scores, which the limit above allows for
MAX_LOGGED_PLACES = 256  # corrected places that an evaluation remembers
MAX_NOTED_PLACES = 32  # places of one correction; more of them are noted as "all"
MAX_SINGLE_PLACES = 6  # places up to which plain integers are cheaper than arrays
MAX_REPLAYED_CHANGES = 64  # with more changes than this, a full evaluation is cheaper than a correction
PLACES_PER_REPLAYED_CHANGE = 128  # reading a change costs as much as evaluating so many places at once


Number = TypeVar("Number", bound=np.generic)


@dataclass(slots=True, eq=False)
class Evaluation(Generic[Part, State]):
    """
    The result of one rule for one part.

    `column` is the one whose domains are the places; None if the places are the slots. `cursor` is the position in the
    journal up to which the result is correct; `version` changes with every correction. A `dropped` evaluation is no
    longer in the cache and not kept up to date. One that is not `evaluated` yet has a state and no arrays, or the codes
    of the position `rejected_at`. `codes_at` and `raw_at` are the memory of the arrays, through which single integers
    are written faster.
    """

    rule: Rule[Part, State]
    part: Part
    state: State
    dropped: bool = False
    evaluated: bool = False
    rejected_at: int = -1
    column: ValueColumn | None = None
    codes_by_place: Codes | None = None
    raw_by_place: Scores | None = None
    codes_at: memoryview[int] | None = None
    raw_at: memoryview[int] | None = None
    n_places: int = 0
    cursor: int = 0
    targets_generation: int = 0
    owners_generation: int = 0
    version: int = 0
    log: list[int] = field(default_factory=list)

    @property
    def used(self) -> int:
        return self.cursor

    @property
    def codes(self) -> Codes | None:
        """0 where the rule does not reject the target, shape (capacity,); None if it rejects none."""
        assert self.evaluated or self.rejected_at == self.cursor
        codes = self.codes_by_place
        return codes if codes is None or self.column is None else codes.take(self.column.of_slot)

    @property
    def raw(self) -> Scores | None:
        """The raw score per target, shape (..., capacity), or None."""
        assert self.evaluated
        raw = self.raw_by_place
        return raw if raw is None or self.column is None else raw.take(self.column.of_slot, axis=-1)

    def since(self, version: int) -> set[int] | None:
        """The places that changed since that version; None if they are many or no longer known."""
        behind = self.version - version
        return set(self.log[len(self.log) - behind :]) if behind <= len(self.log) else None

    def note(self, places: dict[int, int] | None) -> None:
        """Remember where the arrays have changed; None stands for everywhere."""
        if places is None:
            self.version += 1
            self.log.clear()
            return
        self.version += len(places)
        self.log.extend(places)
        if len(self.log) > MAX_LOGGED_PLACES:
            del self.log[: MAX_LOGGED_PLACES // 2]


AnyEvaluation: TypeAlias = Evaluation[Any, Any]  # among the results of many rules


class RuleResult(msgspec.Struct, frozen=True):
    """The evaluation of all targets by one rule for one workload; the rule does not reject `exempt_slots`."""

    rule: AnyRule
    evaluation: AnyEvaluation
    exempt_slots: Slots | None = None

    @property
    def prefilters(self) -> bool:
        """Whether the rule may decide before any target is evaluated."""
        return self.rule.pre_filters and type(self.rule).pre_filter is not Rule.pre_filter

    @property
    def needs_all_scores(self) -> bool:
        """Whether the score of a target depends on more than its raw score and the extremes of all."""
        return self.rule.scaling is Scaling.BY_ALL and self.evaluation.raw_by_place is not None

    def rejected(self) -> Mask | None:
        """Which targets the rule rejects, shape (capacity,); None if it rejects no target of any index."""
        codes = self.evaluation.codes if self.rule.filters else None
        if codes is None:
            return None
        rejected: Mask = codes != 0
        if self.exempt_slots is not None:
            rejected[self.exempt_slots] = False
        return rejected

    def pre_filter(self, index: PlacementIndex) -> Reason | frozenset[str] | None:
        """What the rule decides before any target is evaluated; nothing if that is disabled."""
        return self.rule.pre_filter(self.evaluation.state, index) if self.rule.pre_filters else None

    def reasons(self, code: int) -> tuple[Reason, ...]:
        """The reasons that a code of the evaluation means."""
        return self.rule.reasons(self.evaluation.state, code)

    def evidence(self, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        """Why the rule rejects this target, one entry per obstacle."""
        return self.rule.evidence(self.evaluation.state, workload, slot, index)

    def remedies(self, workload: Workload, slot: int, index: PlacementIndex) -> list[Alternatives]:
        """What would lift the rejection of this target: alternative remedies for each obstacle."""
        return self.rule.remedies(self.evaluation.state, workload, slot, index)

    def eviction_effect(self, preemptor: Preemptor) -> EvictionEffect:
        """What evictions change about the targets that the rule rejects."""
        return self.rule.eviction_effect(self.evaluation.state, self.evaluation.codes, preemptor)

    def may_lift(self, rejected: Workload, change: Change, index: PlacementIndex) -> bool:
        """Whether a change may lift the rejection of this workload by the rule, or let preemption do so."""
        return self.rule.may_lift(self.evaluation.state, rejected, change, index)


@dataclass(slots=True, eq=False)
class EvaluationCache:
    """
    The evaluations of an index by rule and part.

    For tests: `n_full` counts full evaluations, `n_corrected` those of some places.
    """

    _index: PlacementIndex
    _cache: BoundedCache[tuple[AnyRule, Hashable], AnyEvaluation] = field(default_factory=BoundedCache)
    n_full: int = 0
    n_corrected: int = 0
    n_dropped: int = 0

    def __len__(self) -> int:
        return len(self._cache)

    def get(self, rule: Rule[Part, State], part: Part, *, lazily: bool = False) -> Evaluation[Part, State]:
        """
        The evaluation of all targets by the rule for this part, up to date.

        `lazily`: a rule that knows its effects by domain need not be evaluated yet.
        """
        index, key = self._index, (rule, part)
        found: Evaluation[Part, State] | None = self._cache.get(key)
        if found is None:
            found = Evaluation(rule, part, rule.prepare(part, index))
            self._note_position(found)
            if not lazily or not rule.has_domain_effects(found.state):
                self._evaluate(found)
            # Two arrays of eight bytes an entry is the usual size; some rules have less.
            dropped = self._cache.put(key, found, max(64, MAX_CACHED_BYTES // (16 * index.slots.capacity)))
            if dropped:
                self._drop(dropped)
        else:
            self.refresh(found)
            if not lazily:
                self.complete(found)
        return found

    def complete(self, found: AnyEvaluation) -> None:
        """Evaluate all targets, unless that was done before."""
        if not found.evaluated:
            self._evaluate(found)

    def complete_codes(self, found: AnyEvaluation) -> None:
        """The same for codes alone: they are not kept up to date, and raw scores are not prepared."""
        if found.rejected_at != found.cursor:
            found.codes_by_place = found.rule.reject(found.state, self._index, self._begin(found))
            found.rejected_at = found.cursor

    def refresh(self, found: AnyEvaluation) -> None:
        """Bring an evaluation that is still in the cache up to date."""
        index, rule = self._index, found.rule
        journal = index.journal
        if found.cursor == journal.end:
            return
        if not found.evaluated:
            self._renew_state(found)
            self._note_position(found)
            return
        if rule.follows_workloads:
            changes = journal.since(found.cursor)
        elif found.targets_generation != index.targets_generation:
            changes = journal.but_workloads_since(found.cursor)
        else:
            found.cursor = journal.end
            return
        few, wide, everywhere = _touched(found, changes, index)
        if self._renew_state(found):
            # The new state may have codes or scores where the old one had none, or have them for other places.
            is_partial = found.codes_by_place is None or found.raw_by_place is None
            everywhere = everywhere or is_partial or rule.domain_column(found.state, index) is not found.column
        if everywhere:
            self._evaluate(found)
        elif few or wide:
            self._correct(found, few, wide)
        self._note_position(found)

    def refresh_at(self, some: Iterable[AnyEvaluation], slots: Collection[int]) -> None:
        """The same for results that the changes may have touched at these slots at most: the most frequent case."""
        index = self._index
        end = index.journal.end
        for found in some:
            rule = found.rule
            if found.cursor == end:
                continue
            if not rule.follows_requests:
                self.refresh(found)
                continue
            codes, raw, state = found.codes_at, found.raw_at, found.state
            for slot in slots:
                one = rule.evaluate_one(state, index, slot)
                assert one is not None, rule
                if codes is not None:
                    codes[slot] = one[0]
                if raw is not None:
                    raw[slot] = one[1]
            self.n_corrected += 1
            found.version += 1
            found.log.clear()
            found.cursor = end

    def _renew_state(self, found: AnyEvaluation) -> bool:
        """Prepare the state again if it depends on what has changed; returns whether it was."""
        index, rule, owner_rules = self._index, found.rule, self._index.peer_index.owner_rules
        is_stale = found.targets_generation != index.targets_generation and rule.is_outdated(found.state, index)
        if not is_stale and found.owners_generation != owner_rules.generation and rule.prepared_for_owners:
            changed = owner_rules.changed_since(found.owners_generation)
            is_stale = changed is None or any(rule.concerns(found.state, term, index) for term in changed)
        if is_stale:
            before, found.state = found.state, rule.prepare(found.part, index)
            if found.evaluated:
                rule.prepare_scores(found.state, index)
            rule.release(before, index)
        return is_stale

    def _note_position(self, found: AnyEvaluation) -> None:
        found.targets_generation = self._index.targets_generation
        found.owners_generation = self._index.peer_index.owner_rules.generation
        found.cursor = self._index.journal.end

    def clear(self) -> None:
        """Drop all evaluations and release the terms that they use."""
        dropped = list(self._cache.values())
        self._cache.clear()
        self._drop(dropped)

    def _evaluate(self, found: AnyEvaluation) -> None:
        """Evaluate all places."""
        index, rule, state = self._index, found.rule, found.state
        rule.prepare_scores(state, index)
        at = self._begin(found)
        found.codes_by_place = _renewed(found.codes_by_place, rule.reject(state, index, at))
        found.raw_by_place = raw = _renewed(found.raw_by_place, rule.score(state, index, at))
        found.codes_at = None if found.codes_by_place is None else found.codes_by_place.data
        found.raw_at = None if raw is None else raw.data
        if raw is not None and raw.ndim > 1 and len(raw) > MAX_FREE_ROWS:
            METER.charge(raw.nbytes)
        found.evaluated = True
        self._note_position(found)
        found.note(None)

    def _begin(self, found: AnyEvaluation) -> At:
        """The targets to evaluate, one for each place."""
        column = found.column = found.rule.domain_column(found.state, self._index)
        if column is None:
            self.n_full += 1
            found.n_places = self._index.slots.capacity
            return ALL
        self.n_corrected += 1
        found.n_places = column.n_domains
        return column.representatives()

    def _correct(self, found: AnyEvaluation, few: dict[int, int], wide: list[Slots]) -> None:
        """Evaluate some places again."""
        index, rule = self._index, found.rule
        self.n_corrected += 1
        found.note(None if wide or len(few) > MAX_NOTED_PLACES else few)
        # Most changes touch one place, for which the overhead of a NumPy call is far higher than plain integers.
        if not wide and len(few) <= MAX_SINGLE_PLACES:
            for place, slot in few.items():
                one = rule.evaluate_one(found.state, index, slot)
                if one is None:  # the rule cannot
                    break
                if found.codes_at is not None:
                    found.codes_at[place] = one[0]
                if found.raw_at is not None:
                    found.raw_at[place] = one[1]
            else:
                return
        places: Slots = np.fromiter(few, np.intp, len(few))
        slots: Slots = np.fromiter(few.values(), np.intp, len(few))
        if wide:  # then places are slots
            places = slots = np.concatenate((places, *wide))
        codes, raw = rule.reject(found.state, index, slots), rule.score(found.state, index, slots)
        # A rule that no longer has codes or scores, because its last counterpart is gone, leaves zeros.
        if found.codes_by_place is not None:
            found.codes_by_place[places] = 0 if codes is None else codes
        if found.raw_by_place is not None:
            found.raw_by_place[..., places] = 0 if raw is None else raw

    def _drop(self, dropped: list[AnyEvaluation]) -> None:
        for evaluation in dropped:
            self.n_dropped += 1
            evaluation.dropped = True
            evaluation.rule.release(evaluation.state, self._index)


def _renewed(before: NDArray[Number] | None, now: NDArray[Number] | None) -> NDArray[Number] | None:
    """The new array; in the memory of the one before if it has its shape, because orders of targets read it there."""
    if before is None or now is None or before.shape != now.shape or before.dtype != now.dtype:
        return now
    before[...] = now
    return before


def _touched(
    found: AnyEvaluation, changes: list[Change] | None, index: PlacementIndex
) -> tuple[dict[int, int], list[Slots], bool]:
    """
    The places that the changes may have touched: a few, each with one of its slots, and large sets of slots.

    If the last value is true, any place may be touched.
    """
    few: dict[int, int] = {}
    wide: list[Slots] = []
    rule, state, column = found.rule, found.state, found.column
    if column is None:
        is_same_places = found.n_places == index.slots.capacity
    else:
        is_same_places = found.n_places == column.n_domains and not column.further
    if changes is None or not is_same_places:
        return few, wide, True
    if len(changes) > MAX_REPLAYED_CHANGES and len(changes) > found.n_places // PLACES_PER_REPLAYED_CHANGE:
        return few, wide, True
    for change in changes:
        touched = rule.touched(state, change, index)
        if touched is None:
            continue
        if isinstance(touched, slice):
            return few, wide, True
        if isinstance(touched, SharedDomains):
            if column is None:
                for key in touched.keys:
                    shared = index.column(key)
                    for domain in [domain for slot in touched.slots for domain in shared.domains(slot)]:
                        slots = shared.slots_in(domain)
                        if len(slots) > MAX_SINGLE_PLACES:
                            wide.append(slots)
                        else:
                            few.update({slot: slot for slot in slots.tolist()})
                continue
            if touched.keys != (column.key,):
                return few, wide, True  # the state is about to be replaced: it does not have these domains yet
            touched = touched.slots
        for slot in touched:
            few[slot if column is None else column.at[slot]] = slot
    return few, wide, False
