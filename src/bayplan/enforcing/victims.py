"""
Who must go where anti-affinity is broken.

The lowest priority first; at equal priority the owner of the broken rule; then the fewest; among equals the youngest.
Told as a choice of who stays: a choice is better if it wrongs and loses fewer workloads of the highest priority, then of
the next one, and so on. A workload is wronged if it goes although nobody stays before whom it would have to go. Exact
for a knot of few workloads, greedy beyond. Knows nothing of grace times and budgets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from itertools import groupby

import msgspec

from bayplan.model.workloads import WorkloadKey

EXACT = 21  # workloads in a knot: as many as 20 conflicts can tie together


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


Merit = tuple[tuple[int, int], ...]  # from the highest priority down: how many are wronged, how many go


def choose(conflicts: Iterable[Conflict], standing: Mapping[WorkloadKey, Standing]) -> Choice:
    """Whom to take away so that no conflict is left."""
    victims: set[WorkloadKey] = set()
    exact = True
    for knot in _knots(set(conflicts)):
        order = sorted(_involved(knot), key=lambda key: keeping_order(key, standing[key]))
        small = len(order) <= EXACT
        victims |= _Search(knot, order, standing).victims() if small else _greedily(knot, order, standing)
        exact &= small
    return Choice(frozenset(victims), exact)


def keeping_order(key: WorkloadKey, standing: Standing) -> tuple[int, bool, str, str]:
    """Who is rather kept comes first: higher priority, protected just now, older, by name."""
    return -standing.priority, not standing.spared, standing.since or "9999", key


def merit(
    conflicts: Iterable[Conflict], victims: AbstractSet[WorkloadKey], standing: Mapping[WorkloadKey, Standing]
) -> Merit:
    """How much a choice costs, for comparing choices among the same conflicts: the less the better."""
    conflicts = list(conflicts)
    levels = sorted({standing[key].priority for key in _involved(conflicts)}, reverse=True)
    gives_way = _gives_way(conflicts, standing)
    return tuple(
        (
            sum(not gives_way[key] - victims for key in victims if standing[key].priority == level),
            sum(standing[key].priority == level for key in victims),
        )
        for level in levels
    )


def _gives_way(
    conflicts: Iterable[Conflict], standing: Mapping[WorkloadKey, Standing]
) -> dict[WorkloadKey, set[WorkloadKey]]:
    """Before whom each would have to go: a higher priority, or an equal one that breaks its rule."""
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


def _knots(conflicts: AbstractSet[Conflict]) -> Iterator[list[Conflict]]:
    """Conflicts that hang together, by the workloads they share."""
    touching: dict[WorkloadKey, list[Conflict]] = {}
    for conflict in conflicts:
        for key in (conflict.owner, *conflict.peers):
            touching.setdefault(key, []).append(conflict)
    left = set(conflicts)
    while left:
        waiting, knot = [left.pop()], []
        while waiting:
            conflict = waiting.pop()
            knot.append(conflict)
            for key in (conflict.owner, *conflict.peers):
                found = [other for other in touching.pop(key, ()) if other in left]
                left.difference_update(found)
                waiting.extend(found)
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

    def drop(self, key: WorkloadKey) -> None:
        self.keys.discard(key)
        for conflict in self._met.get(key, ()):
            self._count[conflict] -= 1


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


class _Search:
    """
    All choices worth a look, the most wanted kept first, so that of equal choices the first found is the right one.

    A choice is worth a look if nobody goes who could stay. Of workloads that nothing tells apart, the later ones in the
    order of keeping go first.
    """

    def __init__(
        self, knot: Sequence[Conflict], order: Sequence[WorkloadKey], standing: Mapping[WorkloadKey, Standing]
    ) -> None:
        self._knot, self._order, self._standing = knot, order, standing
        self._kept = _Kept(knot)
        self._before = _twins(knot, order, standing)
        self._gone: set[WorkloadKey] = set()
        self._best: tuple[Merit, frozenset[WorkloadKey]] | None = None

    def victims(self) -> frozenset[WorkloadKey]:
        self._decide(0)
        assert self._best is not None
        return self._best[1]

    def _decide(self, position: int) -> None:
        if position == len(self._order):
            self._weigh()
            return
        key = self._order[position]
        twin = self._before.get(key)
        if self._kept.has_room_for(key) and (twin is None or twin not in self._gone):
            self._kept.keep(key)
            self._decide(position + 1)
            self._kept.drop(key)
        self._gone.add(key)
        self._decide(position + 1)
        self._gone.discard(key)

    def _weigh(self) -> None:
        if any(self._kept.has_room_for(key) for key in self._gone):
            return
        found = merit(self._knot, self._gone, self._standing)
        if self._best is None or found < self._best[0]:
            self._best = found, frozenset(self._gone)


def _twins(
    knot: Sequence[Conflict], order: Sequence[WorkloadKey], standing: Mapping[WorkloadKey, Standing]
) -> dict[WorkloadKey, WorkloadKey]:
    """For each workload the one before it in the order that it could change places with unnoticed."""
    whole, found = set(knot), {}
    for position, key in enumerate(order):
        for other in reversed(order[:position]):
            if standing[other].priority == standing[key].priority and {_swapped(c, key, other) for c in knot} == whole:
                found[key] = other
                break
    return found


def _swapped(conflict: Conflict, one: WorkloadKey, other: WorkloadKey) -> Conflict:
    names = {one: other, other: one}
    return Conflict(
        names.get(conflict.owner, conflict.owner),
        frozenset(names.get(peer, peer) for peer in conflict.peers),
        conflict.limit,
    )
