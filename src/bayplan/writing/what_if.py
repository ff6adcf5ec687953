"""What a drain could not evict, as text and as documents. It does not know how it was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bayplan.writing import tables

if TYPE_CHECKING:
    from bayplan.placing.what_if import BlockedEviction


def text(blocked: Sequence[BlockedEviction]) -> str:
    """One line for each pod that keeps its node from being drained."""
    return "".join(
        tables.printable(f"{one.node} cannot be drained: {one.pod} stays, {one.why}") + "\n" for one in blocked
    )


def documents(blocked: Sequence[BlockedEviction]) -> list[dict[str, Any]]:
    """The same, one document each."""
    return [{"node": one.node, "pod": one.pod, "message": one.why} for one in blocked]
