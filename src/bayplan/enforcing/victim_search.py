"""
The exact choice of eviction victims in a small component of conflicts, by branch and bound.

Workloads are bits, the one to retain first at bit 0, and the cost of an eviction is one integer in which a higher
priority outweighs all lower ones. A step decides one workload and draws the conclusions. What remains is split into
independent parts, and a remainder that was solved before is not searched again. The search counts its steps and gives
up when they are used up: steps rather than time, so that the same component always has the same result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

Mask = int


class ConflictRule(NamedTuple):
    """While the owner is kept, at most `limit` of the peers are. An owner of 0 is kept already."""

    owner: Mask
    peers: Mask
    limit: int


class ConflictComponent(NamedTuple):
    """
    Conflicts that are connected by the workloads they share; `levels` and `justifying` are by bit.

    `levels` are equal for equal priorities and higher for lower ones. The eviction of a workload is unjustified unless
    one of its `justifying` workloads is kept.
    """

    rules: Sequence[ConflictRule]
    levels: Sequence[int]
    justifying: Sequence[Mask]


class TooManyStepsError(Exception):
    """The component needs more steps than the budget has."""


class StepBudget:
    """The steps that are left. The work of a step grows with the rules it looks at, so these are counted."""

    def __init__(self, max_steps: int) -> None:
        self.left = max_steps

    def take(self, n_rules: int) -> None:
        self.left -= n_rules
        if self.left < 0:
            raise TooManyStepsError


# Costs and symmetry


def eviction_costs(levels: Sequence[int]) -> tuple[list[int], list[int]]:
    """
    The cost of each eviction, and the additional cost if it is unjustified.

    A cost is a number with two digits per level, the highest priority first: unjustified evictions, evictions. The last
    bits, one per workload, make the cost of every choice unique and prefer the order of the workloads.
    """
    count = len(levels)
    digit = count.bit_length()
    costs, unjustified = [], []
    for key, level in enumerate(levels):
        unit = 1 << count + 2 * digit * (levels[-1] - level)
        costs.append(unit + (1 << count - 1 - key))
        unjustified.append(unit << digit)
    return costs, unjustified


def interchangeable(component: ConflictComponent) -> list[Mask]:
    """For each bit, all that can be swapped with it without changing the rules, itself included."""
    rules = frozenset(component.rules)
    found = [1 << key for key in range(len(component.levels))]
    firsts: dict[object, list[int]] = {}
    for key, profile in enumerate(_profiles(component)):
        similar = firsts.setdefault(profile, [])
        first = next((one for one in similar if all(_swapped(rule, one, key) in rules for rule in rules)), None)
        if first is None:
            similar.append(key)
        else:
            found[first] |= 1 << key
    for mask in [found[first] for similar in firsts.values() for first in similar]:
        for key in bits(mask):
            found[key] = mask
    return found


def _profiles(component: ConflictComponent) -> list[tuple[int, ...]]:
    """For each bit, what interchangeable workloads have in common: the level, and the shapes of their rules."""
    shapes: list[list[int]] = [[] for _ in component.levels]
    for owner, peers, limit in component.rules:
        shape = peers.bit_count() << 32 | limit << 1
        shapes[owner.bit_length() - 1].append(shape | 1)
        for peer in bits(peers):
            shapes[peer].append(shape)
    return [(level, *sorted(own)) for level, own in zip(component.levels, shapes, strict=True)]


def _swapped(rule: ConflictRule, one: int, other: int) -> ConflictRule:
    return ConflictRule(_swap(rule.owner, one, other), _swap(rule.peers, one, other), rule.limit)


def _swap(mask: Mask, one: int, other: int) -> Mask:
    return mask ^ (1 << one | 1 << other) if (mask >> one ^ mask >> other) & 1 else mask


def bits(mask: Mask) -> tuple[int, ...]:
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return tuple(found)


# Branch and bound


class _Remainder(NamedTuple):
    """
    What is still to be decided.

    `pending` are evicted, and whether that is justified depends on undecided workloads. `justified` are undecided, and
    their eviction would be justified.
    """

    undecided: Mask
    pending: Mask
    justified: Mask
    rules: tuple[ConflictRule, ...]


class _Solution(NamedTuple):
    cost: int
    kept: Mask


class VictimSearch:
    """The best choice for one component. Raises `TooManyStepsError` when the steps are used up."""

    def __init__(self, component: ConflictComponent, steps: StepBudget) -> None:
        self._component, self._steps = component, steps
        self._costs, self._unjustified_costs = eviction_costs(component.levels)
        self._interchangeable = interchangeable(component)
        self._justified_by = [
            sum(1 << key for key, justifying in enumerate(component.justifying) if justifying >> other & 1)
            for other in range(len(component.levels))
        ]
        self._best_known: dict[_Remainder, _Solution] = {}
        self._costs_at_least: dict[_Remainder, int] = {}

    def best_kept(self, feasible: Mask) -> Mask:
        """The workloads kept by the best choice, of which there is only one. `feasible` are those of a valid choice."""
        all_members = (1 << len(self._component.levels)) - 1
        broken = tuple(rule for rule in self._component.rules if rule.peers.bit_count() > rule.limit)
        certain, rest = self._decided(_Remainder(all_members, 0, 0, broken), 0, 0)
        found = self._best(rest, self._cost(feasible) - certain.cost)
        return feasible if found is None else certain.kept | found.kept

    def _cost(self, kept: Mask) -> int:
        cost = 0
        for key, justifying in enumerate(self._component.justifying):
            if not kept >> key & 1:
                cost += self._costs[key] + (0 if justifying & kept else self._unjustified_costs[key])
        return cost

    def _best(self, rest: _Remainder, below: int) -> _Solution | None:
        """The cheapest solution of the remainder, if it costs less than `below`."""
        if not rest.rules:
            return _Solution(0, 0) if below > 0 else None
        known = self._best_known.get(rest)
        if known is not None:
            return known if known.cost < below else None
        if self._costs_at_least.get(rest, 0) >= below or self._disjoint_bound(rest.rules) >= below:
            return None
        parts = self._parts(rest)
        found = self._best_of_parts(parts, below) if len(parts) > 1 else self._best_branch(rest, below)
        if found is None:
            self._costs_at_least[rest] = below
        else:
            self._best_known[rest] = found
        return found

    def _best_of_parts(self, parts: Sequence[_Remainder], below: int) -> _Solution | None:
        bounds = [self._disjoint_bound(part.rules) for part in parts]
        cost, kept, still = 0, 0, sum(bounds)
        for part, bound in zip(parts, bounds, strict=True):
            still -= bound
            found = self._best(part, below - cost - still)
            if found is None:
                return None
            cost, kept = cost + found.cost, kept | found.kept
        return _Solution(cost, kept)

    def _best_branch(self, rest: _Remainder, below: int) -> _Solution | None:
        relief = _relief(rest.rules)
        keys, n_evictions = sum(1 << key for key in relief), _min_evictions(relief, rest.rules)
        if self._least(keys, n_evictions) >= below:
            return None
        self._steps.take(len(rest.rules))
        others = self._least(keys, n_evictions - 1)
        must_keep = next((key for key in sorted(relief) if self._cost_bound(key, rest) + others >= below), None)
        one = self._pivot(relief) if must_keep is None else must_keep
        best = None
        # Of interchangeable workloads the first is kept: where it is evicted, the others are too.
        branches = ((1 << one, 0), (0, self._interchangeable[one] & rest.undecided))
        for keep, evict in branches if must_keep is None else branches[:1]:
            certain, left = self._decided(rest, keep, evict)
            found = self._best(left, below - certain.cost)
            if found is not None:
                below = certain.cost + found.cost
                best = _Solution(below, certain.kept | found.kept)
        return best

    def _pivot(self, relief: Mapping[int, int]) -> int:
        """Of the highest undecided priority, the workload with the most conflicts: deciding it decides the most."""
        levels = self._component.levels
        top = min(levels[key] for key in relief)
        return max((key for key in sorted(relief) if levels[key] == top), key=relief.__getitem__)

    def _cost_bound(self, key: int, rest: _Remainder) -> int:
        """A lower bound of the cost of evicting one workload."""
        unjustified = not (rest.justified >> key & 1 or self._component.justifying[key] & rest.undecided)
        return self._costs[key] + (self._unjustified_costs[key] if unjustified else 0)

    def _decided(self, rest: _Remainder, keep: Mask, evict: Mask) -> tuple[_Solution, _Remainder]:
        """The cost of keeping and evicting these, with everything that follows from it, and what then remains."""
        undecided, pending, justified, rules = rest
        cost = kept = 0
        while True:
            undecided &= ~(keep | evict)
            kept |= keep
            pending |= evict & ~justified
            for key in bits(evict):
                cost += self._costs[key]
            for key in bits(keep):
                justified |= self._justified_by[key]
            pending &= ~justified
            for key in bits(pending):
                if not self._component.justifying[key] & undecided:
                    cost += self._unjustified_costs[key]
                    pending &= ~(1 << key)
            rules, forced = _narrowed(rules, undecided, keep, evict)
            free = undecided & ~forced
            for owner, peers, _ in rules:
                free &= ~(owner | peers)
            if not free and not forced:
                return _Solution(cost, kept), _Remainder(undecided, pending, justified & undecided, rules)
            keep, evict = free, forced

    def _disjoint_bound(self, rules: Sequence[ConflictRule]) -> int:
        """A lower bound of the cost: of rules that share no workload, each costs its owner or some peers."""
        costs = []
        for owner, peers, limit in rules:
            least = self._least(peers, peers.bit_count() - limit)
            costs.append((min(least, self._costs[owner.bit_length() - 1]) if owner else least, owner | peers))
        total = used = 0
        for cost, members in sorted(costs, reverse=True):
            if not members & used:
                used |= members
                total += cost
        return total

    def _least(self, keys: Mask, number: int) -> int:
        """The lowest cost of evicting that many of the workloads: the highest bits are the cheapest."""
        cost = 0
        for _ in range(number):
            last = keys.bit_length() - 1
            cost += self._costs[last]
            keys ^= 1 << last
        return cost

    def _parts(self, rest: _Remainder) -> list[_Remainder]:
        """The remainder split into parts that neither a rule nor a justification connects."""
        links = [owner | peers for owner, peers, _ in rest.rules]
        justifying = self._component.justifying
        pending = [(key, justifying[key] & rest.undecided) for key in bits(rest.pending)]
        maybe_pending = [1 << key | justifying[key] & rest.undecided for key in bits(rest.undecided & ~rest.justified)]
        masks: list[Mask] = []
        for link in (*links, *(mask for _, mask in pending), *maybe_pending):
            merged = link
            for mask in [mask for mask in masks if mask & link]:
                merged |= mask
                masks.remove(mask)
            masks.append(merged)
        if len(masks) == 1:
            return [rest]
        return [
            _Remainder(
                mask,
                sum(1 << key for key, among in pending if among & mask),
                rest.justified & mask,
                tuple(rule for rule, link in zip(rest.rules, links, strict=True) if link & mask),
            )
            for mask in masks
        ]


def _relief(rules: Sequence[ConflictRule]) -> dict[int, int]:
    """By how many excess peers the eviction of each workload relieves the rules: all of its own rule, and itself."""
    relief: dict[int, int] = {}
    for owner, peers, limit in rules:
        for peer in bits(peers):
            relief[peer] = relief.get(peer, 0) + 1
        if owner:
            key = owner.bit_length() - 1
            relief[key] = relief.get(key, 0) + peers.bit_count() - limit
    return relief


def _min_evictions(relief: Mapping[int, int], rules: Sequence[ConflictRule]) -> int:
    """A lower bound of the number of evictions."""
    excess = sum(peers.bit_count() - limit for _, peers, limit in rules)
    number = 0
    for relieved in sorted(relief.values(), reverse=True):
        if excess <= 0:
            break
        excess -= relieved
        number += 1
    return number


def _narrowed(
    rules: Sequence[ConflictRule], undecided: Mask, keep: Mask, evict: Mask
) -> tuple[tuple[ConflictRule, ...], Mask]:
    """The rules that can still be broken, and the workloads that must be evicted because of the others."""
    left, forced = [], 0
    changed = keep | evict
    for rule in rules:
        owner, peers, limit = rule
        if not (owner | peers) & changed:
            left.append(rule)
        elif not owner & evict:
            owner, peers, limit = owner & undecided, peers & undecided, limit - (peers & keep).bit_count()
            if owner and limit < 0:
                forced |= owner
            elif not owner and limit <= 0:
                forced |= peers
            elif peers.bit_count() > limit:
                left.append(ConflictRule(owner, peers, limit))
    return tuple(left), forced
