"""
Parts of a document chosen by kubectl's JSONPath, as text: `jsonpath=TEMPLATE` and `custom-columns=HEADER:PATH,…`.

Of JSONPath it knows fields, quoted fields, indices, wildcards, `{range …}{end}` and text; no filters. A path that
leads nowhere gives nothing, as in kubectl.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from bayplan.writing import tables
from bayplan.writing.tables import Table

_STEP = re.compile(
    r"""\.?(?:\['(?P<quoted>[^']*)'\]|\["(?P<double>[^"]*)"\]|\[(?P<index>-?\d+|\*)\])|\.(?P<name>(?:\\.|[^.\[\]])+)"""
)
_ACTION = re.compile(r"\{([^{}]*)\}")
_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\\\": "\\", '\\"': '"'}


class TemplateError(ValueError):
    """A template or a path that cannot be read, with what is wrong."""


class Path(msgspec.Struct, frozen=True):
    """A path; a step is a field, an index, or None for every value."""

    steps: tuple[str | int | None, ...]

    def values(self, root: Any) -> list[Any]:
        """What the path leads to."""
        found = [root]
        for step in self.steps:
            found = [after for value in found for after in _after(value, step)]
        return found


def parse(text: str) -> Path:
    """A path such as `.items[*].name`, in braces or not; raises TemplateError."""
    bare = text.strip().removeprefix("{").removesuffix("}").strip().removeprefix("$").removeprefix("@")
    if bare and bare[0] not in ".[":
        bare = f".{bare}"
    steps: list[str | int | None] = []
    position = 0
    while position < len(bare):
        step = _STEP.match(bare, position)
        if step is None:
            if bare == ".":
                break
            raise TemplateError(f"expected a path such as .items[*].name, got {text!r}")
        index = step["index"]
        if index is not None:
            steps.append(None if index == "*" else int(index))
        else:
            name = step["quoted"] or step["double"] or re.sub(r"\\(.)", r"\1", step["name"] or "")
            steps.append(None if name == "*" else name)
        position = step.end()
    return Path(tuple(steps))


def _after(value: Any, step: str | int | None) -> Iterator[Any]:
    if step is None:
        yield from value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    elif isinstance(step, int):
        if isinstance(value, list) and -len(value) <= step < len(value):
            yield value[step]
    elif isinstance(value, Mapping) and step in value:
        yield value[step]


def filled(template: str, document: Any) -> str:
    """The template with the values of its paths; raises TemplateError."""
    return _compiled(template)(msgspec.to_builtins(document))


def _compiled(template: str) -> Callable[[Any], str]:
    """A function of the value that the paths start from."""
    parts: list[list[Callable[[Any], str]]] = [[]]
    ranges: list[Path] = []
    position = 0
    for action in _ACTION.finditer(template):
        parts[-1].append(_text(template[position : action.start()]))
        position, inner = action.end(), action[1].strip()
        if inner.startswith("range "):
            ranges.append(parse(inner.removeprefix("range ")))
            parts.append([])
        elif inner == "end":
            if not ranges:
                raise TemplateError("{end} without {range}")
            body, path = parts.pop(), ranges.pop()
            parts[-1].append(_repeated(path, body))
        elif inner[:1] in ('"', "'"):
            parts[-1].append(_text(re.sub(r'\\[nt\\"]', lambda m: _ESCAPES[m[0]], inner[1:-1])))
        else:
            parts[-1].append(_values(parse(inner)))
    if ranges:
        raise TemplateError("{range} without {end}")
    rest = template[position:]
    if "{" in rest or "}" in rest:
        raise TemplateError(f"unbalanced braces in {template!r}")
    whole = [*parts[0], _text(rest)]
    return lambda value: "".join(part(value) for part in whole)


def _text(text: str) -> Callable[[Any], str]:
    return lambda _: text


def _values(path: Path) -> Callable[[Any], str]:
    return lambda value: " ".join(map(shown, path.values(value)))


def _repeated(path: Path, body: Sequence[Callable[[Any], str]]) -> Callable[[Any], str]:
    return lambda value: "".join(part(one) for one in path.values(value) for part in body)


def shown(value: Any) -> str:
    """A value as kubectl prints it: text as it is, everything else as JSON."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return tables.printable_lines(text)


def columns(spec: str, items: Sequence[Any]) -> Table:
    """The table of `HEADER:PATH,…` for each item; raises TemplateError."""
    chosen = []
    for part in re.split(r",(?![^\[]*\])", spec):
        header, colon, path = part.partition(":")
        if not header or not colon or not path:
            raise TemplateError(f"expected HEADER:PATH,…, got {spec!r}")
        chosen.append((header, parse(path)))
    rows = [[",".join(map(shown, path.values(item))) for _, path in chosen] for item in items]
    return Table(tuple(header for header, _ in chosen), rows)
