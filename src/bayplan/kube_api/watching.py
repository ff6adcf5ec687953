"""One watch of a resource, from a version on, until the stream ends."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from bayplan.kube_api.connection import JSON, Connection
from bayplan.kube_api.decoding import Decoding, T, Undecodable, WatchEvent
from bayplan.kube_api.lines import LineBuffer
from bayplan.kube_api.listing import ALL, Selection
from bayplan.kube_api.resources import Resource

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
