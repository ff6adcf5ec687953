"""
What rules found, shared by all workloads with an equal rule part and corrected where changes touched it.

An evaluation is the rule's code and raw score per target with a cursor into the journal. Asked again, it re-reads the
index at the touched targets only; that gives the same arrays as a fresh look at all of them, which the tests compare.
Knows nothing of what any rule does.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from bayplan.indexing.journal import Change
from bayplan.indexing.slots import ALL, At
from bayplan.model.decisions import Codes, Scores

if TYPE_CHECKING:
    from bayplan.indexing.placement_index import PlacementIndex

MEMORY = 256 * 2**20  # bytes of arrays kept; the least recently used go first
REMEMBERED = 16  # corrections that an evaluation can tell about
FEW = 32  # targets; more of them are "all" to whoever builds on an evaluation
REPLAY = 64  # with more changes than this, a fresh look is cheaper than replaying them

Touched = slice | tuple[int, ...] | np.ndarray[tuple[int], np.dtype[np.intp]] | None


class Evaluable(Protocol):
    """The side of a rule that an evaluation needs."""

    follows_workloads: ClassVar[bool]

    def prepare(self, part: Any, index: PlacementIndex) -> Any: ...
    def stale(self, plan: Any, index: PlacementIndex) -> bool: ...
    def release(self, plan: Any, index: PlacementIndex) -> None: ...
    def reject(self, plan: Any, index: PlacementIndex, at: At) -> Codes | None: ...
    def score(self, plan: Any, index: PlacementIndex, at: At) -> Scores | None: ...
    def touched(self, plan: Any, change: Change, index: PlacementIndex) -> Touched: ...
    def at_one(self, plan: Any, index: PlacementIndex, slot: int) -> tuple[int, int] | None: ...


class Evaluation:
    """`codes` has shape (capacity,), 0 where the rule has nothing against a target; `raw` its scores, or None."""

    __slots__ = (
        "_log",
        "capacity",
        "codes",
        "cursor",
        "dropped",
        "key",
        "plan",
        "raw",
        "targets_generation",
        "version",
    )

    def __init__(self, key: tuple[int, Hashable], plan: Any) -> None:
        self.key = key
        self.plan = plan
        self.dropped = False  # no longer kept up to date: to be asked for again
        self.codes: Codes | None = None
        self.raw: Scores | None = None
        self.cursor = 0
        self.capacity = 0
        self.targets_generation = 0
        self.version = 0
        self._log: deque[tuple[int, ...] | None] = deque(maxlen=REMEMBERED)

    def note(self, at: At) -> None:
        """Remember where the arrays have just changed, for whoever builds on them."""
        self.version += 1
        few = not isinstance(at, slice) and len(at) <= FEW
        self._log.append(tuple(at.tolist()) if few and not isinstance(at, slice) else None)

    def since(self, version: int) -> set[int] | None:
        """The slots that changed since that version; None if they are many or no longer known."""
        behind = self.version - version
        if behind > len(self._log):
            return None
        slots: set[int] = set()
        for at in islice(reversed(self._log), behind):
            if at is None:
                return None
            slots.update(at)
        return slots


class EvaluationCache:
    """Evaluations by rule and part. `n_full` and `n_corrected` count how they came about, for tests and metrics."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, Hashable], Evaluation] = OrderedDict()
        self._rules: dict[int, Evaluable] = {}
        self.n_full = 0
        self.n_corrected = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, rule: Evaluable, part: Hashable, index: PlacementIndex) -> Evaluation:
        """The rule's view of all targets for this part, as of now."""
        key = (id(rule), part)
        found = self._kept.get(key)
        if found is None:
            self._rules[id(rule)] = rule  # kept alive, so that its id stays its own
            found = self._kept[key] = Evaluation(key, rule.prepare(part, index))
            self._fill(found, rule, index)
            self._evict(index)
            return found
        self.refresh(found, rule, index)
        return found

    def refresh(self, found: Evaluation, rule: Evaluable, index: PlacementIndex) -> None:
        """Bring an evaluation that is still kept up to date."""
        if found.cursor == index.journal.end:
            return
        self._kept.move_to_end(found.key)
        if rule.follows_workloads or found.targets_generation != index.targets_generation:
            self._catch_up(found, rule, index)
        else:
            found.cursor = index.journal.end

    def clear(self, index: PlacementIndex) -> None:
        """Forget all of them and let go of the terms they kept in use."""
        while self._kept:
            self._drop_oldest(index)

    def _catch_up(self, found: Evaluation, rule: Evaluable, index: PlacementIndex) -> None:
        changes = index.journal.since(found.cursor)
        at = self._touched(found, rule, changes, index)
        if rule.stale(found.plan, index):
            before, found.plan = found.plan, rule.prepare(found.key[1], index)
            rule.release(before, index)
            if found.codes is None or found.raw is None:
                at = ALL  # the new plan may have something to say where the old one had nothing
        if isinstance(at, slice):
            self._fill(found, rule, index)
        elif at is not None:
            self._correct(found, rule, index, at)
        found.cursor = index.journal.end
        found.targets_generation = index.targets_generation

    def _touched(
        self, found: Evaluation, rule: Evaluable, changes: list[Change] | None, index: PlacementIndex
    ) -> At | None:
        if changes is None or len(changes) > REPLAY or found.capacity != index.slots.capacity:
            return ALL
        pieces = []
        for change in changes:
            touched = rule.touched(found.plan, change, index)
            if touched is None:
                continue
            if isinstance(touched, slice):
                return ALL
            pieces.append(np.asarray(touched, np.intp))
        if not pieces:
            return None
        return pieces[0] if len(pieces) == 1 else np.unique(np.concatenate(pieces))

    def _fill(self, found: Evaluation, rule: Evaluable, index: PlacementIndex) -> None:
        self.n_full += 1
        found.codes = rule.reject(found.plan, index, ALL)
        found.raw = rule.score(found.plan, index, ALL)
        found.cursor = index.journal.end
        found.capacity = index.slots.capacity
        found.targets_generation = index.targets_generation
        found.note(ALL)

    def _correct(self, found: Evaluation, rule: Evaluable, index: PlacementIndex, at: At) -> None:
        self.n_corrected += 1
        found.note(at)
        if not isinstance(at, slice) and len(at) == 1:
            # NumPy's price per call is far above that of a few integers, and most placements touch one target.
            one = rule.at_one(found.plan, index, int(at[0]))
            if one is not None:
                _put(found, int(at[0]), one)
                return
        codes, raw = rule.reject(found.plan, index, at), rule.score(found.plan, index, at)
        # A rule that has nothing to say any more (its last counterpart left) leaves zeros behind.
        if found.codes is not None:
            found.codes[at] = 0 if codes is None else codes
        if found.raw is not None:
            found.raw[..., at] = 0 if raw is None else raw

    def _evict(self, index: PlacementIndex) -> None:
        # Two arrays of eight bytes an entry is the usual size; some rules have less.
        most = max(64, MEMORY // (16 * index.slots.capacity))
        while len(self._kept) > most:
            self._drop_oldest(index)

    def _drop_oldest(self, index: PlacementIndex) -> None:
        (rule_id, _), dropped = self._kept.popitem(last=False)
        dropped.dropped = True
        self._rules[rule_id].release(dropped.plan, index)


def _put(found: Evaluation, slot: int, one: tuple[int, int]) -> None:
    if found.codes is not None:
        found.codes[slot] = one[0]
    if found.raw is not None:
        found.raw[slot] = one[1]
