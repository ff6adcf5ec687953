"""Karmada bindings as written → workloads."""

from __future__ import annotations

from datetime import datetime

from bayplan.model import bindings as model
from bayplan.model import labels as label_model
from bayplan.model.clusters import Amounts
from bayplan.model.workloads import Needs, Workload
from bayplan.reading import clusters, placements
from bayplan.wire.fleets import ReplicaRequirements, ResourceBinding


def workload_of(written: ResourceBinding, labels: label_model.Labels | None = None) -> Workload:
    """The binding as a workload; `labels` are those of its template."""
    spec, meta = written.spec, written.metadata
    groups = spec.workload_affinity_groups
    binding = model.Binding(
        namespace=spec.resource.namespace,
        api_version=spec.resource.api_version,
        kind=spec.resource.kind,
        uid=spec.resource.uid,
        replicas=spec.replicas,
        demand=_demand(spec.replica_requirements),
        components=tuple(model.Component(c.replicas, _requests(c.replica_requirements)) for c in spec.components or ()),
        placement=placements.placement_of(spec.placement or {}),
        previous=tuple((target.name, target.replicas) for target in spec.clusters or ()),
        evicted_from=tuple(task.from_cluster for task in spec.graceful_eviction_tasks or ()),
        observed=written.status.scheduler_observing_affinity_name,
        fresh=_later(spec.reschedule_triggered_at, written.status.last_scheduled_time),
        affinity_group=groups.affinity_group if groups else "",
        anti_affinity_group=groups.anti_affinity_group if groups else "",
    )
    grouped = {model.AFFINITY_GROUP: binding.affinity_group, model.ANTI_AFFINITY_GROUP: binding.anti_affinity_group}
    return Workload(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        labels={**(labels or {}), **{key: group for key, group in grouped.items() if group}},
        needs=Needs(),
        priority=spec.schedule_priority.priority if spec.schedule_priority else 0,
        created=meta.creation_timestamp or "",
        scheduler_name=spec.scheduler_name,
        binding=binding,
    )


def binding_name(written: ResourceBinding) -> str:
    """The name a binding has for the object it propagates; its API group is no part of it."""
    resource = written.spec.resource
    return f"{resource.name.replace(':', '.')}-{resource.kind}".lower()


def shares_of(written: ResourceBinding) -> list[tuple[str, int]]:
    """The clusters the binding is on, each once, with its replicas there."""
    shares: dict[str, int] = {}
    for target in written.spec.clusters or ():
        shares.setdefault(target.name, target.replicas)
    return list(shares.items())


def _demand(written: ReplicaRequirements | None) -> model.Demand | None:
    return None if written is None else model.Demand(_requests(written))


def _requests(written: ReplicaRequirements | None) -> Amounts | None:
    return None if written is None else clusters.amounts_of(written.resource_request)


def _later(triggered: str | None, scheduled: str | None) -> bool:
    """Whether a rebalance was asked for since the last scheduling; both must be known."""
    if not triggered or not scheduled:
        return False
    return datetime.fromisoformat(triggered) > datetime.fromisoformat(scheduled)
