"""`bayplan replay`: repeat the decisions of a recording, and explain any of them."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli import commands, options
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console
from bayplan.errors import Fault, InputError

if TYPE_CHECKING:
    from bayplan.assigning.cluster_ranking import FleetEngine
    from bayplan.engine.engine import Engine
    from bayplan.writing.recordings import RecordedDecision, Recording


class ReplayRow(msgspec.Struct, rename="camel"):
    """
    One decision of the recording; `again` is what the repeated decision chooses.

    Of a binding, `pod` is its name and `node` are the clusters with their replicas.
    """

    decision: int
    at: str
    pod: str
    node: str
    message: str
    again: str


@commands.command(
    "replay",
    summary=SUMMARIES["replay"],
    examples=(
        "bayplan replay decisions.jsonl",
        "bayplan replay decisions.jsonl --pod shop/web-4",
        "bayplan replay decisions.jsonl --explain 17",
    ),
    details=(
        "Every decision is repeated from the state that the recording holds for it. Exit code 0 if every decision "
        "chooses the same node, or the same clusters, again, 1 if one does not."
    ),
    groups=(options.CONSOLE,),
    params=(
        commands.Argument(
            "file", type=click.Path(dir_okay=False), metavar="FILE", explained="A recording of `run --record`."
        ),
        commands.Option(
            "--explain", type=click.IntRange(min=1), metavar="N", help="Explain the decision with this number."
        ),
        commands.Option("--pod", metavar="NAMESPACE/NAME", help="Only decisions about this pod or binding."),
        options.output("table", "json", "yaml"),
        options.EXIT_ZERO,
    ),
)
def replay(*, file: str, explain: int | None, pod: str | None, output: str, exit_zero: bool, console: Console) -> int:
    """Write the decisions; exit code 1 if one differs when repeated."""
    from bayplan.writing.recordings import Recording

    try:
        opened = pathlib.Path(file).open("rb")  # noqa: SIM115 - closed by the block below
    except OSError as error:
        raise InputError(Fault(f"cannot be read: {error.strerror or error}", file=file)) from None
    with opened:
        recording = Recording(opened, file)
        if explain is not None:
            console.answer(_explained(recording, explain, output, file))
            return commands.EXIT_YES
        with console.progress() as show:
            rows: list[ReplayRow] = []
            for decision in recording.decisions():
                show(lambda: f"replaying: {len(rows)} decisions")
                if pod is None or decision.workload.key == pod:
                    rows.append(_repeated(decision, recording))
    console.answer(_written(rows, output, console.table_width))
    differ = [row for row in rows if row.again != row.node]
    console.note(f"{len(rows)} decisions, {len(differ)} of them differ when repeated")
    return commands.exit_code(not differ, exit_zero=exit_zero)


def _engine(recording: Recording, name: str) -> Engine:
    from bayplan.engine.engine import Engine
    from bayplan.reading import scheduler_config
    from bayplan.rules import profiles

    known: dict[str, Engine] = click.get_current_context().meta.setdefault("bayplan.replay.engines", {})
    if name not in known:
        profile = scheduler_config.profile_of(recording.header.scheduler, name)
        known[name] = Engine(recording.index, profiles.pod_rules(profile))
    return known[name]


def _fleet_engine(recording: Recording) -> FleetEngine:
    from bayplan.assigning.cluster_ranking import FleetEngine
    from bayplan.rules import profiles

    known: dict[int, FleetEngine] = click.get_current_context().meta.setdefault("bayplan.replay.fleet_engines", {})
    if id(recording.index) not in known:
        known[id(recording.index)] = FleetEngine(recording.index, profiles.fleet_rules())
    return known[id(recording.index)]


def _repeated(decision: RecordedDecision, recording: Recording) -> ReplayRow:
    again = (_clusters_again if decision.workload.binding is not None else _node_again)(decision, recording)
    node, message = decision.node, decision.message
    return ReplayRow(decision.decision, decision.at, decision.workload.key, node, message, again)


def _clusters_again(decision: RecordedDecision, recording: Recording) -> str:
    from bayplan import schedule_binding
    from bayplan.queueing.binding_evaluator import BindingEvaluator

    found = BindingEvaluator(_fleet_engine(recording)).decision(decision.workload)
    return schedule_binding.listed(found.shares)


def _node_again(decision: RecordedDecision, recording: Recording) -> str:
    from bayplan.queueing import deciding
    from bayplan.queueing.nominations import Nominations

    nominated, workload = Nominations(), decision.workload
    for other, target in decision.nominated:
        nominated.nominate(other, target)
    choice = deciding.choose(workload, _engine(recording, workload.scheduler_name), nominated)
    return recording.index.slots.at(choice.slot).name if choice.slot >= 0 else ""


def _explained(recording: Recording, number: int, output: str, file: str) -> str:
    from bayplan.explaining.explanation import explain, explain_binding
    from bayplan.queueing import nominations
    from bayplan.writing import explanations, versioned

    for decision in recording.decisions():
        if decision.decision == number:
            workload = decision.workload
            if workload.binding is not None:
                found = explain_binding(workload, _fleet_engine(recording))
            else:
                others = [(other, target) for other, target in decision.nominated if other.key != workload.key]
                with nominations.with_nominated_pods(others, recording.index):
                    found = explain(workload, _engine(recording, workload.scheduler_name))
            if output in ("json", "yaml"):
                return versioned.written(explanations.document(found), output)
            return explanations.text(found)
    raise InputError(Fault(f"the recording has no decision {number}", file=file))


def _written(rows: Sequence[ReplayRow], output: str, width: int | None) -> str:
    from bayplan.writing import tables, versioned

    if output in ("json", "yaml"):
        content = {"decisions": [msgspec.to_builtins(row) for row in rows]}
        return versioned.written(versioned.document("Replay", content), output)
    cells = [[str(row.decision), row.at[:19], row.pod, _node(row), row.message] for row in rows]
    return tables.rendered(tables.Table(("#", "TIME", "POD", "NODE", "MESSAGE"), cells), width)


def _node(row: ReplayRow) -> str:
    node = row.node or "<none>"
    return node if row.again == row.node else f"{node} (now {row.again or '<none>'})"
