"""What a page draws of a fleet: its clusters, every binding with its replicas by cluster, groups and tiers in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bayplan.errors import InputError

if TYPE_CHECKING:
    from bayplan.library.fleet import Fleet
    from bayplan.library.fleet_plan import PlannedBinding
    from bayplan.library.reading import Reading
    from bayplan.model.targets import Target
    from bayplan.model.workloads import Workload
    from bayplan.reading.fleet import LoadedFleet


def state_of(reading: Reading, fleet: LoadedFleet) -> dict[str, Any]:
    """The fleet as it was read; the caller holds the lock of the reading."""
    slots = fleet.index.slots
    running = {key: (one.workload, dict(one.shares)) for key, one in fleet.index.records.items()}
    waiting = {one.key: (one, dict(fleet.was.get(one.key, ()))) for one in fleet.pending}
    idle = {one.key: (one, dict[str, int]()) for one, _ in fleet.idle}
    known = {**idle, **waiting, **running}
    return {
        "clusters": [_cluster(slots.at(slot)) for _, slot in sorted(slots.by_name.items())],
        "bindings": [
            _binding(workload, shares, is_pending=key not in running and key in waiting, fleet=fleet)
            for key, (workload, shares) in sorted(known.items())
            if workload.binding is not None and not workload.terminating
        ],
        "notes": list(reading.notes),
    }


def _cluster(target: Target) -> dict[str, Any]:
    facts = target.cluster
    assert facts is not None
    summary = facts.summary
    taints = [
        f"{one.key}={one.value}:{one.effect}" if one.value else f"{one.key}:{one.effect}" for one in target.taints
    ]
    amounts = {} if summary is None else {name: float(amount) for name, amount in summary.allocatable}
    taken = {} if summary is None else {name: float(amount) for name, amount in summary.allocated}
    return {
        "name": target.name,
        "labels": target.labels,
        "provider": facts.provider,
        "region": facts.region,
        "zones": list(facts.zones),
        "taints": taints,
        "allocatable": amounts,
        "allocated": taken,
    }


def _binding(workload: Workload, shares: Mapping[str, int], *, is_pending: bool, fleet: LoadedFleet) -> dict[str, Any]:
    binding = workload.binding
    assert binding is not None
    policy = fleet.policies.get(workload.key)
    return {
        "key": workload.key,
        "namespace": workload.namespace,
        "name": workload.name,
        "kind": binding.kind,
        "template": binding.name,
        "replicas": binding.replicas,
        "divisible": binding.is_divisible,
        "clusters": dict(shares),
        "pending": is_pending,
        "policy": "" if policy is None else policy.name,
        "groups": [group.name for group in binding.placement.groups],
        "observed": binding.observed,
        "labels": workload.labels,
    }


def placed(fleet: Fleet) -> dict[str, Any]:
    """Where every workload is once it is placed, after what is supposed."""
    found = fleet.place()
    return {
        "ok": found.ok,
        "summary": list(found.summary),
        "notes": list(found.notes),
        "unselected": list(found.unselected),
        "bindings": [planned(one) for one in found],
    }


def planned(one: PlannedBinding) -> dict[str, Any]:
    return {
        "key": f"{one.namespace}/{one.binding}",
        "kind": one.kind,
        "template": one.name,
        "replicas": one.replicas,
        "clusters": dict(one.clusters),
        "previous": dict(one.previous),
        "placed": one.placed,
        "unchanged": one.unchanged,
        "affinity": one.affinity,
        "reason": one.reason,
        "message": one.message,
    }


def explained(fleet: Fleet, namespace: str, name: str) -> dict[str, Any]:
    """The explanation of one binding by its own name."""
    found = (fleet.only(namespace=namespace) if namespace else fleet).explain(f"resourcebinding/{name}")
    return {
        "explanation": found.to_dict(),
        "noFix": False,
        "warnings": [],
        "notes": list(found.notes),
        "rules": [],
        "relations": [],
    }


def scaled(fleet: Fleet, namespace: str, name: str, replicas: list[int]) -> dict[str, Any]:
    """Where a binding would be with these numbers of replicas, one after another."""
    steps = [one for one in fleet.scale(*replicas) if (one.namespace, one.binding) == (namespace, name)]
    if not steps:
        raise InputError(f"{namespace}/{name} has no replicas to divide, or is not in the input")
    return {"steps": [planned(one) for one in steps]}
