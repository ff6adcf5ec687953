"""
A model of whole numbers and linear constraints, each of which belongs to a rule or is part of the model's structure.

Knows nothing of pods, and nothing of the program that solves it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import msgspec

Term = tuple[int, int]  # a variable and its factor


class Constraint(msgspec.Struct, frozen=True):
    """
    The sum of the terms is at most `most`, always or where the variable `when`, which is 0 or 1, is 1.

    It follows from all `rules` together; without any, it is part of what the variables mean.
    """

    terms: tuple[Term, ...]
    most: int
    rules: tuple[int, ...] = ()
    when: int | None = None


class LinearModel:
    """
    Variables from 0 to an upper bound, constraints, and what to maximise.

    `rules` names each rule once, in the order in which constraints of it were first added. `details` are variables of
    which others are sums: what remains without them is a smaller model, that has a solution wherever this one has.
    """

    def __init__(self) -> None:
        self.upper: list[int] = []
        self.constraints: list[Constraint] = []
        self.objective: list[Term] = []
        self.rules: list[Hashable] = []
        self.details: set[int] = set()
        self.n_terms = 0
        self._number_of: dict[Hashable, int] = {}

    def variable(self, upper: int, *, is_detail: bool = False) -> int:
        self.upper.append(upper)
        number = len(self.upper) - 1
        if is_detail:
            self.details.add(number)
        return number

    def rule(self, key: Hashable) -> int:
        """The number of a rule, which constraints of it carry."""
        if key not in self._number_of:
            self._number_of[key] = len(self.rules)
            self.rules.append(key)
        return self._number_of[key]

    def at_most(self, terms: Iterable[Term], most: int, *rules: int, when: int | None = None) -> None:
        """Add a constraint, unless the bounds of the variables imply it."""
        kept = tuple(terms)
        if sum(factor * self.upper[one] for one, factor in kept if factor > 0) > most:
            self.constraints.append(Constraint(kept, most, rules, when))
            self.n_terms += len(kept) + 1

    def at_least(self, terms: Iterable[Term], least: int, *rules: int, when: int | None = None) -> None:
        self.at_most([(one, -factor) for one, factor in terms], -least, *rules, when=when)
