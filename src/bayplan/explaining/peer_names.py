"""
How pods of other namespaces are named to a reader who may only see one namespace: the owner of a pod.

Events, conditions, answers of the webhook and of the explain endpoint reach such readers. By default they say that a
pod of another namespace is involved, not which. Commands of the operator do not use this module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import msgspec

from bayplan.model.workloads import WorkloadKey

_NAME = re.compile(r"(?<![\w./-])[a-z0-9](?:[-a-z0-9]*[a-z0-9])?/[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?(?![\w/])")


class PeerNames(msgspec.Struct, frozen=True):
    """`show_all`: pods of other namespaces are named too. `noun` is what they are called."""

    show_all: bool = False
    noun: str = "pod"

    @property
    def _another(self) -> str:
        return f"a {self.noun} of another namespace"

    def name(self, key: str, reader: str) -> str:
        """The name of a pod as a reader in this namespace sees it."""
        return key if self.show_all or key.partition("/")[0] == reader else self._another

    def listed(self, keys: Iterable[str], reader: str) -> str:
        """The names of several pods; those of other namespaces are counted, after the others."""
        names = [self.name(key, reader) for key in keys]
        another = self._another
        visible, n_hidden = [name for name in names if name != another], names.count(another)
        hidden = another if n_hidden == 1 else f"{n_hidden} {self.noun}s of other namespaces"
        return ", ".join([*visible, hidden] if n_hidden else visible)

    def in_text(self, text: str, reader: str, is_pod: Callable[[WorkloadKey], bool]) -> str:
        """A text that may contain names of pods, as a reader in this namespace sees it."""
        if self.show_all:
            return text
        return _NAME.sub(lambda m: self.name(m[0], reader) if is_pod(WorkloadKey(m[0])) else m[0], text)
