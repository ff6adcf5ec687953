"""
Lists in the YAML that kubectl writes, read line by line: about six times as fast as libyaml's events.

kubectl writes a small part of YAML: one `key: scalar` per line, in block style, without comments and anchors. A dump
repeats most of its lines, so a line that was seen before is only looked up. Nothing here decides what other YAML means
or reports a fault: an item that has anything else, such as a text of several lines, is left to `yaml_documents`, and so
is the whole file if an item alone does not tell. `yaml_documents` is imported only then, as PyYAML is slow to import.
Does not know kinds or fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from bayplan.errors import Fault
from bayplan.reading.documents import LIST_HEAD, Document, JsonObject, Located, Source, from_root, is_list
from bayplan.reading.yaml_scalars import Scalar, plain

MAX_KNOWN_LINES = 50_000  # more than one template has, and about 10 MB

_END_OF_ITEM = re.compile(rb"\n(?=- |[A-Za-z0-9_./])")  # a line without indent may also be empty or a comment
_TAIL = re.compile(
    rb'kind: [A-Za-z]*List\n(?:metadata:\n  resourceVersion: "[0-9]*"\n(?:  selfLink: ""\n)?)?(?=---\n|\Z)'
)
_DASH = b"- "
_FURTHER_LINE_BREAKS = re.compile(rb"\r|\xc2\x85|\xe2\x80[\xa8\xa9]")  # libyaml counts lines by these too

# What these match is less than YAML allows. An indent of 120 columns is less deep than yaml_documents.MAX_DEPTH, and
# libyaml allows 1,024 characters in a key.
_BEFORE_COLON = re.compile(r"( {0,120})(- )?([A-Za-z0-9_./][^ ]{0,1000})")
_ITEM = re.compile(r"( {0,120})- (.+)")
_SINGLE_QUOTED = re.compile(r"'(?:[^']|'')*'")
_DOUBLE_QUOTED = re.compile(r'"[^"\\]*"')
_PLAIN_STARTS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+~=<($")

# A mapping has an even level and a list an odd one, so that a list may be as indented as the key above it.
_LEVEL_OF_ITEMS = 1
# The level of the mapping or list that the line continues; the level of the mapping that its key is in, which differs
# after a dash; the key.
_Place = tuple[int, int, str | None]
# What follows the key: the scalar, if it is one.
_SCALAR, _NOTHING, _EMPTY_MAPPING, _EMPTY_LIST = range(4)
_EMPTY = {"": _NOTHING, "{}": _EMPTY_MAPPING, "[]": _EMPTY_LIST}
_Line = tuple[int, int, str | None, int, Scalar]


class _OtherYamlError(Exception):
    """The text is not in the part of YAML that is read here."""


def read(source: Source) -> Iterator[Document | Fault]:
    """
    Each object of the file in order, and the faults between them, as `yaml_documents.read` returns them.

    Before a syntax error there may be more objects: libyaml looks some kilobytes ahead.
    """
    start, n_read = source.position, 0
    try:
        for document in _documents(source):
            yield document
            n_read += 1
    except _OtherYamlError:
        source.position, source.n_documents = start, 0
    else:
        return
    from bayplan.reading import yaml_documents

    for item in yaml_documents.read(source):
        if n_read and isinstance(item, Document):
            n_read -= 1
        else:
            yield item


def _documents(source: Source) -> Iterator[Document]:
    """The items of each list in the file."""
    lines, line = _LineReader(), 1
    while source.position < source.size:
        head = LIST_HEAD.match(source.data, source.position)
        if head is None:
            raise _OtherYamlError
        source.n_documents += 1
        line += head[0].count(b"\n")
        start = head.end()
        while source.data[start : start + len(_DASH)] == _DASH:
            found = _END_OF_ITEM.search(source.data, start)
            if found is None:  # the kind of the list is missing
                raise _OtherYamlError
            source.position = found.end()
            yield _document(source, start, line, lines)
            line += source.data[start : source.position].count(b"\n")
            start = source.position
        tail = _TAIL.match(source.data, start)
        if tail is None:
            raise _OtherYamlError
        line += tail[0].count(b"\n")
        source.position = tail.end()


def _document(source: Source, start: int, line: int, lines: _LineReader) -> Document:
    """The item from `start` to the position of the source."""
    text = source.data[start : source.position]
    try:
        root = lines.item(text[:-1].decode().split("\n"))
    except (_OtherYamlError, UnicodeDecodeError):
        located = None if _FURTHER_LINE_BREAKS.search(text) else _read_by_libyaml(text, line)
        if located is None:
            raise _OtherYamlError from None
        root, locate = located.root, lambda: located
    else:
        locate = _ItemLocator(source, start, source.position, line).locate
    document = from_root(source.name, line, root, locate)
    if not document.kind or is_list(document.kind, root):
        raise _OtherYamlError
    return document


def _read_by_libyaml(text: bytes, line: int) -> Located | None:
    from bayplan.reading import yaml_documents

    return yaml_documents.read_item(text, line)


class _ItemLocator:
    """The lines of one item, found by libyaml on first use."""

    __slots__ = ("_end", "_line", "_located", "_source", "_start")

    def __init__(self, source: Source, start: int, end: int, line: int) -> None:
        self._source, self._start, self._end, self._line = source, start, end, line
        self._located: Located | None = None

    def locate(self) -> Located:
        if self._located is None:
            self._located = _read_by_libyaml(self._source.data[self._start : self._end], self._line)
            assert self._located is not None, "libyaml reads what was read line by line"
        return self._located


class _LineReader:
    """Reads items, and remembers the lines of earlier ones."""

    def __init__(self) -> None:
        self._known: dict[str, _Line] = {}
        self._places: dict[str, _Place] = {}  # what precedes the colon repeats even where the rest of a line does not

    def item(self, lines: list[str]) -> JsonObject:
        """
        The object of an item, of which only the first line has no indent; raises _OtherYamlError if it is not for here.

        One loop without calls: it runs for every line of a dump.
        """
        items: list[Any] = []
        container: Any = items
        level = _LEVEL_OF_ITEMS
        enclosing: list[tuple[Any, int]] = []
        opened: str | None = None  # the key of the container that the line before ended with
        known = self._known.get
        for line in lines:
            own_level, key_level, key, follows, scalar = known(line) or self._parsed(line)
            if own_level != level:
                if own_level < level:
                    opened = None
                    while own_level < level:
                        container, level = enclosing.pop()
                if own_level > level:
                    if opened is None:
                        raise _OtherYamlError
                    enclosing.append((container, level))
                    inner: Any = {} if own_level == key_level else []
                    container[opened] = inner
                    container, level = inner, own_level
            if own_level != key_level:
                opened = None
                if key is None:
                    container.append(scalar)
                    continue
                mapping: JsonObject = {}
                container.append(mapping)
                enclosing.append((container, level))
                container, level = mapping, key_level
            if key in container:  # yaml_documents reports it, with both lines
                raise _OtherYamlError
            if follows == _SCALAR:
                container[key] = scalar
                opened = None
            elif follows == _NOTHING:
                container[key] = None
                opened = key
            else:
                container[key] = {} if follows == _EMPTY_MAPPING else []
                opened = None
        if not isinstance(items[0], dict):
            raise _OtherYamlError
        return items[0]

    def _parsed(self, line: str) -> _Line:
        if not (line.isascii() and line.isprintable()):
            raise _OtherYamlError
        head, colon, text = line.partition(": ")
        if not colon and line.endswith(":"):
            head, colon = line[:-1], ":"
        place = (self._places.get(head) or self._place(head)) if colon else None
        if place is None:
            item = _ITEM.fullmatch(line)
            if item is None:
                raise _OtherYamlError
            parsed: _Line = (2 * len(item[1]) + 1, 0, None, _SCALAR, _scalar(item[2]))
        else:
            follows = _EMPTY.get(text, _SCALAR)
            parsed = (*place, follows, _scalar(text) if follows == _SCALAR else None)
        if len(self._known) >= MAX_KNOWN_LINES:
            self._known.clear()
            self._places.clear()
        self._known[line] = parsed
        return parsed

    def _place(self, head: str) -> _Place | None:
        found = _BEFORE_COLON.fullmatch(head)
        if found is None or not isinstance(_scalar(found[3]), str):
            return None
        key_level = 2 * found.start(3)
        place = self._places[head] = (2 * len(found[1]) + 1 if found[2] else key_level, key_level, found[3])
        return place


def _scalar(text: str) -> Scalar:
    first = text[0]
    if first == '"' and _DOUBLE_QUOTED.fullmatch(text):
        return text[1:-1]
    if first == "'" and _SINGLE_QUOTED.fullmatch(text):
        return text[1:-1].replace("''", "'")
    is_start = first in _PLAIN_STARTS or (first in "-?:" and text[1:2] not in ("", " "))
    if not is_start or ": " in text or " #" in text or text[-1] in ": ":
        raise _OtherYamlError
    try:
        return plain(text)
    except ValueError:
        raise _OtherYamlError from None
