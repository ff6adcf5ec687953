"""
What the scheduler counts: under kube-scheduler's names where the meaning is the same, under ours otherwise.

Gauges are read when asked for, so that nothing is counted twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

LATENCY_BUCKETS = tuple(0.00002 * 2**i for i in range(20))  # 20 µs to 10 s
SLI_BUCKETS = tuple(0.01 * 2**i for i in range(16))  # 10 ms to 5 min
SCHEDULED, UNSCHEDULABLE, ERROR = "scheduled", "unschedulable", "error"

Reading = Callable[[], Iterable[tuple[tuple[str, ...], float]]]


class _Gauges(Collector):
    """Values that somebody else keeps, read when they are asked for."""

    def __init__(self) -> None:
        self.read: list[tuple[str, str, tuple[str, ...], Reading]] = []

    def collect(self) -> Iterable[GaugeMetricFamily]:
        for name, text, labels, reading in self.read:
            family = GaugeMetricFamily(name, text, labels=labels)
            for values, value in reading():
                family.add_metric(values, value)
            yield family


class Metrics:
    """One registry for one scheduler, so that several can live in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._gauges = _Gauges()
        self.registry.register(self._gauges)
        own = self.registry
        self.attempts = Counter(
            "scheduler_schedule_attempts", "Attempts to schedule pods, by result.", ["result", "profile"], registry=own
        )
        self.attempt_seconds = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency: from the decision to the bind.",
            ["result", "profile"],
            buckets=LATENCY_BUCKETS,
            registry=own,
        )
        self.algorithm_seconds = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Latency of the decision alone.",
            buckets=LATENCY_BUCKETS,
            registry=own,
        )
        self.sli_seconds = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "From when a pod could first be tried to its bind.",
            ["attempts"],
            buckets=SLI_BUCKETS,
            registry=own,
        )
        self.attempts_per_pod = Histogram(
            "scheduler_pod_scheduling_attempts",
            "Attempts until a pod was placed.",
            buckets=(1, 2, 4, 8, 16),
            registry=own,
        )
        self.preemption_attempts = Counter(
            "scheduler_preemption_attempts", "Preemption attempts in the cluster till now.", registry=own
        )
        self.preemption_victims = Histogram(
            "scheduler_preemption_victims", "Pods preempted at a time.", buckets=(1, 2, 4, 8, 16, 32, 64), registry=own
        )
        self.bind_failures = Counter(
            "bayplan_bind_failures", "Binds that did not happen, by cause.", ["cause"], registry=own
        )
        self.missed_requeues = Counter(
            "bayplan_missed_wakeups",
            "Pods that the sweep found room for and no event had woken: a bug each.",
            registry=own,
        )
        self.evictions = Counter(
            "bayplan_evictions",
            "Evictions for the sake of execution-time rules, by outcome.",
            ["outcome"],
            registry=own,
        )
        self.reviews = Histogram(
            "bayplan_admission_review_duration_seconds",
            "Reviews of the webhook, by path and answer.",
            ["path", "answer"],
            buckets=LATENCY_BUCKETS,
            registry=own,
        )
        self.loop_iterations = Histogram(
            "bayplan_loop_held_seconds",
            "Turns of the event loop: how long whatever else was due had to wait.",
            buckets=(0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1),
            registry=own,
        )
        self.undecodable_objects = Counter(
            "bayplan_undecodable_objects", "Objects that could not be read, by resource.", ["resource"], registry=own
        )

    def gauge(self, name: str, text: str, reading: Reading, labels: tuple[str, ...] = ()) -> None:
        """Offer values that somebody else keeps."""
        self._gauges.read.append((name, text, labels, reading))

    def text(self) -> bytes:
        return generate_latest(self.registry)
