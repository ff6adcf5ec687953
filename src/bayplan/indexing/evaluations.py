"""
The results of rules, shared by all workloads with an equal rule part and corrected where changes touched them.

An evaluation is the code and the raw score of a rule per place, with a cursor into the journal. A place is a target;
for a rule that evaluates domains, a place is a domain, and the rule evaluates one target of it for all. A refresh reads
the index again at the touched places only; the result equals a full evaluation, which the tests compare. Knows nothing
of what a rule does.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import msgspec
import numpy as np

from bayplan.indexing.journal import Change
from bayplan.indexing.slots import ALL, At, ValueColumn
from bayplan.model.reasons import Codes, Scores, Slots

if TYPE_CHECKING:
    from bayplan.indexing.placement_index import PlacementIndex

MAX_CACHED_BYTES = 256 * 2**20  # of arrays; the least recently used evaluations are dropped first
MAX_LOGGED_PLACES = 256  # corrected places that an evaluation remembers
MAX_NOTED_PLACES = 32  # places of one correction; more of them are noted as "all"
MAX_SINGLE_PLACES = 6  # places up to which plain integers are cheaper than arrays
MAX_REPLAYED_CHANGES = 64  # with more changes than this, a full evaluation is cheaper than a correction


class CacheEntry(Protocol):
    """`used` is when it was last used, as a position in the journal."""

    @property
    def used(self) -> int: ...


Key = TypeVar("Key", bound=Hashable)
Entry = TypeVar("Entry", bound=CacheEntry)


class BoundedCache(dict[Key, Entry]):
    """A dictionary with a limit: the least recently used entries are dropped first, an eighth of them at a time."""

    def put(self, key: Key, entry: Entry, most: int) -> list[Entry]:
        """Set an entry; returns those that were dropped because there were more than `most`."""
        self[key] = entry
        if len(self) <= most:
            return []
        # Several at once, so that the search for the oldest costs little per entry.
        oldest = sorted(self.items(), key=lambda item: item[1].used)[: max(1, most // 8)]
        for dropped, _ in oldest:
            del self[dropped]
        return [entry for _, entry in oldest]


class SharedDomains(msgspec.Struct, frozen=True):
    """Every target that shares a domain of one of these keys with one of these slots."""

    keys: tuple[str, ...]
    slots: tuple[int, ...]


Touched = slice | tuple[int, ...] | SharedDomains | None


class Evaluable(Protocol):
    """The part of a rule that an evaluation calls."""

    follows_workloads: ClassVar[bool]

    def prepare(self, part: Any, index: PlacementIndex) -> Any: ...
    def is_stale(self, state: Any, index: PlacementIndex) -> bool: ...
    def release(self, state: Any, index: PlacementIndex) -> None: ...
    def domain_column(self, state: Any, index: PlacementIndex) -> ValueColumn | None: ...
    def reject(self, state: Any, index: PlacementIndex, at: At) -> Codes | None: ...
    def score(self, state: Any, index: PlacementIndex, at: At) -> Scores | None: ...
    def touched(self, state: Any, change: Change, index: PlacementIndex) -> Touched: ...
    def evaluate_one(self, state: Any, index: PlacementIndex, slot: int) -> tuple[int, int] | None: ...


@dataclass(slots=True, eq=False)
class Evaluation:
    """
    The result of one rule for one part.

    `column` is the one whose domains are the places; None if the places are the slots. `cursor` is the position in the
    journal up to which the result is correct; `version` changes with every correction. A `dropped` evaluation is no
    longer in the cache and not kept up to date.
    """

    key: tuple[int, Hashable]
    state: Any
    dropped: bool = False
    column: ValueColumn | None = None
    codes_by_place: Codes | None = None
    raw_by_place: Scores | None = None
    n_places: int = 0
    cursor: int = 0
    targets_generation: int = 0
    version: int = 0
    _log: list[int] = field(default_factory=list)

    @property
    def used(self) -> int:
        return self.cursor

    @property
    def codes(self) -> Codes | None:
        """0 where the rule does not reject the target, shape (capacity,); None if it rejects none."""
        codes = self.codes_by_place
        return codes if codes is None or self.column is None else codes.take(self.column.of_slot)

    @property
    def raw(self) -> Scores | None:
        """The raw score per target, shape (..., capacity), or None."""
        raw = self.raw_by_place
        return raw if raw is None or self.column is None else raw.take(self.column.of_slot, axis=-1)

    def since(self, version: int) -> set[int] | None:
        """The places that changed since that version; None if they are many or no longer known."""
        behind = self.version - version
        return set(self._log[len(self._log) - behind :]) if behind <= len(self._log) else None

    def note(self, places: dict[int, int] | None) -> None:
        """Remember where the arrays have changed; None stands for everywhere."""
        if places is None:
            self.version += 1
            self._log.clear()
            return
        self.version += len(places)
        self._log.extend(places)
        if len(self._log) > MAX_LOGGED_PLACES:
            del self._log[: MAX_LOGGED_PLACES // 2]


@dataclass(slots=True, eq=False)
class EvaluationCache:
    """
    Evaluations by rule and part.

    For tests: `n_full` counts full evaluations, `n_corrected` those of some places.
    """

    n_full: int = 0
    n_corrected: int = 0
    n_dropped: int = 0
    _cache: BoundedCache[tuple[int, Hashable], Evaluation] = field(default_factory=BoundedCache)
    _rules: dict[int, Evaluable] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._cache)

    def get(self, rule: Evaluable, part: Hashable, index: PlacementIndex) -> Evaluation:
        """The evaluation of all targets by the rule for this part, up to date."""
        key = (id(rule), part)
        found = self._cache.get(key)
        if found is None:
            self._rules[id(rule)] = rule  # a reference, so that the id is not reused
            found = Evaluation(key, rule.prepare(part, index))
            self._evaluate(found, rule, index)
            # Two arrays of eight bytes an entry is the usual size; some rules have less.
            dropped = self._cache.put(key, found, max(64, MAX_CACHED_BYTES // (16 * index.slots.capacity)))
            if dropped:
                self._drop(dropped, index)
        else:
            self.refresh(found, rule, index)
        return found

    def refresh(self, found: Evaluation, rule: Evaluable, index: PlacementIndex) -> None:
        """Bring an evaluation that is still in the cache up to date."""
        journal = index.journal
        if found.cursor == journal.end:
            return
        if rule.follows_workloads:
            changes = journal.since(found.cursor)
        elif found.targets_generation != index.targets_generation:
            changes = journal.but_workloads_since(found.cursor)
        else:
            found.cursor = journal.end
            return
        few, wide, everywhere = _touched(found, rule, changes, index)
        if rule.is_stale(found.state, index):
            before, found.state = found.state, rule.prepare(found.key[1], index)
            rule.release(before, index)
            # The new state may have codes or scores where the old one had none, or have them for other places.
            is_partial = found.codes_by_place is None or found.raw_by_place is None
            everywhere = everywhere or is_partial or rule.domain_column(found.state, index) is not found.column
        if everywhere:
            self._evaluate(found, rule, index)
        elif few or wide:
            self._correct(found, rule, index, few, wide)
        found.targets_generation = index.targets_generation
        found.cursor = journal.end

    def clear(self, index: PlacementIndex) -> None:
        """Drop all evaluations and release the terms that they use."""
        dropped = list(self._cache.values())
        self._cache.clear()
        self._drop(dropped, index)

    def _evaluate(self, found: Evaluation, rule: Evaluable, index: PlacementIndex) -> None:
        """Evaluate all places."""
        state = found.state
        column = found.column = rule.domain_column(state, index)
        if column is None:
            self.n_full += 1
            at: At = ALL
            found.n_places = index.slots.capacity
        else:
            self.n_corrected += 1
            at = column.representatives()
            found.n_places = len(at)
        found.codes_by_place = rule.reject(state, index, at)
        found.raw_by_place = rule.score(state, index, at)
        found.cursor = index.journal.end
        found.targets_generation = index.targets_generation
        found.note(None)

    def _correct(
        self, found: Evaluation, rule: Evaluable, index: PlacementIndex, few: dict[int, int], wide: list[Slots]
    ) -> None:
        """Evaluate some places again."""
        self.n_corrected += 1
        found.note(None if wide or len(few) > MAX_NOTED_PLACES else few)
        if not wide and len(few) <= MAX_SINGLE_PLACES and _correct_singly(found, rule, index, few):
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

    def _drop(self, dropped: list[Evaluation], index: PlacementIndex) -> None:
        for evaluation in dropped:
            self.n_dropped += 1
            evaluation.dropped = True
            self._rules[evaluation.key[0]].release(evaluation.state, index)


def _touched(
    found: Evaluation, rule: Evaluable, changes: list[Change] | None, index: PlacementIndex
) -> tuple[dict[int, int], list[Slots], bool]:
    """
    The places that the changes may have touched: a few, each with one of its slots, and large sets of slots.

    If the last value is true, any place may be touched.
    """
    few: dict[int, int] = {}
    wide: list[Slots] = []
    state, column = found.state, found.column
    if column is None:
        is_same_places = found.n_places == index.slots.capacity
    else:
        is_same_places = found.n_places == column.n_domains and not column.further
    if changes is None or len(changes) > MAX_REPLAYED_CHANGES or not is_same_places:
        return few, wide, True
    for change in changes:
        touched = rule.touched(state, change, index)
        if touched is None:
            continue
        if isinstance(touched, slice):
            return few, wide, True
        if isinstance(touched, SharedDomains):
            if column is None:
                columns = [index.column(key) for key in touched.keys]
                for slots in [c.slots_in(d) for c in columns for slot in touched.slots for d in c.domains(slot)]:
                    if len(slots) > MAX_SINGLE_PLACES:
                        wide.append(slots)
                    else:
                        few.update([(slot, slot) for slot in slots.tolist()])
                continue
            if touched.keys != (column.key,):
                return few, wide, True  # the state is about to be replaced: it does not have these domains yet
            touched = touched.slots
        for slot in touched:
            few[slot if column is None else column.at[slot]] = slot
    return few, wide, False


def _correct_singly(found: Evaluation, rule: Evaluable, index: PlacementIndex, few: dict[int, int]) -> bool:
    """
    Evaluate a few places by plain integers; False if the rule cannot.

    Most changes touch one place, for which the overhead of a NumPy call is far higher.
    """
    codes, raw = found.codes_by_place, found.raw_by_place
    for place, slot in few.items():
        one = rule.evaluate_one(found.state, index, slot)
        if one is None:
            return False
        if codes is not None:
            codes[place] = one[0]
        if raw is not None:
            raw[place] = one[1]
    return True
