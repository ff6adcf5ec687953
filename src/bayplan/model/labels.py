"""
Labels and taints, and what matches them: label selectors, as `LabelSelectorAsSelector` reads them, and tolerations.

Does not know namespaces, topology or nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Self

import msgspec

Labels = Mapping[str, str]

IN, NOT_IN, EXISTS, DOES_NOT_EXIST = "In", "NotIn", "Exists", "DoesNotExist"
MAX_FEW_VALUES = 16  # up to so many values are compared one by one
NEGATIVE = frozenset({NOT_IN, DOES_NOT_EXIST})


class ManyValues(tuple[str, ...]):  # noqa: SLOT001 - the set needs a place
    """The values of a requirement with a set beside them, because some requirements list hundreds."""

    _set: frozenset[str]

    def __new__(cls, values: Iterable[str]) -> Self:
        made = super().__new__(cls, values)
        made._set = frozenset(made)
        return made

    def __contains__(self, value: object) -> bool:
        return value in self._set


class Requirement(msgspec.Struct, frozen=True, order=True):
    """One expression on a label."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Labels) -> bool:
        value = labels.get(self.key)
        if self.operator == IN:
            return value is not None and value in self.values
        if self.operator == EXISTS:
            return value is not None
        if self.operator == NOT_IN:  # an absent key is not in the set either
            return value is None or value not in self.values
        return value is None

    def __str__(self) -> str:
        if self.operator == EXISTS:
            return self.key
        if self.operator == DOES_NOT_EXIST:
            return f"!{self.key}"
        if self.operator == IN and len(self.values) == 1:
            return f"{self.key}={self.values[0]}"
        return f"{self.key} {self.operator.lower()} ({','.join(self.values)})"


class Selector(msgspec.Struct, frozen=True, cache_hash=True):
    """
    Requirements that must all hold; without any, everything matches.

    A null selector, which matches nothing, is `None` wherever a `Selector | None` is accepted.
    """

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Labels) -> bool:
        for requirement in self.requirements:  # noqa: SIM110 - a generator costs more than most matches
            if not requirement.matches(labels):
                return False
        return True

    def and_also(self, further: Iterable[Requirement]) -> Selector:
        return selector_of((*self.requirements, *further))

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(requirement.key for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements) or "everything"


EVERYTHING = Selector()


def selector_of(requirements: Iterable[Requirement]) -> Selector:
    """A selector in canonical form, so that selectors with the same meaning are mostly equal values."""
    return Selector(tuple(sorted(set(requirements))))


def requirement(key: str, operator: str, values: Iterable[str] = ()) -> Requirement:
    """A requirement in canonical form: its values sorted, each once."""
    listed = sorted(set(values))
    return Requirement(key, operator, tuple(listed) if len(listed) <= MAX_FEW_VALUES else ManyValues(listed))


def equals(labels: Labels) -> Selector:
    """The selector that requires all of these labels."""
    return selector_of(Requirement(key, IN, (value,)) for key, value in labels.items())


def matches(selector: Selector | None, labels: Labels) -> bool:
    return selector is not None and selector.matches(labels)


NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "PreferNoSchedule", "NoExecute"
HARD_EFFECTS = (NO_SCHEDULE, NO_EXECUTE)


class Taint(msgspec.Struct, frozen=True):
    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class Toleration(msgspec.Struct, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator in ("", "Equal"):
            return self.value == taint.value
        return self.operator == "Exists"


UNSCHEDULABLE_TAINT = Taint("node.kubernetes.io/unschedulable", "", NO_SCHEDULE)


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(toleration.tolerates(taint) for toleration in tolerations)
