"""
Classes: placed workloads that no term distinguishes, and where they are.

(class, slot) → workload keys is the ground truth from which every count derives. A label distinguishes classes only if
a term in use names its value, or asks for the presence of its key, so pods with a unique label each still share a
class. Each set of labels is stored once, whatever the number of workloads that have it. Knows nothing of rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from bayplan.indexing.owner_rules import OwnerRule
from bayplan.indexing.term_lookup import required_values
from bayplan.indexing.term_table import Counter, Mention
from bayplan.model.labels import EXISTS, Labels
from bayplan.model.terms import NAMESPACE, NAMESPACE_LABEL, AffinityTerms, PeerTerm
from bayplan.model.workloads import LEAVING_SUFFIX, Workload, WorkloadKey

VisibleLabels = tuple[tuple[str, str], ...]
ClassKey = tuple[str, VisibleLabels, bool, AffinityTerms]
OTHER = "\0other"  # replaces every value of a label that no term in use names
MAX_LISTED_SETS = 1024  # label sets with one key; where there are more, all sets are scanned when it is first mentioned
FEW_CLASSES = 16  # so many are compared with a term one by one
FEW_NAMESPACES = 64  # of which a term selects workloads; where it selects more, they narrow little


@dataclass(slots=True, eq=False)
class LabelSet:
    """
    The labels of some workloads, stored once; `classes` are those that have such members, by id.

    `visible` are those that terms distinguish, valid for `mentions_generation` of the term table.
    """

    labels: Labels
    uses: int = 0
    classes: dict[int, WorkloadClass] = field(default_factory=dict)
    visible: VisibleLabels = ()
    mentions_generation: int = -1


class LabelSets(msgspec.Struct, eq=False):
    """
    The label sets in use.

    `watched` has the label sets by key and value, for the keys that terms in use mention and for no others.
    """

    watched: dict[str, dict[str, set[LabelSet]]] = {}
    _sets: dict[tuple[tuple[str, str], ...], LabelSet] = {}
    _by_key: dict[str, set[LabelSet]] = {}  # for keys that few sets have
    _n_by_key: dict[str, int] = {}  # for the others: how many sets have the key

    def __len__(self) -> int:
        return len(self._sets)

    def acquire(self, labels: Labels) -> LabelSet:
        """The set of these labels, used once more."""
        key = tuple(labels.items())  # the same labels in another order are stored twice, which is harmless
        found = self._sets.get(key)
        if found is None:
            found = self._sets[key] = LabelSet(labels)
            for name, value in key:
                self._enter(name, found)
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
            self._leave(name, label_set)
            if name in self.watched:
                having = self.watched[name][value]
                having.remove(label_set)
                if not having:
                    del self.watched[name][value]

    def watch(self, key: str) -> None:
        """Keep the label sets by value of this key from now on."""
        by_value = self.watched[key] = {}
        if key not in self._n_by_key:
            having = list(self._by_key.get(key, ()))
        else:
            having = [label_set for label_set in self._sets.values() if key in label_set.labels]
        for label_set in having:
            value = label_set.labels[key]
            if value in by_value:
                by_value[value].add(label_set)
            else:
                by_value[value] = {label_set}

    def _enter(self, key: str, label_set: LabelSet) -> None:
        if key in self._n_by_key:
            self._n_by_key[key] += 1
            return
        having = self._by_key.setdefault(key, set())
        having.add(label_set)
        if len(having) > MAX_LISTED_SETS:
            self._n_by_key[key] = len(self._by_key.pop(key))

    def _leave(self, key: str, label_set: LabelSet) -> None:
        if key in self._n_by_key:
            self._n_by_key[key] -= 1
            if not self._n_by_key[key]:
                del self._n_by_key[key]
            return
        self._by_key[key].remove(label_set)
        if not self._by_key[key]:
            del self._by_key[key]


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
    matched: dict[Counter, None] = field(default_factory=dict)
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
    """
    The classes in use by key, by id and by label: (key, value), and (key, None) for any value.

    The namespace of a class is listed like a label, under the key `NAMESPACE`.
    """

    by_key: dict[ClassKey, WorkloadClass] = {}
    by_id: dict[int, WorkloadClass] = {}
    by_label: dict[Mention, dict[int, WorkloadClass]] = {}
    _namespaces_by_label: dict[Mention, set[str]] = {}
    _next_id: int = 0

    def __len__(self) -> int:
        return len(self.by_key)

    def in_namespace(self, name: str) -> list[WorkloadClass]:
        return list(self.by_label.get((NAMESPACE, name), {}).values())

    def relabel_namespace(self, name: str, before: Labels, after: Labels) -> None:
        """Find the classes of a namespace by its new labels from now on."""
        for mention in [mention for label in before.items() for mention in (label, (label[0], None))]:
            having = self._namespaces_by_label[mention]
            having.remove(name)
            if not having:
                del self._namespaces_by_label[mention]
        for mention in [mention for label in after.items() for mention in (label, (label[0], None))]:
            self._namespaces_by_label.setdefault(mention, set()).add(name)

    def create(self, key: ClassKey) -> WorkloadClass:
        namespace, visible, terminating, affinity = key
        made = WorkloadClass(self._next_id, key, namespace, dict(visible), terminating, affinity)
        self._next_id += 1
        self.by_id[made.id] = made
        self._enter(made)
        return made

    def drop(self, dropped: WorkloadClass) -> None:
        del self.by_id[dropped.id]
        self._leave(dropped)

    def show(self, cls: WorkloadClass, label: tuple[str, str], visible: VisibleLabels) -> None:
        """Make one more label of a class visible, or its value; no other class of its sort has these visible labels."""
        key, before = label[0], cls.labels.get(label[0])
        del self.by_key[cls.key]
        cls.key = (cls.namespace, visible, cls.terminating, cls.affinity)
        cls.labels = dict(visible)
        self.by_key[cls.key] = cls
        # The other labels stay listed: often many classes get one more at once.
        if before is None:
            self.by_label.setdefault((key, None), {})[cls.id] = cls
        else:
            self._unlist(cls, (key, before))
        self.by_label.setdefault(label, {})[cls.id] = cls

    def _enter(self, cls: WorkloadClass) -> None:
        self.by_key[cls.key] = cls
        for mention in _listed_under(cls):
            self.by_label.setdefault(mention, {})[cls.id] = cls

    def _leave(self, cls: WorkloadClass) -> None:
        del self.by_key[cls.key]
        for mention in _listed_under(cls):
            self._unlist(cls, mention)

    def _unlist(self, cls: WorkloadClass, mention: Mention) -> None:
        listed = self.by_label[mention]
        del listed[cls.id]
        if not listed:
            del self.by_label[mention]

    def candidates(self, term: PeerTerm) -> list[WorkloadClass]:
        """
        The classes that a term may match: each once, and every class that it matches.

        They are those of its rarest requirement, as far as they meet the other ones that name a single value. So the
        cost is that of the rarest requirement, and of comparing few classes that do not match.
        """
        pieces: list[list[dict[int, WorkloadClass]]] = []
        for key, values in required_values(term).items():
            some = self._having(key, values)
            if some is None:
                continue
            if len(some) == 1 and len(some[0]) <= FEW_CLASSES:
                return list(some[0].values())
            if not any(some):
                return []
            pieces.append(some)
        alternatives = [self._having(one.key, None if one.operator == EXISTS else one.values) for one in term.any_of]
        if alternatives and None not in alternatives:
            pieces.append([listed for some in alternatives for listed in some or ()])
        if not pieces:
            return list(self.by_id.values())
        pieces.sort(key=lambda piece: sum(map(len, piece)))
        ids = set().union(*pieces[0])
        for piece in pieces[1:]:
            if len(ids) > FEW_CLASSES and len(piece) == 1:
                ids &= piece[0].keys()
        return [self.by_id[class_id] for class_id in ids]

    def _having(self, key: str, values: tuple[str, ...] | None) -> list[dict[int, WorkloadClass]] | None:
        """The classes that have one of these values of a key, or any value; None if too many to list them."""
        if values is not None and len(values) == 1 and not key.startswith(NAMESPACE_LABEL):
            return [self.by_label.get((key, values[0]), {})]
        mentions: list[Mention] = [(key, value) for value in ((None,) if values is None else values)]
        if key.startswith(NAMESPACE_LABEL):
            label = key.removeprefix(NAMESPACE_LABEL)
            names = set().union(*(self._namespaces_by_label.get((label, value), ()) for _, value in mentions))
            if len(names) > FEW_NAMESPACES:
                return None
            mentions = [(NAMESPACE, name) for name in names]
        return [self.by_label.get(mention, {}) for mention in mentions]


def _listed_under(cls: WorkloadClass) -> Iterator[Mention]:
    yield NAMESPACE, cls.namespace
    for label in cls.labels.items():
        yield label
        yield label[0], None


def members_of(classes: Iterable[WorkloadClass], slots: Iterable[int]) -> tuple[WorkloadKey, ...]:
    """The workloads of the classes on these targets by name, each once; a leaving copy has the name of the whole."""
    slots = list(slots)
    keys = (key for cls in classes for slot in slots for key in cls.members.get(slot, ()))
    return tuple(sorted({WorkloadKey(key.replace(LEAVING_SUFFIX, "")) for key in keys}))
