"""
Classes: placed workloads that no term distinguishes, and where they are.

(class, slot) → workload keys is the ground truth from which every count derives. Labels distinguish classes only if a
term in use mentions their key, and their values only if a term names them, so pods with a unique label each still share
a class. Each set of labels is stored once, whatever the number of workloads that have it. Knows nothing of rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from bayplan.indexing.term_table import Anchor, Counter, OwnerRule
from bayplan.model.labels import Labels
from bayplan.model.terms import AffinityTerms
from bayplan.model.workloads import LEAVING_SUFFIX, Workload, WorkloadKey

VisibleLabels = tuple[tuple[str, str], ...]
ClassKey = tuple[str, VisibleLabels, bool, AffinityTerms]
OTHER = "\0other"  # replaces every value of a label that no term in use names


@dataclass(slots=True, eq=False)
class LabelSet:
    """
    The labels of some workloads, stored once.

    `visible` are those that terms distinguish, valid for `mentions_generation` of the term table.
    """

    labels: Labels
    uses: int = 0
    visible: VisibleLabels = ()
    mentions_generation: int = -1


class LabelSets(msgspec.Struct, eq=False):
    """
    The label sets in use.

    `watched` has the label sets by key and value, for the keys that terms in use mention and for no others.
    """

    watched: dict[str, dict[str, set[LabelSet]]] = {}
    _sets: dict[tuple[tuple[str, str], ...], LabelSet] = {}
    _n_by_key: dict[str, int] = {}  # how many sets have the key

    def __len__(self) -> int:
        return len(self._sets)

    def acquire(self, labels: Labels) -> LabelSet:
        """The set of these labels, used once more."""
        key = tuple(labels.items())  # the same labels in another order are stored twice, which is harmless
        found = self._sets.get(key)
        if found is None:
            found = self._sets[key] = LabelSet(labels)
            n_by_key = self._n_by_key
            for name, value in key:
                n_by_key[name] = n_by_key.get(name, 0) + 1
                if name in self.watched:
                    self.watched[name].setdefault(value, set()).add(found)
        found.uses += 1
        return found

    def release(self, label_set: LabelSet) -> None:
        """Use a set once less; it is dropped with its last use."""
        label_set.uses -= 1
        if label_set.uses:
            return
        del self._sets[tuple(label_set.labels.items())]
        for name, value in label_set.labels.items():
            self._n_by_key[name] -= 1
            if not self._n_by_key[name]:
                del self._n_by_key[name]
            if name in self.watched:
                having = self.watched[name][value]
                having.remove(label_set)
                if not having:
                    del self.watched[name][value]

    def watch(self, key: str) -> bool:
        """Keep the label sets by value of this key from now on; returns whether any has the key."""
        by_value = self.watched[key] = {}
        if key not in self._n_by_key:
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


@dataclass(slots=True, eq=False)
class WorkloadClass:
    """
    One class. `matched` are the counters its members count in, `owner_rules` the terms that its members own.

    `label_sets` are the complete labels of its members, with the members that have them: needed when the class splits.
    `nowhere` are the members on unknown targets only, which exist in fleets alone, and `n_spread` is the number of
    members on several targets.
    """

    id: int
    key: ClassKey
    namespace: str
    labels: Labels
    terminating: bool
    affinity: AffinityTerms
    members: dict[int, set[WorkloadKey]] = field(default_factory=dict)
    n_members: int = 0
    n_spread: int = 0
    nowhere: set[WorkloadKey] = field(default_factory=set)
    label_sets: dict[LabelSet, set[WorkloadKey]] = field(default_factory=dict)
    matched: list[Counter] = field(default_factory=list)
    owner_rules: list[OwnerRule] = field(default_factory=list)

    @property
    def keys(self) -> set[WorkloadKey]:
        """All members, each once."""
        return set().union(*self.label_sets.values())


class PlacedWorkload(msgspec.Struct):
    """
    A placed workload: `shares` are its targets by name with the replicas on each, `slots` those of them that exist.

    `row` is its row in the pod table, -1 if it has none.
    """

    key: WorkloadKey
    workload: Workload
    shares: tuple[tuple[str, int], ...]
    slots: tuple[int, ...] = ()
    member_of: WorkloadClass | None = None
    label_set: LabelSet | None = None
    row: int = -1


class ClassTable(msgspec.Struct, eq=False):
    """The classes in use by key, by id, by namespace and by label: (key, value), and (key, None) for any value."""

    by_key: dict[ClassKey, WorkloadClass] = {}
    by_id: dict[int, WorkloadClass] = {}
    by_namespace: dict[str, dict[int, WorkloadClass]] = {}
    by_label: dict[Anchor, dict[int, WorkloadClass]] = {}
    _next_id: int = 0

    def __len__(self) -> int:
        return len(self.by_key)

    def create(self, key: ClassKey) -> WorkloadClass:
        namespace, visible, terminating, affinity = key
        made = WorkloadClass(self._next_id, key, namespace, dict(visible), terminating, affinity)
        self._next_id += 1
        self.by_id[made.id] = made
        self.by_namespace.setdefault(namespace, {})[made.id] = made
        self._enter(made)
        return made

    def drop(self, dropped: WorkloadClass) -> None:
        del self.by_id[dropped.id]
        del self.by_namespace[dropped.namespace][dropped.id]
        self._leave(dropped)

    def relabel(self, cls: WorkloadClass, visible: VisibleLabels) -> None:
        """Give a class other visible labels, which no other class of its sort has."""
        self._leave(cls)
        cls.key = (cls.namespace, visible, cls.terminating, cls.affinity)
        cls.labels = dict(visible)
        self._enter(cls)

    def _enter(self, cls: WorkloadClass) -> None:
        self.by_key[cls.key] = cls
        for label in cls.labels.items():
            for anchor in (label, (label[0], None)):
                self.by_label.setdefault(anchor, {})[cls.id] = cls

    def _leave(self, cls: WorkloadClass) -> None:
        del self.by_key[cls.key]
        for label in cls.labels.items():
            for anchor in (label, (label[0], None)):
                del self.by_label[anchor][cls.id]
                if not self.by_label[anchor]:
                    del self.by_label[anchor]

    def candidates(self, anchors: tuple[Anchor, ...]) -> list[WorkloadClass]:
        """The classes that a term with these anchors may match; each once, and every class that it matches."""
        if not anchors:
            return list(self.by_id.values())
        if len(anchors) == 1:
            return list(self.by_label.get(anchors[0], {}).values())
        found: dict[int, WorkloadClass] = {}
        for anchor in anchors:
            found.update(self.by_label.get(anchor, {}))
        return list(found.values())


def members_of(classes: Iterable[WorkloadClass], slots: Iterable[int]) -> tuple[WorkloadKey, ...]:
    """The workloads of the classes on these targets by name, each once; a leaving copy has the name of the whole."""
    slots = list(slots)
    keys = (key for cls in classes for slot in slots for key in cls.members.get(slot, ()))
    return tuple(sorted({WorkloadKey(key.replace(LEAVING_SUFFIX, "")) for key in keys}))
