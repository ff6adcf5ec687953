"""Lists the objects of a resource in pages of one resource version, and watches them from a version on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Generic

import msgspec

from bayplan.kube_api.connection import JSON, Connection
from bayplan.kube_api.decoding import Decoding, LineBuffer, T, Undecodable, WatchEvent
from bayplan.kube_api.errors import GoneError
from bayplan.kube_api.resources import Resource

METADATA_LIST = f"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON}"
_METADATA = f"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{JSON}"
_MAX_PAGED_ATTEMPTS = 3


class Selection(msgspec.Struct, frozen=True):
    """Which objects of a resource to list: all, or those in a namespace that match selectors in kubectl's grammar."""

    namespace: str | None = None
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False

    def query(self) -> dict[str, str]:
        selectors = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {name: value for name, value in selectors.items() if value}


ALL = Selection()


class ResourcePage(msgspec.Struct, Generic[T], frozen=True):
    """Some of the objects; `remaining` is how many follow, if the server reports it."""

    items: Sequence[T | Undecodable]
    resource_version: str
    remaining: int | None


class Restarted(msgspec.Struct, frozen=True):
    """The resource version of the pages has expired: discard them all, the list starts again."""


async def pages(
    connection: Connection,
    resource: Resource,
    item_type: type[T],
    selection: Selection = ALL,
    *,
    limit: int = 500,
) -> AsyncIterator[ResourcePage[T] | Restarted]:
    """
    The pages in order. A list whose version expires midway starts again; the last attempt is one unpaged request.

    Control returns to the event loop between any two pages.
    """
    decoding = Decoding(item_type)
    for attempts_left in reversed(range(_MAX_PAGED_ATTEMPTS + 1)):
        try:
            async for page in _attempt(connection, resource, decoding, selection, limit if attempts_left else 0):
                yield page
        except GoneError:
            if not attempts_left:
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
    accept = METADATA_LIST if selection.metadata_only else JSON
    while True:
        body = await connection.get(path, query=query, accept=accept)
        # Reading, decoding and using a page take milliseconds each, so each has an iteration of the event loop.
        await asyncio.sleep(0)
        meta, slices = decoding.page(connection.tried("GET", path), body)
        del body
        held: Sequence[T | Undecodable] = next(slices, ())
        for items in slices:
            yield ResourcePage(held, meta.resource_version, meta.remaining_item_count)
            await asyncio.sleep(0)
            held = items
        await asyncio.sleep(0)
        yield ResourcePage(held, meta.resource_version, meta.remaining_item_count)
        if not meta.continue_:
            return
        query["continue"] = meta.continue_


async def watch(
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
    Watch events in the batches that the network delivers, including bookmarks, until the server ends the stream.

    No data for `inactivity` seconds is an error: servers send a bookmark about every minute. A line cut off by the end
    of the stream is dropped; the next watch delivers it again.
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
