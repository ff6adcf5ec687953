"""
Classes: placed workloads that no term can tell apart, and where they are.

(class, slot) → workload keys is the ground truth from which every count derives. Labels tell classes apart only if a
live term mentions their key, so pods with a unique label each still share a class. Knows nothing of rules.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from bayplan.indexing.counters import Counter
from bayplan.indexing.term_table import Anchor, OwnerRule, TermEntry
from bayplan.model.labels import Labels
from bayplan.model.terms import AffinityTerms
from bayplan.model.workloads import WorkloadKey

VisibleLabels = tuple[tuple[str, str], ...]
ClassKey = tuple[str, VisibleLabels, bool, AffinityTerms]


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


class WorkloadClass:
    """
    One class. `matched` are the counters its members count in, `owner_rules` what they hold against newcomers.

    `label_sets` are the whole labels of its members, with how many have them: what tells whether it must split.
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
        self.label_sets: dict[LabelSet, int] = {}
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
        return self.nowhere.union(*self.members.values())

    def join(self, workload: WorkloadKey, labels: LabelSet, slots: tuple[int, ...]) -> None:
        self.n_members += 1
        self.n_spread += len(slots) > 1
        if not slots:
            self.nowhere.add(workload)
        self.label_sets[labels] = self.label_sets.get(labels, 0) + 1
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
        left = self.label_sets[labels] - 1
        if left:
            self.label_sets[labels] = left
        else:
            del self.label_sets[labels]
        for slot in slots:
            here = self.members[slot]
            here.remove(workload)
            if not here:
                del self.members[slot]


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
        """Let a class be known by more labels, all of its members having the same; no other class is known by them."""
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
