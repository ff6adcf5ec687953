"""
Decodes what API servers send into typed objects. An object that cannot be decoded does not affect the others.

The fast path decodes a whole page, or all lines of a chunk, at once. If that fails, each object is decoded alone.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, cast

import msgspec

from bayplan.kube_api import errors
from bayplan.kube_api.errors import BrokenAnswerError, KubeError, Status, WrongServerError
from bayplan.wire.meta import ApiObject, WireObject

T = TypeVar("T", bound=ApiObject)
Item = TypeVar("Item")

# What decoders raise: wrong types, bad syntax, invalid UTF-8, nesting without end.
DECODE_ERRORS = (ValueError, RecursionError)

# A larger page is decoded in slices, so that it never holds the event loop for long.
_MAX_PAGE_BYTES_AT_ONCE = 2_000_000
_OBJECTS_PER_SLICE = 100


class Key(NamedTuple):
    """Namespace (empty if cluster-scoped) and name: at most one object of a resource has it at a time."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Undecodable(msgspec.Struct, frozen=True):
    """An object that exists and cannot be decoded."""

    key: Key
    uid: str
    resource_version: str
    error: str
    raw: bytes = b""  # the object as sent


class SentObject(ApiObject):
    """An object of any kind with what the server sent: as an item type, it keeps that."""

    raw: bytes = b""


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


_RAW_EVENT = msgspec.json.Decoder(WatchEvent[msgspec.Raw])
_RAW_PAGE = msgspec.json.Decoder(_ListPage[msgspec.Raw])
_META = msgspec.json.Decoder(ListMeta)
_STUB = msgspec.json.Decoder(ApiObject)
_STATUS = msgspec.json.Decoder(Status)
_TEXT = msgspec.json.Decoder(str)


def identity(item: ApiObject | Undecodable) -> Identity:
    """Key, uid and resource version of an object."""
    if isinstance(item, Undecodable):
        return Identity(item.key, item.uid, item.resource_version)
    meta = item.metadata
    return Identity(Key(meta.namespace, meta.name), meta.uid, meta.resource_version)


def decoded(decoder: msgspec.json.Decoder[Item], answer: bytes, tried: str) -> Item:
    """The object in an answer; `BrokenAnswerError` if the answer is cut off or is something else."""
    try:
        return decoder.decode(answer)
    except DECODE_ERRORS as error:
        raise BrokenAnswerError(f"{tried}: the answer cannot be decoded: {_reworded(error)}") from None


class Decoding(Generic[T]):
    """Decoders for objects of one wire type; `ApiObject` suits metadata-only requests."""

    def __init__(self, item_type: type[T]) -> None:
        of_type: Any = item_type
        self._keeps_raw = issubclass(item_type, SentObject)  # then each object is decoded alone
        self._one: msgspec.json.Decoder[T] = msgspec.json.Decoder(of_type)
        self._page: msgspec.json.Decoder[_ListPage[T]] = msgspec.json.Decoder(_ListPage[of_type])
        self._event: msgspec.json.Decoder[WatchEvent[T]] = msgspec.json.Decoder(WatchEvent[of_type])

    def decode_object(self, raw: bytes | msgspec.Raw) -> T | Undecodable:
        """A single object."""
        try:
            found = self._one.decode(raw)
        except DECODE_ERRORS as error:
            key, uid, version = _identity_of_raw(bytes(raw))
            return Undecodable(key, uid, version, _reworded(error), bytes(raw))
        if isinstance(found, SentObject):
            found.raw = bytes(raw)
        return found

    def page(self, tried: str, body: bytes) -> tuple[ListMeta, Iterator[Sequence[T | Undecodable]]]:
        """The metadata of a page, and its items in one or more slices that are decoded on demand."""
        if len(body) <= _MAX_PAGE_BYTES_AT_ONCE and not self._keeps_raw:
            try:
                page = self._page.decode(body)
            except DECODE_ERRORS:
                pass
            else:
                _must_be_list(tried, page.kind)
                return page.metadata, iter((page.items or (),))
        meta, raws = _raw_items(tried, body)
        return meta, (
            [self.decode_object(raw) for raw in raws[at : at + _OBJECTS_PER_SLICE]]
            for at in range(0, len(raws), _OBJECTS_PER_SLICE)
        )

    def events(self, tried: str, lines: bytes) -> Sequence[WatchEvent[T | Undecodable]]:
        """The events in the lines. An `ERROR` event is raised; a server sends nothing after it."""
        if self._keeps_raw:
            return [self._event_of(tried, line) for line in lines.splitlines() if line]
        try:
            events = self._event.decode_lines(lines)
        except DECODE_ERRORS:
            return [self._event_of(tried, line) for line in lines.splitlines() if line]
        for event in events:
            if event.type == "ERROR":
                return [self._event_of(tried, line) for line in lines.splitlines() if line]
        return cast("Sequence[WatchEvent[T | Undecodable]]", events)

    def _event_of(self, tried: str, line: bytes) -> WatchEvent[T | Undecodable]:
        try:
            raw = _RAW_EVENT.decode(line)
        except DECODE_ERRORS as error:
            deep = _deep_event(line) if isinstance(error, RecursionError) else None
            if deep is None:
                raise BrokenAnswerError(f"{tried}: sent a line that is not a watch event ({error})") from None
            raw = deep
        if raw.type == "ERROR":
            raise _error_of(tried, raw.object)
        return WatchEvent(raw.type, self.decode_object(raw.object))


def _deep_event(line: bytes) -> WatchEvent[msgspec.Raw] | None:
    """A watch event nested deeper than decoders go; None if it is none."""
    try:
        found = dict(members(line))
        return WatchEvent(_TEXT.decode(found[b'"type"']), msgspec.Raw(found[b'"object"']))
    except (KeyError, *DECODE_ERRORS):
        return None


def _must_be_list(tried: str, kind: str) -> None:
    if not kind.endswith("List"):
        raise WrongServerError(f"{tried}: expected a list of objects, got {kind or 'something else'}")


def _raw_items(tried: str, body: bytes) -> tuple[ListMeta, Sequence[bytes | msgspec.Raw]]:
    """The metadata of the page and its items as raw JSON."""
    try:
        page = _RAW_PAGE.decode(body)
    except DECODE_ERRORS as error:
        if isinstance(error, RecursionError):
            found = dict(members(body))
            with contextlib.suppress(KeyError, *DECODE_ERRORS):
                return _META.decode(found[b'"metadata"']), [item for _, item in members(found[b'"items"'])]
        # What is no JSON was cut off or garbled on its way; other JSON is the answer of another kind of server.
        error_type = WrongServerError if isinstance(error, msgspec.ValidationError) else BrokenAnswerError
        raise error_type(f"{tried}: the response is not a list of objects ({error})") from None
    _must_be_list(tried, page.kind)
    return page.metadata, page.items or ()


def _identity_of_raw(raw: bytes) -> Identity:
    try:
        return identity(_STUB.decode(raw))
    except DECODE_ERRORS:
        meta = dict(members(raw)).get(b'"metadata"', b"{}")
    namespace, name, uid, version = (text_at(meta, field) for field in ("namespace", "name", "uid", "resourceVersion"))
    return Identity(Key(namespace, name), uid, version)


def text_at(raw: bytes, *path: str) -> str:
    """The text at this path of an object that cannot be decoded; empty if there is none."""
    for field in path:
        raw = dict(members(raw)).get(f'"{field}"'.encode(), b'""')
    try:
        return _TEXT.decode(raw)
    except DECODE_ERRORS:
        return ""


def _error_of(tried: str, raw: msgspec.Raw) -> KubeError:
    try:
        status = _STATUS.decode(raw)
    except DECODE_ERRORS:
        status = Status(reason="InternalError", message="the watch failed", code=500)
    return errors.from_status(tried, status)


def _reworded(error: Exception) -> str:
    """The decoder's message with the field path first, as in our own messages."""
    if isinstance(error, RecursionError):
        return "nested too deeply to be decoded"
    text, _, path = str(error).partition(" - at `$")
    text = text.replace("`", "")
    text = text[:1].lower() + text[1:]
    return f"{path.strip('`').lstrip('.')}: {text}" if path else text


class LineBuffer:
    """Splits chunks into whole lines of any length; aiohttp's own reader rejects lines longer than its buffer."""

    def __init__(self) -> None:
        self._partial: list[bytes] = []  # joined once, when the line ends

    def feed(self, chunk: bytes) -> bytes:
        """All lines that end in the chunk, concatenated; empty if none does."""
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._partial.append(chunk)
            return b""
        whole = b"".join((*self._partial, chunk[:end]))
        self._partial = [chunk[end:]] if end < len(chunk) else []
        return whole


_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{},:]')


def members(value: bytes) -> Iterator[tuple[bytes, bytes]]:
    """
    Each direct member of an object or array: its key with quotes (empty in an array) and its value as raw JSON.

    Slow, and used only for values nested deeper than decoders go. The text must be valid JSON.
    """
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
