"""
The way in: everything that files, directories and standard input hold, as typed objects.

All that is wrong with all of it comes as one `InputError`. Knows nothing of what objects mean.
"""

from __future__ import annotations

import gc
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import BinaryIO

import msgspec

from bayplan.errors import Fault, InputError
from bayplan.reading import json_documents, sources, yaml_documents
from bayplan.reading.collecting import Collector, Sink
from bayplan.reading.documents import Document
from bayplan.reading.inputs import Inputs
from bayplan.reading.sources import Source

BIG_YAML = 20_000_000
_SMALL = 1_000_000
_REPORT_EVERY = 500


class ReadProgress(msgspec.Struct, frozen=True):
    """How far reading has come. A `hint` is said once, to the person waiting."""

    file: str
    bytes_read: int
    bytes_total: int
    objects_read: int
    hint: str = ""


def load(
    paths: Sequence[str],
    *,
    recursive: bool = False,
    namespace: str = "default",
    stdin: BinaryIO | None = None,
    progress: Callable[[ReadProgress], None] | None = None,
    strict: bool = True,
    sinks: Mapping[str, Sink] | None = None,
    live: Iterable[Source] = (),
) -> Inputs:
    """
    The objects of all paths; raises InputError with everything that is wrong.

    `namespace` is for objects that name none. A sink, by kind, gets each object instead of the list in `Inputs`, so
    that a caller may reduce and drop it at once. Not `strict`, misspelt fields pass. `live` is what a cluster has: an
    object of a file takes the place of the cluster's.
    """
    files, faults = sources.find(paths, recursive=recursive)
    collector = Collector(namespace=namespace, strict=strict, sinks=sinks or {})
    collector.faults.extend(faults)
    reporter = _Reporter(files, progress)
    for file in files:
        source = sources.open_source(file, stdin or sys.stdin.buffer)
        if isinstance(source, Fault):
            collector.add(source)
        else:
            _collect(source, collector, reporter)
    collector.begin_live()
    for source in live:
        _collect(source, collector, reporter)
    if collector.faults:
        raise InputError(collector.faults)
    return collector.inputs


def read(source: Source) -> Iterator[Document | Fault]:
    """Each object of one file in order, and what is wrong with the file."""
    if not source.starts_with_brace():
        yield from yaml_documents.read(source)
        return
    documents = json_documents.read(source)
    for first in itertools.islice(documents, 1):
        yield from (_flow_yaml(source) if isinstance(first, Fault) else []) or [first]
    yield from documents


def _flow_yaml(source: Source) -> list[Document | Fault]:
    """The documents of a file that starts like JSON but is YAML in braces; none if it is not that either."""
    if source.size > _SMALL or source.name.endswith(".json"):
        return []
    found = list(yaml_documents.read(Source(source.name, source.data)))
    return [] if any(isinstance(item, Fault) for item in found) else found


def _collect(source: Source, collector: Collector, reporter: _Reporter) -> None:
    reporter.start(source, collector.inputs.hints)
    n_before = len(collector.faults)
    for item in read(source):
        collector.add(item)
        reporter.count(source)
    if not source.n_documents and len(collector.faults) == n_before:
        collector.add(source.fault("the file holds no object"))
    reporter.finish(source)


class _Reporter:
    """Tells the caller how far reading has come, now and then."""

    def __init__(self, files: Sequence[str], tell: Callable[[ReadProgress], None] | None) -> None:
        self._tell = tell
        self._total = sum(os.path.getsize(file) for file in files if os.path.isfile(file))  # noqa: PTH113, PTH202
        self._before = self._n_objects = 0

    def start(self, source: Source, hints: list[str]) -> None:
        for hint in _hints(source):
            if hint not in hints:
                hints.append(hint)
                self._report(source, hint)

    def count(self, source: Source) -> None:
        self._n_objects += 1
        if self._n_objects % _REPORT_EVERY == 0:
            self._report(source)

    def finish(self, source: Source) -> None:
        source.position = source.size
        self._report(source)
        self._before += source.size

    def _report(self, source: Source, hint: str = "") -> None:
        if self._tell is not None:
            read = self._before + source.position
            self._tell(ReadProgress(source.name, read, max(self._total, read), self._n_objects, hint))


def _hints(source: Source) -> Iterator[str]:
    if source.starts_with_brace():
        return
    if source.size > BIG_YAML:
        size = source.size // 1_000_000
        yield f"{source.name} is {size} MB of YAML; JSON (kubectl get -o json) is read about thirty times faster"
    if not yaml_documents.HAS_LIBYAML:
        yield yaml_documents.SLOW_WARNING


# RF merged from reading.pausing: Reading without Python's collector of cycles: it would walk all that was read, again
# and again, and find none.

MANY = 500_000  # objects that would be walked once more as soon as the collector is back


@contextmanager
def collector_paused() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if gc.get_count()[0] > MANY:
                gc.freeze()
            gc.enable()
