"""
The columns of an index by key.

Terms of tenants name topology keys that no target has, as many as they like. Such a column costs neither an array nor a
scan of the targets, and it goes with its last use; the column of a key that some target has stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from weakref import WeakValueDictionary

from bayplan.indexing.slots import KEYS_OF_ALL_TARGETS, TargetSlots, ValueColumn, values_of
from bayplan.model.targets import Target


class ColumnTable:
    """Creates columns when they are first needed and keeps them up to date as targets change."""

    def __init__(self, slots: TargetSlots) -> None:
        self._slots = slots
        self._n_targets: Counter[str] = Counter()  # by label key
        self._kept: dict[str, ValueColumn] = {}
        # Of keys that no target has. Whoever uses one holds it, because it may get values later.
        self._empty: WeakValueDictionary[str, ValueColumn] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._kept) + len(self._empty)

    def get(self, key: str) -> ValueColumn:
        column = self._kept.get(key)
        return self._find(key) if column is None else column

    @property
    def label_keys(self) -> tuple[str, ...]:
        """The keys of the labels that any target has, in order."""
        return tuple(sorted(self._n_targets))

    def put(self, slot: int, target: Target) -> None:
        """Enter a new target."""
        keys = keys_of(target)
        self._n_targets.update(keys)
        self._enter(slot, target, (*KEYS_OF_ALL_TARGETS, *keys))

    def clear(self, slot: int, target: Target) -> None:
        """Remove a target."""
        keys = keys_of(target)
        self._leave(slot, (*KEYS_OF_ALL_TARGETS, *keys))
        self._uncount(keys)

    def replace(self, slot: int, before: Target, after: Target) -> None:
        """Enter the values of a changed target, only where they differ: a domain that is empty for a moment is lost."""
        keys, keys_before = keys_of(after), keys_of(before)
        self._n_targets.update(keys)
        either = {key: None for some in (KEYS_OF_ALL_TARGETS, keys_before, keys) for key in some}
        changed = [key for key in either if values_of(key, before) != values_of(key, after)]
        self._leave(slot, changed)
        self._enter(slot, after, changed)
        self._uncount(keys_before)

    def grow(self, capacity: int) -> None:
        for column in (*self._kept.values(), *self._empty.values()):
            column.grow(capacity)

    def _find(self, key: str) -> ValueColumn:
        """A column that is not kept yet."""
        column = self._empty.get(key)
        if column is None:
            column = ValueColumn(key, self._slots.capacity)
            if key in KEYS_OF_ALL_TARGETS or key in self._n_targets:
                column.put_all((slot, self._slots.at(slot)) for slot in self._slots.by_name.values())
                self._kept[key] = column
            else:
                self._empty[key] = column
        return column

    def _enter(self, slot: int, target: Target, keys: Iterable[str]) -> None:
        for key in keys:
            column = self._kept.get(key)
            if column is None:
                column = self._empty.pop(key, None)
                if column is None:
                    continue  # not needed so far
                self._kept[key] = column
            column.put(slot, target)

    def _leave(self, slot: int, keys: Iterable[str]) -> None:
        for key in keys:
            column = self._kept.get(key)
            if column is not None:
                column.clear(slot)

    def _uncount(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._n_targets[key] -= 1
            if not self._n_targets[key]:
                del self._n_targets[key]
                column = self._kept.pop(key, None)
                if column is not None:
                    self._empty[key] = column


def keys_of(target: Target) -> Iterable[str]:
    """The keys of the labels that a target has, each once."""
    if not target.further_labels:
        return target.labels.keys()
    return {**target.labels, **dict(target.further_labels)}.keys()
