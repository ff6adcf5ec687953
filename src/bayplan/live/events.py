"""
Events about pods and bindings, as `kubectl describe` shows them.

Repetitions are counted in the series of the first event instead of being posted again. Events have a lower priority
than binds: a few workers send them from a bounded queue at a bounded rate; events that exceed it are dropped and
counted.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from bayplan.errors import ClusterError
from bayplan.live.cluster_writer import EventWriter, ObjectRef, PodGoneError

REPORTER = "bayplan"
CLUSTER_SCOPED_NAMESPACE = "default"  # where client-go puts events about cluster-scoped objects
MAX_NOTE_BYTES = 1024  # limit of the API server
TRUNCATION_MARK = " ..."
MAX_TRACKED_EVENTS = 4096  # events whose repetitions are counted
MAX_CONCURRENT_WRITES = 8
SERIES_UPDATE_SECONDS = 60.0  # minimum interval between two updates of a series


class _PostedEvent:
    """A posted event: its name, the number of occurrences, and when that number was last written."""

    __slots__ = ("count", "name", "namespace", "written")

    def __init__(self, namespace: str, name: str, now: float) -> None:
        self.namespace, self.name, self.count, self.written = namespace, name, 1, now


class _NewEvent(msgspec.Struct, frozen=True):
    key: tuple[str, str, str]
    body: dict[str, Any]


class _SeriesUpdate(msgspec.Struct, frozen=True):
    """`replacement` is posted if the first event no longer exists: API servers keep events for an hour."""

    namespace: str
    name: str
    count: int
    replacement: _NewEvent


class EventRecorder:
    """Accepts events immediately and sends them later. `clock` counts seconds, `wall` is the time of day."""

    def __init__(
        self,
        writer: EventWriter,
        instance: str,
        *,
        clock: Callable[[], float],
        wall: Callable[[], datetime],
        per_second: float = 500.0,
        backlog: int = 10_000,
        on_trouble: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._writer = writer
        self._instance = instance
        self._clock, self._wall = clock, wall
        self._pause = 1.0 / per_second
        self._backlog = backlog
        self._on_trouble = on_trouble
        self._posted: OrderedDict[tuple[str, str, str], _PostedEvent] = OrderedDict()
        self._unsent: deque[_NewEvent | _SeriesUpdate] = deque()
        self._idle_workers: list[asyncio.Future[None]] = []
        self._serial = 0
        self._next_send = 0.0
        self.dropped = 0

    def record(self, subject: ObjectRef, reason: str, note: str, *, action: str, warning: bool = False) -> None:
        """Queue an event about an object, or count it in the series of an equal event."""
        note = _truncated(note)
        key = (subject.uid or f"{subject.kind} {subject}", reason, note)
        known = self._posted.get(key)
        if known is not None:
            self._posted.move_to_end(key)
            known.count += 1
            if self._clock() - known.written >= SERIES_UPDATE_SECONDS:
                known.written = self._clock()
                replacement = _NewEvent(
                    key, self._body(subject, known.name, reason, note, action, at=self._wall(), warning=warning)
                )
                self._enqueue(_SeriesUpdate(known.namespace, known.name, known.count, replacement))
            return
        now = self._wall()
        name = self._unique_name(subject, now)
        self._posted[key] = _PostedEvent(_namespace_of(subject), name, self._clock())
        while len(self._posted) > MAX_TRACKED_EVENTS:
            self._posted.popitem(last=False)
        self._enqueue(_NewEvent(key, self._body(subject, name, reason, note, action, at=now, warning=warning)))

    async def run(self) -> None:
        """Send events until cancelled, a few at a time and within the rate."""
        async with asyncio.TaskGroup() as group:
            for _ in range(MAX_CONCURRENT_WRITES):
                group.create_task(self._send_queued())

    async def _send_queued(self) -> None:
        while True:
            while self._unsent:
                now = self._clock()
                self._next_send = max(self._next_send + self._pause, now)
                event = self._unsent.popleft()
                if self._next_send > now:
                    await asyncio.sleep(self._next_send - now)
                await self._send(event)
            idle = asyncio.get_running_loop().create_future()
            self._idle_workers.append(idle)
            await idle

    async def flush(self) -> None:
        """Send all queued events without a limit of the rate."""
        while self._unsent:
            await self._send(self._unsent.popleft())

    async def _send(self, event: _NewEvent | _SeriesUpdate) -> None:
        try:
            if isinstance(event, _NewEvent):
                await self._writer.post_event(event.body)
            else:
                series = {"count": event.count, "lastObservedTime": _micro_time(self._wall())}
                await self._writer.patch_event(event.namespace, event.name, {"series": series})
        except PodGoneError:
            if isinstance(event, _SeriesUpdate):
                await self._send(event.replacement)
            else:
                self._drop(event, "its namespace is gone")
        except ClusterError as error:
            # Placement does not depend on events.
            self._drop(event, str(error))

    def _drop(self, event: _NewEvent | _SeriesUpdate, why: str) -> None:
        self.dropped += 1
        if isinstance(event, _NewEvent):
            self._posted.pop(event.key, None)
        self._on_trouble(f"event not written: {why}")

    def _enqueue(self, event: _NewEvent | _SeriesUpdate) -> None:
        if len(self._unsent) >= self._backlog:
            self._unsent.popleft()
            self.dropped += 1
        self._unsent.append(event)
        # One event wakes one worker: the last to become idle, so that few connections are used while events are few.
        while self._idle_workers:
            idle = self._idle_workers.pop()
            if not idle.done():  # it was not cancelled
                idle.set_result(None)
                return

    def _unique_name(self, subject: ObjectRef, at: datetime) -> str:
        # The time keeps names unique across restarts.
        self._serial += 1
        stamp = int(at.timestamp() * 1_000_000)
        beginning = subject.name[:200].rstrip("-.")  # no part of a name between dots ends with a dash
        return f"{beginning}.{stamp:x}{self._serial:04x}"

    def _body(
        self, subject: ObjectRef, name: str, reason: str, note: str, action: str, *, at: datetime, warning: bool
    ) -> dict[str, Any]:
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"namespace": _namespace_of(subject), "name": name},
            "eventTime": _micro_time(at),
            "reportingController": REPORTER,
            "reportingInstance": self._instance[:128],
            "action": action,
            "reason": reason,
            "regarding": {
                "apiVersion": subject.api_version,
                "kind": subject.kind,
                "namespace": subject.namespace,
                "name": subject.name,
                "uid": subject.uid,
            },
            "note": note,
            "type": "Warning" if warning else "Normal",
        }


def _namespace_of(subject: ObjectRef) -> str:
    """Where an event is: that about a cluster-scoped object is in the default namespace."""
    return subject.namespace or CLUSTER_SCOPED_NAMESPACE


def _truncated(note: str) -> str:
    encoded = note.encode()
    if len(encoded) <= MAX_NOTE_BYTES:
        return note
    return encoded[: MAX_NOTE_BYTES - len(TRUNCATION_MARK)].decode(errors="ignore") + TRUNCATION_MARK


def _micro_time(at: datetime) -> str:
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
