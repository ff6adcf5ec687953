"""
Conflicts that hang together, as bits: the workloads, the most wanted first, and the rules between them.

What it costs that one goes, and who could change places with whom. Knows nothing of how the best choice is found.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

Mask = int


class ConflictRule(NamedTuple):
    """While the owner stays, at most `room` of the peers do. An owner of 0 stays already."""

    owner: Mask
    peers: Mask
    room: int


class ConflictComponent(NamedTuple):
    """
    By bit: `levels` are the same for the same priority and higher for a lower one; `justifying` has those to whom the
    workload would have to give way. It is wronged if it goes and none of them stays.
    """

    rules: Sequence[ConflictRule]
    levels: Sequence[int]
    justifying: Sequence[Mask]


def eviction_costs(levels: Sequence[int]) -> tuple[list[int], list[int]]:
    """
    What it costs that each goes, and what that it is wronged besides.

    Numbers written with a digit for each level, the highest priority first: how many are wronged, how many go. At the
    end a bit for each workload, the most wanted first, so that no two choices cost the same.
    """
    count = len(levels)
    digit = count.bit_length()
    going, wronging = [], []
    for key, level in enumerate(levels):
        unit = 1 << count + 2 * digit * (levels[-1] - level)
        going.append(unit + (1 << count - 1 - key))
        wronging.append(unit << digit)
    return going, wronging


def interchangeable(component: ConflictComponent) -> list[Mask]:
    """For each bit all that could change places with it unnoticed, itself included."""
    rules, looks = frozenset(component.rules), _profiles(component)
    found = [1 << key for key in range(len(component.levels))]
    firsts: dict[object, list[int]] = {}
    for key, look in enumerate(looks):
        alike = firsts.setdefault(look, [])
        first = next((one for one in alike if all(_swapped(rule, one, key) in rules for rule in rules)), None)
        if first is None:
            alike.append(key)
        else:
            found[first] |= 1 << key
    for mask in [found[first] for alike in firsts.values() for first in alike]:
        for key in bits(mask):
            found[key] = mask
    return found


def _profiles(component: ConflictComponent) -> list[tuple[int, ...]]:
    """What twins have in common at least, for each bit: the level, and the shapes of the rules that it is in."""
    looks: list[list[int]] = [[] for _ in component.levels]
    for owner, peers, room in component.rules:
        shape = peers.bit_count() << 32 | room << 1
        looks[owner.bit_length() - 1].append(shape | 1)
        for peer in bits(peers):
            looks[peer].append(shape)
    return [(level, *sorted(shapes)) for level, shapes in zip(component.levels, looks, strict=True)]


def _swapped(rule: ConflictRule, one: int, other: int) -> ConflictRule:
    return ConflictRule(_swap(rule.owner, one, other), _swap(rule.peers, one, other), rule.room)


def _swap(mask: Mask, one: int, other: int) -> Mask:
    return mask ^ (1 << one | 1 << other) if (mask >> one ^ mask >> other) & 1 else mask


@functools.lru_cache(maxsize=4096)
def bits(mask: Mask) -> tuple[int, ...]:
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return tuple(found)


# RF merged from enforcing.victim_search: Who stays of a small knot of conflicts, by branch and bound: nobody could
# choose better. Workloads are bits, the most wanted first, and what it costs that one goes is one whole number, in
# which a higher priority outweighs all lower ones. A step decides one workload and draws the conclusions. What is
# then left falls into parts that have nothing to do with each other, and a rest that was seen before is not looked at
# again. Counts its steps and gives up when they are used up: by count and not by the clock, so that the same knot
# always ends the same.


class TooManyStepsError(Exception):
    """The knot is too tangled for the steps that were left."""


class StepBudget:
    """How much more may be done. What is done in a step grows with the rules it looks at, so these are counted."""

    def __init__(self, most: int) -> None:
        self.left = most

    def take(self, n_rules: int) -> None:
        self.left -= n_rules
        if self.left < 0:
            raise TooManyStepsError


class _Remainder(NamedTuple):
    """
    What is still to be decided. `pending` are gone and nobody stays yet to whom they gave way, but somebody may.
    `justified` are undecided and could go without being wronged.
    """

    undecided: Mask
    pending: Mask
    justified: Mask
    rules: tuple[ConflictRule, ...]


class _Solution(NamedTuple):
    cost: int
    kept: Mask


def best_kept(component: ConflictComponent, greedy: Mask, steps: StepBudget) -> Mask:
    """Who stays in the best choice, of which there is only one. `greedy` is who stays in a choice that will do."""
    return _VictimSearch(component, steps).run(greedy)


class _VictimSearch:
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

    def run(self, greedy: Mask) -> Mask:
        all_members = (1 << len(self._component.levels)) - 1
        broken = tuple(rule for rule in self._component.rules if rule.peers.bit_count() > rule.room)
        certain, rest = self._decided(_Remainder(all_members, 0, 0, broken), 0, 0)
        found = self._best(rest, self._cost(greedy) - certain.cost)
        return greedy if found is None else certain.kept | found.kept

    def _cost(self, kept: Mask) -> int:
        cost = 0
        for key, justifying in enumerate(self._component.justifying):
            if not kept >> key & 1:
                cost += self._costs[key] + (0 if justifying & kept else self._unjustified_costs[key])
        return cost

    def _best(self, rest: _Remainder, below: int) -> _Solution | None:
        """The cheapest way to decide the rest, if that costs less than `below`."""
        if not rest.rules:
            return _Solution(0, 0) if below > 0 else None
        known = self._best_known.get(rest)
        if known is not None:
            return known if known.cost < below else None
        if self._costs_at_least.get(rest, 0) >= below or self._apart(rest.rules) >= below:
            return None
        parts = self._parts(rest)
        found = self._best_of_parts(parts, below) if len(parts) > 1 else self._best_branch(rest, below)
        if found is None:
            self._costs_at_least[rest] = below
        else:
            self._best_known[rest] = found
        return found

    def _best_of_parts(self, parts: Sequence[_Remainder], below: int) -> _Solution | None:
        bounds = [self._apart(part.rules) for part in parts]
        cost, kept, still = 0, 0, sum(bounds)
        for part, bound in zip(parts, bounds, strict=True):
            still -= bound
            found = self._best(part, below - cost - still)
            if found is None:
                return None
            cost, kept = cost + found.cost, kept | found.kept
        return _Solution(cost, kept)

    def _best_branch(self, rest: _Remainder, below: int) -> _Solution | None:
        worth = _relief(rest.rules)
        keys, number = sum(1 << key for key in worth), _min_evictions(worth, rest.rules)
        if self._least(keys, number) >= below:
            return None
        self._steps.take(len(rest.rules))
        others = self._least(keys, number - 1)
        must_stay = next((key for key in sorted(worth) if self._price(key, rest) + others >= below), None)
        one = self._pivot(worth) if must_stay is None else must_stay
        best = None
        # Of those whom nothing tells apart the first is kept: where it goes, the others go too.
        ways = ((1 << one, 0), (0, self._interchangeable[one] & rest.undecided))
        for stay, gone in ways if must_stay is None else ways[:1]:
            certain, left = self._decided(rest, stay, gone)
            found = self._best(left, below - certain.cost)
            if found is not None:
                below = certain.cost + found.cost
                best = _Solution(below, certain.kept | found.kept)
        return best

    def _pivot(self, worth: Mapping[int, int]) -> int:
        """Of the highest priority that is undecided, who stands against most others: deciding that settles most."""
        levels = self._component.levels
        top = min(levels[key] for key in worth)
        return max((key for key in sorted(worth) if levels[key] == top), key=worth.__getitem__)

    def _price(self, key: int, rest: _Remainder) -> int:
        """What it costs at least that one goes."""
        unjustified = not (rest.justified >> key & 1 or self._component.justifying[key] & rest.undecided)
        return self._costs[key] + (self._unjustified_costs[key] if unjustified else 0)

    def _decided(self, rest: _Remainder, stay: Mask, gone: Mask) -> tuple[_Solution, _Remainder]:
        """What it costs that these stay and those go, with all that follows from it, and what is left then."""
        undecided, pending, justified, rules = rest
        cost = kept = 0
        while True:
            undecided &= ~(stay | gone)
            kept |= stay
            pending |= gone & ~justified
            for key in bits(gone):
                cost += self._costs[key]
            for key in bits(stay):
                justified |= self._justified_by[key]
            pending &= ~justified
            for key in bits(pending):
                if not self._component.justifying[key] & undecided:
                    cost += self._unjustified_costs[key]
                    pending &= ~(1 << key)
            rules, forced = _narrowed(rules, undecided, stay, gone)
            free = undecided & ~forced
            for owner, peers, _ in rules:
                free &= ~(owner | peers)
            if not free and not forced:
                return _Solution(cost, kept), _Remainder(undecided, pending, justified & undecided, rules)
            stay, gone = free, forced

    def _apart(self, rules: Sequence[ConflictRule]) -> int:
        """What they cost at least: of rules that share nobody, each costs its owner or some peers."""
        costs = []
        for owner, peers, room in rules:
            least = self._least(peers, peers.bit_count() - room)
            costs.append((min(least, self._costs[owner.bit_length() - 1]) if owner else least, owner | peers))
        total = used = 0
        for cost, members in sorted(costs, reverse=True):
            if not members & used:
                used |= members
                total += cost
        return total

    def _least(self, keys: Mask, number: int) -> int:
        """What it costs if that many of them go: the highest bits are the least wanted."""
        cost = 0
        for _ in range(number):
            last = keys.bit_length() - 1
            cost += self._costs[last]
            keys ^= 1 << last
        return cost

    def _parts(self, rest: _Remainder) -> list[_Remainder]:
        """The rest, taken apart where neither a rule nor an excuse ties it together."""
        ties = [owner | peers for owner, peers, _ in rest.rules]
        justifying = self._component.justifying
        pending = [(key, justifying[key] & rest.undecided) for key in bits(rest.pending)]
        maybe_pending = [1 << key | justifying[key] & rest.undecided for key in bits(rest.undecided & ~rest.justified)]
        masks: list[Mask] = []
        for tie in (*ties, *(mask for _, mask in pending), *maybe_pending):
            merged = tie
            for mask in [mask for mask in masks if mask & tie]:
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
                tuple(rule for rule, tie in zip(rest.rules, ties, strict=True) if tie & mask),
            )
            for mask in masks
        ]


def _relief(rules: Sequence[ConflictRule]) -> dict[int, int]:
    """Of how many too many each frees the rules by going: of all that its own rule has, and of itself."""
    worth: dict[int, int] = {}
    for owner, peers, room in rules:
        for peer in bits(peers):
            worth[peer] = worth.get(peer, 0) + 1
        if owner:
            key = owner.bit_length() - 1
            worth[key] = worth.get(key, 0) + peers.bit_count() - room
    return worth


def _min_evictions(worth: Mapping[int, int], rules: Sequence[ConflictRule]) -> int:
    """How many go at least."""
    too_many = sum(peers.bit_count() - room for _, peers, room in rules)
    number = 0
    for freed in sorted(worth.values(), reverse=True):
        if too_many <= 0:
            break
        too_many -= freed
        number += 1
    return number


def _narrowed(
    rules: Sequence[ConflictRule], undecided: Mask, stay: Mask, gone: Mask
) -> tuple[tuple[ConflictRule, ...], Mask]:
    """The rules that can still be broken, and who has to go because of the others."""
    left, forced = [], 0
    changed = stay | gone
    for rule in rules:
        owner, peers, room = rule
        if not (owner | peers) & changed:
            left.append(rule)
        elif not owner & gone:
            owner, peers, room = owner & undecided, peers & undecided, room - (peers & stay).bit_count()
            if owner and room < 0:
                forced |= owner
            elif not owner and room <= 0:
                forced |= peers
            elif peers.bit_count() > room:
                left.append(ConflictRule(owner, peers, room))
    return tuple(left), forced
