"""
Who must go where anti-affinity is broken.

The lowest priority first; at equal priority the owner of the broken rule; then the fewest; among equals the youngest.
Told as a choice of who stays: the best choice wrongs the fewest, then loses the fewest workloads of the highest
priority; then of the next one, and so on. A workload is wronged if it goes although nobody stays to whom it would have
to give way. Exact for a knot of few workloads, greedy beyond. Knows nothing of grace times and budgets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
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


def choose(conflicts: Iterable[Conflict], standing: Mapping[WorkloadKey, Standing]) -> Choice:
    """Whom to take away so that no conflict is left."""
    victims: set[WorkloadKey] = set()
    exact = True
    for knot in _knots(set(conflicts)):
        order = sorted(_involved(knot), key=lambda key: keeping_order(key, standing[key]))
        small = len(order) <= EXACT
        victims |= (_exactly if small else _greedily)(knot, order, standing)
        exact &= small
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


def _exactly(
    knot: Sequence[Conflict], order: Sequence[WorkloadKey], standing: Mapping[WorkloadKey, Standing]
) -> set[WorkloadKey]:
    """
    Priority by priority, from the highest: all best ways to fill up those who stay.

    What a level costs depends on who stays of it and of those above, so only its best ways are worth going on with.
    """
    gives_way, twins = _gives_way(knot, standing), _twins(knot, order, standing)
    ways: list[frozenset[WorkloadKey]] = [frozenset()]
    for _, level in groupby(order, key=lambda key: standing[key].priority):
        members = list(level)
        costs: dict[frozenset[WorkloadKey], tuple[int, int]] = {}
        for way in ways:
            for stay in _Filling(knot, way, members, twins).ways():
                gone = [key for key in members if key not in stay]
                costs[stay] = sum(not gives_way[key] & stay for key in gone), len(gone)
        least = min(costs.values())
        ways = [stay for stay, cost in costs.items() if cost == least]
    best = min(ways, key=lambda stay: [key not in stay for key in order])
    return {key for key in order if key not in best}


class _Filling:
    """
    All ways to keep some of `members` beside those who stay already, such that nobody goes who has room.

    Of workloads that nothing tells apart, the later ones in the order of keeping go first.
    """

    def __init__(
        self,
        knot: Sequence[Conflict],
        staying: frozenset[WorkloadKey],
        members: Sequence[WorkloadKey],
        twins: Mapping[WorkloadKey, WorkloadKey],
    ) -> None:
        self._kept, self._members, self._twins = _Kept(knot), members, twins
        self._against = _against(knot)
        self._open = set(members)
        for key in staying:
            self._kept.keep(key)

    def ways(self) -> Iterator[frozenset[WorkloadKey]]:
        key = self._next()
        if key is None:
            if not any(self._kept.has_room_for(key) for key in self._members if key not in self._kept.keys):
                yield frozenset(self._kept.keys)
            return
        self._open.discard(key)
        twin = self._twins.get(key)
        room = self._kept.has_room_for(key)
        if room and (twin is None or twin in self._open or twin in self._kept.keys):
            self._kept.keep(key)
            yield from self.ways()
            self._kept.drop(key)
        if not room or self._against[key] & self._open:  # with room, and nobody left to take it, it stays
            yield from self.ways()
        self._open.add(key)

    def _next(self) -> WorkloadKey | None:
        """The undecided one with the most conflicts among the undecided: deciding it settles most."""
        return max(
            (key for key in self._members if key in self._open),
            key=lambda key: len(self._against[key] & self._open),
            default=None,
        )


def _against(conflicts: Iterable[Conflict]) -> dict[WorkloadKey, set[WorkloadKey]]:
    """Everybody with whom each has a conflict in common: peers of one owner may crowd each other out."""
    found: dict[WorkloadKey, set[WorkloadKey]] = {}
    for conflict in conflicts:
        together = {conflict.owner, *conflict.peers}
        for key in together:
            found.setdefault(key, set()).update(together - {key})
    return found


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
