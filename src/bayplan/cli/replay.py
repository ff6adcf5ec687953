"""`bayplan replay`: repeat the decisions of a recording, and explain any of them."""

from __future__ import annotations

import click

from bayplan.cli import commands, options
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console


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
    from bayplan.library import replays

    if explain is not None:
        found = replays.explain_decision(file, explain)
        console.answer(found.to_text("text" if output == "table" else output))
        return commands.EXIT_YES
    with console.progress() as show:
        answer = replays.replayed(file, pod or "", show)
    console.answer(answer.to_text(output, width=console.table_width))
    for line in answer.summary:
        console.note(line)
    return commands.exit_code(answer.ok, exit_zero=exit_zero)
