"""`bayplan explain-rule`: the meaning of every reason for rejecting a target, and what to do."""

from __future__ import annotations

import click

from bayplan.cli import commands, options
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console


def _complete(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    from bayplan.library import reason_pages

    return [page.id for page in reason_pages.all_pages() if page.id.startswith(typed)]


@commands.command(
    "explain-rule",
    summary=SUMMARIES["explain-rule"],
    examples=(
        "bayplan explain-rule",
        "bayplan explain-rule pod-anti-affinity",
        "bayplan explain-rule PodTopologySpread",
        'bayplan explain-rule "node(s) had untolerated taint(s)"',
    ),
    details=(
        "CODE is the id of a reason, a rule, a scheduler plugin, or the text of a scheduler message. Without CODE, all "
        "reasons are listed."
    ),
    groups=(options.CONSOLE,),
    params=(
        commands.Argument(
            "code",
            required=False,
            shell_complete=_complete,
            explained="The reason to explain; without it, all reasons are listed.",
        ),
        options.output("text", "json", "yaml"),
    ),
)
def explain_rule(code: str | None, output: str, console: Console) -> int:
    """Write the pages for the code, or the list of all reasons."""
    from bayplan.library import reasons

    found = reasons.explain_rule(code)
    chosen = "list" if code is None and output == "text" else output
    console.answer(found.to_text(chosen, width=console.table_width))
    return commands.EXIT_YES
