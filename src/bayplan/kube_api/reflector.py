"""
A reflector: lists one resource, watches it, and lists again when the watch cannot continue.

The handler receives each change once, including deletions that happened between two watches. Keeps no objects, only
the version of each object that the handler has received.

A server reports changes in the order of their versions, which are numbers. An event with a lower version than one
before tells of the past, as after a restore of etcd or from a faulty proxy: it is ignored, and a list tells what is.
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
from bayplan.kube_api.errors import (
    ApiError,
    BrokenAnswerError,
    GoneError,
    KubeError,
    NotFoundError,
    TooManyRequestsError,
)
from bayplan.kube_api.listing import ALL, Restarted, Selection
from bayplan.kube_api.pacing import Backoff
from bayplan.kube_api.resources import Resource
from bayplan.wire.meta import ApiObject

_WATCH_TIMEOUT_SECONDS = (300, 600)  # chosen at random in between, so that watches do not all end at once
_INACTIVITY_SECONDS = 150.0
_MAX_LOOP_HOLD_SECONDS = 0.01  # work between two turns of the event loop
_SHORT_WATCH_SECONDS = 1.0
_FAILURES_BEFORE_RELIST = 3
_MAX_RETRY_AFTER_SECONDS = 60.0  # that a server can ask for
_STALE_RELIST_SECONDS = 60.0  # since the last list, before a watch that went back in time leads to another
_QUICK_RELIST_SECONDS = 10.0  # after a list, in which its version should not expire
_MAX_TROUBLES_REPORTED = 16  # in other words each, until something succeeds
_MAX_VERSION_DIGITS = 20  # of 64 bits
_CHANGES = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK"})

Handled_contra = TypeVar("Handled_contra", bound=ApiObject, contravariant=True)


class Handler(Protocol[Handled_contra]):
    """Receives what the reflector finds. Each call must be quick, because the event loop waits for it."""

    def upsert(self, obj: Handled_contra) -> None:
        """An object is new or has changed."""

    def delete(self, key: Key, uid: str) -> None:
        """An object was deleted. Called for undecodable objects too."""

    def undecodable(self, found: Undecodable) -> None:
        """An object is new or has changed and cannot be decoded; its previous version is no longer valid."""

    def synced(self) -> None:
        """All objects of a list were delivered; called after the first list and after each later one."""


class _ListDueError(Exception):
    """The watch cannot be trusted."""


class Reflector(Generic[T]):
    """
    Lists and watches one resource until `run` is cancelled.

    Until the first list has succeeded, an error that is not retriable ends `run`: forbidden, no such resource unless it
    `may_be_missing`, no connection. After that every error is retried, and passed to `on_trouble`: once, until a list
    or a watch has succeeded.
    """

    def __init__(
        self,
        connection: Connection,
        resource: Resource,
        item_type: type[T],
        handler: Handler[T],
        selection: Selection = ALL,
        *,
        may_be_missing: bool = False,
        limit: int = 500,
        inactivity: float = _INACTIVITY_SECONDS,
        on_trouble: Callable[[str], None] = lambda _text: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: randomness.Random | None = None,
    ) -> None:
        self.resource = resource
        self.synced = asyncio.Event()
        self.last_resource_version = ""
        self.lists = self.relists = self.events = self.stale_events = self.restarts = 0
        self._connection, self._item_type, self._handler, self._selection = connection, item_type, handler, selection
        self._decoding = Decoding(item_type)
        self._may_be_missing, self._limit, self._inactivity = may_be_missing, limit, inactivity
        self._on_trouble, self._clock, self._sleep = on_trouble, clock, sleep
        self._random = random or randomness.Random()  # noqa: S311
        self._backoff, self._relist_backoff = Backoff(self._random), Backoff(self._random)
        self._known: dict[Key, tuple[str, str]] = {}  # uid and version
        self._loop_since = 0.0
        self._listed_at = 0.0
        self._position = 0  # the version of the last list or event, as a number; 0 if it is none
        self._reports_stale = True
        self._reported: set[str] = set()  # troubles since the last success
        self._expired_quickly = False

    def __len__(self) -> int:
        """The number of objects, including undecodable ones."""
        return len(self._known)

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            await self._list_until_done()
            await self._watch_until_relist()

    async def _list_until_done(self) -> None:
        while True:
            try:
                await self._list()
            except KubeError as error:
                if not (error.retriable or self.synced.is_set() or self._waits_for(error)):
                    raise
                wait = self._pause_after(error)
            else:
                return
            await self._sleep(wait)  # not in the block above: an exception keeps its frames alive

    def _waits_for(self, error: KubeError) -> bool:
        return self._may_be_missing and isinstance(error, NotFoundError)

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
                self._deliver(item, found)
                seen.add(found.key)
                await self._yield_to_loop()
            self._advance(page.resource_version)
        if len(seen) < len(self._known):  # everything seen is known, so equal counts mean that none was deleted
            for key in [key for key in self._known if key not in seen]:
                self._forget(key)
                await self._yield_to_loop()
        self._listed_at, self._reports_stale = self._clock(), True
        self.lists += 1
        self.relists += self.synced.is_set()
        self._succeeded()
        self.synced.set()
        self._handler.synced()

    async def _watch_until_relist(self) -> None:
        """Watch again from where the last watch ended; returns when a new list is needed."""
        failures = 0
        while True:
            began, events_before = self._clock(), self.events
            wait, needs_list = 0.0, False
            try:
                await self._watch()
                if self._clock() - began < _SHORT_WATCH_SECONDS and self.events == events_before:
                    wait = self._pause_after("the watch ended immediately")
            except (GoneError, _ListDueError):
                wait, needs_list = self._pause_before_relist(), True
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
        stream = listing.watch(
            self._connection,
            self.resource,
            self._decoding,
            self.last_resource_version,
            self._selection,
            timeout_seconds=self._random.randint(*_WATCH_TIMEOUT_SECONDS),
            inactivity=self._inactivity,
        )
        async with contextlib.aclosing(stream) as batches:
            async for batch in batches:
                self._succeeded()
                for event in batch:
                    self._handle(event)
                    await self._yield_to_loop()

    def _handle(self, event: WatchEvent[T | Undecodable]) -> None:
        self.events += 1
        found = identity(event.object)
        version = found.resource_version
        if 0 < _number(version) < self._position or event.type not in _CHANGES:
            self._ignore(event.type, found)
            return
        if event.type == "DELETED":
            self._forget(found.key)
        elif event.type != "BOOKMARK":
            self._deliver(event.object, found)
        if version:
            self._advance(version)

    def _advance(self, version: str) -> None:
        self.last_resource_version = version
        self._position = _number(version)

    def _ignore(self, event_type: str, found: Identity) -> None:
        """Ignore an event of the past. The first after a list is reported; all are counted."""
        self.stale_events += 1
        if self._reports_stale:
            self._reports_stale = False
            self._on_trouble(
                f"{self.resource}: ignored the event {event_type} of {found.key} at version {found.resource_version}: "
                f"the watch was at version {self.last_resource_version} already"
            )
        if self._clock() - self._listed_at > _STALE_RELIST_SECONDS:
            raise _ListDueError

    def _deliver(self, item: T | Undecodable, found: Identity) -> None:
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

    async def _yield_to_loop(self) -> None:
        """Give the event loop a turn if it has been held for long."""
        if self._clock() - self._loop_since > _MAX_LOOP_HOLD_SECONDS:
            await asyncio.sleep(0)
            self._loop_since = self._clock()

    def _pause_before_relist(self) -> float:
        """
        How long to wait before the next list, because the version of the last one has expired.

        A server whose every version expires at once would otherwise be asked for list after list, without a pause.
        """
        if self._clock() - self._listed_at >= _QUICK_RELIST_SECONDS:
            self._expired_quickly = False
            self._relist_backoff.reset()
        elif self._expired_quickly:
            wait = self._relist_backoff.next()
            self._on_trouble(f"{self.resource}: the version of the last list has expired; listing in {wait:.1f} s")
            return wait
        else:
            self._expired_quickly = True
        return 0.0

    def _pause_after(self, trouble: KubeError | str) -> float:
        wait = self._backoff.next()
        if isinstance(trouble, ApiError) and trouble.retry_after:
            wait += min(trouble.retry_after, _MAX_RETRY_AFTER_SECONDS)
        text = str(trouble)
        if text not in self._reported and len(self._reported) < _MAX_TROUBLES_REPORTED:
            self._reported.add(text)
            self._on_trouble(f"{self.resource}: {text}; retrying in {wait:.1f} s")
        return wait

    def _succeeded(self) -> None:
        self._backoff.reset()
        self._reported.clear()


def _number(version: str) -> int:
    """The version as a number to compare; 0 if it is none."""
    return int(version) if version.isdecimal() and len(version) <= _MAX_VERSION_DIGITS else 0


def _needs_list(error: KubeError, failures: int) -> bool:
    """
    Whether only a list can tell what has changed.

    A line that cannot be read hides a change. And a server may reject our resource version, which can be newer than its
    own after a restore of etcd.
    """
    if isinstance(error, BrokenAnswerError):
        return True
    if not isinstance(error, ApiError) or isinstance(error, TooManyRequestsError):
        return False
    return not error.retriable or failures >= _FAILURES_BEFORE_RELIST
