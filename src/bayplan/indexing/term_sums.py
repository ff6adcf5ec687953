"""
Terms as sums of terms, so that what many terms have in common is counted once for all of them.

`tier In (web, mine)` matches what `tier In (web)` matches and what `tier In (mine)` matches, and `app NotIn (mine)`
everything less what `app In (mine)` matches. If each app has such a term, all of them share the counter of the first
summand, and the second one counts few. A value is common if many terms in use mention it. Knows no counters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Protocol, TypeAlias

import msgspec

from bayplan.caching import memoised
from bayplan.indexing.term_lookup import required_values
from bayplan.indexing.term_table import Mention
from bayplan.model.labels import DOES_NOT_EXIST, EXISTS, IN, NOT_IN, Requirement, Selector, requirement, selector_of
from bayplan.model.terms import NAMESPACE, NAMESPACE_LABEL, ExcludedValues, PeerTerm, TermPart, excluded_values

MAX_SUMMANDS = 8  # of one term, for what it requires and for what it excludes

IsCommon: TypeAlias = Callable[[Mention], bool]


class TermUsage(Protocol):
    """What the terms in use have in common."""

    def is_common(self, mention: Mention) -> bool:
        """Whether many of them mention it."""

    def common_groups(self, key: str, values: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        """Those of the values that are common, together if many terms list them together, else one by one."""


class AllowedValues(msgspec.Struct, frozen=True):
    """A requirement with several values, of which a workload has one: of a part of the term, by its number."""

    part: int
    key: str
    values: tuple[str, ...]

    def narrowed(self, term: PeerTerm, values: Sequence[str]) -> PeerTerm:
        """The term with some of the values instead of all."""
        part = term.parts[self.part]
        if self.key == NAMESPACE:
            part = msgspec.structs.replace(part, namespaces=tuple(values))
        elif self.key.startswith(NAMESPACE_LABEL):
            selector = self._narrowed(part.namespace_selector, values)
            part = msgspec.structs.replace(part, namespace_selector=selector)
        else:
            part = msgspec.structs.replace(part, selector=self._narrowed(part.selector, values))
        parts = (*term.parts[: self.part], part, *term.parts[self.part + 1 :])
        return msgspec.structs.replace(term, parts=parts)

    def _narrowed(self, selector: Selector | None, values: Sequence[str]) -> Selector:
        assert selector is not None
        key = self.key.removeprefix(NAMESPACE_LABEL)
        replaced = requirement(key, IN, self.values)
        others = [one for one in selector.requirements if one != replaced]
        return selector_of([*others, requirement(key, IN, values)])


def summands(term: PeerTerm, usage: TermUsage) -> list[tuple[PeerTerm, int]]:
    """Terms with a sign each: what they match, added up, is what the term matches. The first sign is positive."""
    found = []
    for one in disjoint(term, usage):
        excluded = excluded_values(one)
        if excluded is None:
            found.append((one, 1))
        else:
            found.append((excluded.base, 1))
            found += [(less, -1) for less in disjoint_exclusions(excluded, usage)]
    return found


def disjoint(term: PeerTerm, usage: TermUsage) -> list[PeerTerm]:
    """
    Terms of which a workload that the term matches matches exactly one, with common values apart from others.

    Only what has no value of its own is divided further: nobody would share the rest.
    """
    several = _several_allowed(term)
    if not several or is_rare(term, usage.is_common):
        return [term]
    shared, own = [term], list[PeerTerm]()
    divisions: list[tuple[AllowedValues, tuple[str, ...], tuple[tuple[str, ...], ...]]] = []
    for allowed in several:
        groups = usage.common_groups(allowed.key, allowed.values)
        common = groups[0] if len(groups) == 1 else tuple([value for (value,) in groups])
        rare: tuple[str, ...] = ()
        if len(common) < len(allowed.values):
            rare = tuple([value for value in allowed.values if value not in common])
        divisions.append((allowed, rare, groups))
    # Those that have values of their own first, so that the others divide only what is left.
    for allowed, rare, common_groups in sorted(divisions, key=lambda one: not one[1]):
        groups = common_groups
        n_own = len(own) + len(shared) * bool(rare)
        if len(shared) * len(groups) + n_own > MAX_SUMMANDS:
            groups = (tuple(chain.from_iterable(groups)),)
        if len(groups) + bool(rare) < 2 or len(shared) * len(groups) + n_own > MAX_SUMMANDS:
            continue
        if rare:
            own += [one for whole in shared for one in _divided(whole, allowed, (rare,))]
        shared = [one for whole in shared for one in _divided(whole, allowed, groups)]
    return shared + own or [term]


@memoised(16384)
def _divided(term: PeerTerm, allowed: AllowedValues, groups: tuple[tuple[str, ...], ...]) -> tuple[PeerTerm, ...]:
    """The term with each group of the values. What matches nothing is left out: a conjunction has many such."""
    narrowed = [allowed.narrowed(term, values) for values in groups]
    return tuple([one for one in narrowed if () not in required_values(one).values()])


def disjoint_exclusions(excluded: ExcludedValues, usage: TermUsage) -> list[PeerTerm]:
    """Terms of which an excluded workload matches exactly one, with common values apart from others."""
    any_of, is_common = excluded.complement.any_of, usage.is_common
    common = [one for one in (part_of(one, is_common, common=True) for one in any_of) if one is not None]
    if not common or is_rare(excluded.base, is_common):
        return [excluded.complement]
    found = []
    none_of: list[Requirement] = []
    groups = [usage.common_groups(one.key, one.values) for one in common]
    if sum(max(1, len(some)) for some in groups) < MAX_SUMMANDS:
        for one, some in zip(common, groups, strict=True):
            together = [requirement(one.key, IN, values) for values in some] or [one]
            found += [_restricted(excluded.base, none_of, (each,)) for each in together]
            none_of.append(one)
    else:
        found.append(_restricted(excluded.base, (), tuple(common)))
        none_of = common
    rare = [one for one in (part_of(one, is_common, common=False) for one in any_of) if one is not None]
    if rare:
        found.append(_restricted(excluded.base, none_of, tuple(rare)))
    return found


def is_rare(term: PeerTerm, is_common: IsCommon) -> bool:
    """Whether the term requires a value that few terms mention: then it has little in common with others."""
    return any(
        values is not None and not any(is_common((key, value)) for value in values)
        for key, values in required_values(term).items()
    )


def part_of(one: Requirement, is_common: IsCommon, *, common: bool) -> Requirement | None:
    """The requirement with those of its values that are common, or with the others; None if there are none."""
    if one.operator == EXISTS:
        return one if is_common((one.key, None)) == common else None
    values = [value for value in one.values if is_common((one.key, value)) == common]
    return requirement(one.key, IN, values) if values else None


def _restricted(base: PeerTerm, none_of: Iterable[Requirement], any_of: tuple[Requirement, ...]) -> PeerTerm:
    """The term for those of its matches that meet any of the second requirements and none of the first."""
    opposite = [
        requirement(one.key, DOES_NOT_EXIST) if one.operator == EXISTS else requirement(one.key, NOT_IN, one.values)
        for one in none_of
    ]
    if not opposite:
        return msgspec.structs.replace(base, any_of=any_of)
    of_workload = selector_of([one for one in opposite if not one.key.startswith(NAMESPACE_LABEL)])
    of_namespace = selector_of(
        [
            msgspec.structs.replace(one, key=one.key.removeprefix(NAMESPACE_LABEL))
            for one in opposite
            if one.key.startswith(NAMESPACE_LABEL)
        ]
    )
    part = TermPart(of_workload, (), of_namespace) if of_namespace.requirements else TermPart(of_workload, None)
    return msgspec.structs.replace(base, parts=(*base.parts, part), any_of=any_of)


@memoised(16384)
def _several_allowed(term: PeerTerm) -> tuple[AllowedValues, ...]:
    """The requirements of the term that allow several values."""
    found = []
    for number, part in enumerate(term.parts):
        if part.selector is None:
            continue
        found += [
            AllowedValues(number, one.key, one.values)
            for one in part.selector.requirements
            if one.operator == IN and len(one.values) > 1
        ]
        if part.namespace_selector is None:
            if part.namespaces is not None and len(part.namespaces) > 1:
                found.append(AllowedValues(number, NAMESPACE, part.namespaces))
        elif part.namespaces == ():  # else a namespace may be listed instead of selected
            found += [
                AllowedValues(number, NAMESPACE_LABEL + one.key, one.values)
                for one in part.namespace_selector.requirements
                if one.operator == IN and len(one.values) > 1
            ]
    return tuple(found)
