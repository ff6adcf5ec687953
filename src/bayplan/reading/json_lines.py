"""The line of every field of a JSON object, and keys that it has twice: a slow scan, for messages only."""

from __future__ import annotations

import json
import json.decoder
import re
from collections.abc import Iterator
from typing import Any

from bayplan.reading.documents import Lines, Located

_TOKEN = re.compile(r'[\s,:]*([{}\[\]"]|[^\s,:{}\[\]"]+)')


def locate(text: str, line: int) -> Located:
    """The object in the text, which is valid and starts on `line`, and the lines of its fields."""
    scan = _Scanner(text, line)
    root = scan.value()
    return Located(root, scan.lines)


def duplicates(text: str, line: int) -> Iterator[tuple[str, int, int]]:
    """Each duplicate key of an object, with both lines."""
    scan = _Scanner(text, line)
    scan.value()
    yield from scan.duplicates


class _Scanner:
    """Parses valid JSON and records the line of every key and item."""

    def __init__(self, text: str, line: int) -> None:
        self._text, self._end, self._line, self._counted = text, 0, line, 0
        self.lines: Lines = {}
        self.duplicates: list[tuple[str, int, int]] = []

    def value(self) -> Any:
        """The next value."""
        return self._value_of(self._token())

    def _value_of(self, token: str) -> Any:
        if token == "{":  # noqa: S105
            return self._object()
        if token == "[":  # noqa: S105
            return self._array()
        return self._string() if token == '"' else json.loads(token)  # noqa: S105

    def _token(self) -> str:
        found = _TOKEN.match(self._text, self._end)
        assert found is not None, "the text is valid JSON"
        self._end = found.end()
        self._line += self._text.count("\n", self._counted, found.start(1))
        self._counted = found.start(1)
        return found[1]

    def _string(self) -> str:
        value, self._end = json.decoder.scanstring(self._text, self._end)  # type: ignore[attr-defined]
        return str(value)

    def _object(self) -> dict[str, Any]:
        value: dict[str, Any] = {}
        lines: dict[str, int] = {}
        self.lines[id(value)] = lines
        while self._token() == '"':
            key, line = self._string(), self._line
            if key in value:
                self.duplicates.append((key, lines[key], line))
            lines[key] = line
            value[key] = self.value()
        return value

    def _array(self) -> list[Any]:
        value: list[Any] = []
        lines: list[int] = []
        self.lines[id(value)] = lines
        while (token := self._token()) != "]":
            lines.append(self._line)
            value.append(self._value_of(token))
        return value
