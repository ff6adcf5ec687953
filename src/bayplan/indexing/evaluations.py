"""
What rules found, shared by all workloads with an equal rule part and corrected where changes touched it.

An evaluation is the rule's code and raw score per place with a cursor into the journal. A place is a target; or, for a
rule that judges domains as wholes, a domain, and then one of its targets is asked for all. Asked again, an evaluation
re-reads the index at the touched places only; that gives the same as a fresh look at all of them, which the tests
compare. Knows nothing of what any rule does.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import msgspec
import numpy as np

from bayplan.indexing.journal import Change
from bayplan.indexing.slots import ALL, At, ValueColumn
from bayplan.model.reasons import Codes, Scores, Slots

if TYPE_CHECKING:
    from bayplan.indexing.placement_index import PlacementIndex

MAX_CACHED_BYTES = 256 * 2**20  # bytes of arrays kept; the least recently used go first
MAX_LOGGED_PLACES = 256  # corrected places that an evaluation can tell about
MAX_NOTED_PLACES = 32  # places; more of them are "all" to whoever builds on an evaluation
MAX_SINGLE_PLACES = 6  # places up to which integers one by one are cheaper than arrays
MAX_REPLAYED_CHANGES = 64  # with more changes than this, a fresh look is cheaper than replaying them


class SharedDomains(msgspec.Struct, frozen=True):
    """Every target that shares a domain of one of these keys with one of these slots."""

    keys: tuple[str, ...]
    slots: tuple[int, ...]


Touched = slice | tuple[int, ...] | SharedDomains | None


class Evaluable(Protocol):
    """The side of a rule that an evaluation needs."""

    follows_workloads: ClassVar[bool]

    def prepare(self, part: Any, index: PlacementIndex) -> Any: ...
    def is_stale(self, state: Any, index: PlacementIndex) -> bool: ...
    def release(self, state: Any, index: PlacementIndex) -> None: ...
    def domain_column(self, state: Any, index: PlacementIndex) -> ValueColumn | None: ...
    def reject(self, state: Any, index: PlacementIndex, at: At) -> Codes | None: ...
    def score(self, state: Any, index: PlacementIndex, at: At) -> Scores | None: ...
    def touched(self, state: Any, change: Change, index: PlacementIndex) -> Touched: ...
    def evaluate_one(self, state: Any, index: PlacementIndex, slot: int) -> tuple[int, int] | None: ...


class Evaluation:
    """
    One rule's view for one part. `column` is the one whose domains are the places; None if the places are the slots.

    `cursor` is the position in the journal up to which it is right; `version` moves with every correction.
    """

    __slots__ = (
        "_log",
        "codes_by_place",
        "column",
        "cursor",
        "dropped",
        "key",
        "n_places",
        "raw_by_place",
        "state",
        "targets_generation",
        "version",
    )

    def __init__(self, key: tuple[int, Hashable], state: Any) -> None:
        self.key = key
        self.state = state
        self.dropped = False  # no longer kept up to date: to be asked for again
        self.column: ValueColumn | None = None
        self.codes_by_place: Codes | None = None
        self.raw_by_place: Scores | None = None
        self.n_places = 0
        self.cursor = 0
        self.targets_generation = 0
        self.version = 0
        self._log: list[int] = []

    @property
    def used(self) -> int:
        return self.cursor

    @property
    def codes(self) -> Codes | None:
        """0 where the rule has nothing against a target, shape (capacity,); None if it never has."""
        codes = self.codes_by_place
        return codes if codes is None or self.column is None else codes.take(self.column.of_slot)

    @property
    def raw(self) -> Scores | None:
        """The score per target, shape (..., capacity), or None."""
        raw = self.raw_by_place
        return raw if raw is None or self.column is None else raw.take(self.column.of_slot, axis=-1)

    def since(self, version: int) -> set[int] | None:
        """The places that changed since that version; None if they are many or no longer known."""
        behind = self.version - version
        return set(self._log[len(self._log) - behind :]) if behind <= len(self._log) else None

    def note(self, places: Collection[int]) -> None:
        """Remember where the arrays have just changed, for whoever builds on them."""
        self.version += len(places)
        self._log.extend(places)
        if len(self._log) > MAX_LOGGED_PLACES:
            del self._log[: MAX_LOGGED_PLACES // 2]

    def note_all(self) -> None:
        self.version += 1
        self._log.clear()

    def fits(self, index: PlacementIndex) -> bool:
        """Whether the places are still those that the arrays are about."""
        if self.column is None:
            return self.n_places == index.slots.capacity
        return self.n_places == self.column.n_domains and not self.column.further


class EvaluationCache:
    """
    Evaluations by rule and part.

    For tests and metrics: `n_full` counts how often a rule looked at all targets, `n_corrected` how often at some.
    """

    def __init__(self) -> None:
        self._kept: BoundedCache[tuple[int, Hashable], Evaluation] = BoundedCache()
        self._rules: dict[int, Evaluable] = {}
        self.n_full = 0
        self.n_corrected = 0
        self.n_dropped = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, rule: Evaluable, part: Hashable, index: PlacementIndex) -> Evaluation:
        """The rule's view of all targets for this part, as of now."""
        key = (id(rule), part)
        found = self._kept.get(key)
        if found is None:
            self._rules[id(rule)] = rule  # kept alive, so that its id stays its own
            found = Evaluation(key, rule.prepare(part, index))
            self._fill(found, rule, index)
            # Two arrays of eight bytes an entry is the usual size; some rules have less.
            self._drop(self._kept.put(key, found, max(64, MAX_CACHED_BYTES // (16 * index.slots.capacity))), index)
            return found
        self.refresh(found, rule, index)
        return found

    def refresh(self, found: Evaluation, rule: Evaluable, index: PlacementIndex) -> None:
        """Bring an evaluation that is still kept up to date."""
        journal = index.journal
        if found.cursor == journal.end:
            return
        if rule.follows_workloads:
            self._catch_up(found, rule, journal.since(found.cursor), index)
        elif found.targets_generation != index.targets_generation:
            self._catch_up(found, rule, journal.but_workloads_since(found.cursor), index)
        found.cursor = journal.end

    def clear(self, index: PlacementIndex) -> None:
        """Forget all of them and let go of the terms they kept in use."""
        self._drop(self._kept.clear(), index)

    def _catch_up(
        self, found: Evaluation, rule: Evaluable, changes: list[Change] | None, index: PlacementIndex
    ) -> None:
        few, wide, anew = _touched(found, rule, changes, index)
        if rule.is_stale(found.state, index):
            before, found.state = found.state, rule.prepare(found.key[1], index)
            rule.release(before, index)
            # The new plan may have something to say where the old one had nothing, or say it about other places.
            unsaid = found.codes_by_place is None or found.raw_by_place is None
            anew = anew or unsaid or rule.domain_column(found.state, index) is not found.column
        if anew:
            self._fill(found, rule, index)
        elif few or wide:
            self._correct(found, rule, index, few, wide)
        found.targets_generation = index.targets_generation

    def _fill(self, found: Evaluation, rule: Evaluable, index: PlacementIndex) -> None:
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
        found.note_all()

    def _correct(
        self, found: Evaluation, rule: Evaluable, index: PlacementIndex, few: dict[int, int], wide: list[Slots]
    ) -> None:
        self.n_corrected += 1
        if wide or len(few) > MAX_NOTED_PLACES:
            found.note_all()
        else:
            found.note(few)
        if wide or len(few) > MAX_SINGLE_PLACES or not _correct_singly(found, rule, index, few):
            at: Slots = np.fromiter(few, np.intp, len(few))
            asked: Slots = np.fromiter(few.values(), np.intp, len(few))
            if wide:  # then places are slots
                at = asked = np.concatenate((at, *wide))
            _put(found, at, rule.reject(found.state, index, asked), rule.score(found.state, index, asked))

    def _drop(self, dropped: list[Evaluation], index: PlacementIndex) -> None:
        for evaluation in dropped:
            self.n_dropped += 1
            evaluation.dropped = True
            self._rules[evaluation.key[0]].release(evaluation.state, index)


def _touched(
    found: Evaluation, rule: Evaluable, changes: list[Change] | None, index: PlacementIndex
) -> tuple[dict[int, int], list[Slots], bool]:
    """
    Where the changes may have mattered: a few places, each with a slot to ask at, and wide sets of slots.

    If the last is true, it may be anywhere.
    """
    few: dict[int, int] = {}
    wide: list[Slots] = []
    if changes is None or len(changes) > MAX_REPLAYED_CHANGES or not found.fits(index):
        return few, wide, True
    state, column = found.state, found.column
    for change in changes:
        touched = rule.touched(state, change, index)
        if touched is None:
            continue
        if isinstance(touched, slice):
            return few, wide, True
        if isinstance(touched, SharedDomains):
            if column is None:
                _spread_out(touched, few, wide, index)
                continue
            if touched.keys != (column.key,):
                return few, wide, True  # the plan is about to be replaced: it does not know of these domains yet
            touched = touched.slots
        for slot in touched:
            few[slot if column is None else column.at[slot]] = slot
    return few, wide, False


def _spread_out(around: SharedDomains, few: dict[int, int], wide: list[Slots], index: PlacementIndex) -> None:
    """The slots of all the domains."""
    for key in around.keys:
        column = index.column(key)
        for slot in around.slots:
            for domain in column.domains(slot):
                slots = column.slots_in(domain)
                if len(slots) > MAX_SINGLE_PLACES:
                    wide.append(slots)
                else:
                    few.update([(one, one) for one in slots.tolist()])


def _correct_singly(found: Evaluation, rule: Evaluable, index: PlacementIndex, few: dict[int, int]) -> bool:
    """By plain integers, where the rule can: NumPy's price per call is far above theirs, and most changes touch one."""
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


def _put(found: Evaluation, at: Slots, codes: Codes | None, raw: Scores | None) -> None:
    # A rule that has nothing to say any more (its last counterpart left) leaves zeros behind.
    if found.codes_by_place is not None:
        found.codes_by_place[at] = 0 if codes is None else codes
    if found.raw_by_place is not None:
        found.raw_by_place[..., at] = 0 if raw is None else raw


# RF merged from indexing.evaluations: A place for things worth keeping, up to a limit: what was used least recently
# goes first, an eighth at a time.


class CacheEntry(Protocol):
    """`used` is when it was last of use, as a position in the journal."""

    @property
    def used(self) -> int: ...


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value", bound=CacheEntry)


class BoundedCache(Generic[Key, Value]):
    def __init__(self) -> None:
        self._kept: dict[Key, Value] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Key) -> Value | None:
        return self._kept.get(key)

    def put(self, key: Key, value: Value, most: int) -> list[Value]:
        """Keep a value in place of any other under its key; returns what had to go because there were over `most`."""
        self._kept[key] = value
        if len(self._kept) <= most:
            return []
        # Several at once, so that looking for the oldest costs little for each.
        oldest = sorted(self._kept.items(), key=lambda item: item[1].used)[: max(1, most // 8)]
        for gone, _ in oldest:
            del self._kept[gone]
        return [value for _, value in oldest]

    def clear(self) -> list[Value]:
        """Forget everything; returns what was kept."""
        kept = list(self._kept.values())
        self._kept.clear()
        return kept
