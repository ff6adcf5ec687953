"""All objects of a resource, page by page, of one version of the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Generic

import msgspec

from bayplan.kube_api.connection import JSON, Connection
from bayplan.kube_api.decoding import Decoding, LineBuffer, T, Undecodable, WatchEvent
from bayplan.kube_api.errors import GoneError
from bayplan.kube_api.resources import Resource

_METADATA_LIST = f"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON}"
_TRIES_IN_PAGES = 3


class Selection(msgspec.Struct, frozen=True):
    """Which objects of a resource are meant: all, or those of a namespace and of selectors in kubectl's grammar."""

    namespace: str | None = None
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False

    def query(self) -> dict[str, str]:
        wanted = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {name: value for name, value in wanted.items() if value}


ALL = Selection()


class ResourcePage(msgspec.Struct, Generic[T], frozen=True):
    """Some of the objects, and how many are still to come if the server says so; `last` closes the list."""

    items: Sequence[T | Undecodable]
    resource_version: str
    remaining: int | None
    last: bool


class Restarted(msgspec.Struct, frozen=True):
    """The version that the pages were of is gone: forget them all, the list starts again."""


async def pages(
    connection: Connection,
    resource: Resource,
    item_type: type[T],
    selection: Selection = ALL,
    *,
    limit: int = 500,
) -> AsyncIterator[ResourcePage[T] | Restarted]:
    """
    The pages in order. A list whose version vanishes midway starts again, and after some tries comes in one piece.

    The event loop is free between any two pages.
    """
    decoding = Decoding(item_type)
    for tries_left in reversed(range(_TRIES_IN_PAGES + 1)):
        try:
            async for page in _attempt(connection, resource, decoding, selection, limit if tries_left else 0):
                yield page
        except GoneError:
            if not tries_left:
                raise
            yield Restarted()
        else:
            return


async def _attempt(
    connection: Connection, resource: Resource, decoding: Decoding[T], selection: Selection, limit: int
) -> AsyncIterator[ResourcePage[T]]:
    path = resource.path(selection.namespace)
    query = selection.query()
    if limit:
        query["limit"] = str(limit)
    accept = _METADATA_LIST if selection.metadata_only else JSON
    while True:
        body = await connection.get(path, query=query, accept=accept)
        await asyncio.sleep(0)  # a page takes milliseconds to read, to decode and to use: each in a turn of its own
        meta, slices = decoding.page(connection.tried("GET", path), body)
        del body
        held: Sequence[T | Undecodable] = next(slices, ())
        for items in slices:
            yield ResourcePage(held, meta.resource_version, meta.remaining_item_count, last=False)
            await asyncio.sleep(0)
            held = items
        await asyncio.sleep(0)
        yield ResourcePage(held, meta.resource_version, meta.remaining_item_count, last=not meta.continue_)
        if not meta.continue_:
            return
        query["continue"] = meta.continue_


class Listed(msgspec.Struct, Generic[T], frozen=True):
    items: list[T]
    unreadable: list[Undecodable]
    resource_version: str


async def everything(
    connection: Connection, resource: Resource, item_type: type[T], selection: Selection = ALL, *, limit: int = 500
) -> Listed[T]:
    """All objects at once, for those who read a cluster a single time."""
    items: list[T] = []
    unreadable: list[Undecodable] = []
    version = ""
    async for page in pages(connection, resource, item_type, selection, limit=limit):
        if isinstance(page, Restarted):
            items.clear()
            unreadable.clear()
            continue
        version = page.resource_version
        for item in page.items:
            if isinstance(item, Undecodable):
                unreadable.append(item)
            else:
                items.append(item)
    return Listed(items, unreadable, version)


# RF merged from kube_api.watching: One watch of a resource, from a version on, until the stream ends.


_METADATA = f"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{JSON}"


async def events(
    connection: Connection,
    resource: Resource,
    decoding: Decoding[T],
    resource_version: str,
    selection: Selection = ALL,
    *,
    timeout_seconds: int,
    inactivity: float,
) -> AsyncGenerator[Sequence[WatchEvent[T | Undecodable]], None]:
    """
    Events in the batches that the network brings, bookmarks among them, until the server ends the stream.

    Silence of `inactivity` seconds is an error: servers send a bookmark about every minute. A line that the end of the
    stream cuts off is lost here and comes again with the next watch.
    """
    path = resource.path(selection.namespace)
    query = selection.query() | {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(timeout_seconds),
        "resourceVersion": resource_version,
    }
    accept = _METADATA if selection.metadata_only else JSON
    lines = LineBuffer()
    tried = connection.tried("WATCH", path)
    async with connection.stream(path, query=query, accept=accept, inactivity=inactivity) as chunks:
        async for chunk in chunks:
            if whole := lines.feed(chunk):
                yield decoding.events(tried, whole)
