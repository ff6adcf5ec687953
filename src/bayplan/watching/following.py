"""
Follows a live cluster for commands that answer again whenever it changes: listed once, then watched.

The objects are kept as the server sends them, and every answer reads them as a dump. Does not know the answers.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator
from typing import Self

import msgspec

from bayplan.kube_api import resources
from bayplan.kube_api.connection import JSON, Connection
from bayplan.kube_api.decoding import DECODE_ERRORS, Key, SentObject, Undecodable
from bayplan.kube_api.reflector import Reflector
from bayplan.kube_api.resources import Resource
from bayplan.reading.documents import Source
from bayplan.watching.background_tasks import wait_for_any
from bayplan.watching.fetching import ClusterFetcher
from bayplan.wire import kinds
from bayplan.wire.meta import ApiObject

SETTLE_SECONDS = 0.3  # without a change, before the next answer
MAX_SETTLE_SECONDS = 3.0  # a cluster that never settles is answered for this often
POLL_SECONDS = 0.5  # between two looks at what is not watched


class FollowedResource:
    """
    The objects of one resource as the server sends them; `is_new` if one is new, gone or differs since they were read.

    Whether one differs is judged by the fields that decisions read, so the heartbeat of a node is no change. `changed`
    is set whenever `is_new` becomes true.
    """

    def __init__(self, resource: Resource, changed: asyncio.Event) -> None:
        self._row = next(row for row in kinds.KINDS.values() if resources.resource_of(row) == resource)
        self._decoder = msgspec.json.Decoder(self._row.wire_type or ApiObject)
        self._raws: dict[Key, bytes] = {}
        self._read: dict[Key, bytes] = {}  # a digest of the fields that are read
        self._changed = changed
        self.is_new = False

    def as_list(self) -> bytes:
        """All objects as a list in JSON, in the order of their names."""
        self.is_new = False
        head = {"apiVersion": self._row.api_version, "kind": f"{self._row.kind}List"}
        items = [msgspec.Raw(raw) for _, raw in sorted(self._raws.items())]
        return msgspec.json.encode({**head, "items": items})

    # Called by the reflector

    def upsert(self, obj: SentObject) -> None:
        key = Key(obj.metadata.namespace, obj.metadata.name)
        self._raws[key] = obj.raw
        read = self._digest(obj.raw)
        if self._read.get(key) != read:
            self._read[key] = read
            self._has_changed()

    def undecodable(self, found: Undecodable) -> None:
        self._raws[found.key] = found.raw
        self._read.pop(found.key, None)
        self._has_changed()

    def delete(self, key: Key, _uid: str) -> None:
        self._raws.pop(key, None)
        self._read.pop(key, None)
        self._has_changed()

    def synced(self) -> None:
        pass

    def _has_changed(self) -> None:
        self.is_new = True
        self._changed.set()

    def _digest(self, raw: bytes) -> bytes:
        try:
            found = self._decoder.decode(raw)
        except DECODE_ERRORS:
            read = raw
        else:
            found.metadata.resource_version = ""
            read = msgspec.json.encode(found)
        return hashlib.blake2b(read, digest_size=16).digest()


class FollowedCluster(ClusterFetcher):
    """
    A live cluster whose objects are watched from the first time that they are asked for, inside the block.

    `on_trouble` is told why a watch ended; it is tried again. The watches only move while `wait` waits.
    """

    def __init__(self, connection: Connection, on_trouble: Callable[[str], None]) -> None:
        super().__init__(connection)
        self._on_trouble = on_trouble
        self._runner = asyncio.Runner()
        self._changed = asyncio.Event()
        self._followed: dict[Resource, tuple[FollowedResource, asyncio.Task[None]]] = {}

    def __enter__(self) -> Self:
        self._runner.run(self._connection.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._connection.__aexit__(None, None, None))
        self._runner.close()  # ends the watches

    def sources(self) -> Iterator[Source]:
        """Every object as it is now; what could not be listed is in `notes`, and is tried again the next time."""
        self.notes, self.kinds_not_listed = [], set()
        if not self._followed:
            self._runner.run(self._connection.version())
        yield from self._all(self._runner)

    def wait(self, has_changed: Callable[[], bool]) -> None:
        """Return when an object has changed, or what is asked every half second, and no change follows for a while."""
        self._runner.run(self._wait(has_changed))

    async def _wait(self, has_changed: Callable[[], bool]) -> None:
        while not any(kept.is_new for kept, _ in self._followed.values()) and not has_changed():
            self._changed.clear()
            await wait_for_any(self._changed, timeout=POLL_SECONDS)
        loop = asyncio.get_running_loop()
        end = loop.time() + MAX_SETTLE_SECONDS
        while True:
            self._changed.clear()
            await wait_for_any(self._changed, timeout=SETTLE_SECONDS)
            if not (self._changed.is_set() or has_changed()) or loop.time() > end:
                return

    def _list(self, resource: Resource, runner: asyncio.Runner, *, accept: str = JSON) -> Iterator[Source]:
        """The objects of a resource as they are now; the metadata of templates is listed anew."""
        if accept != JSON:
            return super()._list(resource, runner, accept=accept)
        kept = runner.run(self._followed_resource(resource))
        name = f"{self._connection.context_name or self._connection.server} {resource}"
        return iter([Source(name, kept.as_list())])

    async def _followed_resource(self, resource: Resource) -> FollowedResource:
        """The resource, listed at least once; raises the error of its first list."""
        if resource not in self._followed:
            kept = FollowedResource(resource, self._changed)
            reflector = Reflector(self._connection, resource, SentObject, kept, on_trouble=self._on_trouble)
            watching = asyncio.ensure_future(reflector.run())
            listed = asyncio.ensure_future(reflector.synced.wait())
            await asyncio.wait([watching, listed], return_when=asyncio.FIRST_COMPLETED)
            listed.cancel()
            if watching.done():
                watching.result()  # raises
            self._followed[resource] = kept, watching
        return self._followed[resource][0]
