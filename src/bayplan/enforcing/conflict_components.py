"""
Conflicts that hang together, as bits: the workloads, the most wanted first, and the rules between them.

What it costs that one goes, and who could change places with whom. Knows nothing of how the best choice is found.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

Mask = int


class ConflictRule(NamedTuple):
    """While the owner stays, at most `room` of the peers do. An owner of 0 stays already."""

    owner: Mask
    peers: Mask
    room: int


class ConflictComponent(NamedTuple):
    """
    By bit: `levels` are the same for the same priority and higher for a lower one; `excuses` has those to whom the
    workload would have to give way. It is wronged if it goes and none of them stays.
    """

    rules: Sequence[ConflictRule]
    levels: Sequence[int]
    excuses: Sequence[Mask]


def prices(levels: Sequence[int]) -> tuple[list[int], list[int]]:
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


def interchangeable(knot: ConflictComponent) -> list[Mask]:
    """For each bit all that could change places with it unnoticed, itself included."""
    rules, looks = frozenset(knot.rules), _looks(knot)
    found = [1 << key for key in range(len(knot.levels))]
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


def _looks(knot: ConflictComponent) -> list[tuple[int, ...]]:
    """What twins have in common at least, for each bit: the level, and the shapes of the rules that it is in."""
    looks: list[list[int]] = [[] for _ in knot.levels]
    for owner, peers, room in knot.rules:
        shape = peers.bit_count() << 32 | room << 1
        looks[owner.bit_length() - 1].append(shape | 1)
        for peer in bits(peers):
            looks[peer].append(shape)
    return [(level, *sorted(shapes)) for level, shapes in zip(knot.levels, looks, strict=True)]


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
