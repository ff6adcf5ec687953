"""Simulations of a cluster: what would happen to it in the course of a timeline, and whether that is as expected."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.errors import ArgumentError, InputError
from bayplan.library import arguments
from bayplan.library import settings as deciding
from bayplan.library.answers import DOCUMENT_FORMATS, Answer, frozen
from bayplan.library.inputs import Show, outside_of_event_loops, shows_nothing, sources_of

if TYPE_CHECKING:
    from bayplan.library.inputs import Materials
    from bayplan.library.settings import Settings
    from bayplan.simulating.results import SimulationResult
    from bayplan.simulating.timeline import AppliedObject, Timeline
    from bayplan.wire.pods import Pod
    from bayplan.writing.chosen_output import Arrangement

WrittenTimeline = str | os.PathLike[str] | Mapping[str, Any]
_FORMATS = ("table", *DOCUMENT_FORMATS, "junit", "html")
_OPENING = "reading the timeline"


class JudgedExpectation(msgspec.Struct, frozen=True):
    """One expectation: when it was judged, whether it was met, and what was found. `line` is its place in the file."""

    at: float
    expected: str
    met: bool
    found: str
    line: int


class TimelineEvent(msgspec.Struct, frozen=True):
    """What happened to one object; `at` is in seconds from the beginning."""

    at: float
    object: str
    reason: str
    note: str


class WorkloadOutcome(msgspec.Struct, frozen=True):
    """
    What became of one workload, in minutes.

    `pending` adds up the minutes of its pending pods, `unavailable` those of missing replicas; in `without_replica`
    none was ready.
    """

    kind: str
    namespace: str
    name: str
    pending: float
    unavailable: float
    without_replica: float
    evictions: int


class ClusterMoment(msgspec.Struct, frozen=True):
    """The cluster at one time: the pods of each node, the nodes that are not ready, and the pods that wait."""

    at: float
    pods: Mapping[str, tuple[str, ...]]
    not_ready: tuple[str, ...]
    pending: tuple[str, ...]


class SimulationRun(Answer, msgspec.Struct, frozen=True, eq=False):
    """
    The answer of `simulate`: what happened, in order, and the expectations. Iterating gives the expectations.

    `seconds` is how long the timeline lasts. `evictions` counts by cause, `violation_minutes` adds up by rule.
    """

    about: str
    seconds: float
    expectations: tuple[JudgedExpectation, ...]
    events: tuple[TimelineEvent, ...]
    states: tuple[ClusterMoment, ...]
    pending_pod_minutes: float
    violation_minutes: Mapping[str, float]
    evictions: Mapping[str, int]
    workloads: tuple[WorkloadOutcome, ...]
    notes: tuple[str, ...]
    _result: SimulationResult
    _formats = _FORMATS

    def __iter__(self) -> Iterator[JudgedExpectation]:
        return iter(self.expectations)

    def __len__(self) -> int:
        return len(self.expectations)

    @property
    def ok(self) -> bool:
        """Whether every expectation is met."""
        return all(one.met for one in self.expectations)

    @property
    def summary(self) -> tuple[str, ...]:
        """How many expectations are met, in a line."""
        from bayplan.simulating import reports

        return (reports.summary(self._result),)

    def _document(self) -> dict[str, Any]:
        from bayplan.simulating import results
        from bayplan.writing import versioned

        return versioned.document("Simulation", results.content(self._result))

    def _rows(self) -> Iterable[Mapping[str, Any]]:
        events: list[Mapping[str, Any]] = self.to_dict()["events"]
        return events

    def _text(self, output: str, width: int | None, arrangement: Arrangement) -> str:
        from bayplan.simulating import reports

        if output == "junit":
            return reports.junit([("", self._result)])
        if output == "html":
            return reports.html(self.about or "Simulation", reports.sections(self._result))
        return reports.text(self._result, width, headers=arrangement.headers)

    def _summary(self) -> str:
        return "; ".join(self.summary)


class ComparedRuns(Answer, msgspec.Struct, frozen=True, eq=False):
    """Two simulations side by side: the same cluster with two configurations, two timelines or two policies."""

    first: SimulationRun
    second: SimulationRun
    _formats = _FORMATS

    @property
    def ok(self) -> bool:
        """Whether every expectation of both is met."""
        return self.first.ok and self.second.ok

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of both, each once."""
        return tuple(dict.fromkeys((*self.first.notes, *self.second.notes)))

    @property
    def summary(self) -> tuple[str, ...]:
        """A line for each."""
        return (f"first: {self.first.summary[0]}", f"second: {self.second.summary[0]}")

    def _results(self) -> tuple[SimulationResult, SimulationResult]:
        return self.first._result, self.second._result  # noqa: SLF001 - of the same module

    def _document(self) -> dict[str, Any]:
        from bayplan.simulating import results
        from bayplan.writing import versioned

        first, second = map(results.content, self._results())
        return versioned.document("SimulationComparison", {"ok": self.ok, "first": first, "second": second})

    def _rows(self) -> Iterable[Mapping[str, Any]]:
        from bayplan.simulating import reports

        for _, table in reports.comparison(*self._results())[:1]:
            for row in table.rows:
                yield dict(zip(table.columns, row, strict=True))

    def _text(self, output: str, width: int | None, arrangement: Arrangement) -> str:
        from bayplan.simulating import reports
        from bayplan.writing import tables

        if output == "junit":
            return reports.junit(list(zip((reports.FIRST, reports.SECOND), self._results(), strict=True)))
        found = reports.comparison(*self._results())
        if output == "html":
            return reports.html("Two simulations", found)
        shown = [table for _, table in found if table.rows]
        return "\n".join(tables.rendered(table, width, headers=arrangement.headers) for table in shown)

    def _summary(self) -> str:
        return "; ".join(self.summary)


class SimulationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is simulated, whether with the events that every pod goes through, and when the state is asked for."""

    timeline: WrittenTimeline
    all_events: bool = False
    at: tuple[float, ...] = ()


class SimulationRunner:
    """Simulates timelines on one state, which is read for each: a simulation uses it up."""

    def __init__(self, materials: Materials, show: Show = shows_nothing) -> None:
        self._materials, self._show = materials, show

    def run(self, request: SimulationRequest) -> SimulationRun:
        """One simulation."""
        return self._simulate(request, _read_timeline(request.timeline), self._materials.spec.settings, ())

    def compare(self, request: SimulationRequest, other: WrittenTimeline) -> ComparedRuns:
        """The simulation, and another with a timeline, a scheduler configuration or manifests of its own."""
        timeline, settings = _read_timeline(request.timeline), self._materials.spec.settings
        second = _Other.read(other)
        first_run = self._simulate(request, timeline, settings, ())
        scheduler = settings
        if second.scheduler is not None:
            scheduler = msgspec.structs.replace(settings, scheduler=second.scheduler, scheduler_file=second.name)
        further = second.objects
        return ComparedRuns(first_run, self._simulate(request, second.timeline or timeline, scheduler, further))

    def _simulate(
        self, request: SimulationRequest, timeline: Timeline, settings: Settings, further: tuple[AppliedObject, ...]
    ) -> SimulationRun:
        from bayplan.simulating import initial_state, results
        from bayplan.simulating.simulation import Simulation, SimulationSettings
        from bayplan.simulating.timeline_fields import written_duration

        profiles = {name: deciding.rules(settings, name) for name in sorted(deciding.schedulers(settings))}
        inputs, pods, applied, notes = self._read()
        if inputs.clusters:
            raise ArgumentError("the input is a fleet: only clusters of nodes and pods can be simulated")
        state = initial_state.of(inputs, pods, profiles)
        seed = settings.seed or timeline.seed
        for at in request.at:
            if at > timeline.lasts:
                raise ArgumentError(f"the timeline lasts {written_duration(timeline.lasts)}", argument="at")
        simulation = Simulation(
            state.objects,
            state.admission,
            msgspec.structs.replace(timeline, seed=seed),
            SimulationSettings(
                semantics=deciding.semantics_of(settings),
                seed=seed,
                profiles=profiles,
                with_routine_events=request.all_events,
                snapshots_at=request.at,
            ),
            applied=(*applied, *further),
            progress=lambda now: self._show(
                lambda: f"simulating: {written_duration(int(now))} of {written_duration(timeline.lasts)}"
            ),
        )
        for remark in state.remarks:
            simulation.events.remark(remark)
        with outside_of_event_loops() as run:
            run(simulation.run)
        return _run_of(results.result_of(simulation, seed), (*notes, *inputs.hints, *inputs.state_notes()))

    def _read(self) -> tuple[Any, list[Pod], tuple[AppliedObject, ...], list[str]]:
        """What runs, its pods as written, and what is applied on it at the beginning."""
        from bayplan.library.arguments import Given
        from bayplan.simulating import applied_manifests
        from bayplan.wire import kinds

        spec, pods = self._materials.spec, list[Any]()
        applied: tuple[AppliedObject, ...] = ()
        materials = self._materials
        if spec.has_state and spec.change:
            materials = materials.about(msgspec.structs.replace(spec, change=Given()))
            paths, written = list(spec.change.paths), sources_of(spec.change.lists)
            options = {
                "recursive": spec.change.recursive,
                "stdin": self._materials.stdin(),
                "disk": self._materials.disk(),
            }
            applied = applied_manifests.read(paths, written, spec.namespace, **options)
        inputs, _, notes = materials.read(self._show, sinks={kinds.POD: pods.append})
        return inputs, pods, applied, notes


class _Other(msgspec.Struct, frozen=True):
    """What the second of two simulations has of its own."""

    name: str
    timeline: Timeline | None = None
    scheduler: Mapping[str, Any] | None = None
    objects: tuple[AppliedObject, ...] = ()

    @classmethod
    def read(cls, written: WrittenTimeline) -> _Other:
        """A file says by its kind what it is."""
        from bayplan.reading import files
        from bayplan.reading.documents import Document
        from bayplan.simulating import applied_manifests, timeline_reader

        if isinstance(written, Mapping):
            return cls("compare", _read_timeline(written))
        path = os.fspath(written)
        source = _source(path)
        first = next(iter(files.documents_of(source)), None)
        if isinstance(first, Document) and first.kind == "KubeSchedulerConfiguration":
            return cls(path, scheduler=first.locate().root)
        if isinstance(first, Document) and (first.kind == timeline_reader.KIND or "steps" in first.locate().root):
            return cls(path, _read_timeline(path))
        return cls(path, objects=applied_manifests.read([path], [], "default"))


def _source(path: str) -> Any:
    import sys

    from bayplan.errors import Fault
    from bayplan.reading import files

    source = files.open_source(path, sys.stdin.buffer)
    if isinstance(source, Fault):
        raise InputError(source)
    return source


def _read_timeline(written: WrittenTimeline) -> Timeline:
    from bayplan.reading.documents import Source
    from bayplan.simulating import timeline_reader

    if isinstance(written, Mapping):
        source = Source("timeline", arguments.encoded(written))
        return timeline_reader.read_source(source, pathlib.Path())
    return timeline_reader.read(os.fspath(written))


def _run_of(result: SimulationResult, notes: Iterable[str]) -> SimulationRun:
    totals = result.totals
    left_out = [f"{result.n_events_left_out} more events are left out"] if result.n_events_left_out else []
    return SimulationRun(
        about=result.about,
        seconds=result.seconds,
        expectations=tuple(JudgedExpectation(v.at, v.text, v.met, v.found, v.line) for v in result.verdicts),
        events=tuple(TimelineEvent(e.at, e.subject, e.reason, e.note) for e in result.events),
        states=tuple(_moment(at, state) for at, state in result.states),
        pending_pod_minutes=totals.pending,
        violation_minutes=frozen(dict(totals.violations)),
        evictions=frozen(dict(totals.evictions)),
        workloads=tuple(
            WorkloadOutcome(w.kind, w.namespace, w.name, w.pending, w.missing, w.without_any, w.evictions)
            for w in totals.workloads
        ),
        notes=tuple(dict.fromkeys((*notes, *result.remarks, *left_out))),
        _result=result,
    )


def _moment(at: float, state: Mapping[str, Any]) -> ClusterMoment:
    nodes = state["nodes"]
    return ClusterMoment(
        at=at,
        pods=frozen({name: tuple(node["pods"]) for name, node in nodes.items()}),
        not_ready=tuple(name for name, node in nodes.items() if not node["ready"]),
        pending=tuple(state["pending"]),
    )
