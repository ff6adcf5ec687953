"""Decisions of a recording, repeated from the state that it holds for each of them."""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.errors import Fault, InputError
from bayplan.library import arguments
from bayplan.library.answers import DOCUMENT_FORMATS, Answer
from bayplan.library.explanation import Explanation, explanation_of
from bayplan.library.inputs import Show, shows_nothing

if TYPE_CHECKING:
    from bayplan.assigning.cluster_ranking import FleetEngine
    from bayplan.engine.engine import Engine
    from bayplan.writing.chosen_output import Arrangement
    from bayplan.writing.recordings import RecordedDecision, Recording


class ReplayedDecision(msgspec.Struct, frozen=True):
    """
    One decision of a recording, by its number; `again` is what the repeated decision chooses.

    `workload` is NAMESPACE/NAME of a pod or a binding, `target` its node, or its clusters with their replicas; empty if
    it was unschedulable, with the `message`. `at` is the time of the decision.
    """

    number: int
    at: str
    workload: str
    target: str
    message: str
    again: str

    @property
    def same(self) -> bool:
        """Whether the repeated decision chooses the same."""
        return self.again == self.target


class Replay(Answer, msgspec.Struct, frozen=True, eq=False):
    """The answer of `replay`: every decision, repeated. Iterating gives them."""

    decisions: tuple[ReplayedDecision, ...]
    _formats = ("table", *DOCUMENT_FORMATS)

    def __iter__(self) -> Iterator[ReplayedDecision]:
        return iter(self.decisions)

    def __len__(self) -> int:
        return len(self.decisions)

    @property
    def ok(self) -> bool:
        """Whether every decision chooses the same again."""
        return all(one.same for one in self.decisions)

    @property
    def summary(self) -> tuple[str, ...]:
        """How many decisions differ, in a line."""
        n_different = sum(not one.same for one in self.decisions)
        return (f"{len(self.decisions)} decisions, {n_different} of them differ when repeated",)

    def _document(self) -> dict[str, Any]:
        from bayplan.writing import versioned

        return versioned.document("Replay", {"decisions": list(self._rows())})

    def _rows(self) -> Iterable[Mapping[str, Any]]:
        for one in self.decisions:
            yield {
                "decision": one.number,
                "at": one.at,
                "pod": one.workload,
                "node": one.target,
                "message": one.message,
                "again": one.again,
            }

    def _text(self, _: str, width: int | None, __: Arrangement) -> str:
        from bayplan.writing import tables

        cells = [[str(one.number), one.at[:19], one.workload, _chosen(one), one.message] for one in self.decisions]
        return tables.rendered(tables.Table(("#", "TIME", "POD", "NODE", "MESSAGE"), cells), width)

    def _summary(self) -> str:
        return self.summary[0]


def _chosen(one: ReplayedDecision) -> str:
    target = one.target or "<none>"
    return target if one.same else f"{target} (now {one.again or '<none>'})"


def replay(path: str | os.PathLike[str], *, workload: str = "") -> Replay:
    """
    Repeat the decisions of a recording of `bayplan run --record`; each has the state that the scheduler had.

    With a `workload`, as NAMESPACE/NAME of a pod or a binding, only decisions about it.
    """
    return replayed(os.fspath(path), workload, shows_nothing)


def replayed(path: str, workload: str, show: Show) -> Replay:
    """The same, showing progress."""
    with _opened(path) as recording:
        engines, found = _Engines(recording), list[ReplayedDecision]()
        for decision in recording.decisions():
            show(lambda: f"replaying: {len(found)} decisions")
            if workload in ("", decision.workload.key):
                found.append(_repeated(decision, recording, engines))
    return Replay(tuple(found))


def explain_decision(path: str | os.PathLike[str], number: int) -> Explanation:
    """Explain one decision of a recording, by its number, in the state that the scheduler had."""
    from bayplan.explaining import explanation
    from bayplan.queueing import nominations

    arguments.check_count("number", number)
    with _opened(os.fspath(path)) as recording:
        engines = _Engines(recording)
        for decision in recording.decisions():
            if decision.decision != number:
                continue
            workload = decision.workload
            if workload.binding is not None:
                return explanation_of(explanation.explain_binding(workload, engines.of_fleet()))
            others = [(other, target) for other, target in decision.nominated if other.key != workload.key]
            with nominations.with_nominated_pods(others, recording.index):
                return explanation_of(explanation.explain(workload, engines.of_pods(workload.scheduler_name)))
    raise InputError(Fault(f"the recording has no decision {number}", file=os.fspath(path)))


@contextlib.contextmanager
def _opened(path: str) -> Iterator[Recording]:
    from bayplan.writing.recordings import Recording

    try:
        file = pathlib.Path(path).open("rb")  # noqa: SIM115 - closed by the block below
    except OSError as error:
        raise InputError(Fault(f"cannot be read: {error.strerror or error}", file=path)) from None
    with file:
        yield Recording(file, path)


class _Engines:
    """The engines over the index of a recording; it may begin again with another index, which needs others."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._index = recording.index
        self._by_scheduler: dict[str, Engine] = {}
        self._of_fleet: FleetEngine | None = None

    def of_pods(self, scheduler_name: str) -> Engine:
        from bayplan.engine.engine import Engine
        from bayplan.reading import scheduler_config
        from bayplan.rules import profiles

        self._drop_stale()
        if scheduler_name not in self._by_scheduler:
            profile = scheduler_config.profile_of(self._recording.header.scheduler, scheduler_name)
            self._by_scheduler[scheduler_name] = Engine(self._index, profiles.pod_rules(profile))
        return self._by_scheduler[scheduler_name]

    def of_fleet(self) -> FleetEngine:
        from bayplan.assigning.cluster_ranking import FleetEngine
        from bayplan.rules import fleet_profile

        self._drop_stale()
        if self._of_fleet is None:
            self._of_fleet = FleetEngine(self._index, fleet_profile.fleet_rules())
        return self._of_fleet

    def _drop_stale(self) -> None:
        if self._index is not self._recording.index:
            self._index, self._of_fleet = self._recording.index, None
            self._by_scheduler.clear()


def _repeated(decision: RecordedDecision, recording: Recording, engines: _Engines) -> ReplayedDecision:
    again = (_clusters_again if decision.workload.binding is not None else _node_again)(decision, recording, engines)
    key, target, message = decision.workload.key, decision.node, decision.message
    return ReplayedDecision(decision.decision, decision.at, key, target, message, again)


def _clusters_again(decision: RecordedDecision, _: Recording, engines: _Engines) -> str:
    from bayplan import schedule_binding
    from bayplan.queueing.binding_evaluator import BindingEvaluator

    found = BindingEvaluator(engines.of_fleet(), lambda: 0.0).decision(decision.workload)
    return schedule_binding.listed(found.shares)


def _node_again(decision: RecordedDecision, recording: Recording, engines: _Engines) -> str:
    from bayplan.queueing import deciding
    from bayplan.queueing.nominations import Nominations

    nominated, workload = Nominations(), decision.workload
    for other, target in decision.nominated:
        nominated.nominate(other, target)
    choice = deciding.choose(workload, engines.of_pods(workload.scheduler_name), nominated)
    return recording.index.slots.at(choice.slot).name if choice.slot >= 0 else ""
