"""
How pods of other namespaces are named to a reader who may only see one namespace: the owner of a pod.

Events, conditions, answers of the webhook and of the explain endpoint reach such readers. By default they say that a
pod of another namespace is involved, not which. Commands of the operator do not use this module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from bayplan.model.workloads import WorkloadKey

_NAME = re.compile(r"(?<![\w./-])[a-z0-9](?:[-a-z0-9]*[a-z0-9])?/[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?(?![\w/])")

Key = TypeVar("Key", bound=str)


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
        visible, hidden = self.split(keys, reader)
        return ", ".join([*visible, hidden] if hidden else visible)

    def split(self, keys: Iterable[Key], reader: str) -> tuple[list[Key], str]:
        """The pods that a reader in this namespace may see by name, and what stands for the others; empty for none."""
        keys = list(keys)
        visible = [key for key in keys if self.name(key, reader) == key]
        n_hidden = len(keys) - len(visible)
        several = f"{n_hidden} {self.noun}s of other namespaces" if n_hidden else ""
        return visible, self._another if n_hidden == 1 else several

    def in_text(self, text: str, reader: str, is_pod: Callable[[WorkloadKey], bool]) -> str:
        """A text that may contain names of pods, as a reader in this namespace sees it."""
        if self.show_all:
            return text
        return _NAME.sub(lambda m: self.name(m[0], reader) if is_pod(WorkloadKey(m[0])) else m[0], text)
