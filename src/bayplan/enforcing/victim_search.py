"""
Who stays of a small knot of conflicts, by branch and bound: nobody could choose better.

Workloads are bits, the most wanted first, and what it costs that one goes is one whole number, in which a higher
priority outweighs all lower ones. A step decides one workload and draws the conclusions. What is then left falls into
parts that have nothing to do with each other, and a rest that was seen before is not looked at again. Counts its steps
and gives up when they are used up: by count and not by the clock, so that the same knot always ends the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

Mask = int


class TooManyStepsError(Exception):
    """The knot is too tangled for the steps that were left."""


class Steps:
    """How many more steps may be made."""

    def __init__(self, most: int) -> None:
        self.left = most

    def make_one(self) -> None:
        if not self.left:
            raise TooManyStepsError
        self.left -= 1


class Rule(NamedTuple):
    """While the owner stays, at most `room` of the peers do. An owner of 0 stays already."""

    owner: Mask
    peers: Mask
    room: int


class Knot(NamedTuple):
    """
    By bit: `levels` are the same for the same priority and higher for a lower one; `excuses` has those to whom the
    workload would have to give way. It is wronged if it goes and none of them stays.
    """

    rules: Sequence[Rule]
    levels: Sequence[int]
    excuses: Sequence[Mask]


class _Rest(NamedTuple):
    """
    What is still to be decided. `owed` are gone and nobody stays yet to whom they gave way, but somebody may.
    `excused` are undecided and could go without being wronged.
    """

    undecided: Mask
    owed: Mask
    excused: Mask
    rules: tuple[Rule, ...]


class _Found(NamedTuple):
    cost: int
    staying: Mask


def staying(knot: Knot, steps: Steps) -> Mask:
    """Who stays in the best choice, of which there is only one."""
    return _Search(knot, steps).run()


class _Search:
    def __init__(self, knot: Knot, steps: Steps) -> None:
        self._knot, self._steps = knot, steps
        self._going, self._wronging = _prices(knot.levels)
        self._twins = _twins(knot)
        self._excused_by = [
            sum(1 << key for key, excuses in enumerate(knot.excuses) if excuses >> other & 1)
            for other in range(len(knot.levels))
        ]
        self._best_known: dict[_Rest, _Found] = {}
        self._costs_at_least: dict[_Rest, int] = {}

    def run(self) -> Mask:
        everybody = (1 << len(self._knot.levels)) - 1
        certain, rest = self._decided(_Rest(everybody, 0, 0, tuple(self._knot.rules)), 0, 0)
        # Not more than if all go and all are wronged.
        found = self._best(rest, sum(self._going) + sum(self._wronging) + 1)
        assert found is not None
        return certain.staying | found.staying

    def _best(self, rest: _Rest, below: int) -> _Found | None:
        """The cheapest way to decide the rest, if that costs less than `below`."""
        if not rest.rules:
            return _Found(0, 0) if below > 0 else None
        known = self._best_known.get(rest)
        if known is not None:
            return known if known.cost < below else None
        if max(self._costs_at_least.get(rest, 0), self._bound(rest)) >= below:
            return None
        self._steps.make_one()
        parts = self._parts(rest)
        found = self._best_of_parts(parts, below) if len(parts) > 1 else self._best_branch(rest, below)
        if found is None:
            self._costs_at_least[rest] = below
        else:
            self._best_known[rest] = found
        return found

    def _best_of_parts(self, parts: Sequence[_Rest], below: int) -> _Found | None:
        bounds = [self._bound(part) for part in parts]
        cost, staying, still = 0, 0, sum(bounds)
        for part, bound in zip(parts, bounds, strict=True):
            still -= bound
            found = self._best(part, below - cost - still)
            if found is None:
                return None
            cost, staying = cost + found.cost, staying | found.staying
        return _Found(cost, staying)

    def _best_branch(self, rest: _Rest, below: int) -> _Found | None:
        one = self._pivot(rest)
        best = None
        # Of those whom nothing tells apart the first is kept: where it goes, the others go too.
        for stay, gone in ((1 << one, 0), (0, self._twins[one] & rest.undecided)):
            certain, left = self._decided(rest, stay, gone)
            found = self._best(left, below - certain.cost)
            if found is not None:
                below = certain.cost + found.cost
                best = _Found(below, certain.staying | found.staying)
        return best

    def _pivot(self, rest: _Rest) -> int:
        """Of the highest priority that is undecided, who stands against most others: deciding that settles most."""
        worth, levels = self._worth(rest.rules), self._knot.levels
        top = min(levels[key] for key in worth)
        return max((key for key in sorted(worth) if levels[key] == top), key=worth.__getitem__)

    def _decided(self, rest: _Rest, stay: Mask, gone: Mask) -> tuple[_Found, _Rest]:
        """What it costs that these stay and those go, with all that follows from it, and what is left then."""
        undecided, owed, excused, rules = rest
        cost = staying = 0
        while True:
            undecided &= ~(stay | gone)
            staying |= stay
            owed |= gone & ~excused
            for key in _bits(gone):
                cost += self._going[key]
            for key in _bits(stay):
                excused |= self._excused_by[key]
            owed &= ~excused
            for key in _bits(owed):
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

    def _bound(self, rest: _Rest) -> int:
        """No more than the rest costs at least."""
        return max(self._apart(rest.rules), self._together(rest.rules))

    def _apart(self, rules: Sequence[Rule]) -> int:
        """Of rules that share nobody, each costs its owner or some peers."""
        total = used = 0
        for owner, peers, room in rules:
            if (owner | peers) & used:
                continue
            used |= owner | peers
            least = self._least(peers, peers.bit_count() - room)
            total += min(least, self._going[owner.bit_length() - 1]) if owner else least
        return total

    def _together(self, rules: Sequence[Rule]) -> int:
        """Each who goes mends its own rules and takes one off what others have too many; so some number must go."""
        worth = self._worth(rules)
        missing = sum(peers.bit_count() - room for _, peers, room in rules)
        number = 0
        for mends in sorted(worth.values(), reverse=True):
            if missing <= 0:
                break
            missing -= mends
            number += 1
        return self._least(sum(1 << key for key in worth), number)

    def _worth(self, rules: Sequence[Rule]) -> dict[int, int]:
        """Of how many too many each would free the rules by going."""
        worth: dict[int, int] = {}
        for owner, peers, room in rules:
            for peer in _bits(peers):
                worth[peer] = worth.get(peer, 0) + 1
            if owner:
                key = owner.bit_length() - 1
                worth[key] = worth.get(key, 0) + peers.bit_count() - room
        return worth

    def _least(self, keys: Mask, number: int) -> int:
        """What it costs if that many of them go: the highest bits are the least wanted."""
        cost = 0
        for _ in range(number):
            last = keys.bit_length() - 1
            cost += self._going[last]
            keys ^= 1 << last
        return cost

    def _parts(self, rest: _Rest) -> list[_Rest]:
        """The rest, taken apart where no rule and nobody who may be excused ties it together."""
        ties = [owner | peers for owner, peers, _ in rest.rules]
        excuses = [(key, self._knot.excuses[key] & rest.undecided) for key in _bits(rest.owed)]
        masks: list[Mask] = []
        for tie in (*ties, *(mask for _, mask in excuses)):
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
                sum(1 << key for key, among in excuses if among & mask),
                rest.excused & mask,
                tuple(rule for rule, tie in zip(rest.rules, ties, strict=True) if tie & mask),
            )
            for mask in masks
        ]


def _narrowed(rules: Sequence[Rule], undecided: Mask, stay: Mask, gone: Mask) -> tuple[tuple[Rule, ...], Mask]:
    """The rules that can still be broken, and who has to go because of the others."""
    left, forced = [], 0
    for owner, peers, room in rules:
        if owner & gone:
            continue
        rule = Rule(owner & undecided, peers & undecided, room - (peers & stay).bit_count())
        if rule.room < 0 and rule.owner:
            forced |= rule.owner
        elif rule.room <= 0 and not rule.owner:
            forced |= rule.peers
        elif rule.peers.bit_count() > rule.room:
            left.append(rule)
    return tuple(left), forced


def _prices(levels: Sequence[int]) -> tuple[list[int], list[int]]:
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


def _twins(knot: Knot) -> list[Mask]:
    """For each bit all that could change places with it unnoticed, itself included."""
    rules = frozenset(knot.rules)
    twins = [1 << key for key in range(len(knot.levels))]
    firsts: list[int] = []
    for key, level in enumerate(knot.levels):
        for first in firsts:
            if knot.levels[first] == level and all(_swapped(rule, first, key) in rules for rule in rules):
                twins[first] |= 1 << key
                break
        else:
            firsts.append(key)
    for first in firsts:
        for key in _bits(twins[first]):
            twins[key] = twins[first]
    return twins


def _swapped(rule: Rule, one: int, other: int) -> Rule:
    return Rule(_swap(rule.owner, one, other), _swap(rule.peers, one, other), rule.room)


def _swap(mask: Mask, one: int, other: int) -> Mask:
    return mask ^ (1 << one | 1 << other) if (mask >> one ^ mask >> other) & 1 else mask


def _bits(mask: Mask) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
