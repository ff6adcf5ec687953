"""Which files to read, and their bytes: paths, directories, standard input. Knows nothing of YAML, JSON or objects."""

from __future__ import annotations

import codecs
import mmap
import os
import pathlib
import stat
from collections.abc import Iterable, Sequence
from typing import BinaryIO

from bayplan.errors import Fault

EXTENSIONS = (".json", ".yaml", ".yml")
STANDARD_INPUT = "-"
_CHUNK = 1 << 20
_SNIFFED = 8192


class Source:
    """
    The bytes of one file, mapped rather than read where possible.

    `position` is how far a reader has come, `n_documents` how many it has met: a list without items is one, too.
    """

    def __init__(self, name: str, data: bytes | mmap.mmap) -> None:
        self.name = name
        self.data = data
        self.size = len(data)
        self.position = 3 if data[:3] == codecs.BOM_UTF8 else 0
        self.n_documents = 0

    def read(self, size: int) -> bytes:
        """The next bytes, as a YAML parser asks for them."""
        chunk = bytes(self.data[self.position : self.position + size])
        self.position += len(chunk)
        return chunk

    def line_at(self, offset: int) -> int:
        """The line that the byte stands on, counted from 1."""
        return self.data[:offset].count(b"\n") + 1

    def starts_with_brace(self) -> bool:
        """Whether the text looks like JSON, as kubectl guesses it."""
        return self.data[self.position : self.position + _SNIFFED].lstrip()[:1] == b"{"

    def fault(self, message: str, line: int = 0) -> Fault:
        """What is wrong with the file."""
        return Fault(message, file=self.name, line=line)


def find(paths: Iterable[str], *, recursive: bool) -> tuple[list[str], list[Fault]]:
    """Every file that the paths stand for, each once and in a fixed order, and what is wrong with the others."""
    found: dict[str, str] = {}
    faults: list[Fault] = []
    for path in paths:
        files, fault = _expand(path, recursive=recursive)
        faults.extend(fault)
        for file in files:
            found.setdefault(file if file == STANDARD_INPUT else os.path.realpath(file), file)
    return list(found.values()), faults


def _expand(path: str, *, recursive: bool) -> tuple[Sequence[str], list[Fault]]:
    if path == STANDARD_INPUT:
        return [path], []
    if path.startswith(("http://", "https://")):
        return [], [Fault("addresses are not read; fetch it first and give the file", file=path)]
    try:
        if not pathlib.Path(path).exists():
            return [], [Fault("no such file or directory", file=path)]
        if not pathlib.Path(path).is_dir():
            return [path], []
        files, faults = _in_directory(path, recursive=recursive)
    except OSError as error:
        return [], [_cannot_be_read(path, error)]
    if not files and not faults:
        faults = [Fault(_nothing_in(path, recursive=recursive), file=path)]
    return files, faults


def _in_directory(path: str, *, recursive: bool) -> tuple[list[str], list[Fault]]:
    """The files in it to be read, and the folders in it that cannot be looked into: who knows what they hold."""
    closed: list[OSError] = []
    if recursive:
        walked = os.walk(path, onerror=closed.append)
        found = [str(pathlib.Path(folder, name)) for folder, _, names in walked for name in names]
    else:
        found = [entry.path for entry in os.scandir(path) if entry.is_file()]
    faults = [_cannot_be_read(str(error.filename), error) for error in closed]
    return sorted(file for file in found if file.endswith(EXTENSIONS)), faults


def _nothing_in(path: str, *, recursive: bool) -> str:
    message = "the directory holds no .yaml, .yml or .json file"
    deeper = not recursive and _in_directory(path, recursive=True)[0]
    return f"{message}; its subdirectories do: add -R" if deeper else message


def _cannot_be_read(path: str, error: OSError) -> Fault:
    return Fault(f"cannot be read: {error.strerror or error}", file=path)


def open_source(path: str, standard_input: BinaryIO) -> Source | Fault:
    """The file's bytes, or why they are not text that anyone could parse."""
    try:
        if path == STANDARD_INPUT:
            source = Source("standard input", standard_input.read())
        else:
            source = Source(path, _bytes_of(path))
    except OSError as error:
        return _cannot_be_read(path, error)
    return _not_text(source) or source


def _bytes_of(path: str) -> bytes | mmap.mmap:
    with pathlib.Path(path).open("rb") as file:
        status = os.fstat(file.fileno())
        # A pipe, as in `-f <(kubectl get …)`, has neither a size nor anything to map.
        if not stat.S_ISREG(status.st_mode) or not status.st_size:
            return file.read()
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _not_text(source: Source) -> Fault | None:
    head = bytes(source.data[:_SNIFFED])
    if not head.strip() and source.size <= _SNIFFED:
        return source.fault("the file is empty")
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return source.fault("the text is UTF-16, expected UTF-8; save it again as UTF-8")
    if b"\0" in head:
        return source.fault("a binary file, expected YAML or JSON")
    return _invalid_utf8(source)


def _invalid_utf8(source: Source) -> Fault | None:
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, source.size, _CHUNK):
        chunk, held = source.data[start : start + _CHUNK], len(decoder.getstate()[0])
        if not held and chunk.isascii():
            continue
        try:
            decoder.decode(chunk, final=start + _CHUNK >= source.size)
        except UnicodeDecodeError as error:
            offset = start - held + error.start
            byte = source.data[offset]
            return source.fault(f"not UTF-8: byte 0x{byte:02x} at offset {offset}", source.line_at(offset))
    return None
