"""
Targets by slot: which slot each target has, and columns with one attribute (mostly a label) of all targets.

Slots are stable and reused, so adding or removing a target rebuilds nothing. A column serves both as topology (its
values are the domains) and as the index for node affinity. Knows nothing of workloads.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Hashable, Iterable
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bayplan.model.node_selectors import parse_integer
from bayplan.model.reasons import Mask, Slots
from bayplan.model.targets import Target
from bayplan.model.terms import TARGET

At = slice | NDArray[np.intp]
Scalar = TypeVar("Scalar", bound=np.generic)
Value = Hashable
ALL: slice = slice(None)
ABSENT = 0  # the domain of targets without the label: one spare entry, so that gathers need no branch
TAINTS = "\0taints"  # the key of the column whose values are (unschedulable, taints)
CLUSTER_FACTS = "\0facts"  # of the column whose values are (APIs served, terminating), of clusters alone
KEYS_OF_ALL_TARGETS = (TARGET, TAINTS, CLUSTER_FACTS)  # what is no label


class TargetSlots:
    """
    The targets by slot. Arrays elsewhere have `capacity` entries, of which those with `alive` set are valid.

    `rank` orders targets of equal total: a hash of the seed and the name, so that the result depends neither on the
    order of the input nor on the slot, and any decision can be repeated.
    """

    def __init__(self, seed: str) -> None:
        self.seed = seed
        self.capacity = 16
        self.targets: list[Target | None] = [None] * self.capacity
        self.by_name: dict[str, int] = {}
        self.alive: Mask = np.zeros(self.capacity, np.bool_)
        self.rank: NDArray[np.int64] = np.zeros(self.capacity, np.int64)
        self.free = list(range(self.capacity - 1, -1, -1))
        self._order: NDArray[np.int64] | None = None
        self._name_order: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.by_name)

    def put(self, target: Target) -> int:
        """Give the target one of the free slots."""
        slot = self.free.pop()
        self.targets[slot] = target
        self.by_name[target.name] = slot
        self.alive[slot] = True
        self.rank[slot] = rank_of(self.seed, target.name)
        self._order = self._name_order = None
        return slot

    @property
    def name_order(self) -> NDArray[np.int64]:
        """The position of each slot in the order of names, shape (capacity,)."""
        if self._name_order is None:
            self._name_order = np.zeros(self.capacity, np.int64)
            slots = list(map(self.by_name.__getitem__, sorted(self.by_name)))
            self._name_order[slots] = np.arange(len(slots))
        return self._name_order

    @property
    def order(self) -> NDArray[np.int64]:
        """The position of each slot in the order of ranks, shape (capacity,): it fits the low bits of a key."""
        if self._order is None:
            self._order = np.empty(self.capacity, np.int64)
            self._order[self.rank.argsort(kind="stable")] = np.arange(self.capacity)
        return self._order

    def clear(self, slot: int) -> None:
        del self.by_name[self.at(slot).name]
        self.targets[slot] = None
        self.alive[slot] = False
        self.free.append(slot)

    def at(self, slot: int) -> Target:
        target = self.targets[slot]
        assert target is not None, f"slot {slot} is empty"
        return target

    def grow(self) -> int:
        """Add free slots; returns the new capacity."""
        # By an eighth and not by doubling: every array operation of every decision includes the spare slots.
        before, capacity = self.capacity, self.capacity + max(16, self.capacity >> 3)
        self.free = list(range(capacity - 1, before - 1, -1)) + self.free
        self.targets.extend([None] * (capacity - before))
        self._order = self._name_order = None
        self.alive = grown(self.alive, capacity)
        self.rank = grown(self.rank, capacity)
        self.capacity = capacity
        return capacity


def grown(array: NDArray[Scalar], capacity: int) -> NDArray[Scalar]:
    """The array with zeros up to `capacity` along its last axis."""
    longer = np.zeros((*array.shape[:-1], capacity), array.dtype)
    longer[..., : array.shape[-1]] = array
    return longer


def rank_of(seed: str, name: str) -> int:
    digest = hashlib.blake2b(f"{seed}\0{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


@lru_cache(maxsize=4)
def absent(capacity: int) -> NDArray[np.intp]:
    """What all columns without any value have in common: each target in no domain. Read-only."""
    array: NDArray[np.intp] = np.zeros(capacity, np.intp)
    array.flags.writeable = False
    return array


def values_of(key: str, target: Target) -> tuple[Value, ...]:
    """A target's values of one key: none without the label, several where it spans domains."""
    if key == TARGET:
        return (target.name,)
    if key == TAINTS:
        return ((target.unschedulable, target.taints),)
    if key == CLUSTER_FACTS:
        return () if target.cluster is None else ((target.cluster.apis, target.cluster.terminating),)
    value = target.labels.get(key)
    if not target.further_labels:
        return () if value is None else (value,)
    further = [other for their_key, other in target.further_labels if their_key == key]
    return tuple(further) if value is None else (value, *further)


class ValueColumn:
    """
    One attribute of all targets: the value of each, and the targets that share a value, which are a domain.

    `of_slot[s]` is the domain of slot s; `at[s]` is the same memory, through which single integers are read faster. A
    target in several domains of this key has the others in `further`. `n_domains` counts the ids in use or reusable,
    `ABSENT` included: it is the length of arrays by domain. Ids are reused once no target has the value, so months of
    node churn do not grow the arrays. `version` changes with the set of values.
    """

    def __init__(self, key: str, capacity: int) -> None:
        self.key = key
        self.of_slot = absent(capacity)
        self.at = self.of_slot.data
        self.further: dict[int, tuple[int, ...]] = {}
        self.n_domains = 1
        self.version = 0
        self.values: list[Value] = [None]
        self.by_value: dict[Value, int] = {}
        self._members: list[set[int]] = [set()]
        self._slots: list[Slots | None] = [None]
        self._free: list[int] = []
        self._numbers: tuple[int, NDArray[np.int64], Mask] | None = None  # with the version that they are of

    def put(self, slot: int, target: Target) -> None:
        values = values_of(self.key, target)
        if not values:
            return
        self.at[slot] = self._enter(values[0], (slot,))
        if len(values) > 1:
            self.further[slot] = tuple([self._enter(value, (slot,)) for value in values[1:]])

    def put_all(self, targets: Iterable[tuple[int, Target]]) -> None:
        """The same for many targets at once."""
        slots_by_value: defaultdict[Value, list[int]] = defaultdict(list)
        key, is_label = self.key, self.key not in KEYS_OF_ALL_TARGETS
        for slot, target in targets:
            if is_label and not target.further_labels:
                if key in target.labels:
                    slots_by_value[target.labels[key]].append(slot)
                continue
            values = values_of(key, target)
            if len(values) == 1:
                slots_by_value[values[0]].append(slot)
            else:
                self.put(slot, target)
        for value, slots in slots_by_value.items():
            domain = self._enter(value, slots)
            for slot in slots:
                self.at[slot] = domain

    def clear(self, slot: int) -> None:
        for domain in self.domains(slot):
            members = self._members[domain]
            members.discard(slot)
            self._slots[domain] = None
            if not members:
                del self.by_value[self.values[domain]]
                self.version += 1
                self._free.append(domain)
        if self.at[slot] != ABSENT:
            self.at[slot] = ABSENT
        self.further.pop(slot, None)

    def domains(self, slot: int) -> tuple[int, ...]:
        """The domains a target is in: none without the label, several where it spans them."""
        first = self.at[slot]
        if first == ABSENT:
            return ()
        return (first, *self.further[slot]) if slot in self.further else (first,)

    def slots_in(self, domain: int) -> Slots:
        """The slots of the targets of one domain, in ascending order."""
        known = self._slots[domain]
        if known is None:
            members = self._members[domain]
            known = np.fromiter(sorted(members), np.intp, len(members))
            self._slots[domain] = known
        return known

    def representatives(self) -> Slots:
        """One slot of each domain, `ABSENT` included; any slot for a domain without targets. Shape (n_domains,)."""
        first: Slots = np.zeros(self.n_domains, np.intp)
        first[self.of_slot[::-1]] = np.arange(len(self.of_slot) - 1, -1, -1)
        return first

    def gather(self, by_domain: NDArray[np.int64], at: At) -> NDArray[np.int64]:
        """For each target the entry of its domain; the largest one where it is in several."""
        gathered: NDArray[np.int64] = by_domain.take(self.of_slot[at], mode="clip")
        if self.further:
            slots = range(len(self.of_slot)) if isinstance(at, slice) else at.tolist()
            for position, slot in enumerate(slots):
                for domain in self.further.get(slot, ()):
                    gathered[position] = max(gathered[position], by_domain[domain])
        return gathered

    def as_numbers(self) -> tuple[NDArray[np.int64], Mask]:
        """The values as integers by domain, and which of them are integers; both of shape (n_domains,)."""
        if self._numbers is None or self._numbers[0] != self.version:
            parsed = [parse_integer(value) if isinstance(value, str) else None for value in self.values]
            numbers = np.array([number or 0 for number in parsed], np.int64)
            self._numbers = self.version, numbers, np.array([number is not None for number in parsed], np.bool_)
        return self._numbers[1], self._numbers[2]

    def present(self, at: At) -> Mask:
        """Which targets have the label."""
        present: Mask = self.of_slot[at] != ABSENT
        return present

    def grow(self, capacity: int) -> None:
        self.of_slot = grown(self.of_slot, capacity) if self.of_slot.flags.writeable else absent(capacity)
        self.at = self.of_slot.data

    def _enter(self, value: Value, slots: Iterable[int]) -> int:
        """Add slots to the domain of a value, which gets an id if it is new; returns the id."""
        domain = self.by_value.get(value)
        if domain is None:
            if self._free:
                domain = self._free.pop()
                self.values[domain] = value
            else:
                domain = self.n_domains
                self.n_domains += 1
                self.values.append(value)
                self._members.append(set())
                self._slots.append(None)
            self.by_value[value] = domain
            self.version += 1
            if not self.of_slot.flags.writeable:  # the first value
                self.of_slot = self.of_slot.copy()
                self.at = self.of_slot.data
        self._members[domain].update(slots)
        self._slots[domain] = None
        return domain
