"""
Everything that decisions depended on, and the decisions, one JSON line each: what `bayplan replay` reads.

The first line says how the scheduler was set, the next ones build the index as it was; then changes and decisions in
the order in which they happened. Encoded and written by its own thread, so that neither a slow disk nor a big cluster
holds anybody up; what it is handed is never changed in place.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import IO, Any

import msgspec

from bayplan.indexing.journal import Change, Kind
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload

log = logging.getLogger("bayplan.recording")
VERSION = "bayplan.io/recording/v1"


class Recorder:
    """Follows an index by its journal; `decided` writes a decision after the changes before it."""

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
        """Write what has happened to the index since the last look."""
        changes = self._index.journal.since(self._position)
        self._position = self._index.journal.end
        if changes is None:  # more at once than the journal keeps: begin again from what is there now
            self._put({"again": True})
            self._put_state()
            return
        for change in changes:
            if not change.follows:
                self._put_change(change)

    def decided(self, workload: Workload, node: str, message: str, promised: Sequence[tuple[Workload, str]]) -> None:
        """Write a decision, with the promises that it left room for; its pod is counted in after that."""
        self._n_decisions += 1
        self._put(
            {
                "decision": self._n_decisions,
                "at": self._wall().isoformat(),
                "workload": workload,
                "node": node,
                "message": message,
                "promised": promised,
            }
        )

    def close(self) -> None:
        self._lines.put(None)
        self._thread.join()

    def _put_state(self) -> None:
        index = self._index
        for name, labels in index.census.namespaces.items():
            self._put({"namespace": name, "labels": labels})
        for table, stored in index.storage.tables.items():
            for name, value in stored.items():
                self._put({"stored": table, "name": name, "value": value})
        for slot in sorted(index.slots.by_name.values()):
            self._put({"target": index.slots.at(slot)})
        for record in index.records.values():
            self._put({"add": record.workload, "shares": record.shares})

    def _put_change(self, change: Change) -> None:
        match change.kind:
            case Kind.WORKLOAD_ADDED:
                self._put({"add": change.workload, "shares": change.shares})
            case Kind.WORKLOAD_REMOVED:
                assert change.workload is not None
                self._put({"remove": change.workload.key})
            case Kind.TARGET_ADDED | Kind.TARGET_CHANGED:
                self._put({"target": change.target})
            case Kind.TARGET_REMOVED:
                assert change.target is not None
                self._put({"removeTarget": change.target.name})
            case Kind.NAMESPACE_CHANGED:
                self._put({"namespace": change.name, "labels": change.after})
            case Kind.STORAGE_CHANGED:
                self._put({"stored": change.table, "name": change.name, "value": change.after})

    def _put(self, line: dict[str, Any]) -> None:
        self._lines.put(line)

    def _write(self) -> None:
        """Until told to close. On a full disk the recording ends, and scheduling goes on."""
        line: dict[str, Any] | None = {}
        try:
            while (line := self._lines.get()) is not None:
                self._file.write(msgspec.json.encode(line) + b"\n")
                if self._lines.empty():
                    self._file.flush()
            self._file.close()
        except OSError as error:
            log.error("the recording ends here: %s", error.strerror or error)  # noqa: TRY400 (no bug of ours)
            with contextlib.suppress(OSError):
                self._file.close()
            while line is not None:  # nobody keeps what cannot be written
                line = self._lines.get()
