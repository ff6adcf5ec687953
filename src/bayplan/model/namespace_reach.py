"""
How many of the existing namespaces some terms reach: a list or a selector may name all of them without saying so.

Which namespaces could exist is a property of a term alone: `terms.covers_all_namespaces`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from bayplan.model.labels import Labels
from bayplan.model.terms import TermPart

SYSTEM_PREFIX = "kube-"  # reserved by Kubernetes for its own namespaces
MIN_OTHER_NAMESPACES = 3  # with fewer, a list of all namespaces is no sign that all are meant
ALL_NAMESPACES_PERCENT = 90  # of the other namespaces, that count as all


class NamespaceReach(msgspec.Struct, frozen=True):
    """How many of the other namespaces are reached."""

    n_reached: int
    n_others: int

    def is_all(self, percent: int) -> bool:
        """Whether this share of the other namespaces is reached."""
        return self.n_others >= MIN_OTHER_NAMESPACES and 100 * self.n_reached >= percent * self.n_others


def reaches_others(part: TermPart, own_namespace: str) -> bool:
    """Whether the term may select pods of another namespace than its owner's."""
    return part.namespace_selector is not None or part.namespaces != (own_namespace,)


def reach_of(parts: Sequence[TermPart], own_namespace: str, namespaces: Mapping[str, Labels]) -> NamespaceReach:
    """How many namespaces, other than the own and those of the system, these terms reach together."""
    # What a term tolerates does not change how far it reaches.
    parts = [msgspec.structs.replace(part, excluded_namespaces=()) for part in parts]
    others = [name for name in namespaces if name != own_namespace and not name.startswith(SYSTEM_PREFIX)]
    n_reached = sum(any(part.in_scope(name, namespaces[name]) for part in parts) for name in others)
    return NamespaceReach(n_reached, len(others))
