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
from bayplan.enforcing.victim_search import ConflictComponent, ConflictRule
from bayplan.model.workloads import WorkloadKey

MAX_EXACT_CONFLICTS = 20  # in a knot, up to which the best choice is looked for
MAX_SEARCH_STEPS = 20_000  # of that search, for one knot


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


def choose(conflicts: Iterable[Conflict], precedence: Mapping[WorkloadKey, Precedence]) -> VictimChoice:
    """Whom to take away so that no conflict is left."""
    victims: set[WorkloadKey] = set()
    exact = True
    for component in _components(dict.fromkeys(conflicts)):
        order = sorted(component.members, key=lambda key: retention_order(key, precedence[key]))
        greedy = _greedily(component.conflicts, order, precedence)
        best = _exactly(component.conflicts, order, precedence, greedy)
        victims |= greedy if best is None else best
        exact &= best is not None
    return VictimChoice(frozenset(victims), exact)


def retention_order(key: WorkloadKey, precedence: Precedence) -> tuple[int, bool, str, str]:
    """Who is rather kept comes first: higher priority, protected just now, older, by name."""
    return -precedence.priority, not precedence.spared, precedence.since or "9999", key


def _justifying_peers(
    conflicts: Iterable[Conflict], precedence: Mapping[WorkloadKey, Precedence]
) -> dict[WorkloadKey, set[WorkloadKey]]:
    """To whom each would have to give way: a higher priority, or an equal one that breaks its rule."""
    found: dict[WorkloadKey, set[WorkloadKey]] = {}
    for conflict in conflicts:
        owner, own = conflict.owner, precedence[conflict.owner].priority
        for peer in conflict.peers:
            found.setdefault(owner, set())
            found.setdefault(peer, set())
            if precedence[peer].priority >= own:
                found[owner].add(peer)
            else:
                found[peer].add(owner)
    return found


class _Component:
    """Conflicts that hang together by the workloads they share."""

    def __init__(self) -> None:
        self.conflicts: list[Conflict] = []
        self.members: set[WorkloadKey] = set()


def _components(conflicts: Iterable[Conflict]) -> Iterable[_Component]:
    """
    All of them, in the order of their first conflicts.

    Sets are compared as wholes where that will do: of a crowd in which all keep off all, each conflict names everybody.
    """
    found: dict[int, _Component] = {}
    component_of: dict[WorkloadKey, _Component] = {}
    for conflict in conflicts:
        component = component_of.get(conflict.owner)
        if component is None or not conflict.peers <= component.members:
            component = _merged(conflict, component_of, found)
        component.conflicts.append(conflict)
    return found.values()


def _merged(
    conflict: Conflict, component_of: dict[WorkloadKey, _Component], found: dict[int, _Component]
) -> _Component:
    """The knot that the conflict makes of those which it touches."""
    members = {conflict.owner, *conflict.peers}
    touched = {id(component): component for component in map(component_of.get, members) if component is not None}
    largest = max(touched.values(), key=lambda component: len(component.members), default=_Component())
    for number, component in touched.items():
        if component is not largest:
            largest.conflicts += component.conflicts
            members |= component.members
            del found[number]
    component_of.update(dict.fromkeys(members - largest.members, largest))
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
    component: Sequence[Conflict], order: Sequence[WorkloadKey], precedence: Mapping[WorkloadKey, Precedence]
) -> set[WorkloadKey]:
    """From the highest priority down, whoever has the fewest conflicts and owns none first: stays if there is room."""
    kept, owners = _Kept(component), {conflict.owner for conflict in component}
    n_conflicts = Counter(chain.from_iterable(conflict.peers for conflict in component))
    for conflict in component:
        n_conflicts[conflict.owner] += len(conflict.peers)
    for _, level in groupby(order, key=lambda key: precedence[key].priority):
        # Sorting is stable: among equals, who is rather kept stays in front.
        for key in sorted(level, key=lambda key: (key in owners, n_conflicts[key])):
            if kept.has_room_for(key):
                kept.keep(key)
    return set(order) - kept.keys


def _exactly(
    component: Sequence[Conflict],
    order: Sequence[WorkloadKey],
    precedence: Mapping[WorkloadKey, Precedence],
    greedy: AbstractSet[WorkloadKey],
) -> set[WorkloadKey] | None:
    """The best choice of all, unless the knot is too large to look for it."""
    if len(component) > MAX_EXACT_CONFLICTS and len(order) > MAX_EXACT_CONFLICTS + 1:
        return None
    bit = {key: position for position, key in enumerate(order)}
    gives_way = _justifying_peers(component, precedence)
    levels = {
        priority: level for level, priority in enumerate(dict.fromkeys(precedence[key].priority for key in order))
    }
    rules = {ConflictRule(1 << bit[c.owner], _mask(c.peers, bit), c.limit) for c in component}
    tied = ConflictComponent(
        rules=sorted(rules),
        levels=[levels[precedence[key].priority] for key in order],
        justifying=[_mask(gives_way[key], bit) for key in order],
    )
    try:
        staying = victim_search.best_kept(
            tied, _mask(set(order) - greedy, bit), victim_search.StepBudget(MAX_SEARCH_STEPS)
        )
    except victim_search.TooManyStepsError:
        return None
    return {key for key in order if not staying >> bit[key] & 1}


def _mask(keys: Iterable[WorkloadKey], bit: Mapping[WorkloadKey, int]) -> int:
    return sum(1 << bit[key] for key in keys)
