"""
The choice of eviction victims where anti-affinity is violated.

The best choice retains the most priority: it has the fewest unjustified evictions, then the fewest evictions, both at
the highest priority first, then at the next one, and so on. An eviction is unjustified unless a conflicting pod
remains that has a higher priority or, for the owner of the rule, an equal one. Among equal choices the older pods
remain. The choice is exact for a component of few conflicts and greedy beyond. Knows nothing of grace periods and
budgets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, groupby

import msgspec

from bayplan.enforcing.victim_search import ConflictComponent, ConflictRule, StepBudget, TooManyStepsError, VictimSearch
from bayplan.model.workloads import WorkloadKey

MAX_EXACT_CONFLICTS = 20  # of a component, for the exact search
MAX_SEARCH_STEPS = 20_000  # of the exact search of one component


class Precedence(msgspec.Struct, frozen=True):
    """What decides between two conflicting workloads. `spared`: it cannot be evicted now, so an equal is evicted."""

    priority: int = 0
    since: str = ""
    spared: bool = False


class Conflict(msgspec.Struct, frozen=True):
    """An owner that tolerates at most `limit` of the peers, and has more."""

    owner: WorkloadKey
    peers: frozenset[WorkloadKey]
    limit: int = 0


class VictimChoice(msgspec.Struct, frozen=True):
    """The chosen victims. `exact`: no choice is better."""

    victims: frozenset[WorkloadKey]
    exact: bool


def choose_victims(conflicts: Iterable[Conflict], precedence: Mapping[WorkloadKey, Precedence]) -> VictimChoice:
    """The workloads to evict so that no conflict remains."""
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
    """A sort key, the workload to retain first: higher priority, spared, older, by name."""
    return -precedence.priority, not precedence.spared, precedence.since or "9999", key


# Components


class _Component:
    """Conflicts that are connected by the workloads they share."""

    def __init__(self) -> None:
        self.conflicts: list[Conflict] = []
        self.members: set[WorkloadKey] = set()


def _components(conflicts: Iterable[Conflict]) -> Iterable[_Component]:
    """
    All components, in the order of their first conflicts.

    Sets are compared as a whole where possible: if all pods of a large set conflict, each conflict names all of them.
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
    """The component that the conflict makes of those it connects."""
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


# The greedy choice


class _Kept:
    """The workloads kept so far, and for each conflict that they own, the number of kept peers."""

    def __init__(self, conflicts: Sequence[Conflict]) -> None:
        self.keys: set[WorkloadKey] = set()
        self._owned: dict[WorkloadKey, list[Conflict]] = {}
        self._kept_peers: list[tuple[Conflict, int]] = []
        for conflict in conflicts:
            self._owned.setdefault(conflict.owner, []).append(conflict)

    def has_room_for(self, key: WorkloadKey) -> bool:
        if any(len(conflict.peers & self.keys) > conflict.limit for conflict in self._owned.get(key, ())):
            return False
        return not any(count >= conflict.limit and key in conflict.peers for conflict, count in self._kept_peers)

    def keep(self, key: WorkloadKey) -> None:
        self.keys.add(key)
        self._kept_peers = [(conflict, count + (key in conflict.peers)) for conflict, count in self._kept_peers]
        self._kept_peers += [(conflict, len(conflict.peers & self.keys)) for conflict in self._owned.get(key, ())]


def _greedily(
    conflicts: Sequence[Conflict], order: Sequence[WorkloadKey], precedence: Mapping[WorkloadKey, Precedence]
) -> set[WorkloadKey]:
    """Keep from the highest priority down, pods that own no conflict and have few of them first, if there is room."""
    kept, owners = _Kept(conflicts), {conflict.owner for conflict in conflicts}
    n_conflicts = Counter(chain.from_iterable(conflict.peers for conflict in conflicts))
    for conflict in conflicts:
        n_conflicts[conflict.owner] += len(conflict.peers)
    for _, level in groupby(order, key=lambda key: precedence[key].priority):
        # Sorting is stable: the retention order breaks ties.
        for key in sorted(level, key=lambda key: (key in owners, n_conflicts[key])):
            if kept.has_room_for(key):
                kept.keep(key)
    return set(order) - kept.keys


# The exact choice


def _exactly(
    conflicts: Sequence[Conflict],
    order: Sequence[WorkloadKey],
    precedence: Mapping[WorkloadKey, Precedence],
    greedy: AbstractSet[WorkloadKey],
) -> set[WorkloadKey] | None:
    """The best choice, or None if the component is too large to search."""
    if len(conflicts) > MAX_EXACT_CONFLICTS and len(order) > MAX_EXACT_CONFLICTS + 1:
        return None
    bit = {key: position for position, key in enumerate(order)}
    justifying = _justifying_peers(conflicts, precedence)
    priorities = dict.fromkeys(precedence[key].priority for key in order)
    levels = {priority: level for level, priority in enumerate(priorities)}
    rules = {ConflictRule(1 << bit[c.owner], _mask(c.peers, bit), c.limit) for c in conflicts}
    component = ConflictComponent(
        rules=sorted(rules),
        levels=[levels[precedence[key].priority] for key in order],
        justifying=[_mask(justifying[key], bit) for key in order],
    )
    try:
        kept = VictimSearch(component, StepBudget(MAX_SEARCH_STEPS)).best_kept(_mask(set(order) - greedy, bit))
    except TooManyStepsError:
        return None
    return {key for key in order if not kept >> bit[key] & 1}


def _justifying_peers(
    conflicts: Iterable[Conflict], precedence: Mapping[WorkloadKey, Precedence]
) -> dict[WorkloadKey, set[WorkloadKey]]:
    """The peers that justify the eviction of each workload if they remain: higher priority, or equal for the owner."""
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


def _mask(keys: Iterable[WorkloadKey], bit: Mapping[WorkloadKey, int]) -> int:
    return sum(1 << bit[key] for key in keys)
