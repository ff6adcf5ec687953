"""
What happened to a pod, as events that `kubectl describe` shows: kube-scheduler's words, and ours after them.

Repetitions are counted in the first event's series and not posted again. Events come after binds: they are sent by a
few workers from a bounded list, at a bounded pace, and what does not fit is dropped and counted.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from bayplan.errors import ClusterError
from bayplan.live.cluster_writer import ClusterWriter, PodGoneError, PodRef

REPORTER = "bayplan"
MAX_NOTE_BYTES = 1024  # bytes; the API server refuses longer ones
TRUNCATION_MARK = " ..."
MAX_TRACKED_EVENTS = 4096  # events whose repetitions are still counted
MAX_CONCURRENT_WRITES = 8  # events on their way at once
SERIES_UPDATE_SECONDS = 60.0  # seconds between two updates of a series


class _PostedEvent:
    """An event that was posted: its name, how often it happened, when that was last written."""

    __slots__ = ("count", "name", "namespace", "written")

    def __init__(self, namespace: str, name: str, now: float) -> None:
        self.namespace, self.name, self.count, self.written = namespace, name, 1, now


class _NewEvent(msgspec.Struct, frozen=True):
    key: tuple[str, str, str]
    body: dict[str, Any]


class _SeriesUpdate(msgspec.Struct, frozen=True):
    """`anew` is for servers that have thrown the first event away by now: they keep them for an hour."""

    namespace: str
    name: str
    count: int
    anew: _NewEvent


class EventRecorder:
    """Takes what happened at once and sends it in its own time. `clock` counts seconds, `wall` tells the time."""

    def __init__(
        self,
        writer: ClusterWriter,
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
        self._more = asyncio.Event()
        self._serial = 0
        self._next = 0.0  # when the next event may be sent
        self.dropped = 0

    def record(self, pod: PodRef, reason: str, note: str, *, action: str, warning: bool = False) -> None:
        """Something happened to a pod."""
        note = _truncated(note)
        key = (pod.uid or f"{pod.namespace}/{pod.name}", reason, note)
        known = self._posted.get(key)
        if known is not None:
            self._posted.move_to_end(key)
            known.count += 1
            if self._clock() - known.written >= SERIES_UPDATE_SECONDS:
                known.written = self._clock()
                anew = _NewEvent(key, self._body(pod, known.name, reason, note, action, warning=warning))
                self._enqueue(_SeriesUpdate(known.namespace, known.name, known.count, anew))
            return
        name = self._name(pod)
        self._posted[key] = _PostedEvent(pod.namespace, name, self._clock())
        while len(self._posted) > MAX_TRACKED_EVENTS:
            self._posted.popitem(last=False)
        self._enqueue(_NewEvent(key, self._body(pod, name, reason, note, action, warning=warning)))

    async def run(self) -> None:
        """Send for ever, a few at a time, no faster than allowed."""
        async with asyncio.TaskGroup() as group:
            for _ in range(MAX_CONCURRENT_WRITES):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            await self._more.wait()
            while self._unsent:
                now = self._clock()
                self._next = max(self._next + self._pause, now)
                one = self._unsent.popleft()
                if self._next > now:
                    await asyncio.sleep(self._next - now)
                await self._send(one)
            self._more.clear()

    async def flush(self) -> None:
        """Send what is there, at once."""
        while self._unsent:
            await self._send(self._unsent.popleft())

    async def _send(self, one: _NewEvent | _SeriesUpdate) -> None:
        try:
            if isinstance(one, _NewEvent):
                await self._writer.post_event(one.body)
            else:
                series = {"count": one.count, "lastObservedTime": _micro(self._wall())}
                await self._writer.patch_event(one.namespace, one.name, {"series": series})
        except PodGoneError:
            if isinstance(one, _SeriesUpdate):
                await self._send(one.anew)
            else:
                self._drop(one, "its namespace is gone")
        except ClusterError as error:
            # Events are a courtesy: a pod is placed whether or not its owner could be told.
            self._drop(one, str(error))

    def _drop(self, one: _NewEvent | _SeriesUpdate, why: str) -> None:
        self.dropped += 1
        if isinstance(one, _NewEvent):
            self._posted.pop(one.key, None)
        self._on_trouble(f"event not written: {why}")

    def _enqueue(self, one: _NewEvent | _SeriesUpdate) -> None:
        if len(self._unsent) >= self._backlog:
            self._unsent.popleft()
            self.dropped += 1
        self._unsent.append(one)
        self._more.set()

    def _name(self, pod: PodRef) -> str:
        # Unique over restarts, as the instance and its start are part of it.
        self._serial += 1
        stamp = int(self._wall().timestamp() * 1_000_000)
        return f"{pod.name[:200]}.{stamp:x}{self._serial:04x}"

    def _body(self, pod: PodRef, name: str, reason: str, note: str, action: str, *, warning: bool) -> dict[str, Any]:
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"namespace": pod.namespace, "name": name},
            "eventTime": _micro(self._wall()),
            "reportingController": REPORTER,
            "reportingInstance": self._instance[:128],
            "action": action,
            "reason": reason,
            "regarding": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": pod.namespace,
                "name": pod.name,
                "uid": pod.uid,
            },
            "note": note,
            "type": "Warning" if warning else "Normal",
        }


def _truncated(note: str) -> str:
    encoded = note.encode()
    if len(encoded) <= MAX_NOTE_BYTES:
        return note
    return encoded[: MAX_NOTE_BYTES - len(TRUNCATION_MARK)].decode(errors="ignore") + TRUNCATION_MARK


def _micro(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
