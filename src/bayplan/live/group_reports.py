"""What members of groups are told: events, and the conditions of those that wait. Decides nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from bayplan.live import conditions
from bayplan.live.cluster_writer import PodRef
from bayplan.live.context import SchedulerContext
from bayplan.live.metrics import ERROR, UNSCHEDULABLE
from bayplan.model.workloads import Workload
from bayplan.queueing.pending_pod import PendingPod

WAITS, TIMED_OUT, BELOW_MIN, RELEASED = "FailedScheduling", "GroupTimedOut", "GroupBelowMin", "GroupReleased"
BELOW = "group {group} has {n} members that run, {least} must, and no other is pending"
TIMEOUT = "group {group} has waited for {seconds:.0f} s: {message}"
RELEASE = (
    "group {group} was not placed as a whole: {n} of {least} members were bound, and the others had no place for "
    "{seconds:.0f} s, so its members are deleted to be created anew"
)
log = logging.getLogger("bayplan.groups")

# Sets why a pod is not placed, with the reason, and its nominated node: None to keep it.
UpdateCondition = Callable[[PendingPod, str, str, str | None], None]


class GroupReporter:
    """Writes events and conditions for groups."""

    def __init__(self, context: SchedulerContext, update_condition: UpdateCondition) -> None:
        self._events, self._metrics = context.events, context.metrics
        self._update_condition = update_condition

    def waits(
        self, key: str, message: str, members: Sequence[PendingPod], nominated: Mapping[str, str], seconds: float = 0.0
    ) -> None:
        """Tell the members why their group waits: each what is new, and the first one every time."""
        log.debug("group waits", extra={"group": key, "message_text": message})
        for position, pending in enumerate(members):
            if not position:
                self._metrics.observe_attempt(UNSCHEDULABLE, pending.workload.scheduler_name, seconds)
            if not position or message != pending.message:
                self._event(pending.workload, WAITS, message)
            if message != pending.message or pending.key in nominated:
                self._update_condition(pending, message, conditions.UNSCHEDULABLE, nominated.get(pending.key))

    def clear_nominated(self, members: Sequence[PendingPod]) -> None:
        """Write that members have no nominated node any longer."""
        for pending in members:
            self._update_condition(pending, pending.message, conditions.UNSCHEDULABLE, "")

    def timed_out(self, key: str, members: Sequence[PendingPod], seconds: float) -> None:
        message = next((one.message for one in members if one.message), "it was not tried")
        text = TIMEOUT.format(group=key, seconds=seconds, message=message)
        log.warning("group timed out", extra={"group": key, "message_text": message})
        for pending in members[:1]:
            self._event(pending.workload, TIMED_OUT, text)

    def below_min(self, key: str, placed: Sequence[Workload], least: int) -> None:
        text = BELOW.format(group=key, n=len(placed), least=least)
        log.warning("group below its minimum", extra={"group": key, "members": len(placed), "min": least})
        self._event(placed[0], BELOW_MIN, text)

    def released(self, key: str, placed: Sequence[Workload], least: int, seconds: float) -> None:
        text = RELEASE.format(group=key, n=len(placed), least=least, seconds=seconds)
        log.warning("group released", extra={"group": key, "members": len(placed), "min": least})
        for workload in placed:
            self._event(workload, RELEASED, text)

    def internal_error(self, members: Sequence[PendingPod]) -> None:
        """Report that the scheduler, not the group, is at fault."""
        message = "internal error of the scheduler; its log has the details"
        for pending in members:
            self._metrics.attempts.labels(ERROR, pending.workload.scheduler_name).inc()
            self._event(pending.workload, WAITS, message)
            self._update_condition(pending, message, conditions.SCHEDULER_ERROR, None)

    def _event(self, workload: Workload, reason: str, note: str) -> None:
        self._events.record(PodRef.of(workload), reason, note, action="Scheduling", warning=True)
