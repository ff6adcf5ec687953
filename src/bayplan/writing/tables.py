"""
Tables as text, plain or drawn by Rich for a terminal, and names and messages that are safe to print.

Names, labels and messages of objects can hold any character, escape sequences included. Every cell passes `printable`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from bayplan.model.workloads import Workload

EMPTY_CELL = "<none>"  # as kubectl prints it
_GAP = "  "
# CSI and OSC sequences as a whole, so that no printable rest such as `[31m` remains.
_ESCAPE_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|\x1b.?"
)
_SPACES = re.compile(r"[\t\r\n\v\f\u2028\u2029]+")
_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


class Table(msgspec.Struct, frozen=True):
    """`styles` has one Rich style per row, empty for none."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    styles: Sequence[str] = ()


def rendered(table: Table, width: int | None, *, headers: bool = True) -> str:
    """
    The table drawn for a terminal of `width` columns, or plain if that is None.

    Plain is aligned columns as kubectl prints them: no lines, nothing cut, nothing wrapped.
    """
    if width is not None:
        return _drawn(table, width, headers=headers)
    cells = [
        *([list(table.columns)] if headers else []),
        *([printable(cell) or EMPTY_CELL for cell in row] for row in table.rows),
    ]
    widths = [max((len(row[column]) for row in cells), default=0) for column in range(len(table.columns))]
    lines = (_GAP.join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)) for row in cells)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _drawn(table: Table, width: int, *, headers: bool) -> str:
    """The table with colors and lines, as escape sequences."""
    import rich.box
    import rich.console
    import rich.table
    import rich.text

    drawn = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_header=headers)
    for column in table.columns:
        drawn.add_column(column, overflow="fold")
    styles = table.styles or [""] * len(table.rows)
    for row, style in zip(table.rows, styles, strict=True):
        # As Text, because Rich reads brackets in a plain string as markup.
        drawn.add_row(*(rich.text.Text(printable(cell) or EMPTY_CELL) for cell in row), style=style)
    console = rich.console.Console(force_terminal=True, width=width, color_system="standard", legacy_windows=False)
    with console.capture() as captured:
        console.print(drawn)
    lines = (line.rstrip() for line in captured.get().splitlines())
    return "".join(f"{line}\n" for line in lines if line)


def printable(text: str) -> str:
    """The text on one line, without control characters, escape sequences and marks that change the text direction."""
    if text.isprintable():
        return text
    flat = _SPACES.sub(" ", _ESCAPE_SEQUENCE.sub("", text))
    return "".join(
        char for char in flat if char.isprintable() or unicodedata.category(char) not in _INVISIBLE_CATEGORIES
    )


def printable_lines(text: str) -> str:
    """Each line of the text as `printable` returns it; the line breaks are kept."""
    return "\n".join(printable(line) for line in text.split("\n"))


def counted(n: int, noun: str) -> str:
    """`1 object` or `2 objects`."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def shortened(text: str, most: int) -> str:
    """The text, cut at a word if it is longer, with an ellipsis."""
    return text if len(text) <= most else f"{text[:most].rpartition(' ')[0] or text[:most]} …"


def listed(names: Sequence[str], most: int | None) -> str:
    """`a, b and 3 more`: the first names, all of them if `most` is None."""
    kept = names[:most]
    more = len(names) - len(kept)
    return ", ".join(kept) + (f" and {more} more" if more else "")


def name_of(workload: Workload) -> str:
    """A pod, or the resource that a binding propagates, as `kind/name`."""
    binding = workload.binding
    return f"pod/{workload.name}" if binding is None else f"{binding.kind.lower()}/{binding.name}"


def name_lines(workloads: Iterable[Workload]) -> str:
    """Each workload as `kind/name`, one per line."""
    return "".join(f"{printable(name_of(workload))}\n" for workload in workloads)
