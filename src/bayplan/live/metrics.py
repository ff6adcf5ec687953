"""
The metrics of the scheduler: under kube-scheduler's names where the meaning is the same, else under names of ours.
What only rises is a counter, and its name ends in `_total`.

Values that another part keeps are read when the metrics are collected, so nothing is counted twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bayplan.live.events import EventRecorder
from bayplan.queueing.pending_pod import QueueStage
from bayplan.queueing.scheduling_queue import SchedulingQueue

LATENCY_BUCKETS = tuple(0.00002 * 2**i for i in range(20))  # 20 µs to 10 s
SLI_BUCKETS = tuple(0.01 * 2**i for i in range(16))  # 10 ms to 5 min
SCHEDULED, UNSCHEDULABLE, ERROR = "scheduled", "unschedulable", "error"
# Old name → new name. The old name is exported with the same value for one release.
DEPRECATED_NAMES = {
    "bayplan_sleepers_asked": "bayplan_requeue_evaluations_total",
    "bayplan_missed_wakeups_total": "bayplan_missed_requeues_total",
    "bayplan_events_dropped": "bayplan_events_dropped_total",
    "bayplan_watch_lists": "bayplan_watch_lists_total",
    "bayplan_watch_relists": "bayplan_watch_relists_total",
    "bayplan_watch_restarts": "bayplan_watch_restarts_total",
    "bayplan_watch_events": "bayplan_watch_events_total",
    "bayplan_audit_failures": "bayplan_audit_failures_total",
}

Reading = Callable[[], Iterable[tuple[tuple[str, ...], float]]]  # label values and value of each sample
_Family = type[GaugeMetricFamily] | type[CounterMetricFamily]


class _ReadValues(Collector):
    """Metrics whose values are read from another part on collection."""

    def __init__(self) -> None:
        self.sources: list[tuple[_Family, str, str, tuple[str, ...], Reading]] = []

    def collect(self) -> Iterable[Metric]:
        for family_type, name, text, labels, reading in self.sources:
            family = family_type(name, text, labels=labels)
            for values, value in reading():
                family.add_metric(values, value)
            yield family


class _WithDeprecatedNames(Collector):
    """A registry whose renamed metrics also appear under their deprecated names."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterable[Metric]:
        for family in self._registry.collect():
            yield family
            for old, new in DEPRECATED_NAMES.items():
                is_counter, base, new_base = (
                    old.endswith("_total"),
                    old.removesuffix("_total"),
                    new.removesuffix("_total"),
                )
                names = {new: old, f"{new_base}_created": f"{base}_created"} if is_counter else {new: old}
                samples = [one._replace(name=names[one.name]) for one in family.samples if one.name in names]
                if samples:
                    copy = Metric(base, f"Deprecated, use {new} instead.", "counter" if is_counter else "gauge")
                    copy.samples = samples
                    yield copy


class _Merged(Collector):
    """Several registries as one: of a metric that more than one of them has, each sample says whose it is."""

    def __init__(self, by_workloads: Mapping[str, CommonMetrics]) -> None:
        self._by_workloads = by_workloads

    def collect(self) -> Iterable[Metric]:
        found: dict[str, list[tuple[str, Metric]]] = {}
        for workloads, metrics in self._by_workloads.items():
            for family in _WithDeprecatedNames(metrics.registry).collect():
                found.setdefault(family.name, []).append((workloads, family))
        for name, families in found.items():
            merged = families[0][1]
            if len(families) > 1:
                merged = Metric(name, merged.documentation, merged.type)
                for workloads, family in families:
                    whose = {"workloads": workloads}
                    merged.samples += [one._replace(labels={**one.labels, **whose}) for one in family.samples]
            yield merged


def text_of_several(by_workloads: Mapping[str, CommonMetrics]) -> bytes:
    """Return the metrics of several schedulers in one process in the Prometheus text format, by what they schedule."""
    return generate_latest(_Merged(by_workloads))


class CommonMetrics:
    """What every scheduler measures, in a registry of its own: several schedulers may run in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._read_values = _ReadValues()
        self.registry.register(self._read_values)
        counter, histogram = partial(Counter, registry=self.registry), partial(Histogram, registry=self.registry)
        self.missed_requeues = counter(
            "bayplan_missed_requeues",
            "Number of schedulable pods that the periodic sweep found and no change had requeued; each is a bug.",
        )
        self.reviews = histogram(
            "bayplan_admission_review_duration_seconds",
            "Admission review latency in seconds, by path and answer.",
            ["path", "answer"],
            buckets=LATENCY_BUCKETS,
        )
        self.loop_iterations = histogram(
            "bayplan_loop_held_seconds",
            "Duration of each event loop iteration in seconds: other callbacks that are due wait this long.",
            buckets=(0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1),
        )
        self.evictions = counter(
            "bayplan_evictions",
            "Number of evictions requested to enforce execution-time rules, by outcome.",
            ["outcome"],
        )
        self.undecodable_objects = counter(
            "bayplan_undecodable_objects", "Number of objects that could not be decoded, by resource.", ["resource"]
        )

    def count_dropped_events(self, events: EventRecorder) -> None:
        """Add the number of events that were not written."""
        text = "Number of Events that were not written to the API server."
        self.counter("bayplan_events_dropped", text, lambda: [((), float(events.dropped))])

    def observe_queue(self, queue: SchedulingQueue[Any], noun: str) -> None:
        """Add what is in a queue; `noun` says of what."""
        self.gauge(
            f"scheduler_pending_{noun}s",
            f"Number of pending {noun}s, by the queue that holds them.",
            lambda: [((stage.value,), float(queue.sizes[stage])) for stage in QueueStage],
            ("queue",),
        )
        self.counter(
            "bayplan_requeue_evaluations",
            f"Number of evaluations made to decide whether an unschedulable {noun} is requeued.",
            lambda: [((), float(queue.n_evaluations))],
        )

    def gauge(self, name: str, text: str, reading: Reading, labels: tuple[str, ...] = ()) -> None:
        """Add a gauge whose values are read on collection."""
        self._read_values.sources.append((GaugeMetricFamily, name, text, labels, reading))

    def counter(self, name: str, text: str, reading: Reading, labels: tuple[str, ...] = ()) -> None:
        """Add a counter whose values are read on collection; it is exported as `name` with `_total`."""
        self._read_values.sources.append((CounterMetricFamily, name, text, labels, reading))

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(_WithDeprecatedNames(self.registry))


class Metrics(CommonMetrics):
    """The metrics of the scheduler of pods."""

    def __init__(self) -> None:
        super().__init__()
        counter, histogram = partial(Counter, registry=self.registry), partial(Histogram, registry=self.registry)
        self.attempts = counter(
            "scheduler_schedule_attempts", "Number of attempts to schedule pods, by the result.", ["result", "profile"]
        )
        self.attempt_seconds = histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds (scheduling algorithm + binding).",
            ["result", "profile"],
            buckets=LATENCY_BUCKETS,
        )
        self.algorithm_seconds = histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds.",
            buckets=LATENCY_BUCKETS,
        )
        self.sli_seconds = histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Latency in seconds from when a pod is first ready to be scheduled until it is bound.",
            ["attempts"],
            buckets=SLI_BUCKETS,
        )
        self.attempts_per_pod = histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            buckets=(1, 2, 4, 8, 16),
        )
        self.preemption_attempts = counter(
            "scheduler_preemption_attempts", "Total preemption attempts in the cluster till now."
        )
        self.preemption_victims = histogram(
            "scheduler_preemption_victims", "Number of selected preemption victims.", buckets=(1, 2, 4, 8, 16, 32, 64)
        )
        self.group_attempts = counter(
            "bayplan_group_attempts",
            "Number of attempts to place a group of pods as a whole, by the result.",
            ["result"],
        )
        self.bind_failures = counter(
            "bayplan_bind_failures", "Number of binds that did not succeed, by cause.", ["cause"]
        )
        # Looking up a metric by its labels takes as long as changing it, and every pod has the same few.
        self._attempts = cache(self.attempts.labels)
        self._attempt_seconds = cache(self.attempt_seconds.labels)
        self._sli_seconds = cache(self.sli_seconds.labels)

    def observe_attempt(self, result: str, profile: str, seconds: float) -> None:
        """Count an attempt to schedule a pod, with its duration."""
        self._attempts(result, profile).inc()
        self._attempt_seconds(result, profile).observe(seconds)

    def observe_scheduled_pod(self, attempts: int, seconds: float) -> None:
        """Count a pod that is bound after so many attempts, and the seconds since it could first be tried."""
        self._sli_seconds(str(min(attempts, 16))).observe(seconds)
        self.attempts_per_pod.observe(attempts)
