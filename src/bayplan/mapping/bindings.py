"""Karmada bindings, mapped to workloads. Does not know the detector that creates them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from bayplan.errors import InputError
from bayplan.mapping import placements, targets, workload_terms
from bayplan.model import bindings as model
from bayplan.model.clusters import Amounts
from bayplan.model.placements import Placement
from bayplan.model.semantics import UPSTREAM, Semantics
from bayplan.model.terms import NO_TERMS, AffinityTerms
from bayplan.model.workloads import Needs, Workload
from bayplan.wire.fleets import ReplicaRequirements, ResourceBinding

LABELS_ANNOTATION = "bayplan.io/workload-labels"
PURGE_MODES_WITHOUT_DRAINING = ("Directly", "Immediately")


class BindingContext(msgspec.Struct, frozen=True):
    """How bindings are mapped: the semantics, and the label keys that terms may select by."""

    semantics: Semantics = UPSTREAM
    keys: workload_terms.LabelKeys = workload_terms.LabelKeys()


def workload_of(
    written: ResourceBinding, template: Mapping[str, Any] | None = None, context: BindingContext | None = None
) -> Workload:
    """The binding as a workload with its template's labels. A fault in its placement makes it unplaceable."""
    spec, meta = written.spec, written.metadata
    groups = spec.workload_affinity_groups
    labels, rules, fault = _rules(written, template, context or BindingContext())
    binding = model.Binding(
        namespace=spec.resource.namespace,
        name=spec.resource.name,
        api_version=spec.resource.api_version,
        kind=spec.resource.kind,
        uid=spec.resource.uid,
        replicas=spec.replicas,
        demand=None if spec.replica_requirements is None else model.ReplicaDemand(_requests(spec.replica_requirements)),
        components=tuple(model.Component(c.replicas, _requests(c.replica_requirements)) for c in spec.components or ()),
        placement=rules.placement,
        previous=tuple((target.name, target.replicas) for target in spec.clusters or ()),
        evicted_from=tuple(task.from_cluster for task in spec.graceful_eviction_tasks or ()),
        observed=written.status.scheduler_observing_affinity_name,
        fresh=rebalance_requested_since(spec.reschedule_triggered_at, written.status.last_scheduled_time),
        affinity_group=groups.affinity_group if groups else "",
        anti_affinity_group=groups.anti_affinity_group if groups else "",
    )
    grouped = {model.AFFINITY_GROUP: binding.affinity_group, model.ANTI_AFFINITY_GROUP: binding.anti_affinity_group}
    return Workload(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        labels={**labels, **{key: group for key, group in grouped.items() if group}},
        needs=Needs(affinity=rules.affinity),
        priority=spec.schedule_priority.priority if spec.schedule_priority else 0,
        created=meta.creation_timestamp or "",
        scheduler_name=spec.scheduler_name,
        unplaceable=fault,
        binding=binding,
    )


class _PlacementRules(msgspec.Struct, frozen=True):
    placement: Placement = Placement()
    affinity: AffinityTerms = NO_TERMS


def _rules(
    written: ResourceBinding, template: Mapping[str, Any] | None, context: BindingContext
) -> tuple[dict[str, str], _PlacementRules, str]:
    """The labels, the placement and terms, and what is wrong with them: then they are empty."""
    labels: dict[str, str] = {}
    try:
        labels = _labels(written, template)
        merged = placements.merged_placement(written, template)
        affinity = workload_terms.affinity_of(merged, labels, context.keys)
        return labels, _PlacementRules(placements.placement_of(merged, context.semantics), affinity), ""
    except InputError as error:
        return labels, _PlacementRules(), str(error)


def _labels(written: ResourceBinding, template: Mapping[str, Any] | None) -> dict[str, str]:
    """The template's labels, else those of the binding's annotation, else none."""
    if template is not None:
        return dict((template.get("metadata") or {}).get("labels") or {})
    text = (written.metadata.annotations or {}).get(LABELS_ANNOTATION)
    if not text:
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, str])
    except msgspec.MsgspecError as error:
        raise InputError(f"metadata.annotations[{LABELS_ANNOTATION}]: {error}") from None


def draining_from(written: ResourceBinding) -> tuple[str, ...]:
    """The clusters from which a copy is still draining; a copy that is purged immediately does not drain."""
    tasks = written.spec.graceful_eviction_tasks or ()
    return tuple(task.from_cluster for task in tasks if task.purge_mode not in PURGE_MODES_WITHOUT_DRAINING)


def binding_name(name: str, kind: str) -> str:
    """The name of the binding for a resource; the API group is not part of it."""
    return f"{name.replace(':', '.')}-{kind}".lower()


def shares_of(written: ResourceBinding) -> list[tuple[str, int]]:
    """The clusters of the binding, each once, with its replicas there."""
    shares: dict[str, int] = {}
    for target in written.spec.clusters or ():
        shares.setdefault(target.name, target.replicas)
    return list(shares.items())


def _requests(written: ReplicaRequirements | None) -> Amounts | None:
    return None if written is None else targets.amounts_of(written.resource_request)


def rebalance_requested_since(triggered: str | None, scheduled: str | None) -> bool:
    """Whether a rebalance was requested after the last scheduling; both times must be set."""
    if not triggered or not scheduled:
        return False
    return datetime.fromisoformat(triggered) > datetime.fromisoformat(scheduled)
