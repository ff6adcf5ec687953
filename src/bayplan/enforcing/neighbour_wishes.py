"""
What preferred terms about neighbours are worth to the workloads that hold them, and who is uneasy where it stands.

Counted as when placing. The sum is kept from change to change: a workload that comes or goes touches the wishes that it
holds and those that mean it, and only these are counted again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from bayplan.indexing.journal import Change
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ALL
from bayplan.indexing.term_table import OwnerRule, Role
from bayplan.model.workloads import WorkloadKey

SOFT = (Role.PREFERRED, Role.ANTI_PREFERRED)


class NeighbourPoints:
    """The worth of all wishes about neighbours."""

    def __init__(self, index: PlacementIndex) -> None:
        self._index = index
        self._position = -1
        self._total = 0
        self._worth: dict[OwnerRule, int] = {}
        # Those that a counter of matches belongs to. A counter that is gone may leave its number to another one: then
        # too many are counted again, never too few.
        self._meaning: defaultdict[int, set[OwnerRule]] = defaultdict(set)

    def total(self) -> int:
        """In points; less than nothing where more is too near than liked."""
        changes = self._index.journal.since(self._position) if self._position >= 0 else None
        if changes is None or any(change.workload is None for change in changes):
            self._worth.clear()
            self._meaning.clear()
            self._total = 0
            touched = set(_wishes(self._index))
        else:
            touched = self._touched(changes)
        for rule in touched:
            self._count(rule)
        self._position = self._index.journal.end
        return self._total

    def _touched(self, changes: Sequence[Change]) -> set[OwnerRule]:
        found: set[OwnerRule] = set()
        for cls in {change.member_of for change in changes if change.member_of is not None}:
            found.update(rule for rule in cls.owner_rules if rule.role in SOFT)
            for counter in cls.matched:
                found |= self._meaning.get(id(counter), set())
        return found

    def _count(self, rule: OwnerRule) -> None:
        worth = 0
        if rule.reach.occupied:  # nobody holds it any more: its term may be forgotten, and must not come back
            worth = _worth(rule, self._index)
            counter = self._index.census.match_reach(rule.entry, rule.reach.keys).counter
            self._meaning[id(counter)].add(rule)
        self._total += worth - self._worth.get(rule, 0)
        self._worth[rule] = worth


def uneasy(index: PlacementIndex) -> Iterator[WorkloadKey]:
    """Owners of wishes that are not met as well as somewhere else, and whoever stands too near to one."""
    census = index.census
    for rule in _wishes(index):
        owners, others = _owners_and_others(rule, index)
        single = len(rule.reach.columns) == 1
        if rule.role is Role.ANTI_PREFERRED:
            bad = np.flatnonzero((owners > 0) & (others > 0))
        else:
            best = 1 if index.semantics.soft_terms_count_once else int(others.max(initial=0))
            bad = np.flatnonzero((owners > 0) & (others < best))
        column = rule.reach.counter.column
        slots = [int(s) for d in bad for s in (column.slots_in(int(d)) if single else (d,))]
        yield from census.owners(rule, slots)
        yield from census.peers(rule.entry.term, slots)


def _wishes(index: PlacementIndex) -> Iterable[OwnerRule]:
    rules = {id(rule): rule for cls in index.census.classes.by_id.values() for rule in cls.owner_rules}
    return [rule for rule in rules.values() if rule.role in SOFT]


def _worth(rule: OwnerRule, index: PlacementIndex) -> int:
    owners, others = _owners_and_others(rule, index)
    if index.semantics.soft_terms_count_once:
        others = np.minimum(others, 1)
    sign = 1 if rule.role is Role.PREFERRED else -1
    return sign * rule.weight * int((owners * others).sum())


def _owners_and_others(
    rule: OwnerRule, index: PlacementIndex
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """For each domain, how many hold the rule there and how many others each of them sees."""
    matches = index.census.match_reach(rule.entry, rule.reach.keys)
    if len(matches.columns) == 1:
        owners, seen = rule.reach.counter.array(), matches.counter.array()
    else:  # by target, each of which sees the union of its domains
        targets = rule.reach.counter.column
        owners, seen = targets.gather(rule.reach.counter.array(), ALL), matches.counts(ALL)
    return owners, np.maximum(seen - rule.self_matching, 0)
