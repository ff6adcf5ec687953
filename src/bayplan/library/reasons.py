"""The reasons for rejecting a node or a cluster, as a value."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.errors import InputError
from bayplan.library import arguments, reason_pages
from bayplan.library.answers import DOCUMENT_FORMATS, Answer
from bayplan.library.reason_pages import ReasonPage

if TYPE_CHECKING:
    from bayplan.writing.chosen_output import Arrangement


class Reasons(Answer, msgspec.Struct, frozen=True, eq=False):
    """
    The answer of `explain_rule`: the page of each reason. Iterating gives them.

    The text "list" has a line for each, "text" the whole pages.
    """

    pages: tuple[ReasonPage, ...]
    _formats = ("text", "list", *DOCUMENT_FORMATS)

    def __iter__(self) -> Iterator[ReasonPage]:
        return iter(self.pages)

    def __len__(self) -> int:
        return len(self.pages)

    def _document(self) -> dict[str, Any]:
        from bayplan.writing import versioned

        return versioned.document("ReasonList", {"items": [msgspec.to_builtins(page) for page in self.pages]})

    def _text(self, output: str, width: int | None, _: Arrangement) -> str:
        return "\n".join(map(_page, self.pages)) if output == "text" else _list(self.pages, width)

    def _summary(self) -> str:
        return ", ".join(page.id for page in self.pages)


def explain_rule(code: str | None = None) -> Reasons:
    """
    What a reason for rejecting a node or a cluster means, and what to do about it.

    `code` is the id of a reason, a rule, a plugin of the scheduler, or the text of one of its messages; without it, all
    reasons. An unknown one is an InputError.
    """
    if code is not None:
        arguments.check_is("code", code, str)
    found = reason_pages.all_pages() if code is None else reason_pages.find(code)
    if not found:
        raise InputError(_unknown(str(code)))
    return Reasons(tuple(found))


def _unknown(code: str) -> str:
    names = [name for page in reason_pages.all_pages() for name in (page.id, page.rule, page.plugin) if name]
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
