"""
Whether karmada-scheduler would schedule a binding: is it the scheduler's, and has anything changed since the last time?

Mirrors v1.18.2: `resourceBindingEventFilter` and `doScheduleBinding` in pkg/scheduler, in their order.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

import msgspec

from bayplan.mapping import bindings
from bayplan.wire import placements as wire
from bayplan.wire.fleets import ResourceBinding

SCHEDULER_NAME = "default-scheduler"
APPLIED_PLACEMENT = "policy.karmada.io/applied-placement"
POLICY_LABELS = (
    "propagationpolicy.karmada.io/permanent-id",
    "clusterpropagationpolicy.karmada.io/permanent-id",
    "binding.karmada.io/managed-by",
)
DUPLICATED, DIVIDED = "Duplicated", "Divided"
DELETED, SUSPENDED, OTHERS, DEPENDENCY, NO_PLACEMENT = (
    "are being deleted",
    "are suspended",
    "are for another scheduler",
    "belong to no policy",
    "have no placement",
)


def reason_to_skip(binding: ResourceBinding, *, handwritten: bool) -> str:
    """Why the scheduler does not look at the binding; empty if it does. People leave out labels that Karmada sets."""
    spec, meta = binding.spec, binding.metadata
    if (spec.scheduler_name or SCHEDULER_NAME) != SCHEDULER_NAME:
        return OTHERS
    if spec.suspension is not None and spec.suspension.scheduling:
        return SUSPENDED
    if not handwritten and not any((meta.labels or {}).get(key) for key in POLICY_LABELS):
        return DEPENDENCY
    if meta.deletion_timestamp is not None:
        return DELETED
    return NO_PLACEMENT if spec.placement is None else ""


def needs_scheduling(binding: ResourceBinding, terminating: Collection[str]) -> bool:
    """Whether something calls for a decision; `terminating` are the clusters that are being deleted."""
    spec = binding.spec
    placement = _typed(spec.placement or {})
    strategy = placement.replica_scheduling
    kind = DUPLICATED if strategy is None else strategy.replica_scheduling_type
    is_workload = spec.replicas > 0 or spec.replica_requirements is not None or bool(spec.components)
    return (
        _placement_changed(binding, placement)
        or (strategy is not None and _replicas_changed(binding, kind))
        or bindings.rebalance_requested_since(spec.reschedule_triggered_at, binding.status.last_scheduled_time)
        or ((not is_workload or kind == DUPLICATED) and not _kept_by_tiers(binding, placement))
        or any(target.name in terminating for target in spec.clusters or ())
    )


def _kept_by_tiers(binding: ResourceBinding, placement: wire.WirePlacement) -> bool:
    """
    Whether copies stay where they are until something is asked of them: those with tiers of the seed.

    Karmada decides about copies on every occasion. Where the seed's tiers apply that would move them back as soon as an
    earlier tier recovers, and the seed says that recovery alone moves nothing.
    """
    terms = [placement.cluster_affinity, *(placement.cluster_affinities or ())]
    inherited = placement.affinity_strategy is not None and placement.affinity_strategy.mode == "Inherited"
    tiered = inherited or bool(placement.preferred_cluster_affinities) or any(t and t.supplements for t in terms)
    return tiered and bool(binding.spec.clusters) and not _replicas_changed(binding, DUPLICATED)


def hold_down_is_over(binding: ResourceBinding, hold_down: int, now: datetime | None) -> bool:
    """Whether the binding was scheduled at least so many seconds ago, so that it may go back to a better place."""
    scheduled = binding.status.last_scheduled_time
    if not hold_down or now is None or not scheduled or not binding.spec.clusters:
        return False
    return (now - datetime.fromisoformat(scheduled)).total_seconds() >= hold_down


def _placement_changed(binding: ResourceBinding, now: wire.WirePlacement) -> bool:
    """A change of a group other than the observed one is none; text that is no placement hides every change."""
    text = (binding.metadata.annotations or {}).get(APPLIED_PLACEMENT)
    if not text:
        return True
    try:
        applied = msgspec.json.decode(text, type=wire.WirePlacement)
    except msgspec.MsgspecError:
        return False
    if now == applied:
        return False
    if _but_for_groups(now) != _but_for_groups(applied):
        return True
    observed = binding.status.scheduler_observing_affinity_name
    mine, its = _term(now, observed), _term(applied, observed)
    return not observed or mine is None or mine != its


def _but_for_groups(placement: wire.WirePlacement) -> tuple[object, ...]:
    return (
        placement.cluster_affinity,
        placement.cluster_tolerations,
        placement.spread_constraints,
        placement.replica_scheduling,
    )


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


def _typed(written: dict[str, Any]) -> wire.WirePlacement:
    return msgspec.convert(written, wire.WirePlacement)
