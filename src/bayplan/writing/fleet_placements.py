"""The answer of `place` for fleets: what moves, in every output format. It does not know how it was found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from bayplan.controllers.desired_state import ObjectKey
from bayplan.placing.fleet_changes import BindingChange
from bayplan.wire.fleets import ResourceBinding
from bayplan.writing import tables, versioned
from bayplan.writing.tables import Table

_UNSCHEDULABLE_STYLE = "red"
_CLUSTER_WIDE_PREFIX = "cpp/"  # the short name of ClusterPropagationPolicy


class ChangeCounts(msgspec.Struct):
    """How many bindings are placed; `n_unchanged` of them are where they were."""

    n_all: int = 0
    n_placed: int = 0
    n_unchanged: int = 0

    def add(self, change: BindingChange) -> None:
        """Count one binding."""
        self.n_all += 1
        self.n_placed += change.placement.placed
        self.n_unchanged += change.is_unchanged

    def note(self, whose: str) -> str:
        """`2 of 3 placed, 1 unchanged`."""
        unchanged = f", {self.n_unchanged} unchanged" if self.n_unchanged else ""
        return f"{self.n_placed} of {self.n_all} placed{whose}{unchanged}"


def counts(changes: Iterable[BindingChange]) -> tuple[ChangeCounts, ChangeCounts]:
    """The bindings of the change, and the others."""
    of_change, others = ChangeCounts(), ChangeCounts()
    for change in changes:
        (of_change if change.of_change else others).add(change)
    return of_change, others


def table(changes: Sequence[BindingChange], *, wide: bool = False) -> Table:
    """One row per binding, in the order of placement."""
    rows = []
    for change in changes:
        placement = change.placement
        workload, binding = placement.workload, placement.workload.binding
        assert binding is not None
        middle = (str(workload.priority), str(binding.replicas)) if wide else ()
        names = (workload.namespace, tables.name_of(workload), *middle, _policy(change.policy), placement.group)
        shares = (shares_text(change.was), shares_text(placement.shares, change.tiers))
        rows.append((*names, *shares, placement.message or "; ".join(change.unmet) or "-"))
    middle = ("PRIORITY", "REPLICAS") if wide else ()
    styles = ["" if change.placement.placed else _UNSCHEDULABLE_STYLE for change in changes]
    columns = ("NAMESPACE", "KIND/NAME", *middle, "POLICY", "AFFINITY", "WAS", "WILL BE", "MESSAGE")
    return Table(columns, rows, styles)


def shares_text(shares: Iterable[tuple[str, int]], tiers: Mapping[str, int] | None = None) -> str:
    """`cluster:replicas`, or `cluster` without replicas; the tier is shown from the second on."""
    shown = []
    for name, replicas in shares:
        tier = (tiers or {}).get(name, 0)
        shown.append((f"{name}:{replicas}" if replicas else name) + (f" (tier {tier})" if tier else ""))
    return ", ".join(shown)


def _policy(policy: ObjectKey | None) -> str:
    if policy is None:
        return ""
    return policy.name if policy.namespace else f"{_CLUSTER_WIDE_PREFIX}{policy.name}"


def document(changes: Sequence[BindingChange], explanations: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The plan as a versioned `FleetPlacementList`; an item holds the explanation of its workload, if there is one."""
    both = counts(changes)
    n_placed = sum(one.n_placed for one in both)
    summary = {
        "placed": n_placed,
        "unplaced": len(changes) - n_placed,
        "unchanged": sum(one.n_unchanged for one in both),
    }
    items = [_item(change, explanations.get(change.placement.workload.key)) for change in changes]
    return versioned.document("FleetPlacementList", {"summary": summary, "items": items})


def _item(change: BindingChange, explanation: dict[str, Any] | None) -> dict[str, Any]:
    placement, policy = change.placement, change.policy
    workload, binding = placement.workload, placement.workload.binding
    assert binding is not None
    clusters = [
        {"name": name, "replicas": replicas, "tier": change.tiers.get(name, 0)} for name, replicas in placement.shares
    ]
    item: dict[str, Any] = {
        "namespace": workload.namespace,
        "name": binding.name,
        "kind": binding.kind,
        "binding": workload.name,
        "policy": None if policy is None else policy._asdict(),
        "placed": placement.placed,
        "unchanged": change.is_unchanged,
        "ofChange": change.of_change,
        "affinity": placement.group,
        "clusters": clusters,
        "previous": [{"name": name, "replicas": replicas} for name, replicas in change.was],
        "replicas": binding.replicas,
        "priority": workload.priority,
        "reason": placement.reason,
        "message": placement.message,
        "unmetSpreadConstraints": list(change.unmet),
    }
    return item if explanation is None else {**item, "explanation": explanation}


class ScaledStep(msgspec.Struct, frozen=True):
    """One number of replicas, what it changes, and why there are not more."""

    change: BindingChange
    limit: str = ""

    @property
    def replicas(self) -> int:
        binding = self.change.placement.workload.binding
        assert binding is not None
        return binding.replicas


def scaled_table(steps: Sequence[ScaledStep]) -> Table:
    """One row per workload and step."""
    rows = []
    for step in steps:
        change, placement = step.change, step.change.placement
        workload = placement.workload
        shares = (shares_text(change.was), shares_text(placement.shares, change.tiers))
        limit = f"not more: {step.limit}" if step.limit else ""
        message = placement.message or "; ".join(filter(None, (limit, *change.unmet))) or "-"
        names = (workload.namespace, tables.name_of(workload), str(step.replicas))
        rows.append((*names, placement.group, *shares, message))
    styles = ["" if step.change.placement.placed else _UNSCHEDULABLE_STYLE for step in steps]
    return Table(("NAMESPACE", "KIND/NAME", "REPLICAS", "AFFINITY", "WAS", "WILL BE", "MESSAGE"), rows, styles)


def scaled_document(steps: Sequence[ScaledStep]) -> dict[str, Any]:
    """The steps as a versioned `FleetScalingList`."""
    items = [{**_item(step.change, None), "limit": step.limit} for step in steps]
    return versioned.document("FleetScalingList", {"items": items})


def binding_list(bindings: Iterable[ResourceBinding]) -> str:
    """The bindings as a List in YAML, which can be read as a state again."""
    items = [msgspec.to_builtins(one) for one in bindings]
    return versioned.written({"apiVersion": "v1", "kind": "List", "items": items}, "yaml")
