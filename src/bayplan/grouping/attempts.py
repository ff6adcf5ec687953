"""
Attempts to place pods of a problem on the index, counted, and undone where they lead nowhere.

Each attempt asks the engine which targets are feasible, so what a rule says is decided there alone. Only required
affinity to a pod that comes later is left out at first, and checked once that pod is there. Knows no order of units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan import schedule_pod
from bayplan.engine import filtering, scoring
from bayplan.grouping.problem import GroupPlan, GroupProblem
from bayplan.grouping.units import Unit
from bayplan.indexing.capacity import POD_ROW, PODS
from bayplan.indexing.slots import ABSENT, ValueColumn
from bayplan.model.groups import MEMBER_OF
from bayplan.model.reasons import Mask, Slots
from bayplan.model.terms import resolve
from bayplan.model.workloads import Workload, WorkloadKey, label_keys

MAX_DOMAINS = 64  # of one key, of those that seem to fit: the best ones are tried first


def in_time() -> bool:
    """No limit of the time."""
    return False


class BudgetSpentError(Exception):
    """The attempts that a search may make are used up."""


class Attempts:
    """
    The pods of a problem that are placed at the moment, by name, with their slots.

    `left_out` are members that their groups can do without. `n_steps` counts the questions to the engine, of which at
    most `max_steps` are asked, until it is `out_of_time`.
    """

    def __init__(self, problem: GroupProblem, max_steps: int, out_of_time: Callable[[], bool] = in_time) -> None:
        self._out_of_time = out_of_time
        self.index, self._engine_of, self.max_steps = problem.index, problem.engine_of, max_steps
        self.slot_of: dict[WorkloadKey, int] = {}
        self.workloads = {pod.key: pod for pod in problem.pods}
        self.n_steps = 0
        self.packs = False  # fill nodes up, instead of following the scores
        # How many members of each group may be left out.
        self.dispensable = Counter(
            {one.key: len(one.pods) - max(0, one.min_members - one.n_placed) for one in problem.groups}
        )
        self.left_out: dict[WorkloadKey, Workload] = {}
        self._sizes: dict[str, float] = {}
        # Terms of the problem are in use only while its pods are placed, so their keys are noted at the beginning.
        self._keys = sorted({MEMBER_OF}.union(*{label_keys(pod.needs) for pod in problem.pods}))
        self._visible = problem.index.peer_index.visible
        self._classes: dict[WorkloadKey, Hashable] = {}

    # The index

    def put(self, pod: Workload, slot: int) -> None:
        schedule_pod.assume(self.index, pod, slot)
        self.slot_of[pod.key] = slot

    def take(self, pods: Iterable[Workload]) -> None:
        """Take pods from their targets, and those that were left out from the list."""
        for pod in pods:
            if pod.key in self.slot_of:
                del self.slot_of[pod.key]
                self.index.remove(pod.key)
            elif self.left_out.pop(pod.key, None) is not None:
                self.dispensable[pod.labels[MEMBER_OF]] += 1

    def plan(self) -> GroupPlan:
        return GroupPlan({key: self.index.slots.at(slot).name for key, slot in self.slot_of.items()})

    def feasible(self, pod: Workload) -> filtering.Verdicts:
        self.n_steps += 1
        if self.n_steps > self.max_steps or self._out_of_time():
            raise BudgetSpentError
        return filtering.run(pod, self._engine_of(pod))

    def fits_where_it_is(self, pod: Workload) -> bool:
        """Whether a placed pod is feasible on its target in the presence of all others."""
        slot = self.slot_of[pod.key]
        with self.index.without(pod.key):
            return bool(self.feasible(pod).feasible[slot])

    # Units

    def place(self, unit: Unit, within: Mask | None = None) -> bool:
        """Place the pods of a unit, in one domain if it has a key; nothing is placed if that fails."""
        within = self.index.slots.alive if within is None else within
        for key in unit.preferred:
            for domain in self.domains(unit, key, within):
                # As the wish of a group, one domain counts only if it has all of the pods.
                if self._place_in(unit, domain, tolerant=False):
                    return True
        if not unit.key:
            return self._place_in(unit, within)
        return any(self._place_in(unit, domain) for domain in self.domains(unit, unit.key, within))

    def _place_in(self, unit: Unit, within: Mask, *, tolerant: bool = True) -> bool:
        """Place the pods of a unit on some targets; pods that a group can do without may be left out."""
        placed: list[Workload] = []
        deferred: list[Workload] = []  # their required affinity is met by pods that come later
        for part in self._order(unit, within):
            if part.key or part.preferred:
                done = self.place(part, within)
                placed += part.pods if done else ()
            else:
                (pod,) = part.pods
                done = self.place_pod(pod, within, deferred)
                placed += [pod] if done else []
            if not done and not (tolerant and self.leave_out(part.pods)):
                self.take([*placed, *unit.pods])
                return False
        if all(self.fits_where_it_is(pod) for pod in deferred):
            return True
        self.take(unit.pods)
        return False

    def leave_out(self, pods: Sequence[Workload]) -> bool:
        """Leave pods out, if their groups can do without them."""
        wanted = Counter(pod.labels.get(MEMBER_OF, "") for pod in pods)
        if any(self.dispensable[group] < n for group, n in wanted.items()):
            return False
        self.dispensable.subtract(wanted)
        self.left_out.update((pod.key, pod) for pod in pods)
        return True

    def place_pod(self, pod: Workload, within: Mask, deferred: list[Workload]) -> bool:
        """Place one pod; it is noted in `deferred` if its required affinity is not met yet."""
        verdicts = self.feasible(pod)
        allowed = verdicts.feasible & within
        if not allowed.any():
            alone = without_required_affinity(pod)
            if alone is pod:
                return False
            verdicts = self.feasible(alone)
            allowed = verdicts.feasible & within
            if not allowed.any():
                return False
            deferred.append(pod)
        self.put(pod, self._best(pod, verdicts, allowed))
        return True

    def _best(self, pod: Workload, verdicts: filtering.Verdicts, allowed: Mask) -> int:
        """The target of the highest total, or the one that is then filled best."""
        if not self.packs:
            return int(scoring.run(verdicts, self.index).best(allowed, self.index)[0])
        slots = np.flatnonzero(allowed)
        left = self._left(pod, slots)
        return int(slots[np.lexsort((self.index.slots.rank[slots], left))[0]])

    def _left(self, pod: Workload, slots: Slots) -> NDArray[np.float64]:
        """The share of what a target offers that is left with the pod on it, summed over the requested resources."""
        capacity = self.index.capacity
        left = np.zeros(len(slots))
        for resource, amount in pod.needs.requests.amounts:
            row = capacity.row(resource)
            offered = capacity.allocatable[row][slots]
            left += (offered - capacity.requested[row][slots] - amount) / np.maximum(offered, 1)
        return left

    # Where a unit may fit

    def domains(self, unit: Unit, key: str, within: Mask, *, fitting: bool = True) -> Iterator[Mask]:
        """The domains of a key that have room for a unit, or all: the one first in which least is left over."""
        column = self.index.column(key)
        for domain in self.ranked_domains(unit, key, within, fitting=fitting):
            yield _mask_of(column, domain, within)  # one at a time: all would take the square of the number of targets

    def ranked_domains(self, unit: Unit, key: str, within: Mask, *, fitting: bool = True) -> list[int]:
        """The same domains as numbers in the column of the key, at most `MAX_DOMAINS`."""
        column = self.index.column(key)
        n_dispensable = sum(max(0, self.dispensable[name]) for name in {p.labels.get(MEMBER_OF, "") for p in unit.pods})
        lacking = np.zeros(column.n_domains, np.int64)
        for one in self.room(unit):
            if self._out_of_time():  # many classes in many domains are counted for long without a question
                raise BudgetSpentError
            lacking += np.maximum(0, one.n_pods - one.n_places_by_domain(column, within))
        left = self._left_over(unit, column, within)
        possible = [
            (int(lacking[domain]), float(left[domain]), str(value), domain)
            for value, domain in column.by_value.items()
            if not fitting or lacking[domain] <= n_dispensable
        ]
        return [domain for *_, domain in sorted(possible)[:MAX_DOMAINS]]

    def _left_over(self, unit: Unit, column: ValueColumn, within: Mask) -> NDArray[np.float64]:
        """What is left in each domain with the unit there, as a share of all there is, over the requested resources."""
        capacity = self.index.capacity
        left = np.zeros(column.n_domains)
        for resource, amount in requested_by(unit).items():
            row = capacity.row(resource)
            free = np.where(within, capacity.allocatable[row] - capacity.requested[row], 0)
            by_domain = np.bincount(column.of_slot, free, column.n_domains)
            left += (by_domain - amount) / max(1, int(capacity.allocatable[row].sum()))
        return left

    def room(self, unit: Unit) -> list[ClassRoom]:
        """Where there is room for the pods of a unit at the moment, for each class by itself."""
        by_class: dict[Hashable, list[Workload]] = {}
        for pod in unit.pods:
            by_class.setdefault(self._class_of(pod), []).append(pod)
        return [self._room_of(some[0], len(some)) for some in by_class.values()]

    def _class_of(self, pod: Workload) -> Hashable:
        """What is equal for pods that no rule distinguishes: none of placed pods, and none of the problem."""
        known = self._classes.get(pod.key)
        if known is None:
            selected = tuple([(key, pod.labels[key]) for key in self._keys if key in pod.labels])
            visible = self._visible(pod.labels)
            known = self._classes[pod.key] = (
                pod.needs,
                pod.namespace,
                selected,
                visible,
                pod.requested_target,
                pod.unplaceable,
            )
        return known

    def _room_of(self, pod: Workload, n_pods: int) -> ClassRoom:
        feasible = self.feasible(without_required_affinity(pod)).feasible
        capacity = self.index.capacity
        count = capacity.allocatable[POD_ROW] - capacity.requested[POD_ROW]
        for resource, amount in pod.needs.requests.amounts:
            if amount > 0:
                row = capacity.row(resource)
                count = np.minimum(count, (capacity.allocatable[row] - capacity.requested[row]) // amount)
        own = resolve(pod.needs.affinity, pod.namespace, self.index.semantics, incoming=True)
        apart = [
            self.index.column(use.keys[0])
            for use in own.anti_required
            if len(use.keys) == 1
            and not use.limit
            and self.index.peer_index.matches(use.term, pod.labels, pod.namespace)
        ]
        return ClassRoom(n_pods, np.where(feasible, np.maximum(count, 1), 0), apart)

    def _order(self, unit: Unit, within: Mask) -> list[Unit]:
        """The parts of a unit, the most constrained first: fewest places for each pod, then the largest."""
        parts = unit.parts or (Unit((pod,)) for pod in unit.pods)
        if not unit.parts and len(unit.pods) == 1:
            return [unit]
        scarce: dict[Hashable, int] = {}

        def scarcity(part: Unit) -> tuple[float, float]:
            pod = part.pods[0]
            known = self._class_of(pod)
            if known not in scarce:
                scarce[known] = self._room_of(pod, 1).n_places(within)
            return scarce[known] / len(part.pods), -self.size(part)

        return sorted(parts, key=scarcity)

    def size(self, unit: Unit) -> float:
        """The share of all that the cluster offers that the pods of a unit request, of the scarcest resource."""
        known = self._sizes.get(unit.name)
        if known is None:
            totals, row = self.index.capacity.allocatable.sum(axis=1), self.index.capacity.row
            shares = [n / max(1, int(totals[row(name)])) for name, n in requested_by(unit).items()]
            known = self._sizes[unit.name] = max(shares, default=0.0)
        return known


class ClassRoom(msgspec.Struct, eq=False):
    """
    How many pods of one class each target can take, shape (capacity,); there are `n_pods` of it.

    Pods that repel their own class have one place in each domain of the columns `apart`.
    """

    n_pods: int
    counts: NDArray[np.int64]
    apart: list[ValueColumn]

    def n_places(self, mask: Mask) -> int:
        """The number of places on some targets, at most."""
        n = int(self.counts[mask].sum())
        for column in self.apart:
            slots = np.flatnonzero(mask & (self.counts > 0))
            domains = column.of_slot[slots]
            n_alone = int(self.counts[slots[domains == ABSENT]].sum())
            n = min(n, n_alone + len(np.unique(domains[domains != ABSENT])))
        return n

    def n_places_by_domain(self, column: ValueColumn, within: Mask) -> NDArray[np.int64]:
        """The same for the targets of each domain, shape (n_domains,). A node is in one domain of a key."""
        counts = np.where(within, self.counts, 0)
        n = np.bincount(column.of_slot, counts, column.n_domains).astype(np.int64)
        for other in self.apart:
            slots = np.flatnonzero(counts)
            at, apart = column.of_slot[slots], other.of_slot[slots]
            alone = np.bincount(at[apart == ABSENT], counts[slots[apart == ABSENT]], column.n_domains).astype(np.int64)
            pairs = np.unique(np.stack((at, apart))[:, apart != ABSENT], axis=1)
            n = np.minimum(n, alone + np.bincount(pairs[0], minlength=column.n_domains))
        return n


def _mask_of(column: ValueColumn, domain: int, within: Mask) -> Mask:
    """The targets of a domain that are within others."""
    mask = np.zeros(len(within), np.bool_)
    mask[column.slots_in(domain)] = True
    mask &= within
    return mask


def n_lacking(room: Iterable[ClassRoom], mask: Mask) -> int:
    """How many pods have no place on some targets, at least."""
    return sum(max(0, one.n_pods - one.n_places(mask)) for one in room)


def requested_by(unit: Unit) -> Counter[str]:
    """What the pods of a unit request together, places for pods among it."""
    found = Counter({PODS: len(unit.pods)})
    for pod in unit.pods:
        found.update(dict(pod.needs.requests.amounts))
    return found


def without_required_affinity(pod: Workload) -> Workload:
    """The pod without its required affinity; the pod itself if it has none."""
    affinity = pod.needs.affinity
    if not affinity.required and not affinity.group_required:
        return pod
    alone = msgspec.structs.replace(affinity, required=(), group_required=())
    return msgspec.structs.replace(pod, needs=msgspec.structs.replace(pod.needs, affinity=alone))
