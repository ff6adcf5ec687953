"""
Who must go where anti-affinity is broken.

The lowest priority first; at equal priority the owner of the broken rule; then the fewest; among equals the youngest.
Told as a choice of who stays: the best choice wrongs the fewest, then loses the fewest workloads of the highest
priority; then of the next one, and so on. A workload is wronged if it goes although nobody stays to whom it would have
to give way. Exact for a knot of few workloads, greedy beyond. Knows nothing of grace times and budgets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

import msgspec

from bayplan.enforcing import victim_search
from bayplan.model.workloads import WorkloadKey

CONFLICTS = 20  # in a knot, up to which the best choice is looked for
STEPS = 2000  # of that search, for all knots together; see benchmarks/victims.py for how many are needed


class Standing(msgspec.Struct, frozen=True):
    """What decides between two in conflict. `spared`: somebody protects it just now, so that an equal goes instead."""

    priority: int = 0
    since: str = ""
    spared: bool = False


class Conflict(msgspec.Struct, frozen=True):
    """An owner who may not stand with more than `limit` of the peers, and does."""

    owner: WorkloadKey
    peers: frozenset[WorkloadKey]
    limit: int = 0


class Choice(msgspec.Struct, frozen=True):
    """`exact`: no choice is better."""

    victims: frozenset[WorkloadKey]
    exact: bool


def choose(conflicts: Iterable[Conflict], standing: Mapping[WorkloadKey, Standing]) -> Choice:
    """Whom to take away so that no conflict is left."""
    steps = victim_search.Steps(STEPS)
    victims: set[WorkloadKey] = set()
    exact = True
    for knot in sorted(_knots(dict.fromkeys(conflicts)), key=len):  # the steps go further with small ones first
        order = sorted(_involved(knot), key=lambda key: keeping_order(key, standing[key]))
        best = _exactly(knot, order, standing, steps)
        victims |= _greedily(knot, order, standing) if best is None else best
        exact &= best is not None
    return Choice(frozenset(victims), exact)


def keeping_order(key: WorkloadKey, standing: Standing) -> tuple[int, bool, str, str]:
    """Who is rather kept comes first: higher priority, protected just now, older, by name."""
    return -standing.priority, not standing.spared, standing.since or "9999", key


def _gives_way(
    conflicts: Iterable[Conflict], standing: Mapping[WorkloadKey, Standing]
) -> dict[WorkloadKey, set[WorkloadKey]]:
    """To whom each would have to give way: a higher priority, or an equal one that breaks its rule."""
    found: dict[WorkloadKey, set[WorkloadKey]] = {}
    for conflict in conflicts:
        owner, own = conflict.owner, standing[conflict.owner].priority
        for peer in conflict.peers:
            found.setdefault(owner, set())
            found.setdefault(peer, set())
            if standing[peer].priority >= own:
                found[owner].add(peer)
            else:
                found[peer].add(owner)
    return found


def _involved(conflicts: Iterable[Conflict]) -> set[WorkloadKey]:
    return {key for conflict in conflicts for key in (conflict.owner, *conflict.peers)}


def _knots(conflicts: Iterable[Conflict]) -> Iterator[list[Conflict]]:
    """Conflicts that hang together, by the workloads they share."""
    touching: dict[WorkloadKey, list[Conflict]] = {}
    for conflict in conflicts:
        for key in (conflict.owner, *conflict.peers):
            touching.setdefault(key, []).append(conflict)
    tied: set[Conflict] = set()
    for first in conflicts:
        if first in tied:
            continue
        knot = [first]
        tied.add(first)
        for conflict in knot:  # which grows meanwhile
            for key in (conflict.owner, *conflict.peers):
                found = [other for other in touching.pop(key, ()) if other not in tied]
                tied.update(found)
                knot.extend(found)
        yield knot


# Who can stay beside whom


class _Kept:
    """Those kept so far, and for each conflict how many of its peers are among them."""

    def __init__(self, conflicts: Sequence[Conflict]) -> None:
        self.keys: set[WorkloadKey] = set()
        self._count = dict.fromkeys(conflicts, 0)
        self._owned: dict[WorkloadKey, list[Conflict]] = {}
        self._met: dict[WorkloadKey, list[Conflict]] = {}
        for conflict in conflicts:
            self._owned.setdefault(conflict.owner, []).append(conflict)
            for peer in conflict.peers:
                self._met.setdefault(peer, []).append(conflict)

    def has_room_for(self, key: WorkloadKey) -> bool:
        if any(self._count[conflict] > conflict.limit for conflict in self._owned.get(key, ())):
            return False
        return not any(
            conflict.owner in self.keys and self._count[conflict] >= conflict.limit
            for conflict in self._met.get(key, ())
        )

    def n_conflicts(self, key: WorkloadKey) -> int:
        return len(self._met.get(key, ())) + sum(len(conflict.peers) for conflict in self._owned.get(key, ()))

    def keep(self, key: WorkloadKey) -> None:
        self.keys.add(key)
        for conflict in self._met.get(key, ()):
            self._count[conflict] += 1


def _greedily(
    knot: Sequence[Conflict], order: Sequence[WorkloadKey], standing: Mapping[WorkloadKey, Standing]
) -> set[WorkloadKey]:
    """From the highest priority down, whoever has the fewest conflicts and owns none first: stays if there is room."""
    kept, owners = _Kept(knot), {conflict.owner for conflict in knot}
    for _, level in groupby(order, key=lambda key: standing[key].priority):
        # Sorting is stable: among equals, who is rather kept stays in front.
        for key in sorted(level, key=lambda key: (key in owners, kept.n_conflicts(key))):
            if kept.has_room_for(key):
                kept.keep(key)
    return set(order) - kept.keys


def _exactly(
    knot: Sequence[Conflict],
    order: Sequence[WorkloadKey],
    standing: Mapping[WorkloadKey, Standing],
    steps: victim_search.Steps,
) -> set[WorkloadKey] | None:
    """The best choice of all, unless the knot is too large to look for it."""
    if len(knot) > CONFLICTS and len(order) > CONFLICTS + 1:
        return None
    bit = {key: position for position, key in enumerate(order)}
    gives_way = _gives_way(knot, standing)
    levels = {priority: level for level, priority in enumerate(dict.fromkeys(standing[key].priority for key in order))}
    rules = {victim_search.Rule(1 << bit[c.owner], _mask(c.peers, bit), c.limit) for c in knot}
    tied = victim_search.Knot(
        rules=sorted(rules),
        levels=[levels[standing[key].priority] for key in order],
        excuses=[_mask(gives_way[key], bit) for key in order],
    )
    try:
        staying = victim_search.staying(tied, steps)
    except victim_search.TooManyStepsError:
        return None
    return {key for key in order if not staying >> bit[key] & 1}


def _mask(keys: Iterable[WorkloadKey], bit: Mapping[WorkloadKey, int]) -> int:
    return sum(1 << bit[key] for key in keys)
