"""Why an attempt failed. The class decides the reason that the binding's condition shows."""


class Failure(Exception):  # noqa: N818, an outcome and no error
    reason = "SchedulerError"

    def __init__(self, message):
        super().__init__(message)
        self.message = message

    def during(self, step):
        """The same failure, prefixed with the step that it occurred in, as Go wraps errors."""
        return type(self)(f"{step}: {self.message}")


class NoClusterFit(Failure):
    reason = "NoClusterFit"


class Unschedulable(Failure):
    reason = "Unschedulable"


class SchedulerError(Failure):
    reason = "SchedulerError"
