"""
Files that stay as they were when they were first read, whatever becomes of them on the disk.

A state of the library is read once and asked often; some questions need its files again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any, BinaryIO

from bayplan.errors import Fault
from bayplan.reading import files
from bayplan.reading.documents import Source
from bayplan.reading.files import Disk, FoundFiles, Recursion


class KeptFiles:
    """Keeps what it finds and opens, except what cannot be read; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[tuple[str, bool], FoundFiles] = {}
        self._opened: dict[str, Source] = {}

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            opened = {path: (one.name, one.data) for path, one in self._opened.items()}
            return {"found": dict(self._found), "opened": opened}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]
        self._found = state["found"]
        self._opened = {path: Source(*one) for path, one in state["opened"].items()}

    def disk(self) -> Disk:
        """How to find and open them."""
        return Disk(self.find, self.open)

    def find(self, paths: Iterable[str], *, recursive: Recursion) -> FoundFiles:
        """Every file that the paths name, each once and in a fixed order; directories are listed once."""
        with self._lock:
            return files.find_files(paths, recursive=recursive, in_path=self._files_of)

    def _files_of(self, path: str, *, recursive: bool) -> FoundFiles:
        found = self._found.get((path, recursive)) or files.files_of(path, recursive=recursive)
        if not found.faults:
            self._found[path, recursive] = found
        return found

    def open(self, path: str, standard_input: BinaryIO) -> Source | Fault:
        """The file's bytes as they were first read, or why they cannot be parsed as text."""
        with self._lock:
            if path not in self._opened:
                found = files.open_source(path, standard_input, is_mapped=False)
                if isinstance(found, Fault):
                    return found
                self._opened[path] = found
            kept = self._opened[path]
        return Source(kept.name, kept.data)
