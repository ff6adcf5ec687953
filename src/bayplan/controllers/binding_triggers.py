"""
Whether karmada-scheduler would schedule a binding: is it the scheduler's own, and has anything changed since?

Mirrors v1.18.2: `resourceBindingEventFilter` and `doScheduleBinding` in pkg/scheduler, in their order.
"""

from __future__ import annotations

from collections.abc import Collection, Container
from datetime import datetime

import msgspec

from bayplan.errors import InputError
from bayplan.mapping import bindings, placements
from bayplan.model import timestamps
from bayplan.validating.placement_annotation import PLACEMENT_ANNOTATION
from bayplan.validating.tiers import INHERITED
from bayplan.wire import conversion
from bayplan.wire import placements as wire
from bayplan.wire.fleets import ResourceBinding

SCHEDULER_NAME = "default-scheduler"
SCHEDULER_NAMES = (
    SCHEDULER_NAME,
    "bayplan",
)  # of which a plan places the bindings: karmada-scheduler's and Bayplan's own
APPLIED_PLACEMENT = "policy.karmada.io/applied-placement"
POLICY_LABELS = (
    "propagationpolicy.karmada.io/permanent-id",
    "clusterpropagationpolicy.karmada.io/permanent-id",
    "binding.karmada.io/managed-by",
)
DUPLICATED, DIVIDED = "Duplicated", "Divided"
DELETED, SUSPENDED, OTHER_SCHEDULER, DEPENDENCY, NO_PLACEMENT = (
    "are being deleted",
    "are suspended",
    "are for another scheduler",
    "belong to no policy",
    "have no placement",
)


_OF_ONE = {
    DELETED: "it is being deleted",
    SUSPENDED: "it is suspended",
    OTHER_SCHEDULER: "it is for another scheduler",
    DEPENDENCY: "it belongs to no policy",
    NO_PLACEMENT: "it has no placement",
}


def reason_of_one(reason: str) -> str:
    """Why the scheduler ignores a single binding, in words; empty if it does not."""
    return _OF_ONE.get(reason, "")


def reason_to_skip(
    binding: ResourceBinding, *, handwritten: bool, scheduler_names: Container[str] = SCHEDULER_NAMES
) -> str:
    """Why the scheduler ignores the binding; empty if it does not. Karmada's labels are optional if `handwritten`."""
    spec, meta = binding.spec, binding.metadata
    if (spec.scheduler_name or SCHEDULER_NAME) not in scheduler_names:
        return OTHER_SCHEDULER
    if spec.suspension is not None and spec.suspension.scheduling:
        return SUSPENDED
    if not handwritten and not any((meta.labels or {}).get(key) for key in POLICY_LABELS):
        return DEPENDENCY
    if meta.deletion_timestamp is not None:
        return DELETED
    return NO_PLACEMENT if spec.placement is None else ""


def needs_scheduling(binding: ResourceBinding, terminating: Collection[str], template_text: str | None = None) -> bool:
    """
    Whether the binding must be scheduled; `terminating` are the clusters that are being deleted.

    `template_text` is the annotation `bayplan.io/placement` of the template. A binding whose placement cannot be read
    must be scheduled, and is then refused for it, instead of passing for a scheduled one.
    """
    spec = binding.spec
    try:
        placement = conversion.converted(spec.placement or {}, wire.WirePlacement)
        whole = _with_annotations(binding, placement, template_text)
    except (msgspec.ValidationError, InputError):
        return True
    strategy = placement.replica_scheduling
    kind = DUPLICATED if strategy is None else strategy.replica_scheduling_type
    is_workload = spec.replicas > 0 or spec.replica_requirements is not None or bool(spec.components)
    return (
        _placement_changed(binding, placement)
        or (strategy is not None and _replicas_changed(binding, kind))
        or bindings.rebalance_requested_since(spec.reschedule_triggered_at, binding.status.last_scheduled_time)
        or ((not is_workload or kind == DUPLICATED) and not _kept_by_tiers(binding, whole))
        or any(target.name in terminating for target in spec.clusters or ())
    )


def _with_annotations(
    binding: ResourceBinding, placement: wire.WirePlacement, template_text: str | None
) -> wire.WirePlacement:
    """The placement with the fields of the annotations of the binding and of its template."""
    texts = ((binding.metadata.annotations or {}).get(PLACEMENT_ANNOTATION), template_text)
    if texts == (None, None):
        return placement
    merged = placements.merged_placement(binding.spec.placement or {}, texts)
    found: wire.WirePlacement = conversion.converted(merged, wire.WirePlacement)
    return found


def _kept_by_tiers(binding: ResourceBinding, placement: wire.WirePlacement) -> bool:
    """
    Whether a duplicated binding keeps its clusters until its replicas change: the case with Bayplan's own tiers.

    Karmada schedules duplicated bindings on every event. With tiers, that would move them back as soon as an earlier
    tier recovers, and recovery alone must not move anything. A binding that is evicted somewhere needs another place.
    """
    terms = [placement.cluster_affinity, *(placement.cluster_affinities or ())]
    tiered = (
        _inherits(placement) or bool(placement.preferred_cluster_affinities) or any(t and t.supplements for t in terms)
    )
    is_evicted = bool(binding.spec.graceful_eviction_tasks)
    return tiered and bool(binding.spec.clusters) and not is_evicted and not _replicas_changed(binding, DUPLICATED)


def hold_down_is_over(binding: ResourceBinding, hold_down: int, now: datetime | None) -> bool:
    """Whether the binding was scheduled at least `hold_down` seconds ago, so that it may fail back."""
    scheduled = binding.status.last_scheduled_time
    if not hold_down or now is None or not scheduled or not binding.spec.clusters:
        return False
    return now.timestamp() - timestamps.nanoseconds(scheduled) / 10**9 >= hold_down


def _placement_changed(binding: ResourceBinding, now: wire.WirePlacement) -> bool:
    """
    Changes of other groups than the observed one do not count; an invalid annotation hides every change.

    All changes of Bayplan's own fields count. As in Karmada, changes of Karmada's workload affinity do not count by
    themselves.
    """
    text = (binding.metadata.annotations or {}).get(APPLIED_PLACEMENT)
    if not text:
        return True
    try:
        applied = msgspec.json.decode(text, type=wire.WirePlacement)
    except msgspec.MsgspecError:
        return False
    if now == applied:
        return False
    if _without_groups(now) != _without_groups(applied):
        return True
    observed = binding.status.scheduler_observing_affinity_name
    term = _term(now, observed)
    return not observed or term is None or term != _term(applied, observed)


def has_other_group_keys(binding: ResourceBinding) -> bool:
    """Whether Karmada's workload affinity has other keys than in the placement that the binding was scheduled by."""
    text = (binding.metadata.annotations or {}).get(APPLIED_PLACEMENT)
    if not text or not binding.spec.clusters:
        return False
    try:
        applied = msgspec.json.decode(text, type=wire.WirePlacement)
        now = conversion.converted(binding.spec.placement or {}, wire.WirePlacement)
    except (msgspec.MsgspecError, InputError):
        return False
    return _group_keys(now) != _group_keys(applied)


def _group_keys(placement: wire.WirePlacement) -> tuple[str, ...]:
    near = placement.workload_affinity or wire.WorkloadAffinity()
    return tuple("" if term is None else term.group_by_label_key for term in (near.affinity, near.anti_affinity))


def _without_groups(placement: wire.WirePlacement) -> tuple[object, ...]:
    near = placement.workload_affinity or wire.WorkloadAffinity()
    return (
        placement.cluster_affinity,
        placement.cluster_tolerations,
        placement.spread_constraints,
        placement.replica_scheduling,
        placement.affinity_strategy,
        placement.preferred_cluster_affinities,
        placement.cluster_affinities if _inherits(placement) else None,  # then all groups are tiers of one
        placement.workload_anti_affinity,
        near.required_during_scheduling_required_during_execution,
        near.required_during_scheduling_ignored_during_execution,
        near.preferred_during_scheduling_ignored_during_execution,
    )


def _inherits(placement: wire.WirePlacement) -> bool:
    return placement.affinity_strategy is not None and placement.affinity_strategy.mode == INHERITED


def _term(placement: wire.WirePlacement, name: str) -> wire.ClusterAffinityTerm | None:
    return next((term for term in placement.cluster_affinities or () if term.affinity_name == name), None)


def _replicas_changed(binding: ResourceBinding, kind: str) -> bool:
    spec = binding.spec
    shares = [target.replicas for target in spec.clusters or ()]
    if spec.components and not shares:
        return True
    if kind == DUPLICATED:
        return any(share != spec.replicas for share in shares)
    return kind == DIVIDED and sum(shares) != spec.replicas
