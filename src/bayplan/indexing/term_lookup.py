"""
Finding terms from a workload, by everything that they require of it at once.

Terms that require the same keys form a group, and within a group the required values lead to the terms. So a lookup
takes one step for each group, however many terms there are and whatever labels they share: packet classifiers call this
tuple space search. Each group is listed under the rarest of its keys, so a workload without that key does not pay for
it. The namespace of the workload and the labels of that namespace are keys like its labels. Knows nothing of what terms
are used for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

import msgspec

from bayplan.caching import memoised
from bayplan.model.labels import EXISTS, IN, Labels, Selector
from bayplan.model.terms import NAMESPACE, NAMESPACE_LABEL, PeerTerm

MAX_COMBINATIONS = 64  # of the values of several keys, unless one key alone has more
MIN_SHARED_GROUPS = 8  # groups under one key from which on it pays to look for rarer keys

RequiredValues = Mapping[str, tuple[str, ...] | None]  # the values that a term allows of each key; None for any
GroupKeys = tuple[tuple[str, ...], tuple[str, ...]]
Posting = tuple[GroupKeys, tuple[str, ...]]  # a group, and the values under which a term is found there
Entry = TypeVar("Entry")


class TermGroup(msgspec.Struct, Generic[Entry], eq=False):
    """The terms that require values of `valued` keys and the presence of `present` ones, by these values."""

    valued: tuple[str, ...]
    present: tuple[str, ...]
    listed_under: str = ""
    by_values: dict[tuple[str, ...], dict[PeerTerm, Entry]] = {}

    @property
    def keys(self) -> GroupKeys:
        return self.valued, self.present

    def find(self, attributes: Labels) -> Mapping[PeerTerm, Entry]:
        """The terms whose values a workload with these attributes has."""
        for key in self.present:
            if key not in attributes:
                return {}
        try:
            values = tuple([attributes[key] for key in self.valued])
        except KeyError:
            return {}
        return self.by_values.get(values, {})


class TermLookup(msgspec.Struct, Generic[Entry], eq=False):
    """
    Terms with an entry each.

    `find` looks at the groups whose rarest key the workload has, and in each at the terms of the workload's values:
    nearly all of these match. Further conditions (NotIn, DoesNotExist, a second requirement with many values) are left
    to the caller.
    """

    _groups: dict[GroupKeys, TermGroup[Entry]] = {}
    _by_key: dict[str, dict[GroupKeys, TermGroup[Entry]]] = {}
    _without_keys: TermGroup[Entry] = msgspec.field(default_factory=lambda: TermGroup((), ()))

    def add(self, term: PeerTerm, entry: Entry) -> None:
        for keys, values in _postings(term):
            group = self._groups.get(keys)
            if group is None:
                group = self._groups[keys] = self._new_group(keys)
            having = group.by_values.get(values)
            if having is None:
                group.by_values[values] = {term: entry}
            else:
                having[term] = entry

    def remove(self, term: PeerTerm) -> None:
        for keys, values in _postings(term):
            group = self._groups[keys]
            del group.by_values[values][term]
            if not group.by_values[values]:
                del group.by_values[values]
            if not group.by_values:
                del self._groups[keys]
                self._unlist(group)

    def find(self, labels: Labels, namespace: str, namespace_labels: Labels) -> Iterable[Entry]:
        """The terms that may match a workload: each once, and every term that does match."""
        attributes = {NAMESPACE: namespace, **labels}
        for key, value in namespace_labels.items():
            attributes[NAMESPACE_LABEL + key] = value
        by_key = self._by_key
        found = dict(self._without_keys.find(attributes))
        for key in attributes:
            if key in by_key:
                for group in by_key[key].values():
                    found.update(group.find(attributes))
        return found.values()

    def _new_group(self, keys: GroupKeys) -> TermGroup[Entry]:
        made: TermGroup[Entry] = TermGroup(*keys)
        if not any(keys):
            self._without_keys = made
            return made
        listed = self._list(made)
        # Each time the list of a key doubles, its groups are given a rarer key if they have one by now.
        n = len(listed)
        if n >= MIN_SHARED_GROUPS and not n & (n - 1):
            for group in list(listed.values()):
                self._unlist(group)
                self._list(group)
        return made

    def _list(self, group: TermGroup[Entry]) -> dict[GroupKeys, TermGroup[Entry]]:
        """List the group under its rarest key; returns all groups under that key."""
        group.listed_under = min((*group.valued, *group.present), key=lambda key: len(self._by_key.get(key, ())))
        listed = self._by_key.setdefault(group.listed_under, {})
        listed[group.keys] = group
        return listed

    def _unlist(self, group: TermGroup[Entry]) -> None:
        if not any(group.keys):
            return
        listed = self._by_key[group.listed_under]
        del listed[group.keys]
        if not listed:
            del self._by_key[group.listed_under]


@memoised(16384)
def required_values(term: PeerTerm) -> RequiredValues:
    """What every workload has that the term matches: for each key the values allowed. An empty tuple allows none."""
    found: dict[str, tuple[str, ...] | None] = {}
    for key, values in _requirements(term):
        known = found.get(key)
        if known is None:
            found[key] = values
        elif values is not None and values is not known:
            found[key] = tuple([value for value in known if value in values])
    return found


def _requirements(term: PeerTerm) -> Iterator[tuple[str, tuple[str, ...] | None]]:
    """The positive requirements of the term, each a key and the values allowed."""
    for part in term.parts:
        if part.selector is None:  # matches nothing
            yield NAMESPACE, ()
            continue
        yield from _positive(part.selector, "")
        if part.namespace_selector is None:
            if part.namespaces is not None:
                yield NAMESPACE, part.namespaces
        elif part.namespaces == ():  # else a namespace may be listed instead of selected
            yield from _positive(part.namespace_selector, NAMESPACE_LABEL)


def _positive(selector: Selector, prefix: str) -> Iterator[tuple[str, tuple[str, ...] | None]]:
    for requirement in selector.requirements:
        if requirement.operator == IN:
            yield prefix + requirement.key, requirement.values
        elif requirement.operator == EXISTS:
            yield prefix + requirement.key, None


def _postings(term: PeerTerm) -> Collection[Posting]:
    """The groups of a term, and the values under which it is found there; those of `any_of` have postings each."""
    alternatives = _alternatives(term)
    if len(alternatives) == 1 and not term.any_of:
        posting = _single_posting(alternatives[0])
        if posting is not None:
            return (posting,)
    # A term may have the same posting more than once: what one of `any_of` allows may be required besides.
    found: dict[Posting, None] = {}
    for required in alternatives:
        if not term.any_of:
            found.update(dict.fromkeys(_combinations(required, ())))
        for one in term.any_of:
            if one.operator == EXISTS:
                found.update(dict.fromkeys(_combinations({one.key: None, **required}, ())))
            else:
                found.update(dict.fromkeys(_combinations({**required, one.key: one.values}, (one.key,))))
    return found


def _single_posting(required: RequiredValues) -> Posting | None:
    """The posting of what requires one value of each key, as matchLabels does: by far the most frequent case."""
    values = []
    for _, allowed in sorted(required.items()):
        if allowed is None or len(allowed) != 1:
            return None
        values.append(allowed[0])
    return (tuple(sorted(required)), ()), tuple(values)


def _alternatives(term: PeerTerm) -> list[RequiredValues]:
    """What the term requires; two ways where it lists namespaces and selects others by their labels."""
    required = required_values(term)
    if len(term.parts) == 1 and term.parts[0].namespace_selector is None:
        return [required]
    both = [part for part in term.parts if part.namespaces and part.namespace_selector is not None]
    if len(both) != 1:
        return [required]
    (part,) = both
    assert part.namespace_selector is not None
    selected = dict(_positive(part.namespace_selector, NAMESPACE_LABEL))
    return [{**required, NAMESPACE: part.namespaces}, {**required, **selected}] if selected else [required]


def _combinations(required: RequiredValues, chosen: Sequence[str]) -> Iterator[Posting]:
    """
    The group, and every combination of values, of the chosen keys and of others as far as there are not too many.

    Of the keys that are left out, only the presence is required. For example, `app=web` in two namespaces is in the
    group of the keys app and `NAMESPACE`, under (web, the first namespace) and (web, the second one).
    """
    n_values = {key: len(values) for key, values in required.items() if values is not None}
    # The more values a label may have, the more distinct ones there are. Terms that list namespaces list the same ones.
    valued, n_combinations = list(chosen), math.prod(n_values[key] for key in chosen)
    for key in sorted(
        n_values.keys() - set(chosen), key=lambda key: (n_values[key] > 1, key == NAMESPACE, -n_values[key])
    ):
        if n_combinations * n_values[key] <= MAX_COMBINATIONS or not any(n_values[one] > 1 for one in valued):
            valued.append(key)
            n_combinations *= n_values[key]
    valued.sort()
    present = tuple(sorted(required.keys() - set(valued)))
    for values in itertools.product(*[required[key] or () for key in valued]):
        yield (tuple(valued), present), values
