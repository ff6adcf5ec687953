"""
What a scheduling attempt writes to a binding, as merge patches: the object, then its status.

Field for field what karmada-scheduler writes, because other controllers of Karmada read it; conditions of other types
are written back as they are. One difference: the status observes the generation that the first patch has made.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from bayplan.controllers.binding_triggers import APPLIED_PLACEMENT
from bayplan.mapping import bindings
from bayplan.wire.fleets import ResourceBinding

SCHEDULED = "Scheduled"
SUCCESS, NO_CLUSTER_FIT, UNSCHEDULABLE, SCHEDULER_ERROR = (
    "Success",
    "NoClusterFit",
    "Unschedulable",
    "SchedulerError",
)
PRODUCER = "bayplan"  # of tasks of graceful eviction
FAILS_BACK = "FailsBack"
SUCCEEDED = "Binding has been scheduled successfully."
Shares = tuple[tuple[str, int], ...]


class ScheduleResult(msgspec.Struct, frozen=True):
    """
    The result of one attempt, as it is written.

    `shares` are the clusters to write, None to leave them as they are, and `placement` is the JSON of what they are the
    result of. `affinity` is the name of the affinity term that succeeded, None for a placement without several.
    `reason` and `message` are those of the condition. `is_retried`: the failure may pass without a change of the fleet.
    `leaving` are the clusters that a workload leaves by graceful eviction because it fails back to others.
    """

    reason: str
    message: str
    shares: Shares | None = None
    placement: str = "{}"
    affinity: str | None = None
    is_retried: bool = False
    leaving: tuple[str, ...] = ()

    @property
    def succeeded(self) -> bool:
        return self.reason == SUCCESS


def leaving_gradually(result: ScheduleResult, written: ResourceBinding) -> ScheduleResult:
    """A result by which the clusters that the workload leaves keep their copies until the new ones are healthy."""
    staying = {name for name, _ in result.shares or ()}
    left = tuple(name for name, _ in bindings.shares_of(written) if name not in staying)
    return msgspec.structs.replace(result, leaving=left)


def object_patch(
    written: ResourceBinding, shares: Shares, placement: str, leaving: tuple[str, ...] = ()
) -> dict[str, Any]:
    """
    The clusters and the placement (JSON) that they are the result of; empty if the binding has them already.

    The clusters in `leaving` keep their copy until the others are healthy; the binding has no other such tasks.
    """
    patch: dict[str, Any] = {}
    if not _is_applied(written, placement):
        patch["metadata"] = {"annotations": {APPLIED_PLACEMENT: placement}}
    if set(bindings.shares_of(written)) != set(shares):  # another order has no meaning, and would be a new generation
        clusters = [{"name": name, "replicas": replicas} if replicas else {"name": name} for name, replicas in shares]
        patch["spec"] = {"clusters": clusters or None}
        held = dict(bindings.shares_of(written))
        tasks = [_eviction_task(name, held[name]) for name in leaving if name in held]
        if tasks:
            patch["spec"]["gracefulEvictionTasks"] = tasks
    return patch


def _eviction_task(cluster: str, replicas: int) -> dict[str, Any]:
    task = {
        "fromCluster": cluster,
        "purgeMode": "Gracefully",
        "reason": FAILS_BACK,
        "message": "an earlier group or tier of clusters has room again",
        "producer": PRODUCER,
    }
    return {**task, "replicas": replicas} if replicas else task


def _is_applied(written: ResourceBinding, placement: str) -> bool:
    text = (written.metadata.annotations or {}).get(APPLIED_PLACEMENT)
    if not text:
        return False
    try:
        return bool(msgspec.json.decode(text) == msgspec.json.decode(placement))
    except msgspec.MsgspecError:
        return False


def status_patch(written: ResourceBinding, result: ScheduleResult, generation: int, now: datetime) -> dict[str, Any]:
    """The status after an attempt for this generation, observed if it succeeded; empty if nothing changes."""
    status = _condition_patch(written, result, now)
    if result.affinity is not None and result.affinity != written.status.scheduler_observing_affinity_name:
        status["schedulerObservingAffinityName"] = result.affinity
    if result.succeeded:
        status |= _observation(written, generation)
        last = written.status.last_scheduled_time
        if status or not last or bindings.rebalance_requested_since(written.spec.reschedule_triggered_at, last):
            status["lastScheduledTime"] = _timestamp(now)
    return {"status": status} if status else {}


def unneeded_patch(written: ResourceBinding, generation: int, now: datetime) -> dict[str, Any]:
    """
    The status of a binding that need not be scheduled: this generation is observed.

    Where a write of the result was cut off, or the reason of a failure is gone, the status says so now.
    """
    result = ScheduleResult(SUCCESS, SUCCEEDED)
    if written.spec.clusters and (_condition_patch(written, result, now) or not written.status.last_scheduled_time):
        return status_patch(written, result, generation, now)
    status = _observation(written, generation)
    return {"status": status} if status else {}


def _observation(written: ResourceBinding, generation: int) -> dict[str, Any]:
    """The observed generation, unless the status has it or a later one."""
    observed = written.status.scheduler_observed_generation
    return {} if observed >= generation else {"schedulerObservedGeneration": generation}


def _condition_patch(written: ResourceBinding, result: ScheduleResult, now: datetime) -> dict[str, Any]:
    """All conditions with that of this scheduler set: a merge patch replaces the list. Empty if nothing changes."""
    condition = {
        "type": SCHEDULED,
        "status": "True" if result.succeeded else "False",
        "reason": result.reason,
        "message": result.message,
        "lastTransitionTime": _timestamp(now),
    }
    conditions = written.status.conditions or []
    known = next((one for one in conditions if one.get("type") == SCHEDULED), None)
    if known is None:
        return {"conditions": [*conditions, condition]}
    if known.get("status") == condition["status"]:
        condition["lastTransitionTime"] = known.get("lastTransitionTime") or condition["lastTransitionTime"]
    merged = {**known, **condition}
    return {} if merged == known else {"conditions": [merged if one is known else one for one in conditions]}


def _timestamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
