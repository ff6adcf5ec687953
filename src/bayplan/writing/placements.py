"""The plan of `place`, for pods and for fleets, in every output format. It does not know how the plan was made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.placing.place_pods import PodPlacement, RemainingCapacity
from bayplan.writing import tables, versioned
from bayplan.writing.tables import Table

if TYPE_CHECKING:
    from bayplan.placing.place_bindings import BindingPlacement

_UNSCHEDULABLE_STYLE = "red"
_MAX_NAMES_SHOWN = 3


def table(placements: Sequence[PodPlacement], *, wide: bool = False) -> Table:
    """One row per pod, in the order of placement."""
    rows = []
    for placement in placements:
        workload, target = placement.workload, placement.target
        middle = (str(workload.priority), str(placement.total) if target else "") if wide else ()
        rows.append((workload.namespace, workload.name, target, *middle, message_of(placement) or "-"))
    middle = ("PRIORITY", "SCORE") if wide else ()
    styles = ["" if placement.target else _UNSCHEDULABLE_STYLE for placement in placements]
    return Table(("NAMESPACE", "NAME", "NODE", *middle, "MESSAGE"), rows, styles)


def message_of(placement: PodPlacement) -> str:
    """Why a pod is pending, and what preemption has to do with its placement."""
    parts = []
    if placement.preemptor:
        lost = "; no controller creates it again" if placement.lost else ""
        parts.append(f"preempted from {placement.preempted_from} by {placement.preemptor}{lost}")
    if placement.victims:
        names = tables.listed(placement.victims, _MAX_NAMES_SHOWN)
        parts.append(f"would preempt {names} on {placement.target or 'its nominated node'}")
    return ": ".join(part for part in (*parts, placement.message) if part)


def document(placements: Sequence[PodPlacement], explanations: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The plan as a versioned `PlacementList`; an item holds the explanation of its workload, if there is one."""
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
    if placement.victims:
        item["victims"] = list(placement.victims)
    if placement.preemptor:
        item |= {"preemptedBy": placement.preemptor, "preemptedFrom": placement.preempted_from, "lost": placement.lost}
    return item if explanation is None else {**item, "explanation": explanation}


def fleet_table(placements: Sequence[BindingPlacement], *, wide: bool = False) -> Table:
    """One row per binding, in the order of placement; a share is `cluster:replicas`, or `cluster` without replicas."""
    rows = []
    for placement in placements:
        workload, binding = placement.workload, placement.workload.binding
        assert binding is not None
        middle = (str(workload.priority), str(binding.replicas)) if wide else ()
        shares = ", ".join(f"{name}:{replicas}" if replicas else name for name, replicas in placement.shares)
        name = tables.name_of(workload)
        rows.append((workload.namespace, name, *middle, placement.group, shares, placement.message or "-"))
    middle = ("PRIORITY", "REPLICAS") if wide else ()
    styles = ["" if placement.placed else _UNSCHEDULABLE_STYLE for placement in placements]
    return Table(("NAMESPACE", "KIND/NAME", *middle, "AFFINITY", "CLUSTERS", "MESSAGE"), rows, styles)


def fleet_document(placements: Sequence[BindingPlacement], explanations: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The plan as a versioned `FleetPlacementList`; an item holds the explanation of its workload, if there is one."""
    n_placed = sum(p.placed for p in placements)
    items = [_fleet_item(p, explanations.get(p.workload.key)) for p in placements]
    summary = {"placed": n_placed, "unplaced": len(placements) - n_placed}
    return versioned.document("FleetPlacementList", {"summary": summary, "items": items})


def _fleet_item(placement: BindingPlacement, explanation: dict[str, Any] | None) -> dict[str, Any]:
    workload, binding = placement.workload, placement.workload.binding
    assert binding is not None
    item: dict[str, Any] = {
        "namespace": workload.namespace,
        "name": binding.name,
        "kind": binding.kind,
        "binding": workload.name,
        "placed": placement.placed,
        "affinity": placement.group,
        "clusters": [{"name": name, "replicas": replicas} for name, replicas in placement.shares],
        "previous": [{"name": name, "replicas": replicas} for name, replicas in binding.previous],
        "replicas": binding.replicas,
        "priority": workload.priority,
        "reason": placement.reason,
        "message": placement.message,
    }
    return item if explanation is None else {**item, "explanation": explanation}


class FillResult(msgspec.Struct, frozen=True):
    """How many replicas of one workload fit; `asked` is the requested number, None for as many as possible."""

    workload: str
    capacity: RemainingCapacity
    asked: int | None = None

    @property
    def enough(self) -> bool:
        """Whether the requested number fits, or at least one replica if none was requested."""
        return len(self.capacity.placed) >= (1 if self.asked is None else self.asked)


def fill_table(fills: Sequence[FillResult]) -> Table:
    """One row per workload: how many replicas fit, on how many nodes, and why the next one does not."""
    rows = []
    for one in fills:
        asked = "" if one.asked is None else f"/{one.asked}"
        n_nodes = len(set(one.capacity.placed))
        rows.append((one.workload, f"{len(one.capacity.placed)}{asked}", str(n_nodes), one.capacity.message or "-"))
    styles = ["" if one.enough else _UNSCHEDULABLE_STYLE for one in fills]
    return Table(("WORKLOAD", "FIT", "NODES", "WHY NOT MORE"), rows, styles)


def fill_names(fills: Sequence[FillResult]) -> str:
    """The node of each replica, one per line."""
    return "".join(f"node/{tables.printable(target)}\n" for one in fills for target in one.capacity.placed)


def fill_document(fills: Sequence[FillResult]) -> dict[str, Any]:
    """How many more replicas fit, as a versioned `RoomList`."""
    items = [
        {
            "workload": one.workload,
            "asked": one.asked,
            "fit": len(one.capacity.placed),
            "targets": list(one.capacity.placed),
            "message": one.capacity.message,
        }
        for one in fills
    ]
    return versioned.document("RoomList", {"items": items})
