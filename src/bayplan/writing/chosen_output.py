"""
Answers in the formats that every command with a document or a table has: JSON, YAML, JSONPath, columns, CSV.

It knows no answer. Rows and items can be sorted, and headers left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bayplan.errors import ArgumentError
from bayplan.writing import tables, versioned
from bayplan.writing.tables import Table

JSONPATH, CUSTOM_COLUMNS, CSV = "jsonpath=", "custom-columns=", "csv"


class Arrangement(msgspec.Struct, frozen=True):
    """`sort_by` is a column of a table, or the path of a field of an item; empty for the order of the answer."""

    headers: bool = True
    sort_by: str = ""


AS_IT_IS = Arrangement()


def is_document(output: str) -> bool:
    """Whether the output is made of the document of the answer, rather than of its tables."""
    return output in ("json", "yaml") or output.startswith((JSONPATH, CUSTOM_COLUMNS))


def document(content: Mapping[str, Any], output: str, arrangement: Arrangement = AS_IT_IS) -> str:
    """The document in one of the formats made of it."""
    from bayplan.writing import field_paths  # few answers need it

    items = content.get("items")
    if arrangement.sort_by and isinstance(items, Sequence):
        by = [_first(arrangement.sort_by, one) for one in items]
        if by and all(one is None for one in by):
            raise ArgumentError(f"no item has the field {arrangement.sort_by}", argument="sort_by")
        order = sorted(range(len(items)), key=lambda n: _key(by[n]))
        content = {**content, "items": [items[n] for n in order]}
    if output.startswith(JSONPATH):
        return field_paths.filled(output.removeprefix(JSONPATH), content)
    if output.startswith(CUSTOM_COLUMNS):
        plain = msgspec.to_builtins(content)
        listed = plain["items"] if isinstance(plain.get("items"), list) else [plain]
        found = field_paths.columns(output.removeprefix(CUSTOM_COLUMNS), listed)
        return tables.rendered(found, None, headers=arrangement.headers)
    return versioned.written(content, output)


def table(found: Table, width: int | None, output: str = "", arrangement: Arrangement = AS_IT_IS) -> str:
    """The table, drawn, plain or as CSV; raises ArgumentError if it lacks the column to sort by."""
    names = [name.casefold() for name in found.columns]
    wanted = arrangement.sort_by.strip("{}.").casefold()
    if wanted and wanted not in names:
        message = f"expected one of {', '.join(found.columns)}, got {arrangement.sort_by}"
        raise ArgumentError(message, argument="sort_by")
    if wanted:
        order = sorted(range(len(found.rows)), key=lambda n: _key(found.rows[n][names.index(wanted)]))
        styles = [found.styles[n] for n in order] if found.styles else []
        found = msgspec.structs.replace(found, rows=[found.rows[n] for n in order], styles=styles)
    if output == CSV:
        return _csv(found, headers=arrangement.headers)
    return tables.rendered(found, width, headers=arrangement.headers)


def _csv(found: Table, *, headers: bool) -> str:
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if headers:
        writer.writerow(found.columns)
    writer.writerows([[tables.printable(cell) for cell in row] for row in found.rows])
    return text.getvalue()


def _first(path: str, item: Any) -> Any:
    from bayplan.writing import field_paths

    return next(iter(field_paths.parse(path).values(msgspec.to_builtins(item))), None)


def _key(value: Any) -> tuple[int, float, str]:
    """Numbers before text, and what is missing first, as kubectl sorts."""
    if value is None:
        return 0, 0, ""
    if isinstance(value, bool | int | float):
        return 1, value, ""
    text = str(value)
    try:
        return 1, float(text), ""
    except ValueError:
        return 2, 0, text
