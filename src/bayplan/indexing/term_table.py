"""
The terms in use, each once, found from labels without looking at all of them.

A term is used by placed workloads that hold it against newcomers (`OwnerRule`) and by cached evaluations that count its
matches. It is forgotten with its last use. Knows nothing of what the counts are for.
"""

from __future__ import annotations

import enum
from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterable, Iterator

from bayplan.indexing.counters import Counter, Reach
from bayplan.model.labels import EXISTS, IN, Labels, Requirement
from bayplan.model.terms import PeerTerm, PodTerm

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
