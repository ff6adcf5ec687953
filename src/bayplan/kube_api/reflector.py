"""
A view of one resource that stays true: list, watch, and when the watch cannot go on, list again and find what changed.

Tells its handler of every change once, deletions during a gap included. Keeps no objects: only which version of which
object the handler has seen.
"""

from __future__ import annotations

import asyncio
import contextlib
import random as randomness
import time
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

from bayplan.kube_api import listing
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.decoding import Decoding, Identity, Key, T, Undecodable, WatchEvent, identity
from bayplan.kube_api.errors import ApiError, GoneError, KubeError, TooManyRequestsError
from bayplan.kube_api.listing import ALL, Restarted, Selection
from bayplan.kube_api.pacing import Backoff
from bayplan.kube_api.resources import Resource
from bayplan.wire.meta import ApiObject

_WATCH_SECONDS = (300, 600)
_INACTIVITY = 150.0
_HOLD = 0.01  # seconds that we keep the event loop before others get a turn
_SHORT_WATCH = 1.0
_FAILURES_BEFORE_RELIST = 3

Handled_contra = TypeVar("Handled_contra", bound=ApiObject, contravariant=True)


class Handler(Protocol[Handled_contra]):
    """Who keeps what the reflector finds. Each call is quick: the event loop waits for it."""

    def upsert(self, obj: Handled_contra) -> None:
        """The object is new or changed."""

    def delete(self, key: Key, uid: str) -> None:
        """The object is no more. Called for unreadable ones too."""

    def undecodable(self, found: Undecodable) -> None:
        """An object is new or changed, and cannot be read; what is known of an older version of it no longer holds."""

    def synced(self) -> None:
        """All objects of a list have been told of; called after the first list and after every later one."""


class Reflector(Generic[T]):
    """
    Follow one resource for ever, in `run`.

    Before the first list stands, an error that will not pass by itself ends `run`: no rights, no such resource, nobody
    at that address. Later nothing does: `on_trouble` is told, and it is tried again.
    """

    def __init__(
        self,
        connection: Connection,
        resource: Resource,
        item_type: type[T],
        handler: Handler[T],
        selection: Selection = ALL,
        *,
        limit: int = 500,
        inactivity: float = _INACTIVITY,
        on_trouble: Callable[[str], None] = lambda _text: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: randomness.Random | None = None,
    ) -> None:
        self.resource = resource
        self.synced = asyncio.Event()
        self.last_resource_version = ""
        self.lists = self.relists = self.events = self.restarts = 0
        self._connection, self._item_type, self._handler, self._selection = connection, item_type, handler, selection
        self._decoding = Decoding(item_type)
        self._limit, self._inactivity = limit, inactivity
        self._on_trouble, self._clock, self._sleep = on_trouble, clock, sleep
        self._random = random or randomness.Random()  # noqa: S311
        self._backoff = Backoff(self._random)
        self._known: dict[Key, tuple[str, str]] = {}  # uid and version
        self._loop_since = 0.0

    def __len__(self) -> int:
        """How many objects there are, unreadable ones included."""
        return len(self._known)

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            await self._list_at_last()
            await self._watch_on()

    async def _list_at_last(self) -> None:
        while True:
            try:
                await self._list()
            except KubeError as error:
                if not error.passing and not self.synced.is_set():
                    raise
                wait = self._pause_after(error)
            else:
                return
            await self._sleep(wait)  # not in the block above: whoever holds an error holds what led to it

    async def _list(self) -> None:
        seen: set[Key] = set()
        async for page in listing.pages(
            self._connection, self.resource, self._item_type, self._selection, limit=self._limit
        ):
            if isinstance(page, Restarted):
                seen.clear()
                continue
            for item in page.items:
                found = identity(item)
                self._tell(item, found)
                seen.add(found.key)
                await self._breathe()
            self.last_resource_version = page.resource_version
        if len(seen) < len(self._known):  # all that was seen is known: of equally many, none has vanished
            for key in [key for key in self._known if key not in seen]:
                self._forget(key)
                await self._breathe()
        self.lists += 1
        self.relists += self.synced.is_set()
        self._backoff.reset()
        self.synced.set()
        self._handler.synced()

    async def _watch_on(self) -> None:
        """Watch after watch from where the last one ended; returns when only a new list can help."""
        failures = 0
        while True:
            began, events_before = self._clock(), self.events
            wait, needs_list = 0.0, False
            try:
                await self._watch()
                if self._clock() - began < _SHORT_WATCH and self.events == events_before:
                    wait = self._pause_after("the watch ended at once")
            except GoneError:
                return
            except KubeError as error:
                wait = self._pause_after(error)
                failures = 1 if self.events > events_before else failures + 1
                needs_list = _needs_list(error, failures)
            if wait:
                await self._sleep(wait)
            if needs_list:
                return
            self.restarts += 1

    async def _watch(self) -> None:
        stream = listing.events(
            self._connection,
            self.resource,
            self._decoding,
            self.last_resource_version,
            self._selection,
            timeout_seconds=self._random.randint(*_WATCH_SECONDS),
            inactivity=self._inactivity,
        )
        async with contextlib.aclosing(stream) as batches:
            async for batch in batches:
                self._backoff.reset()
                for event in batch:
                    self._take(event)
                    await self._breathe()

    def _take(self, event: WatchEvent[T | Undecodable]) -> None:
        self.events += 1
        found = identity(event.object)
        if event.type == "DELETED":
            self._forget(found.key)
        elif event.type != "BOOKMARK":
            self._tell(event.object, found)
        self.last_resource_version = found.resource_version or self.last_resource_version

    def _tell(self, item: T | Undecodable, found: Identity) -> None:
        key, uid, version = found
        known = self._known.get(key)
        if known == (uid, version):
            return
        if known is not None and known[0] != uid:
            self._forget(key)
        self._known[key] = (uid, version)
        if isinstance(item, Undecodable):
            self._handler.undecodable(item)
        else:
            self._handler.upsert(item)

    def _forget(self, key: Key) -> None:
        known = self._known.pop(key, None)
        if known is not None:
            self._handler.delete(key, known[0])

    async def _breathe(self) -> None:
        """Let others have the event loop, if we have kept it for long."""
        if self._clock() - self._loop_since > _HOLD:
            await asyncio.sleep(0)
            self._loop_since = self._clock()

    def _pause_after(self, trouble: KubeError | str) -> float:
        wait = self._backoff.next()
        if isinstance(trouble, ApiError) and trouble.retry_after:
            wait += trouble.retry_after
        self._on_trouble(f"{self.resource}: {trouble}; next try in {wait:.1f} s")
        return wait


def _needs_list(error: KubeError, failures: int) -> bool:
    """Whether it may be our version that the server refuses: after a restore it can be ahead of the server's own."""
    if not isinstance(error, ApiError) or isinstance(error, TooManyRequestsError):
        return False
    return not error.passing or failures >= _FAILURES_BEFORE_RELIST
