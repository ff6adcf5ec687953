"""`bayplan simulate`: what happens to a cluster in the course of a timeline, and whether that is as expected."""

from __future__ import annotations

from typing import Any

import click

from bayplan.cli import commands, loading, options
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console

NOTABLE, ALL = "notable", "all"


class TimelineTime(click.ParamType[float]):
    """A time of a timeline, such as 90s, 12m or 1h30m."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds."""
        from bayplan.simulating import timeline_fields

        found = timeline_fields.parse_duration(value)
        if found is None:
            self.fail(f"{timeline_fields.EXPECTED_DURATION}, got {value!r}", param, ctx)
        return found


@commands.command(
    "simulate",
    summary=SUMMARIES["simulate"],
    examples=(
        "bayplan simulate --state cluster.json timeline.yaml",
        "bayplan simulate -f cluster/ timeline.yaml -o junit > report.xml",
        "bayplan simulate --context prod timeline.yaml --at 12m --at 30m",
        "bayplan simulate --state cluster.json timeline.yaml --compare weights.yaml",
    ),
    details=(
        "The scheduler, its queue, preemption, groups and the enforcement of rules are those of `bayplan run`; "
        "workload controllers, node lifecycle, taint eviction, disruption budgets and autoscalers follow the rules of "
        "kube-controller-manager. A clock that jumps drives them: a day takes seconds. The timeline says what happens "
        "(lose, recover, drain, scale, apply, load, ...) and what is expected. Nothing is written to a cluster. The "
        "same input, timeline and seed give the same answer. Exit code 0 if every expectation is met, 1 if not. "
        "Fleets cannot be simulated yet."
    ),
    groups=(options.INPUT, options.DECISIONS, options.ARRANGEMENT, options.CONSOLE),
    params=(
        commands.Argument(
            "timeline", type=click.Path(dir_okay=False), metavar="TIMELINE", explained="A timeline, in YAML or JSON."
        ),
        commands.Option(
            "--at",
            multiple=True,
            type=TimelineTime(),
            metavar="TIME",
            help="Also show the state of the cluster at this time. May be repeated.",
        ),
        commands.Option(
            "--events",
            type=click.Choice([NOTABLE, ALL]),
            default=NOTABLE,
            show_default=True,
            help="Which events are shown: with notable, those that every pod goes through are only counted.",
        ),
        commands.Option(
            "--compare",
            type=click.Path(dir_okay=False),
            metavar="FILE",
            help="Simulate a second time with another timeline, another KubeSchedulerConfiguration, or manifests that "
            "are applied at the beginning, and show both side by side.",
        ),
        options.output("table", "json", "yaml", "junit", "html"),
        options.EXIT_ZERO,
    ),
)
def simulate(
    *,
    timeline: str,
    at: tuple[float, ...],
    events: str,
    compare: str | None,
    output: str,
    exit_zero: bool,
    sources: options.InputOptions,
    decisions: options.DecisionOptions,
    arrangement: Any,
    console: Console,
) -> int:
    """Write what happened; exit code 1 if an expectation is not met."""
    from bayplan.library.simulation import SimulationRequest, SimulationRunner

    request = SimulationRequest(timeline=timeline, all_events=events == ALL, at=tuple(sorted(set(at))))
    materials = loading.materials(sources, decisions, console, is_asked_once=compare is None)
    with console.progress() as show:
        runner = SimulationRunner(materials, show)
        answer = runner.run(request) if compare is None else runner.compare(request, compare)
    console.answer(answer.to_text(output, width=console.table_width, headers=arrangement.headers))
    for line in (*answer.notes, *answer.summary):
        console.note(line)
    return commands.exit_code(answer.ok, exit_zero=exit_zero)
