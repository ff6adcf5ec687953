"""
Typed objects out of what servers send. One object that does not decode is told apart and never takes the others along.

The fast path decodes a whole page, or all lines of a chunk, in one go. Where that fails, each object is tried alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, cast

import msgspec

from bayplan.kube_api import errors
from bayplan.kube_api.errors import KubeError, Status, WrongServerError
from bayplan.wire.meta import ApiObject, WireObject

T = TypeVar("T", bound=ApiObject)
Item = TypeVar("Item")

# What decoders raise at input they cannot use: wrong types and syntax, bad text, endless nesting.
UNUSABLE = (ValueError, RecursionError)

# A bigger page is decoded in slices, so that the event loop is never held for long.
_BIG_PAGE = 2_000_000
_SLICE = 100


class Key(NamedTuple):
    """Where an object is found: at most one object has it at a time. The namespace is empty for cluster-wide ones."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Undecodable(msgspec.Struct, frozen=True):
    """An object that is there, and that we cannot read."""

    key: Key
    uid: str
    resource_version: str
    error: str


class Identity(NamedTuple):
    key: Key
    uid: str
    resource_version: str


class WatchEvent(msgspec.Struct, Generic[Item]):
    """One line of a watch: `ADDED`, `MODIFIED`, `DELETED` or `BOOKMARK`."""

    type: str
    object: Item


class ListMeta(WireObject):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _ListPage(WireObject, Generic[Item]):
    kind: str = ""
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[Item] | None = None


_EVENTS_APART = msgspec.json.Decoder(WatchEvent[msgspec.Raw])
_PAGE_APART = msgspec.json.Decoder(_ListPage[msgspec.Raw])
_META = msgspec.json.Decoder(ListMeta)
_STUB = msgspec.json.Decoder(ApiObject)
_STATUS = msgspec.json.Decoder(Status)
_TEXT = msgspec.json.Decoder(str)


def identity(item: ApiObject | Undecodable) -> Identity:
    """Which object it is, and which version of it."""
    if isinstance(item, Undecodable):
        return Identity(item.key, item.uid, item.resource_version)
    meta = item.metadata
    return Identity(Key(meta.namespace, meta.name), meta.uid, meta.resource_version)


class Decoding(Generic[T]):
    """How objects of one type are read. `wire` has the types; `ApiObject` suits metadata-only requests."""

    def __init__(self, item_type: type[T]) -> None:
        of_type: Any = item_type
        self._one: msgspec.json.Decoder[T] = msgspec.json.Decoder(of_type)
        self._page: msgspec.json.Decoder[_ListPage[T]] = msgspec.json.Decoder(_ListPage[of_type])
        self._event: msgspec.json.Decoder[WatchEvent[T]] = msgspec.json.Decoder(WatchEvent[of_type])

    def one(self, raw: bytes | msgspec.Raw) -> T | Undecodable:
        """A single object."""
        try:
            return self._one.decode(raw)
        except UNUSABLE as error:
            key, uid, version = _identity_of_raw(bytes(raw))
            return Undecodable(key, uid, version, _reworded(error))

    def page(self, tried: str, body: bytes) -> tuple[ListMeta, Iterator[Sequence[T | Undecodable]]]:
        """What a page says of itself, and its items in one or more slices that are decoded as they are asked for."""
        if len(body) <= _BIG_PAGE:
            try:
                page = self._page.decode(body)
            except UNUSABLE:
                pass
            else:
                _must_be_list(tried, page.kind)
                return page.metadata, iter((page.items or (),))
        meta, raws = _apart(tried, body)
        return meta, ([self.one(raw) for raw in raws[at : at + _SLICE]] for at in range(0, len(raws), _SLICE))

    def events(self, tried: str, lines: bytes) -> Sequence[WatchEvent[T | Undecodable]]:
        """The events in the lines; an `ERROR` among them is raised, after which a server sends nothing more."""
        try:
            events = self._event.decode_lines(lines)
        except UNUSABLE:
            return [self._event_of(tried, line) for line in lines.splitlines() if line]
        for event in events:
            if event.type == "ERROR":
                return [self._event_of(tried, line) for line in lines.splitlines() if line]
        return cast("Sequence[WatchEvent[T | Undecodable]]", events)

    def _event_of(self, tried: str, line: bytes) -> WatchEvent[T | Undecodable]:
        try:
            apart = _EVENTS_APART.decode(line)
        except RecursionError:
            found = dict(members(line))
            apart = WatchEvent(_TEXT.decode(found[b'"type"']), msgspec.Raw(found[b'"object"']))
        except ValueError as error:
            raise WrongServerError(f"{tried}: sent a line that is no watch event ({error})") from None
        if apart.type == "ERROR":
            raise _error_of(tried, apart.object)
        return WatchEvent(apart.type, self.one(apart.object))


def _must_be_list(tried: str, kind: str) -> None:
    if not kind.endswith("List"):
        raise WrongServerError(f"{tried}: expected a list of objects, got {kind or 'something else'}")


def _apart(tried: str, body: bytes) -> tuple[ListMeta, Sequence[bytes | msgspec.Raw]]:
    """The page with its items as raw pieces."""
    try:
        page = _PAGE_APART.decode(body)
    except RecursionError:
        found = dict(members(body))
        return _META.decode(found[b'"metadata"']), [item for _, item in members(found[b'"items"'])]
    except ValueError as error:
        raise WrongServerError(f"{tried}: the answer is no list of objects ({error})") from None
    _must_be_list(tried, page.kind)
    return page.metadata, page.items or ()


def _identity_of_raw(raw: bytes) -> Identity:
    try:
        return identity(_STUB.decode(raw))
    except UNUSABLE:
        meta = dict(members(dict(members(raw)).get(b'"metadata"', b"{}")))

    def text(field: bytes) -> str:
        try:
            return _TEXT.decode(meta.get(field, b'""'))
        except UNUSABLE:
            return ""

    return Identity(Key(text(b'"namespace"'), text(b'"name"')), text(b'"uid"'), text(b'"resourceVersion"'))


def _error_of(tried: str, raw: msgspec.Raw) -> KubeError:
    try:
        status = _STATUS.decode(raw)
    except UNUSABLE:
        status = Status(reason="InternalError", message="the watch failed", code=500)
    return errors.from_status(tried, status)


def _reworded(error: Exception) -> str:
    """The decoder's message in the form of our own: the path first."""
    if isinstance(error, RecursionError):
        return "nested too deeply to be read"
    text, _, path = str(error).partition(" - at `$")
    text = text.replace("`", "")
    text = text[:1].lower() + text[1:]
    return f"{path.strip('`').lstrip('.')}: {text}" if path else text


# RF merged from kube_api.lines: Whole lines out of a stream of chunks, however long a line is. aiohttp's own reader
# refuses lines over its buffer.


class LineBuffer:
    """Keeps what comes after the last line end until the rest of that line arrives."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []  # joined only once the line ends: a long one is copied once

    def feed(self, chunk: bytes) -> bytes:
        """All lines that end within the chunk, as one piece; empty if none does."""
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._begun.append(chunk)
            return b""
        whole = b"".join((*self._begun, chunk[:end]))
        self._begun = [chunk[end:]] if end < len(chunk) else []
        return whole


# RF merged from kube_api.shallow_json: The direct members of a JSON value as raw pieces, without descending: for
# values nested deeper than decoders go. Slow, and only met where a decoder has given up. Trusts that the text is
# JSON.

_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{},:]')


def members(value: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Each member of an object or array: its key with quotes (empty in an array) and its value as written."""
    depth, start, key, last_string = 0, 0, b"", b""
    for token in _TOKENS.finditer(value):
        text = token.group()
        if text in b"[{":
            depth += 1
            start = token.end() if depth == 1 else start
        elif text in b"]}":
            depth -= 1
            if depth == 0 and value[start : token.start()].strip():
                yield key, value[start : token.start()].strip()
        elif depth == 1 and text == b",":
            yield key, value[start : token.start()].strip()
            start, key = token.end(), b""
        elif depth == 1 and text == b":":
            start, key = token.end(), last_string
        elif depth == 1:
            last_string = text
