"""Why an attempt to select or divide failed: answers, not errors, but raised because they end the attempt."""

from __future__ import annotations


class Unassignable(Exception):  # noqa: N818 (an answer, not an error)
    """The workload cannot be assigned; `reason` is the class that Karmada's condition would carry."""

    reason = "SchedulerError"

    def during(self, step: str) -> Unassignable:
        """The same, told as part of a larger step."""
        return type(self)(f"{step}: {self}")


class NoClusterFit(Unassignable):
    reason = "NoClusterFit"


class Unschedulable(Unassignable):
    reason = "Unschedulable"
