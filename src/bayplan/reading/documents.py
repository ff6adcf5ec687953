"""
The bytes of one file, and one object as it is written in a file with the line of each of its fields.

Does not know wire types.
"""

from __future__ import annotations

import codecs
import mmap
import re
from collections.abc import Callable
from typing import Any

import msgspec

from bayplan.errors import Fault
from bayplan.validating import structure_faults
from bayplan.wire import kinds
from bayplan.wire.meta import ApiObject

JsonObject = dict[str, Any]
# The line of each key or item, by the id of its container. The containers live as long as the root.
Lines = dict[int, dict[str, int] | list[int]]

IN_MEMORY = "objects"  # the name of a source that is no file: objects that a caller has in memory
SNIFFED_BYTES = 8192
MIN_STREAMED_BYTES = 1 << 20
# A list as kubectl writes it, and as an API server does, which names the kind first.
JSON_LIST_HEAD = re.compile(
    rb'\{\s*(?:"kind":\s*"(\w*List)",\s*)?"apiVersion":\s*"([\w./]*)",\s*(?:"metadata":\s*\{[^{}]*\},\s*)?"items":\s*\['
)
JSON_LIST_TAIL = re.compile(rb'\]\s*(?:,\s*"kind":\s*"List"\s*(?:,\s*"metadata":\s*\{[^{}]*\}\s*)?)?\}\s*')
LIST_HEAD = re.compile(rb"(?:---\n)?apiVersion: v1\nitems:\n(?=- )")
RELEASED_BYTES = 1 << 26  # mapped pages are released so many bytes at a time
_CHUNK_BYTES = 1 << 20
_UTF8_BOM_BYTES = len(codecs.BOM_UTF8)
_KINDS_WITHOUT_STATUS = frozenset(row.kind for row in kinds.having(kinds.Trait.NO_STATUS))
_PATH_STEP = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


class Source:
    """
    The bytes of one file, mapped rather than read where possible.

    `is_json` is kubectl's guess: the text begins with a brace. `is_yaml_dump` if it begins as a list does that kubectl
    writes. `position` is how far a reader has come, `n_documents`
    how many documents it has found: a list without items is one.

    `is_json_dump` if it is large and both ends are those of a list that kubectl or an API server writes.
    """

    def __init__(self, name: str, data: bytes | mmap.mmap) -> None:
        self.name, self.data, self.size = name, data, len(data)
        self.position = _UTF8_BOM_BYTES if data[:_UTF8_BOM_BYTES] == codecs.BOM_UTF8 else 0
        self.is_json = data[self.position : self.position + SNIFFED_BYTES].lstrip()[:1] == b"{"
        self.is_yaml_dump = LIST_HEAD.match(data, self.position) is not None
        self.is_json_dump = self.size >= MIN_STREAMED_BYTES and self._is_json_list()
        self.n_documents = 0
        self._released = 0

    def _is_json_list(self) -> bool:
        if JSON_LIST_HEAD.match(self.data, self.position) is None:
            return False
        tail = bytes(self.data[-SNIFFED_BYTES:])
        return any(match.end() == len(tail) for match in JSON_LIST_TAIL.finditer(tail))

    def read(self, size: int) -> bytes:
        """The next bytes, in the form in which a YAML parser requests them."""
        chunk = bytes(self.data[self.position : self.position + size])
        self.position += len(chunk)
        return chunk

    def line_at(self, offset: int) -> int:
        """The line of a byte, counted from 1."""
        return count_lines(self.data, 0, offset) + 1

    def release(self, offset: int) -> None:
        """Take the mapped pages before the offset out of the process's memory; reading them again maps them again."""
        if offset < self._released:  # it is read once more
            self._released = 0
        if isinstance(self.data, mmap.mmap) and offset - self._released >= RELEASED_BYTES:
            end = offset // mmap.PAGESIZE * mmap.PAGESIZE
            if hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
                self.data.madvise(mmap.MADV_DONTNEED, self._released, end - self._released)
            self._released = end

    def fault(self, message: str, line: int = 0) -> Fault:
        """A fault of the file itself."""
        return Fault(message, file=self.name, line=line)

    def encoding_fault(self, offset: int) -> Fault:
        """The fault that a byte is not UTF-8."""
        return self.fault(f"not UTF-8: byte 0x{self.data[offset]:02x} at offset {offset}", self.line_at(offset))


def count_lines(data: bytes | mmap.mmap, start: int, end: int) -> int:
    """The line breaks between two offsets, in chunks: a slice of a mapped file is a copy."""
    steps = range(start, end, _CHUNK_BYTES)
    return sum(data[step : min(step + _CHUNK_BYTES, end)].count(b"\n") for step in steps)


class Located(msgspec.Struct, frozen=True):
    """An object as plain values, with the lines of all its fields."""

    root: JsonObject
    lines: Lines


class Document(msgspec.Struct, kw_only=True, eq=False):
    """
    One object of a file: `text` if it is JSON, `root` if it is YAML.

    `begins` is its first line, or a function that counts up to it: in a dump most lines are never needed. `typed` is
    the object in its wire type, if it is decoded already. `locate` returns its values with their lines; for JSON and
    the items of a dump that is a second, slow parse, made only to report a fault. `server_made` objects come from a
    dump: they were admitted by an API server and may carry fields that Bayplan does not know.
    """

    file: str
    begins: int | Callable[[], int]
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    server_made: bool = False
    root: JsonObject | None = None
    text: bytes = b""
    typed: ApiObject | None = None
    locate: Callable[[], Located]

    @property
    def line(self) -> int:
        """The line where the object begins. Valid only while its file is being read."""
        if not isinstance(self.begins, int):
            self.begins = self.begins()
        return self.begins

    @property
    def subject(self) -> str:
        """The object's name in messages: `Pod shop/web-1`."""
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {name}".strip()

    def plain(self) -> JsonObject:
        """The object as plain values; raises what msgspec raises if the text has a value that cannot be decoded."""
        if self.root is not None:
            return self.root
        root: JsonObject = msgspec.json.decode(self.text)
        return root

    def plain_if_decodable(self) -> JsonObject | None:
        """The object as plain values; none if they cannot be decoded, reported by the decoding as its kind."""
        try:
            return self.plain()
        except structure_faults.UNDECODABLE:
            return None

    def is_named(self) -> bool:
        """Whether the object has a name, rather than the beginning of a generated one."""
        metadata = (self.plain_if_decodable() or {}).get("metadata")
        return not isinstance(metadata, dict) or bool(metadata.get("name"))

    def fault(self, message: str, path: str = "") -> Fault:
        """A fault of the object, with its place in the file."""
        return Fault(message, file=self.file, line=line_of(self, path), subject=self.subject, path=path)


def line_of(document: Document, path: str) -> int:
    """
    The line of the field, or of the nearest enclosing field that the document has.

    The path is written as the API server writes it: `spec.containers[0].resources.limits[nvidia.com/gpu]`.
    """
    if not path:
        return document.line
    located = document.locate()
    line, value = document.line, located.root
    for step in _PATH_STEP.finditer(path):
        key: str | int = step[1] if step[1] is not None else step[2]
        if isinstance(value, list):
            key = int(key) if isinstance(key, str) and key.isdigit() else -1
            if not 0 <= key < len(value):
                break
        elif not isinstance(value, dict) or key not in value:
            break
        line = located.lines[id(value)][key]  # type: ignore[call-overload]
        value = value[key]
    return line


def from_root(file: str, line: int, root: JsonObject, locate: Callable[[], Located]) -> Document:
    """The document of an object that is available as plain values."""
    metadata = root.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    identity = (*map(root.get, ("apiVersion", "kind")), *map(metadata.get, ("namespace", "name", "generateName")))
    api_version, kind, namespace, name, generate_name = [text if isinstance(text, str) else "" for text in identity]
    return Document(
        file=file,
        begins=line,
        api_version=api_version,
        kind=kind,
        namespace=namespace,
        name=name or generate_name,
        server_made=is_server_made(kind, metadata, has_status="status" in root),
        root=root,
        locate=locate,
    )


def is_server_made(kind: str, metadata: JsonObject, *, has_status: bool) -> bool:
    """Whether an API server wrote the object. A dump that is edited by hand mostly loses its status first."""
    stamped = bool(metadata.get("uid") or metadata.get("resourceVersion"))
    return stamped and (has_status or kind in _KINDS_WITHOUT_STATUS)


def is_list(kind: str, root: JsonObject) -> bool:
    """Whether the object only wraps others."""
    return kind.endswith("List") and isinstance(root.get("items", False), list | None)


def kind_of_items(kind: str) -> str:
    """The kind of a typed list's items: `PodList` holds Pods; the items of a `List` name their own kinds."""
    return kind.removesuffix("List")
