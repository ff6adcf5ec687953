"""
Who stays of a small knot of conflicts, by branch and bound: nobody could choose better.

Workloads are bits, the most wanted first, and what it costs that one goes is one whole number, in which a higher
priority outweighs all lower ones. A step decides one workload and draws the conclusions. What is then left falls into
parts that have nothing to do with each other, and a rest that was seen before is not looked at again. Counts its steps
and gives up when they are used up: by count and not by the clock, so that the same knot always ends the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bayplan.enforcing.conflict_components import ConflictComponent, ConflictRule, Mask, bits, interchangeable, prices


class TooManyStepsError(Exception):
    """The knot is too tangled for the steps that were left."""


class Steps:
    """How much more may be done. What is done in a step grows with the rules it looks at, so these are counted."""

    def __init__(self, most: int) -> None:
        self.left = most

    def take(self, n_rules: int) -> None:
        self.left -= n_rules
        if self.left < 0:
            raise TooManyStepsError


class _Rest(NamedTuple):
    """
    What is still to be decided. `owed` are gone and nobody stays yet to whom they gave way, but somebody may.
    `excused` are undecided and could go without being wronged.
    """

    undecided: Mask
    owed: Mask
    excused: Mask
    rules: tuple[ConflictRule, ...]


class _Found(NamedTuple):
    cost: int
    staying: Mask


def staying(knot: ConflictComponent, some_way: Mask, steps: Steps) -> Mask:
    """Who stays in the best choice, of which there is only one. `some_way` is who stays in a choice that will do."""
    return _VictimSearch(knot, steps).run(some_way)


class _VictimSearch:
    def __init__(self, knot: ConflictComponent, steps: Steps) -> None:
        self._knot, self._steps = knot, steps
        self._going, self._wronging = prices(knot.levels)
        self._twins = interchangeable(knot)
        self._excused_by = [
            sum(1 << key for key, excuses in enumerate(knot.excuses) if excuses >> other & 1)
            for other in range(len(knot.levels))
        ]
        self._best_known: dict[_Rest, _Found] = {}
        self._costs_at_least: dict[_Rest, int] = {}

    def run(self, some_way: Mask) -> Mask:
        everybody = (1 << len(self._knot.levels)) - 1
        broken = tuple(rule for rule in self._knot.rules if rule.peers.bit_count() > rule.room)
        certain, rest = self._decided(_Rest(everybody, 0, 0, broken), 0, 0)
        found = self._best(rest, self._cost(some_way) - certain.cost)
        return some_way if found is None else certain.staying | found.staying

    def _cost(self, staying: Mask) -> int:
        cost = 0
        for key, excuses in enumerate(self._knot.excuses):
            if not staying >> key & 1:
                cost += self._going[key] + (0 if excuses & staying else self._wronging[key])
        return cost

    def _best(self, rest: _Rest, below: int) -> _Found | None:
        """The cheapest way to decide the rest, if that costs less than `below`."""
        if not rest.rules:
            return _Found(0, 0) if below > 0 else None
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

    def _best_of_parts(self, parts: Sequence[_Rest], below: int) -> _Found | None:
        bounds = [self._apart(part.rules) for part in parts]
        cost, staying, still = 0, 0, sum(bounds)
        for part, bound in zip(parts, bounds, strict=True):
            still -= bound
            found = self._best(part, below - cost - still)
            if found is None:
                return None
            cost, staying = cost + found.cost, staying | found.staying
        return _Found(cost, staying)

    def _best_branch(self, rest: _Rest, below: int) -> _Found | None:
        worth = _worth(rest.rules)
        keys, number = sum(1 << key for key in worth), _number(worth, rest.rules)
        if self._least(keys, number) >= below:
            return None
        self._steps.take(len(rest.rules))
        others = self._least(keys, number - 1)
        must_stay = next((key for key in sorted(worth) if self._price(key, rest) + others >= below), None)
        one = self._pivot(worth) if must_stay is None else must_stay
        best = None
        # Of those whom nothing tells apart the first is kept: where it goes, the others go too.
        ways = ((1 << one, 0), (0, self._twins[one] & rest.undecided))
        for stay, gone in ways if must_stay is None else ways[:1]:
            certain, left = self._decided(rest, stay, gone)
            found = self._best(left, below - certain.cost)
            if found is not None:
                below = certain.cost + found.cost
                best = _Found(below, certain.staying | found.staying)
        return best

    def _pivot(self, worth: Mapping[int, int]) -> int:
        """Of the highest priority that is undecided, who stands against most others: deciding that settles most."""
        levels = self._knot.levels
        top = min(levels[key] for key in worth)
        return max((key for key in sorted(worth) if levels[key] == top), key=worth.__getitem__)

    def _price(self, key: int, rest: _Rest) -> int:
        """What it costs at least that one goes."""
        wronged = not (rest.excused >> key & 1 or self._knot.excuses[key] & rest.undecided)
        return self._going[key] + (self._wronging[key] if wronged else 0)

    def _decided(self, rest: _Rest, stay: Mask, gone: Mask) -> tuple[_Found, _Rest]:
        """What it costs that these stay and those go, with all that follows from it, and what is left then."""
        undecided, owed, excused, rules = rest
        cost = staying = 0
        while True:
            undecided &= ~(stay | gone)
            staying |= stay
            owed |= gone & ~excused
            for key in bits(gone):
                cost += self._going[key]
            for key in bits(stay):
                excused |= self._excused_by[key]
            owed &= ~excused
            for key in bits(owed):
                if not self._knot.excuses[key] & undecided:
                    cost += self._wronging[key]
                    owed &= ~(1 << key)
            rules, forced = _narrowed(rules, undecided, stay, gone)
            free = undecided & ~forced
            for owner, peers, _ in rules:
                free &= ~(owner | peers)
            if not free and not forced:
                return _Found(cost, staying), _Rest(undecided, owed, excused & undecided, rules)
            stay, gone = free, forced

    def _apart(self, rules: Sequence[ConflictRule]) -> int:
        """What they cost at least: of rules that share nobody, each costs its owner or some peers."""
        costs = []
        for owner, peers, room in rules:
            least = self._least(peers, peers.bit_count() - room)
            costs.append((min(least, self._going[owner.bit_length() - 1]) if owner else least, owner | peers))
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
            cost += self._going[last]
            keys ^= 1 << last
        return cost

    def _parts(self, rest: _Rest) -> list[_Rest]:
        """The rest, taken apart where neither a rule nor an excuse ties it together."""
        ties = [owner | peers for owner, peers, _ in rest.rules]
        excuses = self._knot.excuses
        owed = [(key, excuses[key] & rest.undecided) for key in bits(rest.owed)]
        maybe_owed = [1 << key | excuses[key] & rest.undecided for key in bits(rest.undecided & ~rest.excused)]
        masks: list[Mask] = []
        for tie in (*ties, *(mask for _, mask in owed), *maybe_owed):
            merged = tie
            for mask in [mask for mask in masks if mask & tie]:
                merged |= mask
                masks.remove(mask)
            masks.append(merged)
        if len(masks) == 1:
            return [rest]
        return [
            _Rest(
                mask,
                sum(1 << key for key, among in owed if among & mask),
                rest.excused & mask,
                tuple(rule for rule, tie in zip(rest.rules, ties, strict=True) if tie & mask),
            )
            for mask in masks
        ]


def _worth(rules: Sequence[ConflictRule]) -> dict[int, int]:
    """Of how many too many each frees the rules by going: of all that its own rule has, and of itself."""
    worth: dict[int, int] = {}
    for owner, peers, room in rules:
        for peer in bits(peers):
            worth[peer] = worth.get(peer, 0) + 1
        if owner:
            key = owner.bit_length() - 1
            worth[key] = worth.get(key, 0) + peers.bit_count() - room
    return worth


def _number(worth: Mapping[int, int], rules: Sequence[ConflictRule]) -> int:
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
