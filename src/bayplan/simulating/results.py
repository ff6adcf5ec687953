"""
The result of a simulation, as values and as the document of `-o json`. Knows nothing of how it is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bayplan.controllers.desired_state import ObjectKey
from bayplan.simulating.cluster_api import MOVED
from bayplan.simulating.event_log import SimulatedEvent
from bayplan.simulating.judging import Verdict
from bayplan.simulating.simulation import Simulation


class WorkloadTotals(msgspec.Struct, frozen=True):
    """What became of one workload, in minutes: of pods pending, of replicas missing, and without any replica ready."""

    kind: str
    namespace: str
    name: str
    pending: float
    missing: float
    without_any: float
    evictions: int


class Totals(msgspec.Struct, frozen=True):
    """
    What a simulation adds up to.

    `pending` is in pod-minutes, `violations` in minutes by rule, and `n_violations` counts them. `evictions` counts by
    what made pods leave.
    """

    pending: float
    violations: Mapping[str, float]
    n_violations: Mapping[str, int]
    evictions: Mapping[str, int]
    moves: int
    workloads: tuple[WorkloadTotals, ...]


class SimulationResult(msgspec.Struct, frozen=True):
    """Everything that is known at the end. `states` are at the times that were asked for."""

    about: str
    seconds: float
    seed: str
    events: tuple[SimulatedEvent, ...]
    n_events_left_out: int
    counts: Mapping[str, int]
    verdicts: tuple[Verdict, ...]
    totals: Totals
    states: tuple[tuple[float, Mapping[str, Any]], ...]
    remarks: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether every expectation is met."""
        return all(verdict.met for verdict in self.verdicts)


def result_of(simulation: Simulation, seed: str) -> SimulationResult:
    """The result of a simulation that has run."""
    events, timeline = simulation.events, simulation.timeline
    return SimulationResult(
        about=timeline.about,
        seconds=timeline.lasts,
        seed=seed,
        events=tuple(events.events),
        n_events_left_out=events.n_left_out,
        counts=dict(sorted(events.counts.items())),
        verdicts=tuple(sorted(simulation.judge.verdicts, key=lambda one: (one.at, one.line, one.path))),
        totals=_totals(simulation),
        states=tuple(simulation.snapshots),
        remarks=tuple(events.remarks),
    )


def _totals(simulation: Simulation) -> Totals:
    measures, evictions = simulation.measures, simulation.api.evictions
    pending = measures.pending.sums()
    by_root: dict[ObjectKey | None, int] = {}
    by_cause: dict[str, int] = {}
    for (cause, root), n in evictions.items():
        by_cause[cause] = by_cause.get(cause, 0) + n
        by_root[root] = by_root.get(root, 0) + n
    workloads = [
        WorkloadTotals(
            kind=key.kind,
            namespace=key.namespace,
            name=key.name,
            pending=_minutes(pending.get(key, 0.0)),
            missing=_minutes(use.missing_seconds),
            without_any=_minutes(use.without_any_seconds),
            evictions=by_root.get(key, 0),
        )
        for key, use in measures.totals_of_workloads()
    ]
    return Totals(
        pending=_minutes(sum(pending.values())),
        violations={rule: _minutes(seconds) for rule, seconds in sorted(measures.violations.sums().items())},
        n_violations=dict(sorted(measures.violation_count.items())),
        evictions=dict(sorted(by_cause.items())),
        moves=by_cause.get(MOVED, 0),
        workloads=tuple(workloads),
    )


def _minutes(seconds: float) -> float:
    return round(seconds / 60, 2)


def content(result: SimulationResult) -> dict[str, Any]:
    """The document without its head; all times are in seconds from the beginning."""
    totals = result.totals
    return {
        "about": result.about,
        "seed": result.seed,
        "seconds": result.seconds,
        "ok": result.ok,
        "expectations": [
            {"at": one.at, "line": one.line, "expected": one.text, "met": one.met, "found": one.found}
            for one in result.verdicts
        ],
        "events": [
            {"at": one.at, "object": one.subject, "reason": one.reason, "note": one.note} for one in result.events
        ],
        "eventsLeftOut": result.n_events_left_out,
        "eventCounts": dict(result.counts),
        "totals": {
            "pendingPodMinutes": totals.pending,
            "violationMinutes": dict(totals.violations),
            "violations": dict(totals.n_violations),
            "evictions": dict(totals.evictions),
            "moves": totals.moves,
            "workloads": [
                {
                    "kind": one.kind,
                    "namespace": one.namespace,
                    "name": one.name,
                    "pendingPodMinutes": one.pending,
                    "unavailableReplicaMinutes": one.missing,
                    "minutesWithoutReplica": one.without_any,
                    "evictions": one.evictions,
                }
                for one in totals.workloads
            ],
        },
        "states": [{"at": at, **state} for at, state in result.states],
        "notes": list(result.remarks),
    }
