"""
Recordings of `run --record`: writing one, and reading one with the index as it was at each decision.

A recording has one JSON object per line. The first line holds the settings of the scheduler, the next lines the initial
state of the index; changes and decisions follow in order. A thread of its own encodes and writes, so that a slow disk
or a large cluster does not delay scheduling; the values handed to it are never changed in place.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import pathlib
import queue
import re
import threading
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import IO, Any

import msgspec

from bayplan.errors import Fault, InputError
from bayplan.indexing.journal import Change, ChangeType
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.semantics import Semantics
from bayplan.model.targets import Target
from bayplan.model.volumes import Attachment, AvailableSpace, Claim, StorageClass, Volume
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.validating import structure_faults

log = logging.getLogger("bayplan.recording")
VERSION = "bayplan.io/recording/v1"
_LONG_NUMBER = re.compile(rb"\d{19}")
_AMOUNT = re.compile(r"-?\d{1,60}(/[1-9]\d{0,59})?")


def check_path(path: str) -> None:
    """Raise InputError if no recording can be written there; nothing is written yet."""
    target = pathlib.Path(path)
    if not target.parent.is_dir():
        code = errno.ENOENT
    elif target.is_dir():
        code = errno.EISDIR
    elif not os.access(target if target.exists() else target.parent, os.W_OK):
        code = errno.EACCES
    else:
        return
    raise InputError(Fault(f"cannot be written: {os.strerror(code)}", file=path))


class Recorder:
    """Follows an index by its journal; `decided` writes a decision after the changes that precede it."""

    def __init__(
        self, file: IO[bytes], index: PlacementIndex, header: dict[str, Any], wall: Callable[[], datetime]
    ) -> None:
        self._index = index
        self._wall = wall
        self._position = index.journal.end
        self._n_decisions = 0
        self._lines: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._file = file
        self._thread = threading.Thread(target=self._write, name="recorder", daemon=True)
        self._put({"recording": VERSION, **header})
        self._put_state()
        self._thread.start()

    def changed(self) -> None:
        """Write the changes of the index since the last call."""
        changes = self._index.journal.since(self._position)
        self._position = self._index.journal.end
        if changes is None:  # more changes than the journal keeps: write the whole state again
            self._put({"again": True})
            self._put_state()
            return
        for change in changes:
            if not change.follows:
                self._put_change(change)

    def decided(self, workload: Workload, node: str, message: str, nominated: Sequence[tuple[Workload, str]]) -> None:
        """
        Write a decision; the change that adds its pod follows. A binding is on several clusters, listed in `node`.

        `nominated` are the nominated pods that it left room for, and the pod itself if it is nominated.
        """
        self._n_decisions += 1
        self._put(
            {
                "decision": self._n_decisions,
                "at": self._wall().isoformat(),
                "workload": workload,
                "node": node,
                "message": message,
                "promised": nominated,
            }
        )

    def close(self) -> None:
        self._lines.put(None)
        self._thread.join()

    def _put_state(self) -> None:
        index = self._index
        for name, labels in index.peer_index.namespaces.items():
            self._put({"namespace": name, "labels": labels})
        for table, stored in index.storage.tables.items():
            for name, value in stored.items():
                self._put({"stored": table, "name": name, "value": value})
        for slot in sorted(index.slots.by_name.values()):
            self._put({"target": index.slots.at(slot)})
        for record in index.records.values():
            self._put({"add": record.workload, "shares": record.shares})

    def _put_change(self, change: Change) -> None:
        match change.type:
            case ChangeType.WORKLOAD_ADDED:
                self._put({"add": change.workload, "shares": change.shares})
            case ChangeType.WORKLOAD_REMOVED:
                assert change.workload is not None
                self._put({"remove": change.workload.key})
            case ChangeType.TARGET_ADDED | ChangeType.TARGET_CHANGED:
                self._put({"target": change.target})
            case ChangeType.TARGET_REMOVED:
                assert change.target is not None
                self._put({"removeTarget": change.target.name})
            case ChangeType.NAMESPACE_CHANGED:
                self._put({"namespace": change.name, "labels": change.after})
            case ChangeType.STORAGE_CHANGED:
                self._put({"stored": change.table, "name": change.name, "value": change.after})

    def _put(self, line: dict[str, Any]) -> None:
        self._lines.put(line)

    def _write(self) -> None:
        """Write lines until `close`. A failed write ends the recording, not the scheduler."""
        line: dict[str, Any] | None = {}
        try:
            while (line := self._lines.get()) is not None:
                self._file.write(msgspec.json.encode(line, enc_hook=_written) + b"\n")
                if self._lines.empty():
                    self._file.flush()
            self._file.close()
        except OSError as error:
            log.error("the recording ends here: %s", error.strerror or error)  # noqa: TRY400 - not a bug, so no traceback
            with contextlib.suppress(OSError):
                self._file.close()
            while line is not None:  # discard the rest
                line = self._lines.get()


def _written(value: object) -> str:
    """An exact amount of a cluster as text."""
    if isinstance(value, Fraction):
        return str(value)
    raise NotImplementedError(f"values of {type(value).__name__} are not recorded")


def _read(expected: type, text: object) -> Fraction:
    if expected is Fraction and isinstance(text, str) and _AMOUNT.fullmatch(text):
        return Fraction(text)
    raise ValueError(f"expected an amount such as 3 or 1/2, got {str(text)[:40]!r}")


_STORAGE_TYPES: dict[str, Any] = {
    "claims": Claim,
    "volumes": Volume,
    "classes": StorageClass,
    "space": AvailableSpace,
    "attach_limits": dict[str, int | None],
    "attachments": Attachment,
    "metering_drivers": bool,
    "required_drivers": bool,
}


class _Added(msgspec.Struct):
    add: Workload
    shares: tuple[tuple[str, int], ...]


class _Removed(msgspec.Struct):
    remove: WorkloadKey


class _TargetSet(msgspec.Struct):
    target: Target


class _TargetRemoved(msgspec.Struct, rename="camel"):
    remove_target: str


class _NamespaceSet(msgspec.Struct):
    namespace: str
    labels: dict[str, str] | None


class _Stored(msgspec.Struct):
    """The type of the value depends on the table."""

    stored: str
    name: str
    value: msgspec.Raw


# By the key that only lines of this type have.
_CHANGES: dict[str, Any] = {
    "add": _Added,
    "remove": _Removed,
    "target": _TargetSet,
    "removeTarget": _TargetRemoved,
    "namespace": _NamespaceSet,
    "stored": _Stored,
}


class RecordingHeader(msgspec.Struct, rename="camel"):
    """
    The settings of the scheduler; `scheduler` is its KubeSchedulerConfiguration, if it had one. `fleet`: it scheduled
    bindings on clusters.
    """

    recording: str = ""
    semantics: Semantics = Semantics()
    seed: str = ""
    identity: str = ""
    scheduler: dict[str, Any] | None = None
    fleet: bool = False


class RecordedDecision(msgspec.Struct, rename="camel"):
    """One recorded decision; `nominated` are the pods that it reserved room for, with their nodes."""

    decision: int
    at: str
    workload: Workload
    node: str
    message: str
    # The key of the recorded format is older than the name and does not change.
    nominated: list[tuple[Workload, str]] = msgspec.field(default_factory=list, name="promised")


def _too_large(value: object, path: str) -> Iterator[str]:
    """The paths of the integers of more than 64 bits."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _too_large(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _too_large(inner, f"{path}[{position}]")
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        yield path


class Recording:
    """A recording to replay: `decisions` yields each decision, and `index` is then as it was for that decision."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file, self._name, self._line = file, name, 0
        first = next(iter(self._lines()), b"")
        if not first:
            raise InputError(Fault("the file is empty, or its first line is incomplete", file=name))
        self.header = self._decoded(first, RecordingHeader)
        if self.header.recording != VERSION:
            raise InputError(Fault(f"expected a recording ({VERSION}), got something else", file=name, line=1))
        self.index = self._empty_index()

    def decisions(self) -> Iterator[RecordedDecision]:
        for line in self._lines():
            keys = self._decoded(line, dict[str, msgspec.Raw])
            if "decision" in keys:
                yield self._decoded(line, RecordedDecision)
            elif "again" in keys:
                self.index = self._empty_index()
            else:
                self._apply(line, keys)

    def _empty_index(self) -> PlacementIndex:
        return PlacementIndex(self.header.semantics, self.header.seed, lost_targets_count=self.header.fleet)

    def _lines(self) -> Iterator[bytes]:
        for line in self._file:
            self._line += 1
            if not line.endswith(b"\n"):
                return  # incomplete: the scheduler was killed while writing
            yield line

    def _apply(self, line: bytes, keys: Mapping[str, object]) -> None:
        kind = next((key for key in _CHANGES if key in keys), None)
        if kind is None:
            raise InputError(self._fault(f"expected a change or a decision, got {', '.join(keys)}"))
        index, change = self.index, self._decoded(line, _CHANGES[kind])
        try:
            match change:
                case _Added():
                    self._check_shares(change.shares)
                    index.add_shares(change.add, change.shares)
                case _Removed():
                    self._check_known("remove", change.remove, index.records, "an added workload")
                    index.remove(change.remove)
                case _TargetSet(target=target):
                    (index.update_target if target.name in index.slots.by_name else index.add_target)(target)
                case _TargetRemoved():
                    self._check_known("removeTarget", change.remove_target, index.slots.by_name, "an added target")
                    index.remove_target(change.remove_target)
                case _NamespaceSet():
                    index.set_namespace(change.namespace, change.labels)
                case _Stored():
                    self._check_known("stored", change.stored, _STORAGE_TYPES, f"one of {', '.join(_STORAGE_TYPES)}")
                    value = self._decoded(change.value, _STORAGE_TYPES[change.stored] | None, "value")
                    index.set_stored(change.stored, change.name, value)
        except InputError as error:  # the index does not know the line
            raise InputError([fault if fault.file else self._fault(fault.message) for fault in error.faults]) from None

    def _check_shares(self, shares: Sequence[tuple[str, int]]) -> None:
        if len(dict(shares)) < len(shares):
            raise InputError(self._fault("expected each target once", "shares"))

    def _check_known(self, path: str, name: str, known: Container[str], expected: str) -> None:
        if name not in known:
            raise InputError(self._fault(f"expected {expected}, got {name!r}", path))

    def _decoded(self, text: bytes | msgspec.Raw, kind: Any, path: str = "") -> Any:
        try:
            decoded = structure_faults.decode(text, kind, path, dec_hook=_read)
            # The types of the model do not say that arrays hold 64 bits: others make it from wire types, which do.
            plain = structure_faults.decode(text, Any, path) if _LONG_NUMBER.search(text) else None
        except InputError as error:
            raise InputError([self._fault(fault.message, fault.path) for fault in error.faults]) from None
        wrong = list(_too_large(plain, path))
        if wrong:
            raise InputError([self._fault("expected a whole number of at most 64 bits", where) for where in wrong])
        return decoded

    def _fault(self, message: str, path: str = "") -> Fault:
        return Fault(message, file=self._name, line=self._line, path=path)
