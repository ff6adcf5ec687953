"""
The terms that placed workloads own, which apply to incoming workloads that they match.

Many terms may match one workload: with "every app but mine", each app has another term, and all of them match. Terms
that differ only in the values that they exclude (`NotIn`, `DoesNotExist`) therefore form a family with a common
counter. To an incoming workload the owners of a family are all of them, less the owners of the terms that exclude it;
those that exclude a value which many of them exclude have a common counter too. A term that allows several values of
which some are common (`tier In (web, mine)`) is in one family for each of these and in one for the others. Knows
nothing of what the counts are used for.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import msgspec

from bayplan.indexing.term_lookup import TermLookup
from bayplan.indexing.term_sums import TermUsage, disjoint, part_of
from bayplan.indexing.term_table import COMMON, Counter, Mention, Reach, TermEntry
from bayplan.model.labels import IN, Labels, Requirement
from bayplan.model.terms import NAMESPACE_LABEL, ExcludedValues, PeerTerm, PodTerm, excluded_values

MAX_COMMON_SETS = 64  # sets of common labels for which a family has a counter each
NOBODY = Requirement("", IN)  # which no workload meets
MAX_NOTED_TERMS = 64  # changed terms that are compared with a state one by one


class Role(enum.Enum):
    """The field of the owner's pod spec that a term is from; it applies to incoming workloads that the term matches."""

    REQUIRED = "requiredAffinity"
    ANTI_REQUIRED = "requiredAntiAffinity"
    PREFERRED = "preferredAffinity"
    ANTI_PREFERRED = "preferredAntiAffinity"


ALL_ROLES = frozenset(Role)
OwnerRuleKey = tuple[Role, tuple[str, ...], int, int, bool]
# What the rules of a family have in common beside their base: role, topology keys and weight. A rule with a limit has
# no family, and whether owners match their own term matters only with a limit or where rules are read one by one.
FamilyKey = tuple[Role, tuple[str, ...], int]


class OwnerRule(msgspec.Struct, eq=False):
    """
    A term of placed workloads; `reach` counts its owners. `self_matching`: the owners match their own term.

    `memberships` are the families it is in, if any, and `counters` those in which its owners count.
    """

    role: Role
    entry: TermEntry
    source: PodTerm
    reach: Reach
    weight: int
    limit: int
    self_matching: bool
    memberships: tuple[Membership, ...] = ()
    counters: list[Counter] = []
    uses: int = 0

    def __post_init__(self) -> None:
        self.counters = [self.reach.counter]

    @property
    def key(self) -> OwnerRuleKey:
        return self.role, self.reach.keys, self.weight, self.limit, self.self_matching


class Membership(msgspec.Struct, eq=False):
    """A rule in a family, and what it excludes there."""

    family: OwnerFamily
    excluded: ExcludedValues | None

    @property
    def labels(self) -> list[Mention]:
        """The labels of which each is enough to be excluded."""
        return [] if self.excluded is None else list(self.excluded.labels)


class OwnerFamily(msgspec.Struct, eq=False):
    """
    Rules that differ only in the labels that they exclude; `total` counts the owners of all.

    `common` are the labels that many of them exclude. For sets of these, `by_common` counts the owners of the rules
    that exclude any of the set. `base_entry` is that of the base, while the index counts what this matches.
    """

    key: FamilyKey
    base: PeerTerm
    total: Counter
    by_label: dict[Mention, dict[int, OwnerRule]] = {}
    rules: dict[int, OwnerRule] = {}  # by id
    common: set[Mention] = set()
    by_common: dict[frozenset[Mention], Counter] = {}
    base_entry: TermEntry | None = None

    def add(self, rule: OwnerRule, labels: Iterable[Mention]) -> bool:
        """Add a rule that excludes these labels; returns whether one of them becomes common thereby."""
        self.rules[id(rule)] = rule
        rule.counters.append(self.total)
        n_common = len(self.common)
        for label in labels:
            excluding = self.by_label.setdefault(label, {})
            excluding[id(rule)] = rule
            if len(excluding) > COMMON:
                self.common.add(label)
        rule.counters += [counter for some, counter in self.by_common.items() if not some.isdisjoint(labels)]
        return len(self.common) > n_common

    def remove(self, rule: OwnerRule, labels: Iterable[Mention]) -> None:
        del self.rules[id(rule)]
        for label in labels:
            del self.by_label[label][id(rule)]
            if not self.by_label[label]:
                del self.by_label[label]
                self.common.discard(label)  # what is counted for it already stays correct

    def excluding(self, mentions: Iterable[Mention]) -> dict[int, OwnerRule]:
        """The rules that exclude a workload with these labels, by id."""
        found: dict[int, OwnerRule] = {}
        for mention in mentions:
            if mention in self.by_label:
                found.update(self.by_label[mention])
        return found

    def is_full(self, mentions: Iterable[Mention]) -> bool:
        """Whether there are too many counters for a further one, which a workload with these labels needs."""
        if len(self.by_common) < MAX_COMMON_SETS:
            return False
        common = self.common.intersection(mentions)
        return bool(common) and frozenset(common) not in self.by_common

    def excluded_owners(self, mentions: Iterable[Mention]) -> list[Counter]:
        """Counters that together count the owners of the rules that exclude a workload with these labels."""
        by_label = self.by_label
        excluding = [mention for mention in mentions if mention in by_label]
        if not excluding:
            return []
        common = frozenset(excluding) & self.common if self.common else frozenset()
        rare = self.excluding([mention for mention in excluding if mention not in common])
        if not common:
            return [rule.reach.counter for rule in rare.values()]
        together = self.by_common.get(common)
        if together is None:
            together = self._count_common(common)
        return [
            together,
            *(
                rule.reach.counter
                for number, rule in rare.items()
                if not any(number in self.by_label[label] for label in common)
            ),
        ]

    def _count_common(self, common: frozenset[Mention]) -> Counter:
        counter = self.by_common[common] = Counter(self.total.column)
        for rule in self.excluding(common).values():
            counter.include(rule.reach.counter)
            rule.counters.append(counter)
        return counter

    def forget_common_sets(self) -> None:
        """Drop the counters of sets of common labels."""
        dropped = {id(counter) for counter in self.by_common.values()}
        self.by_common.clear()
        for rule in self.rules.values():
            rule.counters = [counter for counter in rule.counters if id(counter) not in dropped]


@dataclass(slots=True, eq=False)
class OwnerRules:
    """All rules in use. `generation` changes with the set of them, so that rule states know when to read it again."""

    generation: int = 0
    n: int = 0
    _single: TermLookup[TermEntry] = field(default_factory=TermLookup)  # the terms of rules without a family
    _families: TermLookup[dict[FamilyKey, OwnerFamily]] = field(default_factory=TermLookup)  # by the terms of all
    _by_base: dict[PeerTerm, dict[FamilyKey, OwnerFamily]] = field(default_factory=dict)
    # The terms whose matches see other rules since the last changes of `generation`.
    _noted: deque[PeerTerm] = field(default_factory=lambda: deque(maxlen=MAX_NOTED_TERMS))

    def add(self, rule: OwnerRule, usage: TermUsage) -> None:
        self.n += 1
        rule.entry.owner_rules[rule.key] = rule
        terms = [] if rule.limit or len(rule.reach.keys) > 1 else disjoint(rule.entry.term, usage)
        if len(terms) > 1 or (terms and excluded_values(terms[0]) is not None):
            rule.memberships = tuple([self._join(rule, term) for term in terms])
            return
        rule.entry.n_without_family += 1
        if rule.entry.n_without_family == 1:
            self._single.add(rule.entry.term, rule.entry)
        self._note(rule.entry.term)

    def remove(self, rule: OwnerRule) -> None:
        self.n -= 1
        del rule.entry.owner_rules[rule.key]
        for membership in rule.memberships:
            self._leave(rule, membership)
        if not rule.memberships:
            rule.entry.n_without_family -= 1
            if not rule.entry.n_without_family:
                self._single.remove(rule.entry.term)
            self._note(rule.entry.term)

    def _join(self, rule: OwnerRule, term: PeerTerm) -> Membership:
        excluded = excluded_values(term)
        membership = Membership(self._family(rule, term if excluded is None else excluded.base), excluded)
        if membership.family.add(rule, membership.labels):
            assert excluded is not None
            self._note(excluded.complement)  # who has a label that becomes common reads its counter from now on
        else:
            self._note_member(membership)
        return membership

    def _leave(self, rule: OwnerRule, membership: Membership) -> None:
        family = membership.family
        self._note_member(membership)
        family.remove(rule, membership.labels)
        if not family.rules:
            del self._by_base[family.base][family.key]
            if not self._by_base[family.base]:
                del self._by_base[family.base]
                self._families.remove(family.base)
            self._note(family.base)

    def _note_member(self, membership: Membership) -> None:
        """
        Note that a rule joins a family or leaves it.

        Who reads the family as a sum sees its counters change, and must look again only if the rule excludes it, and
        not by a common label, whose rules are read as a sum too. Who reads the rules one by one is concerned by
        whatever matches the base of the noted term.
        """
        family, any_of = membership.family, list[Requirement]()
        for one in () if membership.excluded is None else membership.excluded.complement.any_of:
            rare = part_of(one, family.common.__contains__, common=False)
            any_of += [] if rare is None else [rare]
        self._note(msgspec.structs.replace(family.base, any_of=tuple(any_of) or (NOBODY,)))

    def _family(self, rule: OwnerRule, base: PeerTerm) -> OwnerFamily:
        families = self._by_base.get(base)
        if families is None:
            families = self._by_base[base] = {}
            self._families.add(base, families)
        key = (rule.role, rule.reach.keys, rule.weight)
        family = families.get(key)
        if family is None:
            family = families[key] = OwnerFamily(key, base, Counter(rule.reach.columns[0]))
            self._note(base)
        return family

    # Queries

    def matching(
        self, labels: Labels, namespace: str, namespace_labels: Labels, roles: Collection[Role]
    ) -> Iterator[OwnerRule]:
        """The rules of these roles whose terms match an incoming workload."""
        yield from self._matching_single(labels, namespace, namespace_labels, roles)
        mentions = _mentions(labels, namespace_labels)
        for family in self._matching_families(labels, namespace, namespace_labels, roles):
            excluding = family.excluding(mentions)
            yield from (rule for rule in family.rules.values() if id(rule) not in excluding)

    def summed(
        self, labels: Labels, namespace: str, namespace_labels: Labels, roles: Collection[Role]
    ) -> Iterator[tuple[OwnerRule, Reach]]:
        """The same with one rule for each family, and the reach of the owners that apply."""
        for rule in self._matching_single(labels, namespace, namespace_labels, roles):
            yield rule, rule.reach
        mentions = _mentions(labels, namespace_labels) if self._by_base else []
        for family in self._matching_families(labels, namespace, namespace_labels, roles):
            rule = next(iter(family.rules.values()))
            if family.is_full(mentions):
                family.forget_common_sets()
                self.change_all()
            less = tuple([(counter, -1) for counter in family.excluded_owners(mentions)])
            yield rule, Reach(family.total, rule.reach.keys, rule.reach.columns, less)

    def _matching_single(
        self, labels: Labels, namespace: str, namespace_labels: Labels, roles: Collection[Role]
    ) -> Iterator[OwnerRule]:
        for entry in self._single.find(labels, namespace, namespace_labels) if roles else ():
            rules = [rule for rule in entry.owner_rules.values() if not rule.memberships and rule.role in roles]
            if rules and entry.term.matches(labels, namespace, namespace_labels, terminating=False):
                yield from rules

    def _matching_families(
        self, labels: Labels, namespace: str, namespace_labels: Labels, roles: Collection[Role]
    ) -> Iterator[OwnerFamily]:
        for families in self._families.find(labels, namespace, namespace_labels) if roles else ():
            some = [family for family in families.values() if family.key[0] in roles]
            # All of them have the same base.
            if some and some[0].base.matches(labels, namespace, namespace_labels, terminating=False):
                yield from some

    def families_of(self, base: PeerTerm) -> Collection[OwnerFamily]:
        """The families whose rules differ from this term only in what they exclude."""
        return self._by_base.get(base, {}).values()

    def changed_since(self, generation: int) -> list[PeerTerm] | None:
        """Terms whose matches see other rules since a generation; None if they are many, or not known."""
        n = self.generation - generation
        return list(islice(reversed(self._noted), n)) if n <= len(self._noted) else None

    def change_all(self) -> None:
        """Any workload may see other rules from now on."""
        self.generation += 1
        self._noted.clear()

    def _note(self, term: PeerTerm) -> None:
        self.generation += 1
        self._noted.append(term)


def _mentions(labels: Labels, namespace_labels: Labels) -> list[Mention]:
    """What terms may mention of a workload, its labels and those of its namespace: (key, value), and (key, None)."""
    found: list[Mention] = []
    for label in labels.items():
        found += (label, (label[0], None))
    for key, value in namespace_labels.items():
        found += ((NAMESPACE_LABEL + key, value), (NAMESPACE_LABEL + key, None))
    return found
