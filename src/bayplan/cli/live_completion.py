"""
Names of objects of a live cluster for completion: only names are requested, and only for a short time.

What cannot be listed gives no candidates, as a message would be written into the line that is being typed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli.options import InputOptions
from bayplan.errors import BayplanError

if TYPE_CHECKING:
    from bayplan.kube_api.connection import Connection
    from bayplan.wire.kinds import ApiKind

MAX_SECONDS = 2.0  # for a server that is far away; one nearby answers in some hundredths
_PAGE_SIZE = 1000
# What kubectl prints: the first cell of a row is the name. A server that has no tables sends the objects.
_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1,application/json"
_NO_OBJECTS = {"includeObject": "None"}


class _TableRow(msgspec.Struct, frozen=True):
    cells: tuple[object, ...] = ()


class _PageMetadata(msgspec.Struct, frozen=True):
    name: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _PartialObject(msgspec.Struct, frozen=True):
    metadata: _PageMetadata = _PageMetadata()


class _TablePage(msgspec.Struct, frozen=True):
    rows: tuple[_TableRow, ...] | None = None
    items: tuple[_PartialObject, ...] | None = None
    metadata: _PageMetadata = _PageMetadata()

    def names(self) -> list[str]:
        named = [str(row.cells[0]) for row in self.rows or () if row.cells]
        return named + [item.metadata.name for item in self.items or ()]


_decode = msgspec.json.Decoder(_TablePage).decode


def sources_of(ctx: click.Context) -> InputOptions | None:
    """The options of the command line as far as it is typed, if a live cluster is read with them."""
    given = {name: ctx.params.get(name) for name in InputOptions.__struct_fields__}
    for name in ("filename", "state", "as_group"):
        given[name] = tuple(given[name] or ())
    given |= {"recursive": False, "insecure_skip_tls_verify": bool(given["insecure_skip_tls_verify"])}
    found = msgspec.convert({**given, "request_timeout": f"{MAX_SECONDS}s"}, InputOptions)
    with ctx.scope(cleanup=False):  # the name of the program is that of the current context
        return found if found.is_live else None


def names(sources: InputOptions, rows: Iterable[ApiKind], namespace: str | None) -> list[tuple[ApiKind, str]]:
    """Kind and name of the objects of these kinds, in this namespace or in all; those that were listed in time."""
    found: list[tuple[ApiKind, str]] = []

    async def collect() -> None:
        async with asyncio.timeout(MAX_SECONDS), sources.open() as connection:
            await asyncio.gather(*(listed(connection, row) for row in rows))

    async def listed(connection: Connection, row: ApiKind) -> None:
        with contextlib.suppress(BayplanError, ValueError):
            async for page in _pages(connection, row, namespace):
                found.extend((row, name) for name in page.names())

    with contextlib.suppress(BayplanError, OSError, ValueError):
        asyncio.run(collect())
    return found


async def _pages(connection: Connection, row: ApiKind, namespace: str | None) -> AsyncIterator[_TablePage]:
    from bayplan.kube_api import resources

    query = {"limit": str(_PAGE_SIZE), **_NO_OBJECTS}
    while True:
        page = _decode(await connection.get(resources.resource_of(row).path(namespace), query=query, accept=_TABLE))
        yield page
        if not page.metadata.continue_:
            return
        query["continue"] = page.metadata.continue_
