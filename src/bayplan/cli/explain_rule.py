"""`bayplan explain-rule`: the page of every reason for refusing a target."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import click
import msgspec

from bayplan.cli import commands, options, outcomes, reason_pages
from bayplan.cli.console import Console
from bayplan.cli.reason_page import ReasonPage
from bayplan.errors import InputError


def _complete(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    return [page.id for page in reason_pages.PAGES if page.id.startswith(typed)]


@commands.command(
    "explain-rule",
    summary="Say what a reason means and what to do about it.",
    examples=(
        "bayplan explain-rule",
        "bayplan explain-rule pod-anti-affinity",
        "bayplan explain-rule PodTopologySpread",
        'bayplan explain-rule "node(s) had untolerated taint(s)"',
    ),
    details="CODE is one of our ids, the name of a scheduler plugin, or the text of a message. Without it, a list.",
    groups=(options.CONSOLE,),
    params=(
        commands.Argument(
            "code", required=False, shell_complete=_complete, explained="The reason; without it, a list."
        ),
        options.output("text", "json", "yaml"),
    ),
)
def explain_rule(code: str | None, output: str, console: Console) -> int:
    """Write the pages that the code stands for, or the list of all."""
    found = reason_pages.PAGES if code is None else reason_pages.find(code)
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
    return outcomes.YES


def _unknown(code: str) -> str:
    names = [name for page in reason_pages.PAGES for name in (page.id, page.rule, page.plugin)]
    near = difflib.get_close_matches(code, names, n=1)
    advice = f"did you mean {near[0]}?" if near else "`bayplan explain-rule` lists all"
    return f"no reason is called {code!r}; {advice}"


def _list(pages: Sequence[ReasonPage], width: int | None) -> str:
    from bayplan.writing import tables

    rows = [(page.id, page.plugin, page.text) for page in pages]
    return tables.rendered(tables.Table(("CODE", "PLUGIN", "TEXT"), rows), width)


def _page(page: ReasonPage) -> str:
    import textwrap

    head = f"{page.id}\n  rule    {page.rule}\n  plugin  {page.plugin}\n  text    {page.text}\n"
    bodies = (("What it means", page.means), ("What to do", page.to_do))
    return head + "".join(f"\n{title}\n{textwrap.indent(textwrap.fill(body, 98), '  ')}\n" for title, body in bodies)
