"""Labels and label selectors, as `LabelSelectorAsSelector` reads them. Knows nothing of namespaces or topology."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

Labels = Mapping[str, str]

IN, NOT_IN, EXISTS, DOES_NOT_EXIST = "In", "NotIn", "Exists", "DoesNotExist"
NEGATIVE = frozenset({NOT_IN, DOES_NOT_EXIST})


class Requirement(msgspec.Struct, frozen=True, order=True):
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
    Requirements that must all hold: none at all matches everything.

    A null selector, which matches nothing, is `None` wherever a `Selector | None` is taken.
    """

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Labels) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)

    def and_also(self, further: Iterable[Requirement]) -> Selector:
        return selector_of((*self.requirements, *further))

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(requirement.key for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements) or "everything"


EVERYTHING = Selector()


def selector_of(requirements: Iterable[Requirement]) -> Selector:
    """A selector in canonical form, so that equal meanings are mostly equal values."""
    return Selector(tuple(sorted(set(requirements))))


def requirement(key: str, operator: str, values: Iterable[str] = ()) -> Requirement:
    return Requirement(key, operator, tuple(sorted(set(values))))


def equals(labels: Labels) -> Selector:
    """The selector that a plain map of labels stands for."""
    return selector_of(Requirement(key, IN, (value,)) for key, value in labels.items())


def matches(selector: Selector | None, labels: Labels) -> bool:
    return selector is not None and selector.matches(labels)
