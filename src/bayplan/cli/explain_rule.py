"""`bayplan explain-rule`: the meaning of every reason for rejecting a target, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli import commands, options
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console
from bayplan.errors import InputError

if TYPE_CHECKING:
    from bayplan.cli.reason_pages import ReasonPage


def pages() -> tuple[ReasonPage, ...]:
    """The page of every reason; imports the rules."""
    from bayplan.cli import reason_pages

    return reason_pages.all_pages()


def find(code: str) -> Sequence[ReasonPage]:
    """The pages for an id, a rule, a plugin or a message; an id has exactly one page."""
    text = code.strip()
    name = text.casefold()
    by_id = [page for page in pages() if page.has_id(name)]
    by_rule = [page for page in pages() if name in (page.rule.casefold(), page.plugin.casefold())]
    if by_id or by_rule:
        return by_id or by_rule
    by_text = [page for page in pages() if page.says(text)]
    # Without pages whose text is only the beginning of another match.
    return [page for page in by_text if not any(page.text in other.text for other in by_text if other is not page)]


def _complete(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    return [page.id for page in pages() if page.id.startswith(typed)]


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
    found = pages() if code is None else find(code)
    if not found:
        raise InputError(_unknown(str(code)))
    if output != "text":
        from bayplan.writing import versioned

        content = {"items": [msgspec.to_builtins(page) for page in found]}
        console.answer(versioned.written(versioned.document("ReasonList", content), output))
    elif code is None:
        console.answer(_list(found, console.table_width))
    else:
        console.answer("\n".join(_page(page) for page in found))
    return commands.EXIT_YES


def _unknown(code: str) -> str:
    names = [name for page in pages() for name in (page.id, page.rule, page.plugin)]
    near = difflib.get_close_matches(code, names, n=1)
    advice = f"did you mean {near[0]}?" if near else "`bayplan explain-rule` lists all reasons"
    return f"unknown reason {code!r}; {advice}"


def _list(pages: Sequence[ReasonPage], width: int | None) -> str:
    from bayplan.writing import tables

    rows = [(page.id, page.plugin, page.text) for page in pages]
    return tables.rendered(tables.Table(("CODE", "PLUGIN", "TEXT"), rows), width)


def _page(page: ReasonPage) -> str:
    import textwrap

    head = f"{page.id}\n  rule    {page.rule}\n  plugin  {page.plugin}\n  text    {page.text}\n"
    bodies = (("What it means", page.means), ("What to do", page.to_do))
    return head + "".join(f"\n{title}\n{textwrap.indent(textwrap.fill(body, 98), '  ')}\n" for title, body in bodies)
