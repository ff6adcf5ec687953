"""
The terms that placed workloads own, which apply to incoming workloads that they match.

Many terms may match one workload: with "every app but mine", each app has another term, and all of them match. Terms
that differ only in the values that they exclude (`NotIn`) therefore form a family with a common counter. To an incoming
workload the owners of a family are all of them, less the owners of the terms that exclude its value. Knows nothing of
what the counts are used for.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import msgspec

from bayplan.indexing.term_lookup import TermLookup
from bayplan.indexing.term_table import Counter, Reach, TermEntry
from bayplan.model.labels import Labels
from bayplan.model.terms import ExcludedValues, PeerTerm, PodTerm, excluded_values

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

    `family` are the rules that differ from this one only in the values that they exclude, if it excludes any.
    """

    role: Role
    entry: TermEntry
    source: PodTerm
    reach: Reach
    weight: int
    limit: int
    self_matching: bool
    family: OwnerFamily | None = None
    uses: int = 0

    @property
    def key(self) -> OwnerRuleKey:
        return self.role, self.reach.keys, self.weight, self.limit, self.self_matching

    @property
    def counters(self) -> Iterable[Counter]:
        """The counters in which its owners count."""
        return (self.reach.counter,) if self.family is None else (self.reach.counter, self.family.total)


class OwnerFamily(msgspec.Struct, eq=False):
    """Rules that differ only in the label values that they exclude; `total` counts the owners of all."""

    key: FamilyKey
    base: PeerTerm
    total: Counter
    by_label: dict[tuple[str, str], dict[int, OwnerRule]] = {}
    rules: dict[int, OwnerRule] = {}  # by id

    def excluding(self, labels: Labels) -> dict[int, OwnerRule]:
        """The rules that exclude a workload with these labels, by id."""
        found: dict[int, OwnerRule] = {}
        for label in labels.items():
            if label in self.by_label:
                found.update(self.by_label[label])
        return found


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

    def add(self, rule: OwnerRule) -> None:
        self.n += 1
        rule.entry.owner_rules[rule.key] = rule
        excluded = excluded_values(rule.entry.term)
        if excluded is None or rule.limit or len(rule.reach.keys) > 1:
            rule.entry.n_without_family += 1
            if rule.entry.n_without_family == 1:
                self._single.add(rule.entry.term, rule.entry)
            self._note(rule.entry.term)
            return
        family = rule.family = self._family(rule, excluded)
        family.rules[id(rule)] = rule
        for label in excluded.labels:
            family.by_label.setdefault(label, {})[id(rule)] = rule
        # Who reads the family as a sum sees its counter change, and must look again only if the rule excludes it.
        # Who reads the rules one by one is concerned by whatever matches the base of the noted term.
        self._note(excluded.complement)

    def remove(self, rule: OwnerRule) -> None:
        self.n -= 1
        del rule.entry.owner_rules[rule.key]
        family, excluded = rule.family, excluded_values(rule.entry.term)
        if family is None or excluded is None:
            rule.entry.n_without_family -= 1
            if not rule.entry.n_without_family:
                self._single.remove(rule.entry.term)
            self._note(rule.entry.term)
            return
        del family.rules[id(rule)]
        for label in excluded.labels:
            del family.by_label[label][id(rule)]
            if not family.by_label[label]:
                del family.by_label[label]
        self._note(excluded.complement)
        if not family.rules:
            del self._by_base[family.base][family.key]
            if not self._by_base[family.base]:
                del self._by_base[family.base]
                self._families.remove(family.base)
            self._note(family.base)

    def _family(self, rule: OwnerRule, excluded: ExcludedValues) -> OwnerFamily:
        families = self._by_base.get(excluded.base)
        if families is None:
            families = self._by_base[excluded.base] = {}
            self._families.add(excluded.base, families)
        key = (rule.role, rule.reach.keys, rule.weight)
        family = families.get(key)
        if family is None:
            family = families[key] = OwnerFamily(key, excluded.base, Counter(rule.reach.columns[0]))
            self._note(excluded.base)
        return family

    # Queries

    def matching(
        self, labels: Labels, namespace: str, namespace_labels: Labels, roles: Collection[Role]
    ) -> Iterator[OwnerRule]:
        """The rules of these roles whose terms match an incoming workload."""
        yield from self._matching_single(labels, namespace, namespace_labels, roles)
        for family in self._matching_families(labels, namespace, namespace_labels, roles):
            excluding = family.excluding(labels)
            yield from (rule for rule in family.rules.values() if id(rule) not in excluding)

    def summed(
        self, labels: Labels, namespace: str, namespace_labels: Labels, roles: Collection[Role]
    ) -> Iterator[tuple[OwnerRule, Reach]]:
        """The same with one rule for each family, and the reach of the owners that apply."""
        for rule in self._matching_single(labels, namespace, namespace_labels, roles):
            yield rule, rule.reach
        for family in self._matching_families(labels, namespace, namespace_labels, roles):
            rule = next(iter(family.rules.values()))
            less = tuple([(other.reach.counter, -1) for other in family.excluding(labels).values()])
            yield rule, Reach(family.total, rule.reach.keys, rule.reach.columns, less)

    def _matching_single(
        self, labels: Labels, namespace: str, namespace_labels: Labels, roles: Collection[Role]
    ) -> Iterator[OwnerRule]:
        for entry in self._single.find(labels, namespace, namespace_labels) if roles else ():
            rules = [rule for rule in entry.owner_rules.values() if rule.family is None and rule.role in roles]
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
