"""
Objects of YAML files, with the line of every field: libyaml's events and a constructor of our own.

It works on events rather than on a composed tree, so that the items of a `List` are returned one at a time, and a file
that nests or expands without limit is rejected where it exceeds the limit. Does not know kinds or fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import yaml

from bayplan.errors import Fault, InputError
from bayplan.reading.documents import Document, JsonObject, Lines, Located, Source, from_root, is_list, kind_of_items
from bayplan.reading.yaml_scalars import plain, tagged

HAS_LIBYAML: bool = yaml.__with_libyaml__
SLOW_WARNING = "PyYAML is installed without its C part: YAML is read about ten times slower"

MAX_DEPTH = 200
MAX_EXPANDED_NODES = 200_000  # that aliases may add to one document
# What other tools fill in, on the line of a fault or the two before it.
_PLACEHOLDER = rb"(?:[^\n]{0,500}\n){0,2}[^\n]{0,500}(?:\{\{|\$\{|<%)"  # compiled on first use: faults are rare

_Parser = yaml.CSafeLoader if HAS_LIBYAML else yaml.SafeLoader

_EVENTS_BEFORE_ITEM = (yaml.StreamStartEvent, yaml.DocumentStartEvent, yaml.SequenceStartEvent)
_EVENTS_AFTER_ITEM = (yaml.SequenceEndEvent, yaml.DocumentEndEvent, yaml.StreamEndEvent)


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
    except yaml.YAMLError as error:
        yield from composer.new_faults()
        yield _syntax_fault(source, error)


def read_value(source: Source) -> object:
    """The value of a file that holds one, which need not be an object of the API; raises InputError with all faults."""
    composer = _Composer(source)
    try:
        return composer.only_value()
    except _UnreadableError as error:
        raise InputError([*composer.new_faults(), source.fault(error.message, error.line)]) from None
    except yaml.YAMLError as error:
        raise InputError([*composer.new_faults(), _syntax_fault(source, error)]) from None


def read_item(text: bytes, line: int) -> Located | None:
    """
    The object of a text that is one item of a list and begins on the given line.

    None if there is a fault, or an anchor: then only the whole file tells what the item means.
    """
    composer = _Composer(Source("", text))
    try:
        return composer.only_item(line)
    except (_UnreadableError, yaml.YAMLError):
        return None


def _syntax_fault(source: Source, error: yaml.YAMLError) -> Fault:
    if not isinstance(error, yaml.MarkedYAMLError):
        return source.fault(f"invalid YAML: {str(error).splitlines()[0]}")
    problem = " ".join(part for part in (error.problem, error.context) if part)
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 0
    return source.fault(f"invalid YAML: {problem}{_advice(source, line)}", line)


def _advice(source: Source, line: int) -> str:
    """What to do about a fault that is where other tools would have filled something in."""
    start = 0
    for _ in range(line - 2):
        start = source.data.find(b"\n", start) + 1
    return " (a template has to be rendered first)" if re.compile(_PLACEHOLDER).match(source.data, start) else ""


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

    def only_value(self) -> object:
        """See `read_value`."""
        value, n_documents = None, 0
        while (event := self._next()) is not None:
            if type(event) is yaml.DocumentStartEvent:
                value = self._node(self._next(), 1)
                n_documents += 1
                if n_documents > 1:
                    self._add_fault("expected one document", event.start_mark.line + 1 if event.start_mark else 0)
                    break
        if self._faults:
            raise InputError(self.new_faults())
        return value

    def only_item(self, line: int) -> Located | None:
        """See `read_item`."""
        if any(type(self._next()) is not expected for expected in _EVENTS_BEFORE_ITEM):
            return None
        start = self._next()
        item = self._node(start, 2)
        if any(type(self._next()) is not expected for expected in _EVENTS_AFTER_ITEM):
            return None
        # A comment after the dash moves the first line of the object.
        if self._faults or self._anchors or start.start_mark.line or not isinstance(item, dict):
            return None
        return Located(item, {key: _later(lines, line - 1) for key, lines in self._lines.items()})

    def _root(self, start: Any) -> Iterator[Document | Fault]:
        """The object, or its items if it is a list, which is known only at the end: kubectl writes `kind` last."""
        self._source.n_documents += 1
        root: JsonObject = {}
        lines: dict[str, int] = {}
        self._lines[id(root)] = lines
        line, lines_of_root = start.start_mark.line + 1, self._lines
        without_kind: list[Document] = []
        while self._fill(root, lines, 1, stop_at="items"):
            event = self._next()
            if type(event) is yaml.SequenceStartEvent:
                root["items"] = []
                yield from self._items(without_kind)
                self._lines = lines_of_root
            else:
                root["items"] = self._node(event, 2)
        yield from self.new_faults()
        document = from_root(self._source.name, line, root, partial(Located, root, self._lines))
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
            document = from_root(self._source.name, line, item, partial(Located, item, self._lines))
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
                inner = from_root(document.file, line, item, partial(Located, item, located.lines))
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
            what = "null" if key is None else "a mapping or a list"
            self._add_fault(f"{what} cannot be a key{_advice(self._source, line)}", line)
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


def _later(lines: dict[str, int] | list[int], n: int) -> dict[str, int] | list[int]:
    """The lines as they are `n` lines further down."""
    if isinstance(lines, list):
        return [line + n for line in lines]
    return {key: line + n for key, line in lines.items()}
