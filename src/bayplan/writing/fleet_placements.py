"""A plan for a fleet in every form that `place` prints. Knows nothing of how it was made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bayplan.placing.place_bindings import BindingPlacement
from bayplan.writing import untrusted, versioned
from bayplan.writing.tables import Table

_REFUSED = "red"


def subject(placement: BindingPlacement) -> str:
    """What is propagated, as `kind/name`."""
    binding = placement.workload.binding
    assert binding is not None
    return f"{binding.kind.lower()}/{binding.name}"


def table(placements: Sequence[BindingPlacement], *, wide: bool = False) -> Table:
    """One row per binding, in the order of placing."""
    middle = ("PRIORITY", "REPLICAS") if wide else ()
    rows = [
        (
            p.workload.namespace,
            subject(p),
            *(_numbers(p) if wide else ()),
            p.group,
            _shares(p),
            p.message or "-",
        )
        for p in placements
    ]
    styles = ["" if p.placed else _REFUSED for p in placements]
    return Table(("NAMESPACE", "KIND/NAME", *middle, "AFFINITY", "CLUSTERS", "MESSAGE"), rows, styles)


def _shares(placement: BindingPlacement) -> str:
    """`cluster:replicas`; things without replicas are just there."""
    return ", ".join(f"{name}:{replicas}" if replicas else name for name, replicas in placement.shares)


def _numbers(placement: BindingPlacement) -> tuple[str, str]:
    assert placement.workload.binding is not None
    return str(placement.workload.priority), str(placement.workload.binding.replicas)


def names(placements: Sequence[BindingPlacement]) -> str:
    """Each template as `kind/name`, one a line."""
    return "".join(f"{untrusted.clean(subject(p))}\n" for p in placements)


def document(placements: Sequence[BindingPlacement], explanations: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The plan as a versioned `FleetPlacementList`; explanations by workload stand with their items."""
    n_placed = sum(p.placed for p in placements)
    items = [_item(p, explanations.get(p.workload.key)) for p in placements]
    summary = {"placed": n_placed, "unplaced": len(placements) - n_placed}
    return versioned.document("FleetPlacementList", {"summary": summary, "items": items})


def _item(placement: BindingPlacement, explanation: dict[str, Any] | None) -> dict[str, Any]:
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
