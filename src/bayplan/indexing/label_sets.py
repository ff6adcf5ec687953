"""
The labels of placed workloads, each set of them kept once, and which sets have a label that terms look at.

Knows nothing of classes or terms.
"""

from __future__ import annotations

from collections.abc import Collection

from bayplan.model.labels import Labels

VisibleLabels = tuple[tuple[str, str], ...]


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
