"""
Who must go where anti-affinity is broken.

The lowest priority first; at equal priority the owner of the broken rule; then the fewest; among equals the youngest.
Told as a choice of who stays: the best choice wrongs the fewest, then loses the fewest workloads of the highest
priority; then of the next one, and so on. A workload is wronged if it goes although nobody stays to whom it would have
to give way. Exact for a knot of few workloads, greedy beyond. Knows nothing of grace times and budgets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, groupby

import msgspec

from bayplan.enforcing import victim_search
from bayplan.enforcing.conflict_components import ConflictComponent, ConflictRule
from bayplan.model.workloads import WorkloadKey

CONFLICTS = 20  # in a knot, up to which the best choice is looked for
STEPS = 20_000  # of that search, for one knot


class Precedence(msgspec.Struct, frozen=True):
    """What decides between two in conflict. `spared`: somebody protects it just now, so that an equal goes instead."""

    priority: int = 0
    since: str = ""
    spared: bool = False


class Conflict(msgspec.Struct, frozen=True):
    """An owner who may not stand with more than `limit` of the peers, and does."""

    owner: WorkloadKey
    peers: frozenset[WorkloadKey]
    limit: int = 0


class VictimChoice(msgspec.Struct, frozen=True):
    """`exact`: no choice is better."""

    victims: frozenset[WorkloadKey]
    exact: bool


def choose(conflicts: Iterable[Conflict], standing: Mapping[WorkloadKey, Precedence]) -> VictimChoice:
    """Whom to take away so that no conflict is left."""
    victims: set[WorkloadKey] = set()
    exact = True
    for knot in _knots(dict.fromkeys(conflicts)):
        order = sorted(knot.members, key=lambda key: keeping_order(key, standing[key]))
        some_way = _greedily(knot.conflicts, order, standing)
        best = _exactly(knot.conflicts, order, standing, some_way)
        victims |= some_way if best is None else best
        exact &= best is not None
    return VictimChoice(frozenset(victims), exact)


def keeping_order(key: WorkloadKey, standing: Precedence) -> tuple[int, bool, str, str]:
    """Who is rather kept comes first: higher priority, protected just now, older, by name."""
    return -standing.priority, not standing.spared, standing.since or "9999", key


def _gives_way(
    conflicts: Iterable[Conflict], standing: Mapping[WorkloadKey, Precedence]
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


class _Knot:
    """Conflicts that hang together by the workloads they share."""

    def __init__(self) -> None:
        self.conflicts: list[Conflict] = []
        self.members: set[WorkloadKey] = set()


def _knots(conflicts: Iterable[Conflict]) -> Iterable[_Knot]:
    """
    All of them, in the order of their first conflicts.

    Sets are compared as wholes where that will do: of a crowd in which all keep off all, each conflict names everybody.
    """
    found: dict[int, _Knot] = {}
    knot_of: dict[WorkloadKey, _Knot] = {}
    for conflict in conflicts:
        knot = knot_of.get(conflict.owner)
        if knot is None or not conflict.peers <= knot.members:
            knot = _tied(conflict, knot_of, found)
        knot.conflicts.append(conflict)
    return found.values()


def _tied(conflict: Conflict, knot_of: dict[WorkloadKey, _Knot], found: dict[int, _Knot]) -> _Knot:
    """The knot that the conflict makes of those which it touches."""
    members = {conflict.owner, *conflict.peers}
    touched = {id(knot): knot for knot in map(knot_of.get, members) if knot is not None}
    largest = max(touched.values(), key=lambda knot: len(knot.members), default=_Knot())
    for number, knot in touched.items():
        if knot is not largest:
            largest.conflicts += knot.conflicts
            members |= knot.members
            del found[number]
    knot_of.update(dict.fromkeys(members - largest.members, largest))
    largest.members |= members
    found[id(largest)] = largest
    return largest


# Who can stay beside whom


class _Kept:
    """Those kept so far, and of the conflicts that they own how many of the peers are among them."""

    def __init__(self, conflicts: Sequence[Conflict]) -> None:
        self.keys: set[WorkloadKey] = set()
        self._owned: dict[WorkloadKey, list[Conflict]] = {}
        self._held: list[tuple[Conflict, int]] = []
        for conflict in conflicts:
            self._owned.setdefault(conflict.owner, []).append(conflict)

    def has_room_for(self, key: WorkloadKey) -> bool:
        if any(len(conflict.peers & self.keys) > conflict.limit for conflict in self._owned.get(key, ())):
            return False
        return not any(count >= conflict.limit and key in conflict.peers for conflict, count in self._held)

    def keep(self, key: WorkloadKey) -> None:
        self.keys.add(key)
        self._held = [(conflict, count + (key in conflict.peers)) for conflict, count in self._held]
        self._held += [(conflict, len(conflict.peers & self.keys)) for conflict in self._owned.get(key, ())]


def _greedily(
    knot: Sequence[Conflict], order: Sequence[WorkloadKey], standing: Mapping[WorkloadKey, Precedence]
) -> set[WorkloadKey]:
    """From the highest priority down, whoever has the fewest conflicts and owns none first: stays if there is room."""
    kept, owners = _Kept(knot), {conflict.owner for conflict in knot}
    n_conflicts = Counter(chain.from_iterable(conflict.peers for conflict in knot))
    for conflict in knot:
        n_conflicts[conflict.owner] += len(conflict.peers)
    for _, level in groupby(order, key=lambda key: standing[key].priority):
        # Sorting is stable: among equals, who is rather kept stays in front.
        for key in sorted(level, key=lambda key: (key in owners, n_conflicts[key])):
            if kept.has_room_for(key):
                kept.keep(key)
    return set(order) - kept.keys


def _exactly(
    knot: Sequence[Conflict],
    order: Sequence[WorkloadKey],
    standing: Mapping[WorkloadKey, Precedence],
    some_way: AbstractSet[WorkloadKey],
) -> set[WorkloadKey] | None:
    """The best choice of all, unless the knot is too large to look for it."""
    if len(knot) > CONFLICTS and len(order) > CONFLICTS + 1:
        return None
    bit = {key: position for position, key in enumerate(order)}
    gives_way = _gives_way(knot, standing)
    levels = {priority: level for level, priority in enumerate(dict.fromkeys(standing[key].priority for key in order))}
    rules = {ConflictRule(1 << bit[c.owner], _mask(c.peers, bit), c.limit) for c in knot}
    tied = ConflictComponent(
        rules=sorted(rules),
        levels=[levels[standing[key].priority] for key in order],
        excuses=[_mask(gives_way[key], bit) for key in order],
    )
    try:
        staying = victim_search.staying(tied, _mask(set(order) - some_way, bit), victim_search.Steps(STEPS))
    except victim_search.TooManyStepsError:
        return None
    return {key for key in order if not staying >> bit[key] & 1}


def _mask(keys: Iterable[WorkloadKey], bit: Mapping[WorkloadKey, int]) -> int:
    return sum(1 << bit[key] for key in keys)
