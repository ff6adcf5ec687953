"""
One property over all targets (a label, mostly): which value each has, and which targets share one.

The same column serves as topology (its values are domains) and as index for node affinity. Knows nothing of workloads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.slots import At, grown
from bayplan.model.reasons import Mask, Slots
from bayplan.model.targets import Target
from bayplan.model.terms import TARGET

ABSENT = 0  # the domain of targets without the label: one spare entry, so that gathers need no branch
TAINTS = "\0taints"  # the key whose value is what keeps workloads off: (unschedulable, taints)

Value = Hashable


class ValueColumn:
    """
    `of_slot[s]` is the domain of slot s, and so is `at[s]`, by which single ones are read faster. A target in several
    domains of this key has the others in `further`.

    Domain ids are reused once no target has the value, so a month of coming and going nodes does not grow them.
    """

    def __init__(self, key: str, capacity: int) -> None:
        self.key = key
        self.of_slot: NDArray[np.intp] = np.zeros(capacity, np.intp)
        self.at = self.of_slot.data
        self.further: dict[int, tuple[int, ...]] = {}
        self.values: list[Value] = [None]
        self.by_value: dict[Value, int] = {}
        self._members: list[set[int]] = [set()]
        self._slots: list[Slots | None] = [None]
        self._free: list[int] = []

    @property
    def n_domains(self) -> int:
        """How many ids are in use or reusable, `ABSENT` included: the length of arrays by domain."""
        return len(self.values)

    def values_of(self, target: Target) -> tuple[Value, ...]:
        """The target's values: none without the label, several where it spans domains."""
        if self.key == TARGET:
            return (target.name,)
        if self.key == TAINTS:
            return ((target.unschedulable, target.taints),)
        value, key = target.labels.get(self.key), self.key
        if not target.further_labels:
            return () if value is None else (value,)
        further = [other for their_key, other in target.further_labels if their_key == key]
        return tuple(further) if value is None else (value, *further)

    def put(self, slot: int, target: Target) -> None:
        values = self.values_of(target)
        if not values:
            self.at[slot] = ABSENT
            return
        self.at[slot] = self._enter(slot, values[0])
        if len(values) > 1:
            self.further[slot] = tuple([self._enter(slot, value) for value in values[1:]])

    def put_all(self, targets: Iterable[tuple[int, Target]]) -> None:
        """The same for many targets at once."""
        slots_by_value: defaultdict[Value, list[int]] = defaultdict(list)
        for slot, target in targets:
            values = self.values_of(target)
            if len(values) == 1:
                slots_by_value[values[0]].append(slot)
            else:
                self.put(slot, target)
        for value, slots in slots_by_value.items():
            domain = self._domain(value)
            self._members[domain].update(slots)
            self._slots[domain] = None
            for slot in slots:
                self.at[slot] = domain

    def take(self, slot: int) -> None:
        for domain in self.domains(slot):
            members = self._members[domain]
            members.discard(slot)
            self._slots[domain] = None
            if not members:
                del self.by_value[self.values[domain]]
                self._free.append(domain)
        self.of_slot[slot] = ABSENT
        self.further.pop(slot, None)

    def domains(self, slot: int) -> tuple[int, ...]:
        """The domains a target is in: none without the label, several where it spans them."""
        first = self.at[slot]
        if first == ABSENT:
            return ()
        return (first, *self.further[slot]) if slot in self.further else (first,)

    def slots_in(self, domain: int) -> Slots:
        """The targets of one domain."""
        known = self._slots[domain]
        if known is None:
            members = self._members[domain]
            known = np.fromiter(sorted(members), np.intp, len(members))
            self._slots[domain] = known
        return known

    def representatives(self) -> Slots:
        """One slot of each domain, `ABSENT` included; any slot for a domain that has none. Shape (n_domains,)."""
        first: Slots = np.zeros(self.n_domains, np.intp)
        first[self.of_slot[::-1]] = np.arange(len(self.of_slot) - 1, -1, -1)
        return first

    def gather(self, by_domain: NDArray[np.int64], at: At) -> NDArray[np.int64]:
        """For each target the entry of its domain; the largest one where it is in several."""
        gathered: NDArray[np.int64] = by_domain.take(self.of_slot[at], mode="clip")
        if self.further:
            self._widen(by_domain, at, gathered)
        return gathered

    def present(self, at: At) -> Mask:
        """Which targets have the label."""
        present: Mask = self.of_slot[at] != ABSENT
        return present

    def grow(self, capacity: int) -> None:
        self.of_slot = grown(self.of_slot, capacity)
        self.at = self.of_slot.data

    def _widen(self, by_domain: NDArray[np.int64], at: At, gathered: NDArray[np.int64]) -> None:
        slots = range(len(self.of_slot)) if isinstance(at, slice) else at.tolist()
        for position, slot in enumerate(slots):
            for domain in self.further.get(slot, ()):
                gathered[position] = max(gathered[position], by_domain[domain])

    def _enter(self, slot: int, value: Value) -> int:
        domain = self._domain(value)
        self._members[domain].add(slot)
        self._slots[domain] = None
        return domain

    def _domain(self, value: Value) -> int:
        known = self.by_value.get(value)
        if known is not None:
            return known
        if self._free:
            domain = self._free.pop()
            self.values[domain] = value
        else:
            domain = len(self.values)
            self.values.append(value)
            self._members.append(set())
            self._slots.append(None)
        self.by_value[value] = domain
        return domain
