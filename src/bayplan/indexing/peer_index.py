"""
The placed workloads as terms select them: classes, their terms and the counters of both, kept correct by every change.

No query scans the workloads. When a term in use names a value for the first time, the workloads that have it move to a
class of their own; when one asks for the presence of a key, those that have the key do. The label sets are scanned for
them only if many have the key, and only when it is first mentioned.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

import msgspec

from bayplan.caching import METER, BoundedCache
from bayplan.indexing.classes import (
    OTHER,
    ClassTable,
    LabelSet,
    LabelSets,
    PlacedWorkload,
    VisibleLabels,
    WorkloadClass,
    members_of,
)
from bayplan.indexing.owner_rules import ALL_ROLES, OwnerRule, OwnerRules, Role
from bayplan.indexing.slots import ValueColumn
from bayplan.indexing.term_table import COMMON, Counter, Mention, Reach, TermEntry, TermTable
from bayplan.model.labels import Labels
from bayplan.model.semantics import Semantics
from bayplan.model.terms import TARGET, AffinityTerms, PeerTerm, ResolvedTerm, resolve
from bayplan.model.workloads import Workload, WorkloadKey

Counters = dict[Counter, None]  # an ordered set

NO_LABELS: Labels = {}
CHARGE_PER_LABEL = 64  # bytes
MAX_VISIBLE_ENTRIES = 8192  # label sets whose visible labels are cached


class _OwnedTerms(msgspec.Struct):
    """The terms that workloads of one namespace and one affinity own, in use as long as a class has them."""

    entries: list[tuple[Role, ResolvedTerm, TermEntry]]
    n_classes: int = 0


@dataclass(slots=True, eq=False)
class PeerIndex:
    semantics: Semantics
    _column: Callable[[str], ValueColumn]
    namespaces: dict[str, Labels] = field(default_factory=dict)
    records: dict[WorkloadKey, PlacedWorkload] = field(default_factory=dict)
    owner_rules: OwnerRules = field(default_factory=OwnerRules)
    terms: TermTable = field(default_factory=TermTable)
    classes: ClassTable = field(default_factory=ClassTable)
    label_sets: LabelSets = field(default_factory=LabelSets)
    # Called with the rows in the pod table of workloads that change their class, and the id of the new class.
    moved: Callable[[list[int], int], None] | None = None
    _owned: dict[tuple[str, AffinityTerms], _OwnedTerms] = field(default_factory=dict)
    _visible: BoundedCache[tuple[VisibleLabels, frozenset[str]], VisibleLabels] = field(default_factory=BoundedCache)
    _visible_generation: tuple[int, int] = (-1, 0)

    # Queries

    def visible(self, labels: Labels, also: frozenset[str] = frozenset()) -> VisibleLabels:
        """The labels that a term in use selects by, or a term about to be added that selects by the keys `also`."""
        generation = (self.terms.mentions_generation, METER.generation)
        if self._visible_generation != generation:
            self._visible.clear()
            self._visible_generation = generation
        key = (tuple(labels.items()), also)
        known = self._visible.get(key)
        if known is None:
            METER.charge(len(labels) * CHARGE_PER_LABEL)
            known = self._find_visible(labels, also)
            self._visible.put(key, known, MAX_VISIBLE_ENTRIES)
        return known

    def _find_visible(self, labels: Labels, also: frozenset[str]) -> VisibleLabels:
        mentioned = self.terms.mentioned
        visible: list[tuple[str, str]] = []
        for label in labels.items():
            key = label[0]
            # Labels that Bayplan adds itself, such as those of Karmada's groups, are always visible.
            if label in mentioned or key in also or key[:1] == "\0":
                visible.append(label)
            elif (key, None) in mentioned:
                visible.append((key, OTHER))
        return tuple(sorted(visible))

    def matches(self, term: PeerTerm, labels: Labels, namespace: str, *, terminating: bool = False) -> bool:
        return term.matches(labels, namespace, self.namespaces.get(namespace, NO_LABELS), terminating=terminating)

    def class_matches(self, term: PeerTerm, cls: WorkloadClass) -> bool:
        namespace_labels = self.namespaces.get(cls.namespace, NO_LABELS)
        return term.matches(cls.labels, cls.namespace, namespace_labels, terminating=cls.terminating)

    def matching_owner_rules(
        self, labels: Labels, namespace: str, roles: Collection[Role] = ALL_ROLES
    ) -> Iterator[OwnerRule]:
        """The terms of placed workloads, in some of their roles, that match an incoming workload with these labels."""
        return self.owner_rules.matching(labels, namespace, self.namespaces.get(namespace, NO_LABELS), roles)

    def summed_owner_rules(
        self, labels: Labels, namespace: str, roles: Collection[Role] = ALL_ROLES
    ) -> Iterator[tuple[OwnerRule, Reach]]:
        """The same, where terms that differ only in what they exclude are one, each with the reach of its owners."""
        return self.owner_rules.summed(labels, namespace, self.namespaces.get(namespace, NO_LABELS), roles)

    def peers(self, term: PeerTerm, slots: Iterable[int]) -> tuple[WorkloadKey, ...]:
        """The placed workloads that a term matches on these targets, by name: evidence, not for the fast path."""
        candidates = self.classes.candidates(term)
        return members_of([cls for cls in candidates if self.class_matches(term, cls)], slots)

    def all_peers(self, term: PeerTerm) -> tuple[WorkloadKey, ...]:
        """The placed workloads that a term matches anywhere, unknown targets included, by name."""
        return tuple(
            sorted(
                key
                for key, record in self.records.items()
                if record.member_of is not None and self.class_matches(term, record.member_of)
            )
        )

    def owners(self, rule: OwnerRule, slots: Iterable[int]) -> tuple[WorkloadKey, ...]:
        """The placed workloads that own a rule on these targets, by name: evidence, not for the fast path."""
        return members_of([cls for cls in self.classes.by_id.values() if rule in cls.owner_rules], slots)

    # Terms in use by evaluations

    def hold(self, term: PeerTerm) -> TermEntry:
        """The entry of the term, kept in use until `release`."""
        entry, new = self.terms.use(term)
        for mention in new:
            self._distinguish(mention)
        return entry

    def release(self, entry: TermEntry) -> None:
        dropped = self.terms.release(entry)
        for key, _ in dropped or ():
            if not self.terms.n_mentions[key]:
                self.label_sets.watched.pop(key, None)
        if dropped is not None and entry.matches:
            for cls in self.classes.candidates(entry.term):
                for counter in entry.matches.values():
                    cls.matched.pop(counter, None)

    def match_reach(self, entry: TermEntry, keys: tuple[str, ...]) -> Reach:
        """How many workloads the term matches in the domains of each target, from now on kept up to date."""
        column = self._column(keys[0] if len(keys) == 1 else TARGET)
        counter = entry.matches.get(column.key)
        if counter is None:
            if not entry.matches:
                self.terms.counted.add(entry.term, entry)
            counter = entry.matches[column.key] = Counter(column)
            matching = [cls for cls in self.classes.candidates(entry.term) if self.class_matches(entry.term, cls)]
            for cls in matching:
                cls.matched[counter] = None
            self._count_members(matching, counter, +1)
        return Reach(counter, keys, tuple(map(self._column, keys)))

    # Changes

    def join(self, record: PlacedWorkload) -> WorkloadClass:
        """Count a workload on its slots, in its class and in the counters of its class."""
        key, slots = record.key, record.slots
        label_set = record.label_set = self.label_sets.acquire(record.workload.labels)
        cls = record.member_of = self._class_of(record.workload, label_set)
        cls.n_members += 1
        cls.n_spread += len(slots) > 1
        if not slots:
            cls.nowhere.add(key)
        alike = cls.label_sets.get(label_set)
        if alike is None:
            cls.label_sets[label_set] = {key}
            label_set.classes[cls.id] = cls
        else:
            alike.add(key)
        for slot in slots:
            here = cls.members.get(slot)
            if here is None:
                cls.members[slot] = {key}
            else:
                here.add(key)
        for counter in cls.matched:
            counter.add(slots, +1)
        for rule in cls.owner_rules:
            for counter in rule.counters:
                counter.add(slots, +1)
        return cls

    def leave(self, record: PlacedWorkload) -> WorkloadClass:
        """Undo `join`."""
        key, slots, cls, label_set = record.key, record.slots, record.member_of, record.label_set
        assert cls is not None, f"{key} is not counted"
        assert label_set is not None
        record.member_of = record.label_set = None
        cls.n_members -= 1
        cls.n_spread -= len(slots) > 1
        cls.nowhere.discard(key)
        alike = cls.label_sets[label_set]
        alike.remove(key)
        if not alike:
            del cls.label_sets[label_set]
            del label_set.classes[cls.id]
        for slot in slots:
            here = cls.members[slot]
            here.remove(key)
            if not here:
                del cls.members[slot]
        self.label_sets.release(label_set)
        for counter in cls.matched:
            counter.add(slots, -1)
        for rule in cls.owner_rules:
            for counter in rule.counters:
                counter.add(slots, -1)
        if not cls.n_members:
            self._drop(cls)
        return cls

    def relabel_namespace(self, name: str, labels: Labels | None) -> None:
        """Give a namespace other labels and count the classes in it where they now match."""
        self.classes.relabel_namespace(name, self.namespaces.get(name, NO_LABELS), labels or NO_LABELS)
        if labels is None:
            self.namespaces.pop(name, None)
        else:
            self.namespaces[name] = labels
        if not self.terms.n_by_namespace_labels:
            return
        self.owner_rules.change_all()  # first: what is noted below is then known to follow it
        for cls in self.classes.in_namespace(name):
            matched, owner_rules = cls.matched, cls.owner_rules
            cls.matched = self._matched_by(cls)
            self._recount(cls, matched, cls.matched)
            # Whether an owner matches its own term may depend on the labels of its namespace too.
            cls.owner_rules = self._owner_rules(cls)
            self._recount(cls, _counters_of(owner_rules), _counters_of(cls.owner_rules))
            self._release_owner_rules(owner_rules)

    def _recount(self, cls: WorkloadClass, before: Iterable[Counter], after: Iterable[Counter]) -> None:
        """Count the members of the class in other counters than before; one may be listed more than once."""
        change = Tally(iter(after))
        change.subtract(iter(before))
        for counter, times in change.items():
            if times:
                self._count_members([cls], counter, times)

    # Classes

    def _class_of(self, workload: Workload, label_set: LabelSet) -> WorkloadClass:
        namespace, affinity = workload.namespace, workload.needs.affinity
        key = (namespace, self._visible_of(label_set), workload.terminating, affinity)
        cls = self.classes.by_key.get(key)
        if cls is not None:
            return cls
        # The terms that it owns come into use first: they may make more labels visible.
        if (namespace, affinity) not in self._owned:
            resolved = resolve(affinity, namespace, self.semantics, incoming=False)
            uses = [
                *((Role.REQUIRED, use) for use in resolved.required),
                *((Role.ANTI_REQUIRED, use) for use in resolved.anti_required),
                *((Role.PREFERRED, use) for use in resolved.preferred),
                *((Role.ANTI_PREFERRED, use) for use in resolved.anti_preferred),
            ]
            self._owned[namespace, affinity] = _OwnedTerms([(role, use, self.hold(use.term)) for role, use in uses])
            key = (namespace, self._visible_of(label_set), workload.terminating, affinity)
            cls = self.classes.by_key.get(key)
        if cls is None:
            cls = self.classes.create(key)
            cls.matched = self._matched_by(cls)
            cls.owner_rules = self._owner_rules(cls)
            self._owned[namespace, affinity].n_classes += 1
        return cls

    def _visible_of(self, label_set: LabelSet) -> VisibleLabels:
        if label_set.mentions_generation != self.terms.mentions_generation:
            label_set.visible = self._find_visible(label_set.labels, frozenset())
            label_set.mentions_generation = self.terms.mentions_generation
        return label_set.visible

    def _drop(self, cls: WorkloadClass) -> None:
        self.classes.drop(cls)
        self._release_owner_rules(cls.owner_rules)
        owned = self._owned[cls.namespace, cls.affinity]
        owned.n_classes -= 1
        if not owned.n_classes:
            del self._owned[cls.namespace, cls.affinity]
            for _, _, entry in owned.entries:
                self.release(entry)

    def _owner_rules(self, cls: WorkloadClass) -> list[OwnerRule]:
        """The rules that members of the class own, each used once more."""
        rules = []
        for role, use, entry in self._owned[cls.namespace, cls.affinity].entries:
            self_matching = self.class_matches(entry.term, cls)
            key = (role, use.keys, use.weight, use.limit, self_matching)
            rule = entry.owner_rules.get(key)
            if rule is None:
                counter = Counter(self._column(use.keys[0] if len(use.keys) == 1 else TARGET))
                reach = Reach(counter, use.keys, tuple(map(self._column, use.keys)))
                source = use.source
                rule = OwnerRule(role, entry, source, reach, source.weight, source.limit, self_matching)
                self.owner_rules.add(rule, self.terms)
                if rule.memberships:
                    self._count_bases(rule)
            rule.uses += 1
            rules.append(rule)
        return rules

    def _release_owner_rules(self, rules: list[OwnerRule]) -> None:
        for rule in rules:
            rule.uses -= 1
            if not rule.uses:
                self.owner_rules.remove(rule)
                for family in [one.family for one in rule.memberships if not one.family.rules]:
                    if family.base_entry is not None:
                        self.release(family.base_entry)

    def _count_bases(self, rule: OwnerRule) -> None:
        """
        Count what the bases of the rule's families match, if many rules have them, as long as there are the families.

        The next workload with such a term needs the count of all that the base matches, less what the term excludes.
        From the beginning it costs little; for the first decision it would be read from every workload.
        """
        for base in {one.family.base for one in rule.memberships if one.family.base_entry is None}:
            families = self.owner_rules.families_of(base)
            if sum(len(family.rules) for family in families) > COMMON:
                for family in families:
                    if family.base_entry is None:
                        family.base_entry = self.hold(base)
                        self.match_reach(family.base_entry, family.key[1])

    def _matched_by(self, cls: WorkloadClass) -> Counters:
        namespace_labels = self.namespaces.get(cls.namespace, NO_LABELS)
        return {
            counter: None
            for entry in self.terms.counted.find(cls.labels, cls.namespace, namespace_labels)
            if self.class_matches(entry.term, cls)
            for counter in entry.matches.values()
        }

    def _count_members(self, classes: Iterable[WorkloadClass], counter: Counter, change: int) -> None:
        groups, n_members = [], 0
        for cls in classes:
            if cls.n_spread or cls.nowhere:  # a workload on several targets counts once in each domain, and once in all
                for alike in cls.label_sets.values():
                    for key in alike:
                        counter.add(self.records[key].slots, change)
            else:
                groups.append(cls.members)
                n_members += cls.n_members
        counter.add_all(groups, n_members, change)

    # Distinguishing classes

    def _distinguish(self, mention: Mention) -> None:
        """Split classes by what is mentioned for the first time: the presence of a key, or a value of it."""
        key, value = mention
        if key[:1] == "\0":  # labels that Bayplan adds itself are visible from the start
            return
        if key not in self.label_sets.watched:
            self.label_sets.watch(key)
        by_value = self.label_sets.watched[key]
        having = chain.from_iterable(by_value.values()) if value is None else by_value.get(value, ())
        # Classes that show more of the label than that were split before, and have not been merged since.
        unsplit = (None,) if value is None else (None, OTHER)
        by_class: dict[WorkloadClass, list[LabelSet]] = {}
        for label_set in having:
            for cls in label_set.classes.values():
                if cls in by_class:
                    by_class[cls].append(label_set)
                elif cls.labels.get(key) in unsplit:
                    by_class[cls] = [label_set]
        for cls, label_sets in by_class.items():
            self._split(cls, label_sets, (key, OTHER if value is None else value))

    def _split(self, cls: WorkloadClass, label_sets: Collection[LabelSet], label: tuple[str, str]) -> None:
        """Make a label, or the value of one, visible for the members with some of the label sets of a class."""
        before = cls.key[1]
        visible = tuple(sorted((*[other for other in before if other[0] != label[0]], label)))
        other = self.classes.by_key.get((cls.namespace, visible, cls.terminating, cls.affinity))
        if other is not None:
            self._move(cls, label_sets, other)
        elif len(label_sets) == len(cls.label_sets):
            self.classes.show(cls, label, visible)
        elif 2 * sum(map(len, map(cls.label_sets.__getitem__, label_sets))) <= cls.n_members:
            self._move(cls, label_sets, self._sibling(cls, visible))
        else:  # the larger part stays, and its class is relabelled
            self.classes.show(cls, label, visible)
            staying = set(label_sets)
            self._move(cls, [one for one in cls.label_sets if one not in staying], self._sibling(cls, before))

    def _sibling(self, cls: WorkloadClass, visible: VisibleLabels) -> WorkloadClass:
        """
        A new class that differs from another only in its visible labels.

        Its members count in the same counters: no term in use so far selects by the label in which the two differ.
        """
        made = self.classes.create((cls.namespace, visible, cls.terminating, cls.affinity))
        made.matched, made.owner_rules = dict(cls.matched), list(cls.owner_rules)
        for rule in made.owner_rules:
            rule.uses += 1
        self._owned[cls.namespace, cls.affinity].n_classes += 1
        return made

    def _move(self, cls: WorkloadClass, label_sets: Collection[LabelSet], other: WorkloadClass) -> None:
        """Move all members with these labels to another class, which counts in the same counters."""
        moving: set[WorkloadKey] = set()
        for labels in label_sets:
            alike = cls.label_sets.pop(labels)
            del labels.classes[cls.id]
            labels.classes[other.id] = other
            moving |= alike
            if labels in other.label_sets:
                other.label_sets[labels] |= alike
            else:
                other.label_sets[labels] = alike
        records = list(map(self.records.__getitem__, moving))
        for record in records:
            record.member_of = other
        if cls.n_spread:
            n_spread = sum(len(record.slots) > 1 for record in records)
            cls.n_spread -= n_spread
            other.n_spread += n_spread
        cls.n_members -= len(moving)
        other.n_members += len(moving)
        other.nowhere |= cls.nowhere & moving
        cls.nowhere -= moving
        few = len(records) < len(cls.members)
        for slot in {slot for record in records for slot in record.slots} if few else list(cls.members):
            here = cls.members[slot]
            moved = here & moving
            if len(moved) == len(here):
                del cls.members[slot]
            else:
                here -= moved
            if slot in other.members:
                other.members[slot] |= moved
            elif moved:
                other.members[slot] = moved
        if self.moved is not None:
            self.moved([record.row for record in records], other.id)
        if not cls.n_members:
            self._drop(cls)


def _counters_of(rules: Iterable[OwnerRule]) -> list[Counter]:
    return [counter for rule in rules for counter in rule.counters]
