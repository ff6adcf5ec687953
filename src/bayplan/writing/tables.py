"""Rows and columns as text: plain and aligned, or drawn by Rich for a terminal. Knows nothing of what they say."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan.writing import untrusted

GAP = "  "
NOTHING = "<none>"  # what kubectl writes for an empty cell


class Table(msgspec.Struct, frozen=True):
    """`styles` has one Rich style per row, empty for none; the last column is the one that may wrap."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    styles: Sequence[str] = ()


def rendered(table: Table, width: int | None) -> str:
    """The table plain, or drawn for a terminal that is `width` columns wide."""
    return plain(table) if width is None else coloured(table, width)


def plain(table: Table) -> str:
    """Aligned columns, as kubectl prints them: no lines, nothing cut, nothing wrapped."""
    cells = [list(table.columns), *([untrusted.clean(cell) or NOTHING for cell in row] for row in table.rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(table.columns))]
    return "".join(f"{_line(row, widths)}\n" for row in cells)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def coloured(table: Table, width: int) -> str:
    """The same table for a terminal `width` columns wide, with escape sequences."""
    import rich.box
    import rich.console
    import rich.table
    import rich.text

    drawn = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in table.columns:
        drawn.add_column(column, overflow="fold")
    styles = table.styles or [""] * len(table.rows)
    for row, style in zip(table.rows, styles, strict=True):
        # As Text, so that brackets in a name are no markup.
        drawn.add_row(*(rich.text.Text(untrusted.clean(cell) or NOTHING) for cell in row), style=style)
    console = rich.console.Console(force_terminal=True, width=width, color_system="standard", legacy_windows=False)
    with console.capture() as captured:
        console.print(drawn)
    lines = (line.rstrip() for line in captured.get().splitlines())
    return "".join(f"{line}\n" for line in lines if line)
