"""
Classes: placed workloads that no term can tell apart, and where they are.

(class, slot) → workload keys is the ground truth from which every count derives. Labels tell classes apart only if a
live term mentions their key, and their values only if it names them, so pods with a unique label each still share a
class. Knows nothing of rules.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from bayplan.indexing.term_table import Anchor, Counter, OwnerRule, TermEntry
from bayplan.model.labels import Labels
from bayplan.model.terms import AffinityTerms
from bayplan.model.workloads import WorkloadKey

VisibleLabels = tuple[tuple[str, str], ...]
ClassKey = tuple[str, VisibleLabels, bool, AffinityTerms]
OTHER = "\0other"  # stands for every value of a label that no live term names


class WorkloadClass:
    """
    One class. `matched` are the counters its members count in, `owner_rules` what they hold against newcomers.

    `label_sets` are the whole labels of its members, with who has them: what tells who must go if it splits.
    `nowhere` are the members on unknown targets alone, which only fleets have, and `n_spread` how many are on several.
    """

    __slots__ = (
        "id",
        "key",
        "label_sets",
        "labels",
        "matched",
        "members",
        "n_members",
        "n_spread",
        "nowhere",
        "owner_rules",
    )

    def __init__(self, class_id: int, key: ClassKey) -> None:
        self.id = class_id
        self.key = key
        self.labels = dict(key[1])
        self.members: dict[int, set[WorkloadKey]] = {}
        self.n_members = 0
        self.n_spread = 0
        self.nowhere: set[WorkloadKey] = set()
        self.label_sets: dict[LabelSet, set[WorkloadKey]] = {}
        self.matched: list[Counter] = []
        self.owner_rules: list[OwnerRule] = []

    @property
    def namespace(self) -> str:
        return self.key[0]

    @property
    def terminating(self) -> bool:
        return self.key[2]

    @property
    def affinity(self) -> AffinityTerms:
        return self.key[3]

    @property
    def keys(self) -> set[WorkloadKey]:
        """All members, each once."""
        return set().union(*self.label_sets.values())

    def join(self, workload: WorkloadKey, labels: LabelSet, slots: tuple[int, ...]) -> None:
        self.n_members += 1
        self.n_spread += len(slots) > 1
        if not slots:
            self.nowhere.add(workload)
        alike = self.label_sets.get(labels)
        if alike is None:
            self.label_sets[labels] = {workload}
        else:
            alike.add(workload)
        for slot in slots:
            here = self.members.get(slot)
            if here is None:
                self.members[slot] = {workload}
            else:
                here.add(workload)

    def leave(self, workload: WorkloadKey, labels: LabelSet, slots: tuple[int, ...]) -> None:
        self.n_members -= 1
        self.n_spread -= len(slots) > 1
        self.nowhere.discard(workload)
        alike = self.label_sets[labels]
        alike.remove(workload)
        if not alike:
            del self.label_sets[labels]
        for slot in slots:
            here = self.members[slot]
            here.remove(workload)
            if not here:
                del self.members[slot]

    def having(self, label_sets: Iterable[LabelSet]) -> set[WorkloadKey]:
        """The members with these labels."""
        return set().union(*map(self.label_sets.__getitem__, label_sets))

    def hand_over(
        self, label_sets: Iterable[LabelSet], leaving: set[WorkloadKey], slots: Iterable[int], heir: WorkloadClass
    ) -> None:
        """Let the members with these labels belong to another class, all at once; `slots` are at least theirs."""
        for labels in label_sets:
            alike = self.label_sets.pop(labels)
            if labels in heir.label_sets:
                heir.label_sets[labels] |= alike
            else:
                heir.label_sets[labels] = alike
        self.n_members -= len(leaving)
        heir.n_members += len(leaving)
        heir.nowhere |= self.nowhere & leaving
        self.nowhere -= leaving
        for slot in slots:
            here = self.members[slot]
            going = here & leaving
            if len(going) == len(here):
                del self.members[slot]
            else:
                here -= going
            if slot in heir.members:
                heir.members[slot] |= going
            elif going:
                heir.members[slot] = going


class ClassTable:
    """The classes in use, found by key, by id, by namespace, and from a term by label postings."""

    def __init__(self) -> None:
        self._by_key: dict[ClassKey, WorkloadClass] = {}
        self.by_id: dict[int, WorkloadClass] = {}
        self._by_namespace: defaultdict[str, dict[int, WorkloadClass]] = defaultdict(dict)
        self._posted: defaultdict[Anchor, dict[int, WorkloadClass]] = defaultdict(dict)
        self._next_id = 0

    def __len__(self) -> int:
        return len(self._by_key)

    def find(self, key: ClassKey) -> WorkloadClass | None:
        return self._by_key.get(key)

    def create(self, key: ClassKey) -> WorkloadClass:
        made = WorkloadClass(self._next_id, key)
        self._next_id += 1
        self._by_key[key] = made
        self.by_id[made.id] = made
        self._by_namespace[made.namespace][made.id] = made
        for anchor in _anchors(made.labels):
            self._posted[anchor][made.id] = made
        return made

    def drop(self, gone: WorkloadClass) -> None:
        del self._by_key[gone.key]
        del self.by_id[gone.id]
        del self._by_namespace[gone.namespace][gone.id]
        self._unpost(gone)

    def see(self, cls: WorkloadClass, visible: VisibleLabels) -> None:
        """Let a class be known by other labels, which no other class is known by."""
        self._unpost(cls)
        del self._by_key[cls.key]
        cls.key = (cls.namespace, visible, cls.terminating, cls.affinity)
        cls.labels = dict(visible)
        self._by_key[cls.key] = cls
        for anchor in _anchors(cls.labels):
            self._posted[anchor][cls.id] = cls

    def _unpost(self, cls: WorkloadClass) -> None:
        for anchor in _anchors(cls.labels):
            del self._posted[anchor][cls.id]
            if not self._posted[anchor]:
                del self._posted[anchor]

    def known_by(self, label: Anchor) -> list[WorkloadClass]:
        return list(self._posted.get(label, {}).values())

    def in_namespace(self, namespace: str) -> list[WorkloadClass]:
        return list(self._by_namespace.get(namespace, {}).values())

    def candidates(self, entry: TermEntry) -> Iterator[WorkloadClass]:
        """The classes that a term may match; each once, none that matches is left out."""
        if not entry.anchors:
            return iter(list(self.by_id.values()))
        found: dict[int, WorkloadClass] = {}
        for anchor in entry.anchors:
            found.update(self._posted.get(anchor, {}))
        return iter(list(found.values()))


def _anchors(labels: Labels) -> Iterator[Anchor]:
    for key, value in labels.items():
        yield key, value
        yield key, None


# RF merged from indexing.label_sets: The labels of placed workloads, each set of them kept once, and which sets have
# a label that terms look at. Knows nothing of classes or terms.


class LabelSet:
    """
    All labels of some workloads, kept once however many have them.

    `visible` is what terms could see of them `as_of` a state of the terms.
    """

    __slots__ = ("as_of", "labels", "uses", "visible")

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.uses = 0
        self.visible: VisibleLabels = ()
        self.as_of = -1


class LabelSets:
    """The sets in use. Those with one label are known at once for the keys that are watched, and for no others."""

    def __init__(self) -> None:
        self._sets: dict[tuple[tuple[str, str], ...], LabelSet] = {}
        self._n_having: dict[str, int] = {}  # how many sets have the key
        self._watched: dict[str, dict[str, set[LabelSet]]] = {}  # by key and value

    def __len__(self) -> int:
        return len(self._sets)

    def take(self, labels: Labels) -> LabelSet:
        """The set of these labels, used once more."""
        key = tuple(labels.items())  # in another order they are kept twice, which does no harm
        found = self._sets.get(key)
        if found is None:
            found = self._sets[key] = LabelSet(labels)
            n_having = self._n_having
            for name, value in key:
                n_having[name] = n_having.get(name, 0) + 1
                if name in self._watched:
                    self._watched[name].setdefault(value, set()).add(found)
        found.uses += 1
        return found

    def release(self, label_set: LabelSet) -> None:
        """Use a set once less; it is forgotten with its last use."""
        label_set.uses -= 1
        if label_set.uses:
            return
        del self._sets[tuple(label_set.labels.items())]
        for name, value in label_set.labels.items():
            self._n_having[name] -= 1
            if not self._n_having[name]:
                del self._n_having[name]
            if name in self._watched:
                having = self._watched[name][value]
                having.remove(label_set)
                if not having:
                    del self._watched[name][value]

    def watch(self, key: str) -> bool:
        """Know from now on which sets have which value of the key; whether any has one."""
        by_value = self._watched[key] = {}
        if key not in self._n_having:
            return False
        for label_set in self._sets.values():
            value = label_set.labels.get(key)
            if value is not None:
                having = by_value.get(value)
                if having is None:
                    by_value[value] = {label_set}
                else:
                    having.add(label_set)
        return True

    def unwatch(self, key: str) -> None:
        del self._watched[key]

    def having(self, key: str, value: str) -> Collection[LabelSet]:
        """The sets with this value of a watched key."""
        return self._watched[key].get(value, ())
