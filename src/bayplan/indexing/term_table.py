"""How many workloads of some sort each domain of one topology key holds. Knows nothing of why they are counted."""

from __future__ import annotations

import enum
from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.slots import ABSENT, At, ValueColumn
from bayplan.model.labels import EXISTS, IN, Labels, Requirement
from bayplan.model.reasons import Mask, Slots
from bayplan.model.terms import PeerTerm, PodTerm

# A counter gets a dense mirror once one domain in this many is occupied; below that a sparse one is cheaper to keep.
DENSE_SHARE = 16
MAX_SINGLE_TARGETS = 16  # targets up to which one after another is quicker than arrays


class Counter:
    """
    Distinct workloads per domain, and `anywhere` (those on targets without the label too).

    The truth is sparse; a dense mirror exists only while the counter is well filled.
    """

    __slots__ = ("_dense", "anywhere", "by_domain", "column")

    def __init__(self, column: ValueColumn) -> None:
        self.column = column
        self.by_domain: dict[int, int] = {}
        self.anywhere = 0
        self._dense: NDArray[np.int64] | None = None

    def add(self, slots: tuple[int, ...], change: int) -> None:
        """One workload (or `change` of them) came to, or left, all of these targets at once."""
        self.anywhere += change
        if len(slots) == 1:
            domain = self.column.at[slots[0]]
            if domain and slots[0] not in self.column.further:
                self._bump(domain, change)
                return
        for domain in {domain for slot in slots for domain in self.column.domains(slot)}:
            self._bump(domain, change)

    def add_all(self, members: Mapping[int, Collection[object]], sign: int) -> None:
        """Many workloads came to, or left, one target each: `members` are those of every target."""
        column, n = self.column, len(members)
        if n < MAX_SINGLE_TARGETS or column.further:
            for slot, here in members.items():
                self.add((slot,), sign * len(here))
            return
        numbers = np.fromiter(map(len, members.values()), np.int64, n)
        domains = column.of_slot.take(np.fromiter(members, np.intp, n))
        self.anywhere += sign * int(numbers.sum())
        by_domain = np.bincount(domains, weights=numbers, minlength=1).astype(np.int64)
        by_domain[ABSENT] = 0
        changed = np.flatnonzero(by_domain)
        for domain, number in zip(changed.tolist(), by_domain[changed].tolist(), strict=True):
            self._bump(domain, sign * number)

    def _bump(self, domain: int, change: int) -> None:
        count = self.by_domain.get(domain, 0) + change
        if count:
            self.by_domain[domain] = count
        else:
            del self.by_domain[domain]
        if self._dense is not None and domain < len(self._dense):
            self._dense[domain] = count

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


# RF merged from indexing.reach: How many of some sort of workload stand near each target: in its domain of one key,
# or in its domain of any of several. Knows nothing of why they are counted.


class Reach:
    """
    A counter seen from targets through topology columns.

    With one column, the counter counts by that column's domains. With several (the seed's empty topology key), it
    counts by target, and "near" is the union of the target's domains, in which each workload counts once.
    """

    __slots__ = ("columns", "counter")

    def __init__(self, counter: Counter, columns: tuple[ValueColumn, ...]) -> None:
        self.counter = counter
        self.columns = columns

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(column.key for column in self.columns)

    @property
    def occupied(self) -> bool:
        """Whether any domain holds one."""
        return bool(self.counter.by_domain)

    def counts(self, at: At, only: Mask | None = None) -> NDArray[np.int64]:
        """How many are near each target, shape (n,); `only` counts those on some targets, shape (capacity,)."""
        if len(self.columns) == 1:
            counts = self.columns[0].gather(self.counter.array(), at)
            # Targets of one domain see the same, so what holds here holds where the counted ones stand.
            return counts if only is None else np.where(only[at], counts, 0)
        near = np.zeros(len(self.columns[0].of_slot), np.int64)
        targets = self.counter.column
        for domain, count in self.counter.by_domain.items():
            slot = int(targets.slots_in(domain)[0])
            if only is None or only[slot]:
                near[self.slots_sharing_domains(slot)] += count
        return near[at]

    def count_at(self, slot: int) -> int:
        """How many are near one target."""
        if len(self.columns) > 1:
            return int(self.counts(np.array([slot]))[0])
        column, by_domain = self.columns[0], self.counter.by_domain
        if slot in column.further:
            return max(by_domain.get(domain, 0) for domain in column.domains(slot))
        return by_domain.get(column.at[slot], 0)

    def is_present(self, slot: int) -> bool:
        """Whether one target has the topology."""
        return any(column.at[slot] for column in self.columns)

    def present(self, at: At) -> Mask:
        """Which targets have the topology at all: any of its keys."""
        present = self.columns[0].present(at)
        for column in self.columns[1:]:
            present = present | column.present(at)
        return present

    def slots_sharing_domains(self, slot: int) -> Slots:
        """The targets near one: those that share one of its domains."""
        pieces = [column.slots_in(domain) for column in self.columns for domain in column.domains(slot)]
        if len(pieces) == 1:
            return pieces[0]
        return np.unique(np.concatenate(pieces)) if pieces else np.zeros(0, np.intp)


# RF merged from indexing.term_table: The terms in use, each once, found from labels without looking at all of them. A
# term is used by placed workloads that hold it against newcomers (`OwnerRule`) and by cached evaluations that count
# its matches. It is forgotten with its last use. Knows nothing of what the counts are for.


Anchor = tuple[str, str | None]  # (key, value), or (key, None) for any value


class Role(enum.Enum):
    """What a placed workload's term does to newcomers that it matches."""

    REQUIRED = "requires"
    ANTI_REQUIRED = "refuses"
    PREFERRED = "prefers"
    ANTI_PREFERRED = "avoids"


class OwnerRule:
    """A term as held by placed workloads: who holds it where. `self_matching`: its owners match it themselves."""

    __slots__ = ("entry", "limit", "reach", "role", "self_matching", "source", "uses", "weight")

    def __init__(self, role: Role, entry: TermEntry, source: PodTerm, reach: Reach, *, self_matching: bool) -> None:
        self.role = role
        self.entry = entry
        self.source = source
        self.reach = reach
        self.weight = source.weight
        self.limit = source.limit
        self.self_matching = self_matching
        self.uses = 0


OwnerRuleKey = tuple[Role, tuple[str, ...], int, int, bool]


class TermEntry:
    """One term: its match counters by topology key (only those somebody asked for) and who holds it."""

    __slots__ = ("anchors", "matches", "owner_rules", "term", "uses")

    def __init__(self, term: PeerTerm) -> None:
        self.term = term
        self.uses = 0
        self.matches: dict[str, Counter] = {}
        self.owner_rules: dict[OwnerRuleKey, OwnerRule] = {}
        self.anchors = anchors_of(term)


class TermTable:
    """
    All terms in use. `mentioned` are the label keys that any of them looks at, as (key, None), and the values of them
    that any of them names: only these tell classes apart.
    """

    def __init__(self) -> None:
        self._entries: dict[PeerTerm, TermEntry] = {}
        self._posted: defaultdict[Anchor, dict[PeerTerm, TermEntry]] = defaultdict(dict)
        self._anywhere: dict[PeerTerm, TermEntry] = {}
        self.mentioned: Tally[Anchor] = Tally()
        self.mentions_generation = 0  # moves whenever something is mentioned for the first time, or no longer
        self.n_by_namespace_labels = 0  # terms that select namespaces by their labels

    def __len__(self) -> int:
        return len(self._entries)

    def use(self, term: PeerTerm) -> tuple[TermEntry, list[Anchor]]:
        """The term's entry, used once more, and what nobody has mentioned before it: of a key, the key comes first."""
        entry = self._entries.get(term)
        news: list[Anchor] = []
        if entry is None:
            entry = self._entries[term] = TermEntry(term)
            for anchor in entry.anchors:
                self._posted[anchor][term] = entry
            if not entry.anchors:
                self._anywhere[term] = entry
            self.n_by_namespace_labels += _asks_for_namespace_labels(term)
            for mention in mentions_of(term):
                self.mentioned[mention] += 1
                if self.mentioned[mention] == 1:
                    self.mentions_generation += 1
                    news.append(mention)
        entry.uses += 1
        return entry, news

    def release(self, entry: TermEntry) -> list[Anchor] | None:
        """Use the term once less; if that was the last use, it is gone, and this is what nobody mentions any more."""
        entry.uses -= 1
        if entry.uses:
            return None
        del self._entries[entry.term]
        self._anywhere.pop(entry.term, None)
        self.n_by_namespace_labels -= _asks_for_namespace_labels(entry.term)
        for anchor in entry.anchors:
            del self._posted[anchor][entry.term]
            if not self._posted[anchor]:
                del self._posted[anchor]
        forgotten = []
        for mention in mentions_of(entry.term):
            self.mentioned[mention] -= 1
            if not self.mentioned[mention]:
                self.mentions_generation += 1
                del self.mentioned[mention]
                forgotten.append(mention)
        return forgotten

    def candidates(self, labels: Labels) -> Iterator[TermEntry]:
        """The terms that may match something with these labels; each once, none that matches is left out."""
        yield from self._anywhere.values()
        for key, value in labels.items():
            yield from self._posted.get((key, value), {}).values()
            yield from self._posted.get((key, None), {}).values()


def mentions_of(term: PeerTerm) -> Iterable[Anchor]:
    """The label keys that a term looks at, each before the values of it that the term names."""
    found: dict[Anchor, None] = {}
    for part in term.parts:
        for requirement in part.selector.requirements if part.selector is not None else ():
            found[requirement.key, None] = None
            found.update(((requirement.key, value), None) for value in requirement.values)
    return found


def _asks_for_namespace_labels(term: PeerTerm) -> bool:
    return any(part.namespace_selector is not None for part in term.parts)


def anchors_of(term: PeerTerm) -> tuple[Anchor, ...]:
    """
    Labels of which whatever the term matches has at least one; none if there is no such label.

    One requirement is enough to find the term by: the narrowest positive one.
    """
    positive = [
        requirement
        for part in term.parts
        for requirement in (part.selector.requirements if part.selector else ())
        if requirement.operator in (IN, EXISTS)
    ]
    if not positive:
        return ()
    best = min(positive, key=_breadth)
    return tuple((best.key, value) for value in best.values) if best.operator == IN else ((best.key, None),)


def _breadth(requirement: Requirement) -> int:
    return len(requirement.values) if requirement.operator == IN else 1_000_000
