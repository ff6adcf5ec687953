"""A plan in every form that `place` prints. Knows nothing of how it was made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bayplan.placing.place_pods import PodPlacement, RemainingCapacity
from bayplan.writing import untrusted, versioned
from bayplan.writing.tables import Table

_REFUSED = "red"


class Fill(msgspec.Struct, frozen=True):
    """How many of one workload fit; `asked` is how many were asked for, nothing for as many as possible."""

    workload: str
    room: RemainingCapacity
    asked: int | None = None

    @property
    def enough(self) -> bool:
        """Whether all that were asked for fit, or at least one where as many as possible were."""
        return len(self.room.placed) >= (1 if self.asked is None else self.asked)


def table(placements: Sequence[PodPlacement], *, wide: bool = False) -> Table:
    """One row per workload, in the order of placing."""
    middle = ("PRIORITY", "SCORE") if wide else ()
    rows = [
        (p.workload.namespace, p.workload.name, p.target, *(_numbers(p) if wide else ()), p.message or "-")
        for p in placements
    ]
    styles = ["" if p.target else _REFUSED for p in placements]
    return Table(("NAMESPACE", "NAME", "NODE", *middle, "MESSAGE"), rows, styles)


def _numbers(placement: PodPlacement) -> tuple[str, str]:
    return str(placement.workload.priority), str(placement.total) if placement.target else ""


def names(placements: Sequence[PodPlacement]) -> str:
    """Each workload as `kind/name`, one a line."""
    return "".join(f"pod/{untrusted.clean(p.workload.name)}\n" for p in placements)


def document(placements: Sequence[PodPlacement], explanations: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The plan as a versioned `PlacementList`; explanations by workload stand with their items."""
    n_placed = sum(bool(p.target) for p in placements)
    items = [_item(p, explanations.get(p.workload.key)) for p in placements]
    summary = {"placed": n_placed, "unplaced": len(placements) - n_placed}
    return versioned.document("PlacementList", {"summary": summary, "items": items})


def _item(placement: PodPlacement, explanation: dict[str, Any] | None) -> dict[str, Any]:
    workload = placement.workload
    item: dict[str, Any] = {
        "namespace": workload.namespace,
        "name": workload.name,
        "target": placement.target,
        "priority": workload.priority,
        "score": placement.total if placement.target else None,
        "message": placement.message,
        "reasons": placement.reasons,
    }
    return item if explanation is None else {**item, "explanation": explanation}


def fill_table(fills: Sequence[Fill]) -> Table:
    """One row per workload: how many fit, on how many nodes, and what stops the next one."""
    rows = [
        (f.workload, f"{len(f.room.placed)}{_of(f)}", str(len(set(f.room.placed))), f.room.message or "-")
        for f in fills
    ]
    return Table(
        ("WORKLOAD", "FIT", "NODES", "WHAT STOPS THE NEXT"), rows, ["" if f.enough else _REFUSED for f in fills]
    )


def _of(fill: Fill) -> str:
    return "" if fill.asked is None else f"/{fill.asked}"


def fill_names(fills: Sequence[Fill]) -> str:
    """The node of each replica, one a line."""
    return "".join(f"node/{untrusted.clean(target)}\n" for f in fills for target in f.room.placed)


def fill_document(fills: Sequence[Fill]) -> dict[str, Any]:
    """How many more fit, as a versioned `RoomList`."""
    items = [
        {
            "workload": f.workload,
            "asked": f.asked,
            "fit": len(f.room.placed),
            "targets": list(f.room.placed),
            "message": f.room.message,
        }
        for f in fills
    ]
    return versioned.document("RoomList", {"items": items})
