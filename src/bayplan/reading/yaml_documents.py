"""
Objects of YAML files, with the line of every field: libyaml's events and a constructor of our own.

It works on events rather than on a composed tree, so that the items of a `List` are returned one at a time, and a file
that nests or expands without limit is rejected where it exceeds the limit. Scalars follow kubectl's rules (go-yaml v2
on its way to JSON), which YAML 1.2 parsers do not: `yes` is true, `017` is 15 and `12:30` is text. Does not know kinds
or fields.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from bayplan.errors import Fault
from bayplan.reading.documents import Document, JsonObject, Lines, Located, Source, from_root, is_list, kind_of_items

HAS_LIBYAML: bool = yaml.__with_libyaml__
SLOW_WARNING = "PyYAML is installed without its C part: YAML is read about ten times slower"

MAX_DEPTH = 200
MAX_EXPANDED_NODES = 200_000  # that aliases may add to one document

_Parser = yaml.CSafeLoader if HAS_LIBYAML else yaml.SafeLoader

Scalar = str | int | float | bool | None

_TRUE = ("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE")
_FALSE = ("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE")
_NULL = ("", "~", "null", "Null", "NULL")
_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(_TRUE, True),
    **dict.fromkeys(_FALSE, False),
    **dict.fromkeys(_NULL, None),
}
_NOT_NUMBERS = {f"{sign}.{word}" for sign in ("", "+", "-") for word in ("inf", "Inf", "INF")} | {
    ".nan",
    ".NaN",
    ".NAN",
}
_NUMBER_STARTS = frozenset("0123456789+-.")

_INTEGER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[+-]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][+-]?[0-9]+)?")
_POINTED_FLOAT = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][+-]?[0-9]+)?")

_TAG = "tag:yaml.org,2002:"


class _UnreadableError(Exception):
    """The rest of the file cannot be read."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message, self.line = message, line


def read(source: Source) -> Iterator[Document | Fault]:
    """Each object of the file in order, and the faults between them; reading ends at the first syntax error."""
    composer = _Composer(source)
    try:
        yield from composer.documents()
    except _UnreadableError as error:
        yield from composer.new_faults()
        yield source.fault(error.message, error.line)
    except yaml.MarkedYAMLError as error:
        yield from composer.new_faults()
        problem = " ".join(part for part in (error.problem, error.context) if part)
        mark = error.problem_mark or error.context_mark
        yield source.fault(f"invalid YAML: {problem}", mark.line + 1 if mark else 0)
    except yaml.YAMLError as error:
        yield from composer.new_faults()
        yield source.fault(f"invalid YAML: {str(error).splitlines()[0]}")


class _Composer:
    """Builds values from events; holds the anchors of the current document, the lines of its fields and its faults."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._parser = _Parser(source)  # type: ignore[arg-type]
        self._next: Callable[[], Any] = self._parser.get_event
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._lines: Lines = {}
        self._n_nodes = self._n_expanded = 0
        self._faults: list[Fault] = []

    def new_faults(self) -> Iterator[Fault]:
        """The faults since the last call."""
        yield from self._faults
        self._faults.clear()

    def documents(self) -> Iterator[Document | Fault]:
        while (event := self._next()) is not None:
            if type(event) is not yaml.DocumentStartEvent:
                continue
            self._anchors, self._lines = {}, {}
            self._n_nodes = self._n_expanded = 0
            start = self._next()
            if type(start) is yaml.MappingStartEvent:
                yield from self._root(start)
            elif self._node(start, 1) is not None:  # a document of comments only is no mistake
                self._source.n_documents += 1
                self._add_fault("expected an object with apiVersion and kind", start.start_mark.line + 1)
            yield from self.new_faults()

    def _root(self, start: Any) -> Iterator[Document | Fault]:
        """The object, or its items if it is a list, which is known only at the end: kubectl writes `kind` last."""
        self._source.n_documents += 1
        root: JsonObject = {}
        lines: dict[str, int] = {}
        self._lines[id(root)] = lines
        line, located = start.start_mark.line + 1, Located(root, self._lines)
        without_kind: list[Document] = []
        while self._fill(root, lines, 1, stop_at="items"):
            event = self._next()
            if type(event) is yaml.SequenceStartEvent:
                root["items"] = []
                yield from self._items(without_kind)
                self._lines = located.lines
            else:
                root["items"] = self._node(event, 2)
        yield from self.new_faults()
        document = from_root(self._source.name, line, located)
        if not is_list(document.kind, root):
            yield document
        for item in without_kind:
            item.kind, item.api_version = kind_of_items(document.kind), document.api_version
            yield item

    def _items(self, without_kind: list[Document]) -> Iterator[Document | Fault]:
        """Each item of a list; items without a kind of their own are appended to `without_kind`."""
        while type(event := self._next()) is not yaml.SequenceEndEvent:
            # Aliases may refer to earlier items, so lines are dropped only if nothing is anchored.
            self._lines = self._lines if self._anchors else {}
            line, item = event.start_mark.line + 1, self._node(event, 2)
            yield from self.new_faults()
            if not isinstance(item, dict):
                yield self._source.fault("expected an object with apiVersion and kind", line)
                continue
            document = from_root(self._source.name, line, Located(item, self._lines))
            if not document.kind:
                without_kind.append(document)
            else:
                yield from self._unpacked(document)

    def _unpacked(self, document: Document) -> Iterator[Document]:
        """The document itself, or the objects of a list within a list."""
        located = document.locate()
        if not is_list(document.kind, located.root):
            yield document
            return
        for place, item in enumerate(located.root["items"] or ()):
            if isinstance(item, dict):
                line = located.lines[id(located.root["items"])][place]  # type: ignore[index]
                inner = from_root(document.file, line, Located(item, located.lines))
                inner.kind = inner.kind or kind_of_items(document.kind)
                inner.api_version = inner.api_version or document.api_version
                yield from self._unpacked(inner)

    def _node(self, event: Any, depth: int) -> Any:
        """The value that begins with the event."""
        kind = type(event)
        if kind is yaml.AliasEvent:
            return self._alias(event)
        value: Any
        before = self._n_nodes
        self._n_nodes += 1
        if kind is yaml.ScalarEvent:
            try:
                if event.tag is not None:
                    value = tagged(event.tag, event.value)
                else:
                    value = plain(event.value) if event.implicit[0] else str(event.value)
            except ValueError as error:
                value = None
                self._add_fault(str(error), event.start_mark.line + 1)
        elif depth > MAX_DEPTH:
            raise _UnreadableError(f"nested more than {MAX_DEPTH} levels deep", event.start_mark.line + 1)
        elif kind is yaml.MappingStartEvent:
            value = {}
            key_lines: dict[str, int] = {}
            self._lines[id(value)] = key_lines
            self._fill(value, key_lines, depth + 1)
        else:
            value = []
            item_lines: list[int] = []
            self._lines[id(value)] = item_lines
            while type(item := self._next()) is not yaml.SequenceEndEvent:
                item_lines.append(item.start_mark.line + 1)
                value.append(self._node(item, depth + 1))
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, self._n_nodes - before)
        return value

    def _fill(self, value: JsonObject, lines: dict[str, int], depth: int, stop_at: str | None = None) -> bool:
        """Read entries into the mapping: true if it stopped after the key `stop_at`, false at the mapping's end."""
        own: set[str] = set()  # a merged key may be given again, a written one may not
        while type(event := self._next()) is not yaml.MappingEndEvent:
            line = event.start_mark.line + 1
            if type(event) is yaml.ScalarEvent and event.value == "<<" and event.implicit[0]:
                self._merge(value, lines, self._node(self._next(), depth), line)
                continue
            key = self._node(event, depth)
            if type(key) is not str:
                key = self._text_of_key(key, line)
            if key in own:
                self._add_fault(f"the key {key} is given twice, first on line {lines[key]}", line)
            own.add(key)
            lines[key] = line
            if key == stop_at:
                return True
            value[key] = self._node(self._next(), depth)
        return False

    def _merge(self, value: JsonObject, lines: dict[str, int], merged: Any, line: int) -> None:
        """Merge as kubectl does: `<<` overrides the keys before it; of several mappings the first wins."""
        parts = merged if isinstance(merged, list) else [merged]
        if not all(isinstance(part, dict) for part in parts):
            self._add_fault("<< expects a mapping or a list of mappings", line)
            return
        for part in reversed(parts):
            value.update(part)
            lines.update(self._lines.get(id(part), dict.fromkeys(part, line)))

    def _text_of_key(self, key: Any, line: int) -> str:
        """A key as JSON has it: always a string."""
        if key is None or isinstance(key, dict | list):
            self._add_fault(f"{'null' if key is None else 'a mapping or a list'} cannot be a key", line)
            return repr(key)
        if isinstance(key, bool):
            return "true" if key else "false"
        return f"{key:g}" if isinstance(key, float) else str(key)

    def _alias(self, event: Any) -> Any:
        line = event.start_mark.line + 1
        if event.anchor not in self._anchors:
            self._add_fault(f"*{event.anchor} has no anchor before it, or stands within it", line)
            return None
        value, size = self._anchors[event.anchor]
        self._n_nodes += size
        self._n_expanded += size
        if self._n_expanded > MAX_EXPANDED_NODES:
            raise _UnreadableError(f"aliases expand the document by more than {MAX_EXPANDED_NODES:,} nodes", line)
        return value

    def _add_fault(self, message: str, line: int) -> None:
        self._faults.append(self._source.fault(message, line))


def plain(text: str) -> Scalar:
    """The value of an unquoted scalar; raises ValueError for infinity and NaN, which JSON cannot represent."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_STARTS:
        return text
    if text in _NOT_NUMBERS:
        raise ValueError(f"{text} is no number that JSON can hold; put it in quotes if it is meant as text")
    if text[0] == ".":
        return _float(text) if _POINTED_FLOAT.fullmatch(text) else text
    bare = text.replace("_", "")
    if not _INTEGER.fullmatch(bare):
        return _float(bare, otherwise=text) if _FLOAT.fullmatch(bare) else text
    digits = bare.lstrip("+-")
    is_octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    value = int(digits, 8) if is_octal else int(digits, 0)
    value = -value if bare[0] == "-" else value
    # Beyond 64 bits Go has only floats.
    return value if -(2**63) <= value < 2**64 else float(value)


def tagged(tag: str, text: str) -> Scalar:
    """The value of a scalar with an explicit tag; raises ValueError if the text does not fit the tag."""
    name = tag.removeprefix(_TAG)
    if name == tag or name in ("str", "timestamp"):  # application-specific tags do not change the text
        return text
    if name == "binary":
        try:
            return base64.b64decode(text, validate=False).decode()
        except (binascii.Error, ValueError) as error:
            raise ValueError("!!binary does not hold base64 of text") from error
    value = plain(text)
    expected = {"int": int, "float": (int, float), "bool": bool, "null": type(None)}.get(name)
    if expected is None:
        return text
    if not isinstance(value, expected) or (isinstance(value, bool) and name != "bool"):  # type: ignore[arg-type]
        raise ValueError(f"{text!r} is no {name}")
    return value


def _float(bare: str, otherwise: str = "") -> Scalar:
    value = float(bare)
    if math.isinf(value):
        return otherwise or bare
    # JSON has one type of number, so 1e3 becomes 1000 and fits an integer field.
    return int(value) if value.is_integer() and abs(value) < 1e21 else value
