"""The metrics of the scheduler of bindings: under karmada-scheduler's names where the meaning is the same."""

from __future__ import annotations

from functools import partial

from prometheus_client import Counter, Histogram

from bayplan.live.metrics import CommonMetrics
from bayplan.watching.fleet_state import Incoming

BUCKETS = tuple(0.001 * 2**i for i in range(15))  # 1 ms to 16 s
SCHEDULED, ERROR = "scheduled", "error"
RECONCILE, SCALE = "ReconcileSchedule", "ScaleSchedule"


class FleetMetrics(CommonMetrics):
    """What is measured while bindings are scheduled."""

    def __init__(self) -> None:
        super().__init__()
        counter, histogram = partial(Counter, registry=self.registry), partial(Histogram, registry=self.registry)
        self.attempts = counter(
            "karmada_scheduler_schedule_attempts",
            "Number of attempts to schedule a ResourceBinding or ClusterResourceBinding.",
            ["result", "schedule_type"],
        )
        self.attempt_seconds = histogram(
            "karmada_scheduler_e2e_scheduling_duration_seconds",
            "E2e scheduling latency in seconds.",
            ["result", "schedule_type"],
            buckets=BUCKETS,
        )
        self.algorithm_seconds = histogram(
            "bayplan_fleet_algorithm_duration_seconds", "Latency of one decision in seconds.", buckets=BUCKETS
        )
        self.incoming = counter(
            "karmada_scheduler_queue_incoming_bindings",
            "Number of ResourceBinding and ClusterResourceBinding objects added to the queue, by event type.",
            ["event"],
        )
        self.write_failures = counter(
            "bayplan_binding_write_failures", "Number of results that were not written, by cause.", ["cause"]
        )

        self.estimator_requests = counter(
            "bayplan_estimator_requests", "Number of questions to accurate estimators, by result.", ["result"]
        )
        self.failed_back = counter(
            "bayplan_fail_backs", "Number of bindings that were let return to an earlier group or tier of clusters."
        )

    def observe_attempt(self, result: str, schedule_type: str, seconds: float) -> None:
        """Count an attempt to schedule a binding, with its duration."""
        self.attempts.labels(result, schedule_type).inc()
        self.attempt_seconds.labels(result, schedule_type).observe(seconds)

    def count_incoming(self, why: Incoming) -> None:
        self.incoming.labels(why.value).inc()
