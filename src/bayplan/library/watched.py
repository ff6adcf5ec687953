"""
A state that is read again whenever it changes: files by their size and time, a live cluster by watches.

Does not know what is asked about it.
"""

from __future__ import annotations

import pathlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from bayplan.library.inputs import STANDARD_INPUT, FetchedLists, InputSpec, Kept, Materials, Scope, Show, Supposed

if TYPE_CHECKING:
    from bayplan.library.cluster import Cluster
    from bayplan.library.fleet import Fleet
    from bayplan.library.reading import Reading
    from bayplan.watching.following import FollowedCluster

POLL_SECONDS = 0.5
MAX_SETTLE_SECONDS = 3.0  # a file that is written without a pause is read this often
# The times of files are as coarse as this in some file systems: a second write may leave the same time and size.
TICK_NANOSECONDS = 2_000_000_000
Look = tuple[tuple[str, int, int, int], ...]  # path, size, time of the last change in nanoseconds, inode


class WatchedState:
    """
    The state of one specification, each time as it is then; use it in a `with` block.

    `on_trouble` is told once, until it changes again, why the cluster cannot be followed for now. `on_look` is called
    at each look at the files, twice a second; what it raises ends `wait`.
    """

    def __init__(
        self,
        spec: InputSpec,
        supposed: Supposed,
        on_trouble: Callable[[str], None],
        on_look: Callable[[], None] = lambda: None,
    ) -> None:
        self._spec, self._supposed, self._on_trouble, self._on_look = spec, supposed, on_trouble, on_look
        self._kept = Kept()
        self._cluster: FollowedCluster | None = None
        self._seen: Look = ()
        self._was_just_written = False
        self._is_troubled = False

    def __enter__(self) -> Self:
        if self._spec.connect is not None:
            from bayplan.watching.following import FollowedCluster

            self._cluster = FollowedCluster(self._spec.connect(), self._tell_once)
            self._cluster.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._cluster is not None:
            self._cluster.__exit__()

    def now(self, scope: Scope, show: Show) -> Cluster | Fleet:
        """The state as it is now."""
        from bayplan.library import fleet

        self._look_again()
        return fleet.opened(self._spec, scope, self._supposed, show, Materials(self._spec, self._kept))

    def reading(self) -> Reading:
        """The state as it is now, for questions of its own; what it was read from stays as it is for changes of it."""
        from bayplan.library.reading import Reading

        self._look_again()
        return Reading(self._spec, Materials(self._spec, Kept(live=self._kept.live)))

    def _look_again(self) -> None:
        """Forget what was read before."""
        self._kept.files = None
        now = time.time_ns()
        self._seen = self._look()  # before it is read: what changes meanwhile is another state
        self._was_just_written = any(abs(now - changed) < TICK_NANOSECONDS for _, _, changed, _ in self._seen)
        if self._cluster is not None:
            listed = [(one.name, bytes(one.data)) for one in self._cluster.sources()]
            not_listed, notes = tuple(self._cluster.kinds_not_listed), tuple(self._cluster.notes)
            self._kept.live = FetchedLists(listed, not_listed, notes)

    def wait(self) -> None:
        """Return once a file or the cluster has changed, and then nothing more for a while."""
        if self._cluster is not None:
            self._cluster.wait(self._has_changed)
            self._is_troubled = False
            return
        if self._was_just_written:  # perhaps half of it was read
            time.sleep(POLL_SECONDS)
        else:
            while not self._has_changed():
                time.sleep(POLL_SECONDS)
        end = time.monotonic() + MAX_SETTLE_SECONDS
        seen = None
        while seen != (seen := self._look()) and time.monotonic() < end:
            time.sleep(POLL_SECONDS)

    def _tell_once(self, trouble: str) -> None:
        if not self._is_troubled:
            self._on_trouble(f"the cluster cannot be followed for now: {trouble}")
        self._is_troubled = True

    def _has_changed(self) -> bool:
        self._on_look()
        return self._look() != self._seen

    def _look(self) -> Look:
        """Every file, and what changes when it is written."""
        from bayplan.reading import files

        spec = self._spec
        added = [one for one in self._supposed.add_node if isinstance(one, str) and not one.startswith("like=")]
        paths = [path for path in (*spec.change.paths, *spec.state.paths, *added) if path != STANDARD_INPUT]
        found = files.find_files(paths, recursive=spec.change.recursive | spec.state.recursive)
        return tuple(_looked_at(path) for path in sorted(found.files))


def _looked_at(path: str) -> tuple[str, int, int, int]:
    try:
        status = pathlib.Path(path).stat()
    except OSError:
        return path, -1, 0, 0
    return path, status.st_size, status.st_mtime_ns, status.st_ino
