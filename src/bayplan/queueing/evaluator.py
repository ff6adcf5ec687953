"""What the scheduling queue asks about unschedulable pods. Each front door says how it decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

from bayplan.engine.filtering import Verdicts
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.queueing.nominations import Nominations
from bayplan.queueing.pending_pod import Pending, PendingWorkload

Pending_contra = TypeVar("Pending_contra", bound=PendingWorkload, contravariant=True)


class Evaluator(Protocol[Pending_contra]):
    """Answers from the index as it is now, and changes nothing."""

    def fits(self, workload: Workload, nominations: Nominations) -> bool:
        """Whether the workload can be placed, with room left for the nominated ones."""

    def is_outdated(self, pending: Pending_contra) -> bool:
        """Whether a workload does not fit for another reason than reported, so that it must be tried again."""

    def verdicts(self, workload: Workload) -> Verdicts | None:
        """The verdicts of the rules whose rejection a change may lift; None if any change may help."""

    def pod_helped_by_preemption(
        self, equivalent: Mapping[WorkloadKey, Pending], nominations: Nominations
    ) -> Pending | None:
        """
        One of these equivalent pods that would preempt new victims if it were tried now, or lose a nomination that no
        longer helps, else None.
        """
