"""
Files, directories, standard input and the lists of a live cluster, read into typed objects.

`load` is the entry point. Everything wrong with the whole input is raised as one `InputError`. Does not know what the
objects mean for scheduling.
"""

from __future__ import annotations

import codecs
import gc
import mmap
import os
import pathlib
import stat
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import BinaryIO, Protocol, TypeAlias

import msgspec

from bayplan.controllers import custom_kinds
from bayplan.controllers.custom_kinds import CustomKind
from bayplan.errors import Fault, InputError
from bayplan.model.semantics import UPSTREAM, Semantics
from bayplan.reading import json_documents
from bayplan.reading.collecting import Collector, Inputs, Sink
from bayplan.reading.documents import SNIFFED_BYTES, Document, Source
from bayplan.reading.pod_batches import TakePods
from bayplan.wire.kinds import GroupKind
from bayplan.wire.pods import Pod

EXTENSIONS = (".json", ".yaml", ".yml")
STANDARD_INPUT = "-"
EMPTY = "the file is empty"
MIN_SLOW_YAML_BYTES = 20_000_000
OBJECTS_PER_PROGRESS_REPORT = 500
_MAX_FLOW_YAML_BYTES = 1_000_000
_MAX_AMBIGUOUS = 2  # documents, of which the last one is no JSON
_MIN_OBJECTS_TO_FREEZE = 500_000
_CHUNK_BYTES = 1 << 20
Recursion: TypeAlias = bool | Collection[str]  # all directories or none, or these paths


class FilesOf(Protocol):
    """Finds the files that one path names."""

    def __call__(self, path: str, *, recursive: bool) -> FoundFiles: ...


class FindFiles(Protocol):
    """Finds the files that several paths name."""

    def __call__(self, paths: Iterable[str], *, recursive: Recursion) -> FoundFiles: ...


OpenSource: TypeAlias = Callable[[str, BinaryIO], "Source | Fault"]


class ReadProgress(msgspec.Struct, frozen=True):
    """How far reading has come. Each `hint` for the user is reported once."""

    file: str
    bytes_read: int
    bytes_total: int
    objects_read: int
    hint: str = ""


class ReadOptions(msgspec.Struct, frozen=True):
    """
    What to read, and how.

    Objects that name no namespace are in `namespace`. If `strict`, misspelt fields are faults, and so is what an API
    server would reject in hand-written objects, given `semantics`. A sink, by kind, receives each object instead of the
    list in `Inputs`, so that the caller can reduce and drop it at once. `custom_kinds` make pods, beside those that are
    known anyway.

    `state` are the paths of what runs, `live` is what an API server returned: both are read and not validated, and
    `paths` are then what is about to be applied on them. `written` are read like what is at `paths`, from memory.
    Directories are read recursively, all of them or those named. Objects of the state that name no namespace are in
    `state_namespace`, if it is not that of the others.
    """

    paths: Sequence[str] = ()
    written: Sequence[Source] = ()
    recursive: Recursion = False
    namespace: str = "default"
    state_namespace: str = ""
    semantics: Semantics = UPSTREAM
    strict: bool = True
    stdin: BinaryIO | None = None
    progress: Callable[[ReadProgress], None] | None = None
    sinks: Mapping[GroupKind, Sink] = {}
    state: Sequence[str] = ()
    live: Iterable[Source] = ()
    custom_kinds: Sequence[CustomKind] = ()
    disk: Disk | None = None


class _ProgressReporter(msgspec.Struct):
    report_to: Callable[[ReadProgress], None] | None
    bytes_total: int
    bytes_of_earlier_files: int = 0
    n_objects: int = 0

    def report(self, source: Source, hint: str = "") -> None:
        if self.report_to is not None:
            n_read = self.bytes_of_earlier_files + source.position
            self.report_to(ReadProgress(source.name, n_read, max(self.bytes_total, n_read), self.n_objects, hint))


def load(options: ReadOptions) -> Inputs:
    """The objects of all files and of the live cluster; raises InputError with everything that is wrong."""
    given, state = (
        (options.disk or DISK).find(paths, recursive=options.recursive) for paths in (options.paths, options.state)
    )
    inputs = Inputs(custom_kinds=custom_kinds.table(options.custom_kinds))
    collector = Collector(namespace=options.namespace, strict=options.strict, sinks=options.sinks, inputs=inputs)
    has_state = bool(options.state or options.live)
    if has_state and (options.paths or options.written):
        collector.begin_change()
    for found in (given, state):
        collector.faults.extend(found.faults)
        collector.inputs.hints.extend(map(str, found.skipped))
    files = (*given.files, *state.files)
    n_bytes = sum(os.path.getsize(file) for file in files if os.path.isfile(file))  # noqa: PTH113, PTH202
    reporter = _ProgressReporter(options.progress, n_bytes)

    def collect(sources: Iterable[Source | Fault]) -> None:
        for source in sources:
            if isinstance(source, Fault):
                collector.add(source)
            else:
                _collect(source, collector, reporter)

    stdin = options.stdin or sys.stdin.buffer
    collect((options.disk or DISK).open(file, stdin) for file in given.files)
    collect(options.written)
    if has_state:
        collector.begin_state()
        collector.namespace = options.state_namespace or options.namespace
        collect((options.disk or DISK).open(file, stdin) for file in state.files)
        collect(options.live)
        collector.end_state()
    if collector.faults:
        raise InputError(collector.faults)
    return collector.inputs


def _collect(source: Source, collector: Collector, reporter: _ProgressReporter) -> None:
    """Hand every object of one file to the collector, and report progress."""
    hints = []
    if not source.is_json and not source.is_yaml_dump:
        from bayplan.reading import yaml_documents

        if source.size > MIN_SLOW_YAML_BYTES:
            size = source.size // 1_000_000
            hints.append(
                f"{source.name} is {size} MB of YAML; JSON (kubectl get -o json) is read about thirty times faster"
            )
        if not yaml_documents.HAS_LIBYAML:
            hints.append(yaml_documents.SLOW_WARNING)
    for hint in hints:
        if hint not in collector.inputs.hints:
            collector.inputs.hints.append(hint)
            reporter.report(source, hint)
    n_faults = len(collector.faults)

    def take_pods(pods: list[Pod]) -> bool:
        taken = collector.add_pods(pods, source)
        if taken:
            reporter.n_objects += len(pods)
            reporter.report(source)
            source.release(source.position)
        return taken

    for item in documents_of(source, take_pods):
        collector.add(item)
        reporter.n_objects += 1
        if reporter.n_objects % OBJECTS_PER_PROGRESS_REPORT == 0:
            reporter.report(source)
            source.release(source.position)
    if not source.n_documents and len(collector.faults) == n_faults:
        collector.add(source.fault("the file holds no object"))
    source.position = source.size
    reporter.report(source)
    reporter.bytes_of_earlier_files += source.size


def documents_of(source: Source, take_pods: TakePods | None = None) -> Iterator[Document | Fault]:
    """Each object of one file in order, but for pods that `take_pods` takes, and what is wrong with the file."""
    if not source.is_json:
        # What reads YAML is imported only for YAML, because PyYAML is slow to import.
        if source.is_yaml_dump:
            from bayplan.reading import yaml_dumps

            yield from yaml_dumps.read(source)
        else:
            from bayplan.reading import yaml_documents

            yield from yaml_documents.read(source)
        return
    for n_read, item in enumerate(json_documents.read(source, take_pods)):
        rest = _as_yaml(source, n_read) if isinstance(item, Fault) else []
        if rest:
            yield from rest
            return
        yield item


def _as_yaml(source: Source, n_read: int) -> list[Document | Fault]:
    """
    What follows the first `n_read` documents of a file that begins like JSON and is YAML; none if it is not.

    As kubectl's decoder: until a second document is JSON, it may be YAML in flow style, or JSON between lines of YAML.
    """
    is_text = n_read > 0 or not source.name.endswith(".json")
    if source.n_documents > _MAX_AMBIGUOUS or source.size > _MAX_FLOW_YAML_BYTES or not is_text:
        return []
    from bayplan.reading import yaml_documents

    found = list(yaml_documents.read(Source(source.name, source.data)))
    return [] if any(isinstance(item, Fault) for item in found) else found[n_read:]


class FoundFiles(msgspec.Struct, frozen=True):
    """
    The files to read, what is wrong with the other paths, and a note for everything in a directory that is skipped.

    A directory may be somebody else's, such as the checkout of a change: nothing in it leads out of it, and nothing in
    it is read that is no file. What a person names is read, whatever it is: `-f <(kubectl get …)` is a pipe. `named`
    are the files that a path names itself, rather than a directory that holds them.
    """

    files: list[str] = []
    faults: list[Fault] = []
    skipped: list[Fault] = []
    named: frozenset[str] = frozenset()


def find_files(paths: Iterable[str], *, recursive: Recursion, in_path: FilesOf | None = None) -> FoundFiles:
    """Every file that the paths name, each once and in a fixed order; `in_path` finds those that one path names."""
    files: dict[str, str] = {}
    given = list(paths)
    every = [
        (in_path or files_of)(path, recursive=recursive if isinstance(recursive, bool) else path in recursive)
        for path in given
    ]
    for found in every:
        for file in found.files:
            files.setdefault(file if file == STANDARD_INPUT else os.path.realpath(file), file)
    faults = [fault for found in every for fault in found.faults]
    skipped = list(dict.fromkeys(one for found in every for one in found.skipped))
    return FoundFiles(list(files.values()), faults, skipped, frozenset(given).intersection(files.values()))


def files_of(path: str, *, recursive: bool) -> FoundFiles:
    """The files that one path names."""
    if path == STANDARD_INPUT:
        return FoundFiles([path])
    if path.startswith(("http://", "https://")):
        return FoundFiles(faults=[Fault("addresses are not read; fetch it first and give the file", file=path)])
    try:
        if not pathlib.Path(path).exists():
            return FoundFiles(faults=[Fault("no such file or directory", file=path)])
        if not pathlib.Path(path).is_dir():
            return FoundFiles([path])
        found = _in_directory(path, recursive=recursive)
        if found.files or found.faults:
            return found
        message = "the directory holds no .yaml, .yml or .json file"
        if not recursive and _in_directory(path, recursive=True).files:
            message += "; its subdirectories do: add -R"
        return FoundFiles(faults=[Fault(message, file=path)], skipped=found.skipped)
    except (OSError, ValueError) as error:  # a path may hold a character that no path has
        return FoundFiles(faults=[_cannot_be_read(path, error)])


def _in_directory(path: str, *, recursive: bool) -> FoundFiles:
    """The files to read, and a fault for each folder that cannot be listed: it may hold some."""
    unlisted: list[OSError] = []
    root = os.path.realpath(path)
    files: list[str] = []
    skipped: list[Fault] = []
    for folder, folders, names in os.walk(path, onerror=unlisted.append):
        folders.sort()
        listed = [*(name for name in sorted(names) if name.endswith(EXTENSIONS)), *(folders if recursive else ())]
        for file in (os.path.join(folder, name) for name in listed):  # noqa: PTH118 - keeps `./`
            reason = _reason_to_skip(file, root)
            if reason:
                skipped.append(Fault(f"skipped: {reason}", file=file))
            elif not os.path.isdir(file):  # noqa: PTH112
                files.append(str(pathlib.Path(file)) if recursive else file)
        if not recursive:
            break
    faults = [_cannot_be_read(str(error.filename), error) for error in unlisted]
    return FoundFiles(sorted(files), faults, skipped)


def _reason_to_skip(path: str, root: str) -> str:
    """Why something in a directory is not read; empty for files and folders. Nothing is opened to find out."""
    if os.path.islink(path):  # noqa: PTH114
        leads_to = os.path.realpath(path)
        if os.path.commonpath((leads_to, root)) != root:
            return "a link that leads out of the directory"
        if not os.path.exists(leads_to):  # noqa: PTH110
            return ""  # that it cannot be read is reported as for a file
    mode = os.stat(path).st_mode  # noqa: PTH116
    return "" if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else "not a file"


def _cannot_be_read(path: str, error: OSError | ValueError) -> Fault:
    return Fault(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=path)


def open_source(path: str, standard_input: BinaryIO, *, is_mapped: bool = True) -> Source | Fault:
    """
    The file's bytes, or why they cannot be parsed as text.

    A large file is mapped, not read. A process that reads a mapped file while another one truncates it is killed.
    """
    try:
        if path == STANDARD_INPUT:
            source = Source("standard input", standard_input.read())
        else:
            with pathlib.Path(path).open("rb") as file:
                status = os.fstat(file.fileno())
                # A pipe, as in `-f <(kubectl get …)`, has no size and cannot be mapped.
                is_mappable = is_mapped and stat.S_ISREG(status.st_mode) and status.st_size
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if is_mappable else None
                source = Source(path, file.read() if mapped is None else mapped)
    except (OSError, ValueError) as error:
        return _cannot_be_read(path, error)
    return _not_text(source) or source


def _not_text(source: Source) -> Fault | None:
    head = bytes(source.data[:SNIFFED_BYTES])
    if not head.strip() and source.size <= SNIFFED_BYTES:
        return source.fault(EMPTY)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return source.fault("the text is UTF-16, expected UTF-8; save it again as UTF-8")
    if b"\0" in head:
        return source.fault("a binary file, expected YAML or JSON")
    if source.is_json_dump:  # checked item by item, because reading it all at once takes long
        return None
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, source.size, _CHUNK_BYTES):
        source.release(start)
        chunk, held = source.data[start : start + _CHUNK_BYTES], len(decoder.getstate()[0])
        if not held and chunk.isascii():
            continue
        try:
            decoder.decode(chunk, final=start + _CHUNK_BYTES >= source.size)
        except UnicodeDecodeError as error:
            return source.encoding_fault(start - held + error.start)
    return None


class Disk(msgspec.Struct, frozen=True):
    """How files are found and opened: as they are now, or as they were."""

    find: FindFiles = find_files
    open: OpenSource = open_source


DISK = Disk()


@contextmanager
def gc_paused() -> Iterator[None]:
    """
    Pause Python's garbage collector while reading: it would walk everything read so far, repeatedly, and find no cycle.

    If many objects were made meanwhile, they are frozen, as the collector would walk them all once it is back.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if gc.get_count()[0] > _MIN_OBJECTS_TO_FREEZE:
                gc.freeze()
            gc.enable()
