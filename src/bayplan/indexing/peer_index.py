"""
Who is where, as terms see it: classes, their terms and the counters of both, kept true under every change.

The census never scans workloads to answer. It looks at all sets of labels only when a key is mentioned by a live term
for the first time, because from then on that key tells classes apart, and moves workloads between classes only then
and when a value of such a key is first named.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import msgspec

from bayplan.indexing.classes import OTHER, ClassTable, LabelSet, LabelSets, VisibleLabels, WorkloadClass
from bayplan.indexing.slots import ValueColumn
from bayplan.indexing.term_table import Anchor, Counter, OwnerRule, Reach, Role, TermEntry, TermTable
from bayplan.model.labels import Labels
from bayplan.model.semantics import Semantics
from bayplan.model.terms import TARGET, AffinityTerms, PeerTerm, ResolvedTerm, resolve
from bayplan.model.workloads import LEAVING_SUFFIX, Workload, WorkloadKey

NO_LABELS: Labels = {}
MAX_VISIBLE_ENTRIES = 8192  # label sets of which it is remembered what terms see of them


class PlacedWorkload(msgspec.Struct):
    """
    A placed workload: `shares` are the targets by name with replicas each, `slots` those of them that exist.

    `row` is its place in the roster, -1 if it has none.
    """

    key: WorkloadKey
    workload: Workload
    shares: tuple[tuple[str, int], ...]
    slots: tuple[int, ...] = ()
    member_of: WorkloadClass | None = None
    label_set: LabelSet | None = None
    row: int = -1


class _Owned(msgspec.Struct):
    """The terms that workloads of one namespace and one affinity hold, kept in use as long as a class has them."""

    entries: list[tuple[Role, ResolvedTerm, TermEntry]]
    classes: int = 0


class PeerIndex:
    """`generation` moves whenever the set of owner rules changes, so that plans know to look again."""

    def __init__(self, semantics: Semantics, column: Callable[[str], ValueColumn]) -> None:
        self.semantics = semantics
        self.namespaces: dict[str, Labels] = {}
        self.records: dict[WorkloadKey, PlacedWorkload] = {}
        self.generation = 0
        self.n_owner_rules = 0  # that placed workloads hold against newcomers, whoever these are
        self.terms = TermTable()
        self.classes = ClassTable()
        self.label_sets = LabelSets()
        # Told of workloads that are in another class now, by row in the roster and number of the class.
        self.moved: Callable[[list[int], int], None] | None = None
        self._column = column
        self._owned: dict[tuple[str, AffinityTerms], _Owned] = {}
        self._seen: dict[tuple[VisibleLabels, frozenset[str]], VisibleLabels] = {}
        self._seen_as_of = -1

    # Asking

    def visible(self, labels: Labels, also: frozenset[str] = frozenset()) -> VisibleLabels:
        """The labels that some live term could look at, or one about to live that looks at the keys `also`."""
        if self._seen_as_of != self.terms.mentions_generation or len(self._seen) == MAX_VISIBLE_ENTRIES:
            self._seen.clear()
            self._seen_as_of = self.terms.mentions_generation
        key = (tuple(labels.items()), also)
        known = self._seen.get(key)
        if known is None:
            known = self._seen[key] = self._look(labels, also)
        return known

    def _look(self, labels: Labels, also: frozenset[str]) -> VisibleLabels:
        mentioned, seen = self.terms.mentioned, list[tuple[str, str]]()
        for label in labels.items():
            key = label[0]
            # Labels of our own making, such as Karmada's groups, are there to be looked at.
            if label in mentioned or key in also or key[:1] == "\0":
                seen.append(label)
            elif (key, None) in mentioned:
                seen.append((key, OTHER))
        return tuple(sorted(seen))

    def matches(self, term: PeerTerm, labels: Labels, namespace: str, *, terminating: bool = False) -> bool:
        return term.matches(labels, namespace, self.namespaces.get(namespace, NO_LABELS), terminating=terminating)

    def class_matches(self, term: PeerTerm, cls: WorkloadClass) -> bool:
        return self.matches(term, cls.labels, cls.namespace, terminating=cls.terminating)

    def owner_rules(self, labels: Labels, namespace: str) -> Iterator[OwnerRule]:
        """What placed workloads hold against, or for, a newcomer with these labels."""
        for entry in self.terms.candidates(labels):
            if entry.owner_rules and self.matches(entry.term, labels, namespace):
                yield from entry.owner_rules.values()

    def peers(self, term: PeerTerm, slots: Iterable[int]) -> tuple[WorkloadKey, ...]:
        """The placed workloads that a term matches on these targets, by name: evidence, not for the fast path."""
        classes = (cls for cls in self.classes.candidates(TermEntry(term)) if self.class_matches(term, cls))
        return _members(classes, slots)

    def all_peers(self, term: PeerTerm) -> tuple[WorkloadKey, ...]:
        """The placed workloads that a term matches anywhere, lost targets included, by name."""
        return tuple(
            sorted(
                key
                for key, record in self.records.items()
                if record.member_of is not None and self.class_matches(term, record.member_of)
            )
        )

    def owners(self, rule: OwnerRule, slots: Iterable[int]) -> tuple[WorkloadKey, ...]:
        """The placed workloads that hold a rule on these targets, by name: evidence, not for the fast path."""
        return _members((cls for cls in self.classes.by_id.values() if rule in cls.owner_rules), slots)

    # Terms in use by evaluations

    def hold(self, term: PeerTerm) -> TermEntry:
        """The term's entry, kept in use until `release`."""
        entry, news = self.terms.use(term)
        for mention in news:
            self._tell_apart(mention)
        return entry

    def release(self, entry: TermEntry) -> None:
        forgotten = self.terms.release(entry)
        for key, value in forgotten or ():
            if value is None:
                self.label_sets.unwatch(key)
        if forgotten is not None and entry.matches:
            gone = {id(counter) for counter in entry.matches.values()}
            for cls in self.classes.candidates(entry):
                cls.matched = [counter for counter in cls.matched if id(counter) not in gone]

    def match_reach(self, entry: TermEntry, keys: tuple[str, ...]) -> Reach:
        """How many workloads the term matches near each target, from now on kept up to date."""
        return Reach(self._match_counter(entry, self._counted_by(keys)), self._columns(keys))

    def _match_counter(self, entry: TermEntry, column: ValueColumn) -> Counter:
        counter = entry.matches.get(column.key)
        if counter is None:
            counter = entry.matches[column.key] = Counter(column)
            for cls in self.classes.candidates(entry):
                if self.class_matches(entry.term, cls):
                    cls.matched.append(counter)
                    self._count_members(cls, counter, +1)
        return counter

    def _columns(self, keys: tuple[str, ...]) -> tuple[ValueColumn, ...]:
        return tuple(self._column(key) for key in keys)

    def _counted_by(self, keys: tuple[str, ...]) -> ValueColumn:
        return self._column(keys[0] if len(keys) == 1 else TARGET)

    # Changing

    def join(self, record: PlacedWorkload) -> WorkloadClass:
        """Count a workload on its slots."""
        workload = record.workload
        label_set = self.label_sets.take(workload.labels)
        cls = self._class_of(workload, label_set)
        cls.join(record.key, label_set, record.slots)
        record.label_set = label_set
        record.member_of = cls
        for counter in cls.matched:
            counter.add(record.slots, +1)
        for rule in cls.owner_rules:
            rule.reach.counter.add(record.slots, +1)
        return cls

    def leave(self, record: PlacedWorkload) -> WorkloadClass:
        cls = record.member_of
        assert cls is not None, f"{record.workload.key} is not counted"
        assert record.label_set is not None
        cls.leave(record.key, record.label_set, record.slots)
        self.label_sets.release(record.label_set)
        record.member_of = record.label_set = None
        for counter in cls.matched:
            counter.add(record.slots, -1)
        for rule in cls.owner_rules:
            rule.reach.counter.add(record.slots, -1)
        if not cls.n_members:
            self._drop(cls)
        return cls

    def relabel_namespace(self, name: str, labels: Labels | None) -> None:
        """Give a namespace other labels and let the classes in it count where they now belong."""
        if labels is None:
            self.namespaces.pop(name, None)
        else:
            self.namespaces[name] = labels
        if not self.terms.n_by_namespace_labels:
            return
        self.generation += 1
        for cls in self.classes.in_namespace(name):
            matched, owner_rules = cls.matched, cls.owner_rules
            cls.matched = self._matched_by(cls)
            self._recount(cls, matched, cls.matched)
            # Whether an owner matches its own term may depend on its namespace's labels too.
            cls.owner_rules = self._owner_rules(cls)
            self._recount(cls, [r.reach.counter for r in owner_rules], [r.reach.counter for r in cls.owner_rules])
            self._let_go(owner_rules)

    def _recount(self, cls: WorkloadClass, before: list[Counter], after: list[Counter]) -> None:
        """Let the class's members count where they now do instead of where they did."""
        for counter in before:
            if not any(counter is other for other in after):
                self._count_members(cls, counter, -1)
        for counter in after:
            if not any(counter is other for other in before):
                self._count_members(cls, counter, +1)

    # Classes

    def _class_of(self, workload: Workload, label_set: LabelSet) -> WorkloadClass:
        affinity = workload.needs.affinity
        key = (workload.namespace, self._visible_of(label_set), workload.terminating, affinity)
        cls = self.classes.find(key)
        if cls is None:
            # Its terms come into use first: they may make more labels visible.
            self._own(workload.namespace, affinity)
            key = (workload.namespace, self._visible_of(label_set), workload.terminating, affinity)
            cls = self.classes.find(key)
        if cls is None:
            cls = self.classes.create(key)
            cls.matched = self._matched_by(cls)
            cls.owner_rules = self._owner_rules(cls)
            self._owned[workload.namespace, affinity].classes += 1
        return cls

    def _visible_of(self, label_set: LabelSet) -> VisibleLabels:
        if label_set.as_of != self.terms.mentions_generation:
            label_set.visible = self._look(label_set.labels, frozenset())
            label_set.as_of = self.terms.mentions_generation
        return label_set.visible

    def _drop(self, cls: WorkloadClass) -> None:
        self.classes.drop(cls)
        self._let_go(cls.owner_rules)
        owned = self._owned[cls.namespace, cls.affinity]
        owned.classes -= 1
        if not owned.classes:
            del self._owned[cls.namespace, cls.affinity]
            for _, _, entry in owned.entries:
                self.release(entry)

    def _own(self, namespace: str, affinity: AffinityTerms) -> None:
        """Bring the terms that workloads of this sort hold into use, if they are not yet."""
        if (namespace, affinity) not in self._owned:
            resolved = resolve(affinity, namespace, self.semantics, incoming=False)
            uses = [
                *((Role.REQUIRED, use) for use in resolved.required),
                *((Role.ANTI_REQUIRED, use) for use in resolved.anti_required),
                *((Role.PREFERRED, use) for use in resolved.preferred),
                *((Role.ANTI_PREFERRED, use) for use in resolved.anti_preferred),
            ]
            self._owned[namespace, affinity] = _Owned([(role, use, self.hold(use.term)) for role, use in uses])

    def _owner_rules(self, cls: WorkloadClass) -> list[OwnerRule]:
        owned = self._owned[cls.namespace, cls.affinity]
        return [self._owner_rule(cls, role, use, entry) for role, use, entry in owned.entries]

    def _let_go(self, rules: list[OwnerRule]) -> None:
        for rule in rules:
            rule.uses -= 1
            if not rule.uses:
                rule.entry.owner_rules = {k: r for k, r in rule.entry.owner_rules.items() if r is not rule}
                self.n_owner_rules -= 1
                self.generation += 1

    def _owner_rule(self, cls: WorkloadClass, role: Role, use: ResolvedTerm, entry: TermEntry) -> OwnerRule:
        self_matching = self.class_matches(entry.term, cls)
        key = (role, use.keys, use.weight, use.limit, self_matching)
        rule = entry.owner_rules.get(key)
        if rule is None:
            columns = self._columns(use.keys)
            reach = Reach(Counter(self._counted_by(use.keys)), columns)
            rule = entry.owner_rules[key] = OwnerRule(role, entry, use.source, reach, self_matching=self_matching)
            self.n_owner_rules += 1
            self.generation += 1
        rule.uses += 1
        return rule

    def _matched_by(self, cls: WorkloadClass) -> list[Counter]:
        return [
            counter
            for entry in self.terms.candidates(cls.labels)
            if entry.matches and self.class_matches(entry.term, cls)
            for counter in entry.matches.values()
        ]

    def _count_members(self, cls: WorkloadClass, counter: Counter, sign: int) -> None:
        if cls.n_spread or cls.nowhere:  # who sits on several targets counts once in each domain, and once in all
            for key in cls.keys:
                counter.add(self.records[key].slots, sign)
            return
        counter.add_all(cls.members, sign)

    # Telling classes apart

    def _tell_apart(self, mention: Anchor) -> None:
        """Let workloads be known by what is mentioned for the first time: that they have a key, or a value of it."""
        key, value = mention
        if value is None:
            somebody_has_it = self.label_sets.watch(key)
            if somebody_has_it and key[:1] != "\0":  # what is of our own making is visible from the start
                for cls in list(self.classes.by_id.values()):
                    if key not in cls.labels:  # else it has been told apart before, and nothing was mixed since
                        self._part(cls, [labels for labels in cls.label_sets if key in labels.labels], (key, OTHER))
            return
        having = self.label_sets.having(key, value)
        for cls in self.classes.known_by((key, OTHER)) if having else ():
            self._part(cls, cls.label_sets.keys() & having, (key, value))

    def _part(self, cls: WorkloadClass, label_sets: Collection[LabelSet], label: tuple[str, str]) -> None:
        """Let the members with some of the class's label sets be known by one label more, or by the value of one."""
        if not label_sets:
            return
        before = cls.key[1]
        known_by = tuple(sorted((*(other for other in before if other[0] != label[0]), label)))
        heir = self.classes.find((cls.namespace, known_by, cls.terminating, cls.affinity))
        n_leaving = sum(map(len, map(cls.label_sets.__getitem__, label_sets)))
        if heir is None and 2 * n_leaving > cls.n_members:  # the greater part stays, and is known by the label
            self.classes.see(cls, known_by)
            if n_leaving < cls.n_members:
                leaving = set(label_sets)
                others = [labels for labels in cls.label_sets if labels not in leaving]
                self._hand_over(cls, others, self._sibling(cls, before))
        else:
            self._hand_over(cls, label_sets, heir or self._sibling(cls, known_by))

    def _sibling(self, cls: WorkloadClass, visible: VisibleLabels) -> WorkloadClass:
        """
        A new class that differs from another only in what it is known by.

        It counts where that one does: no term in use so far looks at the label in which they differ.
        """
        made = self.classes.create((cls.namespace, visible, cls.terminating, cls.affinity))
        made.matched, made.owner_rules = list(cls.matched), list(cls.owner_rules)
        for rule in made.owner_rules:
            rule.uses += 1
        self._owned[cls.namespace, cls.affinity].classes += 1
        return made

    def _hand_over(self, cls: WorkloadClass, label_sets: Collection[LabelSet], heir: WorkloadClass) -> None:
        """Move all members with these labels to another class, which counts where theirs does."""
        leaving = cls.having(label_sets)
        moved = list(map(self.records.__getitem__, leaving))
        for record in moved:
            record.member_of = heir
        if cls.n_spread:
            n_spread = sum(len(record.slots) > 1 for record in moved)
            cls.n_spread -= n_spread
            heir.n_spread += n_spread
        few = len(moved) < len(cls.members)
        slots = {slot for record in moved for slot in record.slots} if few else list(cls.members)
        cls.hand_over(label_sets, leaving, slots, heir)
        if self.moved is not None:
            self.moved([record.row for record in moved], heir.id)
        if not cls.n_members:
            self._drop(cls)


def _members(classes: Iterable[WorkloadClass], slots: Iterable[int]) -> tuple[WorkloadKey, ...]:
    slots = list(slots)
    return _named(key for cls in classes for slot in slots for key in cls.members.get(slot, ()))


def _named(keys: Iterable[WorkloadKey]) -> tuple[WorkloadKey, ...]:
    """The workloads by name, each once: a copy on its way out goes by the name of the whole."""
    return tuple(sorted({WorkloadKey(key.replace(LEAVING_SUFFIX, "")) for key in keys}))
