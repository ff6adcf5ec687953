"""
The terms in use, each once, with the counters of the workloads that they match or that own them.

A term is in use by placed workloads that own it (`OwnerRule`) and by cached evaluations that count its matches, and is
dropped with its last use. Knows nothing of what the counts are used for.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.slots import ABSENT, At, ValueColumn
from bayplan.indexing.term_lookup import TermLookup
from bayplan.model.labels import IN, NOT_IN, Requirement
from bayplan.model.reasons import Mask, Slots
from bayplan.model.terms import NAMESPACE, NAMESPACE_LABEL, PeerTerm

if TYPE_CHECKING:
    from bayplan.indexing.owner_rules import OwnerRule, OwnerRuleKey

# A counter keeps a dense array once one domain in this many is occupied; with fewer it costs more than it saves.
DENSE_SHARE = 16
COMMON = 32  # terms that name a value; with more, what has the value is counted once for all of them
MAX_LISTS = 8  # common lists of values in which a value may be, so that few counters have what has the value
MAX_SINGLE_TARGETS = 16  # up to so many targets, plain integers are faster than arrays

Mention = tuple[str, str | None]  # (key, value), or (key, None) for any value
ListedValues = tuple[str, tuple[str, ...]]  # a key with several values, all that a requirement has


@dataclass(slots=True, eq=False)
class Counter:
    """
    Distinct workloads per domain of one topology key, and `anywhere`, which includes targets without the label.

    `by_domain` is sparse, and `n_in_domains` its sum; a dense copy exists only while many domains are occupied.
    """

    column: ValueColumn
    by_domain: dict[int, int] = field(default_factory=dict)
    anywhere: int = 0
    n_in_domains: int = 0
    _dense: NDArray[np.int64] | None = None

    def add(self, slots: tuple[int, ...], change: int) -> None:
        """Count one workload (or `change` of them) that is on all of these targets at once."""
        self.anywhere += change
        column = self.column
        if column.further:
            for domain in {domain for slot in slots for domain in column.domains(slot)}:
                self._bump(domain, change)
            return
        at = column.at
        for domain in (at[slots[0]],) if len(slots) == 1 else {at[slot] for slot in slots}:
            if domain != ABSENT:
                self._bump(domain, change)

    def add_all(self, groups: Sequence[Mapping[int, Collection[object]]], n_members: int, change: int) -> None:
        """Count many workloads that are on one target each: `groups` have the `n_members` of them by slot."""
        column, n = self.column, sum(map(len, groups))
        if column.further:
            for members in groups:
                for slot, here in members.items():
                    self.add((slot,), change * len(here))
            return
        if n < MAX_SINGLE_TARGETS:
            at = column.at
            for members in groups:
                for slot, here in members.items():
                    if at[slot] != ABSENT:
                        self._bump(at[slot], change * len(here))
            self.anywhere += change * n_members
            return
        domains = column.of_slot.take(np.fromiter(chain.from_iterable(groups), np.intp, n))
        # Where no target has two of a group, there is no need to look at every set.
        numbers = None
        if n != n_members:
            numbers = np.fromiter((len(here) for members in groups for here in members.values()), np.int64, n)
        by_domain = np.bincount(domains, weights=numbers, minlength=1).astype(np.int64)
        by_domain[ABSENT] = 0
        occupied = np.flatnonzero(by_domain)
        counts = zip(occupied.tolist(), by_domain[occupied].tolist(), strict=True)
        if self.anywhere or change != 1:
            for domain, number in counts:
                self._bump(domain, change * number)
        else:
            self.by_domain, self._dense = dict(counts), None
            self.n_in_domains = int(by_domain.sum())
        self.anywhere += change * n_members

    def include(self, other: Counter) -> None:
        """Count what another counter of the same column counts."""
        self.anywhere += other.anywhere
        for domain, count in other.by_domain.items():
            self._bump(domain, count)

    def _bump(self, domain: int, change: int) -> None:
        self.n_in_domains += change
        by_domain, dense = self.by_domain, self._dense
        count = by_domain.get(domain, 0) + change
        if count:
            by_domain[domain] = count
        else:
            del by_domain[domain]
        if dense is not None and domain < len(dense):
            dense[domain] = count

    def array(self) -> NDArray[np.int64]:
        """The counts by domain, shape (n_domains,); read it before the next change."""
        n_domains = self.column.n_domains
        if self._dense is not None and len(self._dense) == n_domains:
            return self._dense
        counts = np.zeros(n_domains, np.int64)
        n = len(self.by_domain)
        if n:
            counts[np.fromiter(self.by_domain, np.intp, n)] = np.fromiter(self.by_domain.values(), np.int64, n)
        self._dense = counts if n * DENSE_SHARE > n_domains else None
        return counts


def sum_by_domain(n_domains: int, weighted: Iterable[tuple[Counter, int]]) -> NDArray[np.int64]:
    """The counts of several counters of one column, each times its weight, added up; shape (n_domains,)."""
    total = np.zeros(n_domains, np.int64)
    domains: list[int] = []
    amounts: list[int] = []
    for counter, weight in weighted:
        by_domain = counter.by_domain
        if len(by_domain) * DENSE_SHARE > n_domains:
            total += weight * counter.array()
        else:  # in a list with those of all others like it, because each array operation costs more than a few entries
            domains += by_domain
            amounts += by_domain.values() if weight == 1 else [weight * count for count in by_domain.values()]
    np.add.at(total, domains, amounts)
    return total


class Reach(msgspec.Struct, eq=False):
    """
    The counter as seen from targets: how many counted workloads share a domain with each of them.

    With one topology key, the counter counts by the domains of that key. With several (the empty topology
    key of the preset `design`), it counts by target, and each workload in the union of its domains counts once.

    `others` are further counters of the same column, each with its sign: "all but those" is counted as all less those.
    """

    counter: Counter
    keys: tuple[str, ...]
    columns: tuple[ValueColumn, ...]
    others: tuple[tuple[Counter, int], ...] = ()

    @property
    def occupied(self) -> bool:
        """Whether any domain has a counted workload."""
        n_in_domains = self.counter.n_in_domains
        for counter, sign in self.others:
            n_in_domains += sign * counter.n_in_domains
        return n_in_domains > 0

    @property
    def anywhere(self) -> int:
        """How many workloads are counted, on targets without the label too."""
        return self.counter.anywhere + sum([sign * counter.anywhere for counter, sign in self.others])

    def by_domain(self) -> Mapping[int, int]:
        """The domains that have counted workloads, with their counts; read it before the next change."""
        if not self.others:
            return self.counter.by_domain
        summed = dict(self.counter.by_domain)
        for counter, sign in self.others:
            for domain, count in counter.by_domain.items():
                summed[domain] = summed.get(domain, 0) + sign * count
        return {domain: count for domain, count in summed.items() if count}

    def _array(self) -> NDArray[np.int64]:
        if not self.others:
            return self.counter.array()
        return sum_by_domain(self.counter.column.n_domains, ((self.counter, 1), *self.others))

    def counts(self, at: At, only: Mask | None = None) -> NDArray[np.int64]:
        """The count for each target, shape (n,); `only` is a mask of the targets whose workloads count."""
        if len(self.columns) == 1:
            counts = self.columns[0].gather(self._array(), at)
            # All targets of a domain have the same count, so the mask of this target is that of the counted ones.
            return counts if only is None else np.where(only[at], counts, 0)
        by_slot = np.zeros(len(self.columns[0].of_slot), np.int64)
        targets = self.counter.column
        for domain, count in self.by_domain().items():
            slot = int(targets.slots_in(domain)[0])
            if only is None or only[slot]:
                by_slot[self.slots_sharing_domains(slot)] += count
        return by_slot[at]

    def exceeds(self, limit: int, at: At) -> Mask:
        """Which targets share a domain with more counted workloads than the limit of a term, which is 0 upstream."""
        exceeded: Mask = self.counts(at) > limit
        return exceeded

    def count_at(self, slot: int) -> int:
        """The count for one target."""
        if len(self.columns) > 1:
            return int(self.counts(np.array([slot]))[0])
        column, by_domain = self.columns[0], self.counter.by_domain
        if slot in column.further:
            return max(self.by_domain().get(domain, 0) for domain in column.domains(slot))
        domain = column.at[slot]
        count = by_domain.get(domain, 0)
        for counter, sign in self.others:
            count += sign * counter.by_domain.get(domain, 0)
        return count

    def is_present(self, slot: int) -> bool:
        """Whether one target has a label of any of the keys."""
        return any(column.at[slot] for column in self.columns)

    def present(self, at: At) -> Mask:
        """Which targets have a label of any of the keys."""
        present = self.columns[0].present(at)
        for column in self.columns[1:]:
            present = present | column.present(at)
        return present

    def slots_sharing_domains(self, slot: int) -> Slots:
        """The targets that share a domain with one."""
        pieces = [column.slots_in(domain) for column in self.columns for domain in column.domains(slot)]
        if len(pieces) == 1:
            return pieces[0]
        return np.unique(np.concatenate(pieces)) if pieces else np.zeros(0, np.intp)


class TermEntry(msgspec.Struct, eq=False):
    """One term: the counters of its matches by topology key, as far as they are in use, and its owners."""

    term: PeerTerm
    uses: int = 0
    mentions: Iterable[Mention] = ()
    matches: dict[str, Counter] = {}
    owner_rules: dict[OwnerRuleKey, OwnerRule] = {}
    n_without_family: int = 0  # of the owner rules


class TermTable(msgspec.Struct, eq=False):
    """
    All terms in use.

    `mentioned` are the label values that any of them names, and as (key, None) the keys for whose presence any of them
    asks, each with the number of terms. Only these distinguish classes. `n_mentions` is their number by key. Namespaces
    and their labels are mentioned too; they distinguish nothing. `listed` are the lists of several values that terms
    have, with the number of terms.
    """

    mentioned: Tally[Mention] = msgspec.field(default_factory=Tally)
    n_mentions: Tally[str] = msgspec.field(default_factory=Tally)
    listed: Tally[ListedValues] = msgspec.field(default_factory=Tally)
    mentions_generation: int = 0  # changes whenever something is mentioned for the first time, or no longer
    n_by_namespace_labels: int = 0  # terms that select namespaces by their labels
    counted: TermLookup[TermEntry] = msgspec.field(default_factory=TermLookup)  # the terms whose matches are counted
    _entries: dict[PeerTerm, TermEntry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def is_common(self, mention: Mention) -> bool:
        """Whether many terms mention it."""
        return self.mentioned.get(mention, 0) > COMMON

    def common_groups(self, key: str, values: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        """Those of the values that are common, together if they are a common list, else one by one."""
        if self._is_common_list(key, values):
            return (values,)
        common = tuple([value for value in values if self.is_common((key, value))])
        if 1 < len(common) < len(values) and self._is_common_list(key, common):
            return (common,)
        return tuple([(value,) for value in common])

    def _is_common_list(self, key: str, values: tuple[str, ...]) -> bool:
        """Whether many terms list exactly these values, and few other lists that are common have one of them."""
        n = self.listed.get((key, values), 0)
        return n > COMMON and max([self.mentioned[key, value] for value in values]) <= MAX_LISTS * n

    def use(self, term: PeerTerm) -> tuple[TermEntry, list[Mention]]:
        """The entry of the term, used once more, and what is newly mentioned."""
        entry = self._entries.get(term)
        new: list[Mention] = []
        if entry is None:
            entry = self._entries[term] = TermEntry(term, mentions=mentions_of(term))
            self.n_by_namespace_labels += _reads_namespace_labels(term)
            for listed in _listed_by(term):
                self.listed[listed] += 1
            for mention in entry.mentions:
                n = self.mentioned[mention] = self.mentioned.get(mention, 0) + 1
                if n == 1 and mention[0][:1] != "\0":
                    self.n_mentions[mention[0]] += 1
                    self.mentions_generation += 1
                    new.append(mention)
        entry.uses += 1
        return entry, new

    def release(self, entry: TermEntry) -> list[Mention] | None:
        """Use the term once less; with the last use it is dropped, and the result is what is no longer mentioned."""
        entry.uses -= 1
        if entry.uses:
            return None
        del self._entries[entry.term]
        if entry.matches:
            self.counted.remove(entry.term)
        self.n_by_namespace_labels -= _reads_namespace_labels(entry.term)
        for listed in _listed_by(entry.term):
            self.listed[listed] -= 1
            if not self.listed[listed]:
                del self.listed[listed]
        dropped = []
        for mention in entry.mentions:
            self.mentioned[mention] -= 1
            if self.mentioned[mention]:
                continue
            del self.mentioned[mention]
            if mention[0][:1] != "\0":
                self.mentions_generation += 1
                self.n_mentions[mention[0]] -= 1
                if not self.n_mentions[mention[0]]:
                    del self.n_mentions[mention[0]]
                dropped.append(mention)
        return dropped


def _reads_namespace_labels(term: PeerTerm) -> bool:
    return any(part.namespace_selector is not None for part in term.parts) or any(
        one.key.startswith(NAMESPACE_LABEL) for one in term.any_of
    )


def mentions_of(term: PeerTerm) -> Iterable[Mention]:
    """
    The label values that a term names, and (key, None) for the presence of a key.

    `In` and `NotIn` read a label with another value like one that is absent, so they do not ask for its presence.
    """
    found: dict[Mention, None] = {}
    for part in term.parts:
        if part.selector is not None:
            found.update(_named_by(part.selector.requirements, ""))
        if part.namespace_selector is not None:
            found.update(_named_by(part.namespace_selector.requirements, NAMESPACE_LABEL))
        found.update(((NAMESPACE, name), None) for name in part.namespaces or ())
    found.update(_named_by(term.any_of, ""))
    return found


def _named_by(requirements: Iterable[Requirement], prefix: str) -> Iterator[tuple[Mention, None]]:
    for one in requirements:
        for value in one.values if one.operator in (IN, NOT_IN) else (None,):
            yield (prefix + one.key, value), None


def _listed_by(term: PeerTerm) -> Iterable[ListedValues]:
    """The lists of several values that a term has, each once."""
    found: dict[ListedValues, None] = {}
    for part in term.parts:
        for selector, prefix in ((part.selector, ""), (part.namespace_selector, NAMESPACE_LABEL)):
            for one in () if selector is None else selector.requirements:
                if len(one.values) > 1:
                    found[prefix + one.key, one.values] = None
        if part.namespaces is not None and len(part.namespaces) > 1:
            found[NAMESPACE, part.namespaces] = None
    found.update(((one.key, one.values), None) for one in term.any_of if len(one.values) > 1)
    return found
