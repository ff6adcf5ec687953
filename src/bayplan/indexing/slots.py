"""Which target has which slot. Slots are stable and reused, so adding or removing a target is no rebuild."""

from __future__ import annotations

import hashlib
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bayplan.model.reasons import Mask
from bayplan.model.targets import Target

At = slice | NDArray[np.intp]
Scalar = TypeVar("Scalar", bound=np.generic)
ALL: slice = slice(None)


class TargetSlots:
    """
    The targets by slot. Arrays elsewhere have `capacity` entries, of which those with `alive` set mean something.

    `rank` orders targets of equal total: a hash of the seed and the name, so that neither the order of the input nor
    the slot decides, and any decision can be made again.
    """

    def __init__(self, seed: str) -> None:
        self.seed = seed
        self.capacity = 16
        self.targets: list[Target | None] = [None] * self.capacity
        self.by_name: dict[str, int] = {}
        self.alive: Mask = np.zeros(self.capacity, np.bool_)
        self.rank: NDArray[np.int64] = np.zeros(self.capacity, np.int64)
        self._free = list(range(self.capacity - 1, -1, -1))
        self._order: NDArray[np.int64] | None = None
        self._name_order: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.by_name)

    def put(self, target: Target) -> int:
        """Give the target a slot; the caller has made room."""
        slot = self._free.pop()
        self.targets[slot] = target
        self.by_name[target.name] = slot
        self.alive[slot] = True
        self.rank[slot] = rank_of(self.seed, target.name)
        self._order = self._name_order = None
        return slot

    @property
    def name_order(self) -> NDArray[np.int64]:
        """The place of each slot in the order of names, shape (capacity,)."""
        if self._name_order is None:
            self._name_order = np.zeros(self.capacity, np.int64)
            for place, name in enumerate(sorted(self.by_name)):
                self._name_order[self.by_name[name]] = place
        return self._name_order

    @property
    def order(self) -> NDArray[np.int64]:
        """The place of each slot in the order of ranks, shape (capacity,): small enough to stand beside a total."""
        if self._order is None:
            self._order = np.empty(self.capacity, np.int64)
            self._order[self.rank.argsort(kind="stable")] = np.arange(self.capacity)
        return self._order

    def take(self, slot: int) -> None:
        target = self.at(slot)
        del self.by_name[target.name]
        self.targets[slot] = None
        self.alive[slot] = False
        self._free.append(slot)

    def at(self, slot: int) -> Target:
        target = self.targets[slot]
        assert target is not None, f"slot {slot} is empty"
        return target

    @property
    def full(self) -> bool:
        return not self._free

    def grow(self, capacity: int) -> None:
        # By an eighth and not by doubling: every array operation of every decision pays for spare slots.
        self._free = list(range(capacity - 1, self.capacity - 1, -1)) + self._free
        self.targets.extend([None] * (capacity - self.capacity))
        self._order = self._name_order = None
        self.alive = grown(self.alive, capacity)
        self.rank = grown(self.rank, capacity)
        self.capacity = capacity


def next_capacity(capacity: int) -> int:
    return capacity + max(16, capacity >> 3)


def grown(array: NDArray[Scalar], capacity: int) -> NDArray[Scalar]:
    """The array with zeros up to `capacity` along its last axis."""
    longer = np.zeros((*array.shape[:-1], capacity), array.dtype)
    longer[..., : array.shape[-1]] = array
    return longer


def rank_of(seed: str, name: str) -> int:
    digest = hashlib.blake2b(f"{seed}\0{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 1
