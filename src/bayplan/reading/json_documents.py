"""
Objects of JSON files: single, one after another, or as the items of a `List`.

The file stays mapped. A list is scanned once for the extent of its items, and each item is decoded on its own, so that
a list of any size costs the memory of one object. A large dump is not even scanned: its items are found one by one, so
that what was read need not stay in memory. The lines of fields are found in a second, slow scan, for messages only.
Pods of a dump are decoded at once; other kinds and fields are not known here.
"""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any

import msgspec

from bayplan.errors import Fault
from bayplan.reading.documents import (
    JSON_LIST_HEAD,
    JSON_LIST_TAIL,
    Document,
    Located,
    Source,
    count_lines,
    from_root,
    is_server_made,
    kind_of_items,
)
from bayplan.reading.pod_batches import AS_POD, PodBatches, TakePods
from bayplan.validating.structure_faults import BYTE_OFFSET, UNDECODABLE, decoding_message
from bayplan.wire import kinds
from bayplan.wire.pods import Pod

_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_BETWEEN_ITEMS = re.compile(rb"[\s,]*")
_ITEM_SEPARATOR = re.compile(rb"\s*([,\]])")
NOT_AN_OBJECT = "expected an object with apiVersion and kind"


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Head(msgspec.Struct, rename="camel"):
    """The part of an object that identifies it."""

    api_version: str = ""
    kind: str = ""
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    status: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Top(msgspec.Struct, rename="camel"):
    api_version: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    kind: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    items: list[msgspec.Raw] | msgspec.UnsetType | None = msgspec.UNSET


_POD_VERSION, _POD_KIND = kinds.KINDS[kinds.POD].api_version, kinds.KINDS[kinds.POD].kind
_decode_pod: Callable[[Any], Pod] = msgspec.json.Decoder(Pod).decode
_decode_head: Callable[[Any], _Head] = msgspec.json.Decoder(_Head).decode
_decode_top: Callable[[Any], _Top] = msgspec.json.Decoder(_Top).decode
_decode_item: Callable[[Any], msgspec.Raw] = msgspec.json.Decoder(msgspec.Raw).decode


def read(source: Source, take_pods: TakePods | None = None) -> Iterator[Document | Fault]:
    """
    Each object of the file in order; reading ends at the first syntax error, which is a fault.

    Pods of a dump are handed to `take_pods` many at a time, and those that it takes are not among the documents.
    """
    view, start = memoryview(source.data), source.position
    lines = _LineCounter(source.data, 1)
    while (start := _skip_space(view, start)) < source.size:
        source.n_documents += 1
        head = JSON_LIST_HEAD.match(source.data, start) if source.is_json_dump else None
        if head is not None and (end := (yield from _dumped_items(source, head, lines, take_pods))):
            source.position = start = end
            continue
        try:
            top, end = _next_document(view, start)
        except UNDECODABLE as error:
            yield _syntax_fault(source, error, start)
            return
        if head is not None:
            pass  # its items are read, and only its end is not as expected
        elif top.items is not msgspec.UNSET:
            for item in _items(source.name, top, start, lines):
                source.position = lines.passed
                yield item
        else:
            yield _document(source.name, lines, start, bytes(view[start:end]))
        source.position = start = end


def duplicate_keys(document: Document) -> Iterator[Fault]:
    """A fault for each duplicate key of an object, which JSON decoders accept silently."""
    if _has_duplicates(document.text):
        from bayplan.reading import json_lines

        for key, first, again in json_lines.duplicates(document.text.decode(), document.line):
            message = f"the key {key} is given twice, first on line {first}"
            yield Fault(message, file=document.file, line=again, subject=document.subject)


class _LineCounter:
    """Line numbers of offsets. While offsets grow, no line is counted twice. `passed` is how far reading has come."""

    def __init__(self, data: bytes | mmap.mmap, line: int) -> None:
        self.data, self.passed = data, 0
        self._first, self._line, self._offset = line, line, 0

    def at(self, offset: int) -> int:
        if offset < self._offset:
            self._line, self._offset = self._first, 0
        self._line += count_lines(self.data, self._offset, offset)
        self._offset = offset
        return self._line


def _skip_space(view: memoryview, start: int) -> int:
    while start < len(view) and view[start] in b" \t\r\n":
        start += 1
    return start


def _next_document(view: memoryview, start: int) -> tuple[_Top, int]:
    """The document that begins at `start`, and its end, which the decoder reports as trailing characters."""
    try:
        return _decode_top(view[start:]), len(view)
    except msgspec.DecodeError as error:
        trailing = _TRAILING.search(str(error))
        if trailing is None:
            raise
        end = start + int(trailing[1]) - 1
        return _decode_top(view[start:end]), end


def _dumped_items(
    source: Source, head: re.Match[bytes], lines: _LineCounter, take_pods: TakePods | None
) -> Generator[Document | Fault, None, int]:
    """
    The objects of a dump, found one by one; returns the end of the list, or 0 if it is not as expected.

    In that case the decoder, which is given the whole list, knows what is wrong with it.
    """
    view = memoryview(source.data)
    kind, version = (head[1] or b"List").decode(), head[2].decode()
    offset = _skip_space(view, head.end())
    gap = bytes(view[head.end() : offset])
    batches = None if take_pods is None else PodBatches(source.data, gap, take_pods)
    is_end = view[offset] == ord("]")
    while not is_end:
        text, end = b"", 0 if batches is None else batches.read(offset)
        if not end:
            text = bytes(view[offset : _end_of_item(view, offset)])
            end = offset + len(text)
            if not text.isascii():
                try:
                    text.decode()
                except UnicodeDecodeError as error:
                    yield source.encoding_fault(offset + error.start)
                    return source.size
        separator = _ITEM_SEPARATOR.match(source.data, end)
        if end == offset or separator is None:
            return 0
        source.position = lines.passed = separator.start()
        if text:
            yield from _item(_document(source.name, lines, offset, text), text, kind, version)
        is_end = separator[1] == b"]"
        offset = separator.start(1) if is_end else _skip_space(view, separator.end())
    tail = JSON_LIST_TAIL.match(source.data, offset)
    return 0 if tail is None else tail.end()


def _end_of_item(view: memoryview, offset: int) -> int:
    """Where an item ends, which the decoder reports as trailing characters; `offset` itself if it is malformed."""
    try:
        _decode_item(view[offset:])
    except UNDECODABLE as error:
        trailing = _TRAILING.search(str(error))
        return offset if trailing is None else offset + int(trailing[1]) - 1
    return offset


def _items(file: str, top: _Top, start: int, lines: _LineCounter) -> Iterator[Document | Fault]:
    """The objects of the list that begins at `start`, and of lists within it."""
    kind, version = _word(top.kind), _word(top.api_version)
    offset = start
    for index, raw in enumerate(top.items or ()):
        text = bytes(raw)
        # Between two items there are only spaces and a comma; only the first item must be searched for.
        gap = _BETWEEN_ITEMS.match(lines.data, offset)
        offset = gap.end() if index and gap else lines.data.find(text, offset)
        document = _document(file, lines, offset, text)
        offset = lines.passed = offset + len(text)
        yield from _item(document, text, kind, version)


def _item(document: Document | Fault, text: bytes, kind: str, version: str) -> Iterator[Document | Fault]:
    """An item of a list of this kind and version, or the objects of a list within it."""
    if not isinstance(document, Document) or document.typed is not None:
        yield document
        return
    document.kind = document.kind or kind_of_items(kind)
    document.api_version = document.api_version or version
    yield from _unpacked(document, text)


def _unpacked(document: Document, text: bytes) -> Iterator[Document | Fault]:
    """The document itself, or the objects of a list within a list."""
    try:
        inner = _decode_top(text) if document.kind.endswith("List") else _Top()
    except msgspec.ValidationError:
        yield document.fault("expected a list", "items")
        return
    if inner.items is not msgspec.UNSET:
        yield from _items(document.file, inner, 0, _LineCounter(text, document.line))
    else:
        yield document


def _document(file: str, lines: _LineCounter, offset: int, text: bytes) -> Document | Fault:
    dumped = _dumped_pod(file, partial(lines.at, offset), text)
    if dumped is not None:
        return dumped
    line = lines.at(offset)
    try:
        head = _head(text)
        if head is None:
            return _malformed(file, line, text)
    except UNDECODABLE as error:
        return Fault(decoding_message(error), file=file, line=line)
    metadata = {"uid": head.metadata.uid, "resourceVersion": head.metadata.resource_version}
    has_status = head.status is not msgspec.UNSET
    return Document(
        file=file,
        begins=line,
        api_version=head.api_version,
        kind=head.kind,
        namespace=head.metadata.namespace,
        name=head.metadata.name or head.metadata.generate_name,
        server_made=is_server_made(head.kind, metadata, has_status=has_status),
        text=text,
        locate=_Locator(text, line).locate,
    )


def _dumped_pod(file: str, line: Callable[[], int], text: bytes) -> Document | None:
    """The document of a pod in a dump, decoded only once: dumps may hold hundreds of thousands."""
    if not AS_POD.match(text):
        return None
    try:
        pod = _decode_pod(text)
    except UNDECODABLE:
        return None
    meta = pod.metadata
    if not meta.name or not is_dumped(pod):
        return None
    return Document(
        file=file,
        begins=line,
        api_version=_POD_VERSION,
        kind=_POD_KIND,
        namespace=meta.namespace,
        name=meta.name,
        server_made=True,
        text=text,
        typed=pod,
        locate=_Locator(text, line).locate,
    )


def is_dumped(pod: Pod) -> bool:
    """Whether an API server wrote the pod, so that there is nothing to check."""
    meta = pod.metadata
    return bool(meta.uid or meta.resource_version) and bool(pod.status.phase)


def _head(text: bytes) -> _Head | None:
    try:
        return _decode_head(text)
    except msgspec.ValidationError:
        return None


def _malformed(file: str, line: int, text: bytes) -> Document | Fault:
    """A document whose head has wrong types, which the checker reports."""
    root = msgspec.json.decode(text)
    if not isinstance(root, dict):
        return Fault(NOT_AN_OBJECT, file=file, line=line)
    locate = _Locator(text, line).locate
    document = from_root(file, line, locate().root, locate)
    document.text = text
    return document


class _Locator:
    """The lines of one document, computed on first use."""

    __slots__ = ("_line", "_located", "_text")

    def __init__(self, text: bytes, line: int | Callable[[], int]) -> None:
        self._text, self._line = text, line
        self._located: Located | None = None

    def locate(self) -> Located:
        if self._located is None:
            from bayplan.reading import json_lines  # only messages need it

            try:
                line = self._line if isinstance(self._line, int) else self._line()
                self._located = json_lines.locate(self._text.decode(), line)
            except (ValueError, RecursionError):  # reported when the document is decoded in full
                self._located = Located({}, {})
        return self._located


def _has_duplicates(text: bytes) -> bool:
    found = False

    def check(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        value = dict(pairs)
        found = found or len(value) != len(pairs)
        return value

    json.loads(text, object_pairs_hook=check)
    return found


def _word(raw: msgspec.Raw | msgspec.UnsetType) -> str:
    value = msgspec.json.decode(raw) if isinstance(raw, msgspec.Raw) else ""
    return value if isinstance(value, str) else ""


def _syntax_fault(source: Source, error: Exception, start: int) -> Fault:
    if isinstance(error, msgspec.ValidationError):
        message = "items: expected a list" if "$.items" in str(error) else NOT_AN_OBJECT
        return source.fault(message, source.line_at(start))
    place = BYTE_OFFSET.search(str(error))
    offset = start + int(place[1]) if place else source.size
    return source.fault(decoding_message(error), source.line_at(offset))
