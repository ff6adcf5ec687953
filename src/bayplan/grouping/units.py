"""
Which pods of a problem have to be near each other, and so are tried together in one domain after the other.

A unit is a set of pods that required affinity connects, with the topology key that they share; units with a finer key
are inside it. A pod that requires none of the others is a unit of its own. Where the pods of a set cannot all be in one
domain, because they repel each other, the set is divided into bundles: each has what its pods require.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from bayplan.grouping.problem import GroupProblem
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.groups import MEMBER_OF
from bayplan.model.terms import PeerTerm, resolve
from bayplan.model.workloads import Needs, Workload, label_keys

PodClass: TypeAlias = tuple[str, tuple[tuple[str, str], ...], Needs]  # what terms distinguish, and what they are


class RequiredPeer(msgspec.Struct, frozen=True):
    """What a pod requires in its domain of a key: a pod that the term selects."""

    key: str
    term: PeerTerm


class Unit(msgspec.Struct, eq=False):
    """
    Pods that are in one domain of `key`, or anywhere if it is empty. `parts` are units inside it, which have all pods.

    The pods of a group with `preferred` keys are a unit too. `is_bundle` if no more of the pods go into one domain.
    """

    pods: tuple[Workload, ...]
    key: str = ""
    parts: tuple[Unit, ...] = ()
    preferred: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.pods[0].key


def units_of(problem: GroupProblem) -> list[Unit]:
    """The units of a problem, in the order of their first pods."""
    index = problem.index
    relations = _Relations(problem.pods, index)
    preferred = {group.key: group.preferred_keys for group in problem.groups if group.preferred_keys}
    return _units(problem.pods, relations, preferred)


def _units(pods: Sequence[Workload], relations: _Relations, preferred: Mapping[str, tuple[str, ...]]) -> list[Unit]:
    found: list[Unit] = []
    for component, edges in relations.components(pods):
        if not edges:
            found += _by_group(component, preferred)
            continue
        # The coarsest key is the one of the whole; within one of its domains the others hold by themselves.
        key = min(edges, key=relations.n_domains)
        for bundle in relations.bundles(component, key):
            inner = relations.without(key)
            found.append(Unit(tuple(bundle), key, tuple(_units(bundle, inner, preferred))))
    return found


def _by_group(pods: Iterable[Workload], preferred: Mapping[str, tuple[str, ...]]) -> list[Unit]:
    """Pods that do not require each other: those of a group with preferred keys together, the others one by one."""
    together: defaultdict[str, list[Workload]] = defaultdict(list)
    for pod in pods:
        group = pod.labels.get(MEMBER_OF, "")
        together[group if group in preferred else pod.key].append(pod)
    return [
        Unit(
            tuple(some),
            parts=tuple(Unit((one,)) for one in some) if len(some) > 1 else (),
            preferred=preferred.get(name, ()),
        )
        for name, some in together.items()
    ]


class _Relations:
    """Which pods require which, and which cannot be together; by what no rule distinguishes."""

    def __init__(self, pods: Sequence[Workload], index: PlacementIndex, ignored: frozenset[str] = frozenset()) -> None:
        self._index, self._ignored, self._all = index, ignored, pods
        self._keys = frozenset[str]().union(*{label_keys(pod.needs) for pod in pods})
        self._classes = {pod.key: self._class_of(pod) for pod in pods}
        self._examples = {self._classes[pod.key]: pod for pod in pods}

    def without(self, key: str) -> _Relations:
        return _Relations(self._all, self._index, self._ignored | {key})

    def n_domains(self, key: str) -> tuple[int, str]:
        return len(self._index.column(key).by_value), key

    def _class_of(self, pod: Workload) -> PodClass:
        # By the labels that terms of the problem select by: they are not in use yet.
        visible = sorted(label for label in pod.labels.items() if label[0] in self._keys or label[0] == MEMBER_OF)
        return pod.namespace, tuple(visible), pod.needs

    def required(self, pod: Workload) -> list[RequiredPeer]:
        """The terms of required affinity, without those of ignored keys and those that no pod of the problem meets."""
        semantics = self._index.semantics
        own = resolve(pod.needs.affinity, pod.namespace, semantics, incoming=True)
        terms = [
            *(
                (use.keys, use.term if semantics.affinity_terms_met_apart else own.conjunction or use.term)
                for use in own.required
            ),
            *((use.keys, use.term) for use in own.group_required),
        ]
        return [RequiredPeer(keys[0], term) for keys, term in terms if keys[0] not in self._ignored]

    def _selects(self, term: PeerTerm, pod: Workload) -> bool:
        return self._index.peer_index.matches(term, pod.labels, pod.namespace)

    def components(self, pods: Sequence[Workload]) -> list[tuple[list[Workload], set[str]]]:
        """Pods that required affinity connects, with the keys of these terms; in the order of their first pods."""
        by_class: dict[PodClass, list[Workload]] = {}
        for pod in pods:
            by_class.setdefault(self._classes[pod.key], []).append(pod)
        parent = {one: one for one in by_class}

        def root(one: PodClass) -> PodClass:
            while parent[one] != one:
                one = parent[one]
            return one

        keys: defaultdict[PodClass, set[str]] = defaultdict(set)
        selected: dict[PeerTerm, list[PodClass]] = {}
        for one, some in by_class.items():
            for required in self.required(some[0]):
                if required.term not in selected:
                    selected[required.term] = [
                        other for other, theirs in by_class.items() if self._selects(required.term, theirs[0])
                    ]
                for other in selected[required.term]:
                    keys[one].add(required.key)
                    parent[root(other)] = root(one)
        joined: dict[PodClass, tuple[list[Workload], set[str]]] = {}
        for one, some in by_class.items():
            found = joined.setdefault(root(one), ([], set()))
            found[0].extend(some)
            found[1].update(keys[one])
        separate: list[tuple[list[Workload], set[str]]] = []
        for some, edges in joined.values():
            separate += [(some, edges)] if edges else [([one], edges) for one in some]
        return [(some, edges) for some, edges in self._with_groups(separate)]

    def _with_groups(self, components: list[tuple[list[Workload], set[str]]]) -> list[tuple[list[Workload], set[str]]]:
        """Single pods of one group in one list: they may prefer a common domain."""
        alone: dict[str, list[Workload]] = {}
        found: list[tuple[list[Workload], set[str]]] = []
        for some, edges in components:
            group = some[0].labels.get(MEMBER_OF, "") if not edges else ""
            if not group:
                found.append((some, edges))
            elif group in alone:
                alone[group] += some
            else:
                alone[group] = some
                found.append((some, edges))
        return found

    def bundles(self, pods: Sequence[Workload], key: str) -> list[list[Workload]]:
        """The pods divided into sets that may be in one domain of the key, each with what its pods require there."""
        if not self._repel(pods, key):
            return [list(pods)]
        left = {pod.key: pod for pod in pods}
        found: list[list[Workload]] = []
        while left:
            bundle = [left.pop(next(iter(left)))]
            position = 0
            while position < len(bundle):
                for required in self.required(bundle[position]):
                    if required.key != key or any(
                        self._selects(required.term, other) for n, other in enumerate(bundle) if n != position
                    ):
                        continue
                    match = next((one for one in left.values() if self._selects(required.term, one)), None)
                    if match is not None:
                        bundle.append(left.pop(match.key))
                position += 1
            found.append(bundle)
        return found

    def _repel(self, pods: Sequence[Workload], key: str) -> bool:
        """Whether two of the pods cannot be in one domain of the key."""
        count = Counter(self._classes[pod.key] for pod in pods)
        for one in count:
            pod = self._examples[one]
            uses = resolve(pod.needs.affinity, pod.namespace, self._index.semantics, incoming=True).anti_required
            for use in uses:
                if use.keys != (key,) or use.limit:
                    continue
                for other, n in count.items():
                    if (other != one or n > 1) and self._selects(use.term, self._examples[other]):
                        return True
        return False
