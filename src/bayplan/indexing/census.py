"""
Who is where, as terms see it: classes, their terms and the counters of both, kept true under every change.

The census never scans workloads to answer. It looks at all of them only when a label key is mentioned by a live term
for the first time, because from then on that key tells classes apart.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator

import msgspec

from bayplan.indexing.classes import ClassTable, LabelSet, VisibleLabels, WorkloadClass
from bayplan.indexing.counters import Counter
from bayplan.indexing.reach import Reach
from bayplan.indexing.term_table import OwnerRule, Role, TermEntry, TermTable
from bayplan.indexing.value_columns import ValueColumn
from bayplan.model.labels import Labels
from bayplan.model.resolved_terms import Use, resolve
from bayplan.model.semantics import Semantics
from bayplan.model.terms import TARGET, AffinityTerms, PeerTerm
from bayplan.model.workloads import LEAVING, Workload, WorkloadKey

NO_LABELS: Labels = {}
SEEN_KEPT = 8192  # label sets of which it is remembered what terms see of them


class Record(msgspec.Struct):
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

    entries: list[tuple[Role, Use, TermEntry]]
    classes: int = 0


class Census:
    """`generation` moves whenever the set of owner rules changes, so that plans know to look again."""

    def __init__(self, semantics: Semantics, column: Callable[[str], ValueColumn]) -> None:
        self.semantics = semantics
        self.namespaces: dict[str, Labels] = {}
        self.records: dict[WorkloadKey, Record] = {}
        self.generation = 0
        self.n_owner_rules = 0  # that placed workloads hold against newcomers, whoever these are
        self.terms = TermTable()
        self.classes = ClassTable()
        self.moved: Callable[[Record], None] | None = None  # told of workloads whose class was split under them
        self._column = column
        self._owned: dict[tuple[str, AffinityTerms], _Owned] = {}
        self._label_sets: dict[tuple[tuple[str, str], ...], LabelSet] = {}
        self._seen: dict[tuple[VisibleLabels, frozenset[str]], VisibleLabels] = {}
        self._seen_as_of = -1
        self._label_keys: Tally[str] = Tally()  # how many label sets have the key

    # Asking

    def visible(self, labels: Labels, also: frozenset[str] = frozenset()) -> VisibleLabels:
        """The labels that some live term could look at, or one about to live that looks at the keys `also`."""
        if self._seen_as_of != self.terms.keys_generation or len(self._seen) == SEEN_KEPT:
            self._seen.clear()
            self._seen_as_of = self.terms.keys_generation
        key = (tuple(labels.items()), also)
        known = self._seen.get(key)
        if known is None:
            live = self.terms.live_keys
            # Labels of our own making, such as Karmada's groups, are there to be looked at.
            seen = [i for i in labels.items() if i[0] in live or i[0] in also or i[0][:1] == "\0"]
            known = self._seen[key] = tuple(sorted(seen))
        return known

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
        entry, new_keys = self.terms.use(term)
        self._split_by(new_keys)
        return entry

    def release(self, entry: TermEntry) -> None:
        if self.terms.release(entry) and entry.matches:
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

    def join(self, record: Record) -> WorkloadClass:
        """Count a workload on its slots."""
        workload = record.workload
        label_set = self._label_set(workload.labels)
        cls = self._class_of(workload, label_set)
        cls.join(record.key, label_set, record.slots)
        record.label_set = label_set
        record.member_of = cls
        for counter in cls.matched:
            counter.add(record.slots, +1)
        for rule in cls.owner_rules:
            rule.reach.counter.add(record.slots, +1)
        return cls

    def leave(self, record: Record) -> WorkloadClass:
        cls = record.member_of
        assert cls is not None, f"{record.workload.key} is not counted"
        assert record.label_set is not None
        cls.leave(record.key, record.label_set, record.slots)
        self._forget(record.label_set)
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

    # Labels

    def _label_set(self, labels: Labels) -> LabelSet:
        key = tuple(labels.items())  # in another order they are kept twice, which does no harm
        found = self._label_sets.get(key)
        if found is None:
            found = self._label_sets[key] = LabelSet(labels)
            self._label_keys.update(labels.keys())
        found.uses += 1
        return found

    def _forget(self, label_set: LabelSet) -> None:
        label_set.uses -= 1
        if not label_set.uses:
            del self._label_sets[tuple(label_set.labels.items())]
            self._label_keys.subtract(label_set.labels.keys())
            for key in label_set.labels:
                if not self._label_keys[key]:
                    del self._label_keys[key]

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
        if label_set.as_of != self.terms.keys_generation:
            label_set.visible = self.visible(label_set.labels)
            label_set.as_of = self.terms.keys_generation
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

    def _owner_rule(self, cls: WorkloadClass, role: Role, use: Use, entry: TermEntry) -> OwnerRule:
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

    def _split_by(self, new_keys: list[str]) -> None:
        """
        Tell classes apart by labels that just became visible.

        Most classes need no split, as their members agree: those only become known by the new label. Whatever counted
        a class counts what comes of it, because no term in use so far has looked at this label.
        """
        # Labels of our own making are visible from the start, so nobody needs to be told apart by them now.
        keys = [key for key in new_keys if self._label_keys[key] > 0 and key[:1] != "\0"]
        for cls in list(self.classes.by_id.values()) if keys else ():
            visible = {labels: self._seen_of(labels, cls, keys) for labels in cls.label_sets}
            seen = set(visible.values())
            if seen == {cls.key[1]}:
                continue
            (known_by, *others) = seen
            if others or self.classes.find((cls.namespace, known_by, cls.terminating, cls.affinity)):
                self._scatter(cls, visible)
            else:
                self.classes.see(cls, known_by)

    def _seen_of(self, labels: LabelSet, cls: WorkloadClass, keys: list[str]) -> VisibleLabels:
        return self._visible_of(labels) if any(key in labels.labels for key in keys) else cls.key[1]

    def _scatter(self, cls: WorkloadClass, visible: dict[LabelSet, VisibleLabels]) -> None:
        """Move the members that are seen differently now to classes of their own."""
        for key in cls.keys:
            record = self.records[key]
            assert record.label_set is not None
            if visible[record.label_set] != cls.key[1]:
                cls.leave(key, record.label_set, record.slots)
                new = self._class_of(record.workload, record.label_set)
                new.join(key, record.label_set, record.slots)
                record.member_of = new
                if self.moved is not None:
                    self.moved(record)
        if not cls.n_members:
            self._drop(cls)


def _members(classes: Iterable[WorkloadClass], slots: Iterable[int]) -> tuple[WorkloadKey, ...]:
    slots = list(slots)
    return _named(key for cls in classes for slot in slots for key in cls.members.get(slot, ()))


def _named(keys: Iterable[WorkloadKey]) -> tuple[WorkloadKey, ...]:
    """The workloads by name, each once: a copy on its way out goes by the name of the whole."""
    return tuple(sorted({WorkloadKey(key.replace(LEAVING, "")) for key in keys}))
